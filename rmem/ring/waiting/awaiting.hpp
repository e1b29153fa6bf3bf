// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whom a process waits for when it opens a node or messages, and who has come.
///
/// A node has come while it is a member, and from when a rank of it has joined, for as long as the
/// ring is there: one that has left since is not waited for.
/// Thread safety: functions; the environment is read as by getenv. Errors: Error(bad_environment).

#include "rmem/ring/config.hpp"

#include <optional>
#include <string>
#include <vector>

namespace rmem {

class Ring;

/// RMEM_AWAIT: all, none, or a number: all ranks of a job that has that many, in a ring that may
/// have more.
struct Await {
    std::optional<bool> others;  ///< nothing: it does not say
    unsigned ranks = kMaxRanks;

    RMEM_API static Await read();
    /// How many of a ring's `all` ranks are there or to come, from 0 on; all of them for a rank
    /// beyond the job's.
    unsigned expected(unsigned all, unsigned me) const noexcept {
        return me < ranks && ranks < all ? ranks : all;
    }
};

/// Nodes of the ranks below `expected` that have not come. On link udp the caller is a member.
[[nodiscard]] RMEM_API std::vector<unsigned> missing_nodes(const Ring& ring, unsigned expected);
/// "node 1", "nodes 1, 3".
[[nodiscard]] RMEM_API std::string names_of_nodes(const std::vector<unsigned>& nodes);
/// What the ring's own node says of others that it refuses, behind a "; "; empty: nothing.
[[nodiscard]] RMEM_API std::string heard_of_others(const Ring& ring);
/// The sentence of a node that has waited for them too long.
[[nodiscard]] RMEM_API std::string not_come(const Ring& ring, Member member);
/// Whether the ring has other nodes, and nobody is on one of them now, as far as is known without a
/// system call.
[[nodiscard]] RMEM_API bool is_alone(const Ring& ring, unsigned node) noexcept;

}  // namespace rmem
