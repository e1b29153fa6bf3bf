// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Which ranks of a ring are which parallel program.
///
/// Each rank says how many nodes its program has, none if it is no GAMMA process, and may name the
/// parallel PID. Those that name the same PID are that group, node numbers in the order of ranks.
/// The others form consecutive groups: the lowest that is in none, and as many after it as it asks
/// for; such groups get the lowest PIDs that nobody names. Every rank computes the same from the
/// same requests, so nothing but the requests has to be exchanged.
///
/// Thread safety: no shared state. Errors: `rmem::Error` (bad_environment) where requests
/// contradict each other.

#include "rmem/error.hpp"

#include <optional>
#include <span>
#include <vector>

namespace ports::gamma {

struct Request {
    unsigned nodes = 0;
    std::optional<unsigned> par_pid;

    [[nodiscard]] bool takes_part() const noexcept { return nodes != 0; }
};

/// The ring's rank of each node of a group; empty: there is no such group.
using Group = std::vector<int>;

/// The groups by parallel PID, up to the highest there is.
[[nodiscard]] RMEM_API std::vector<Group> form_groups(std::span<const Request> ranks);

}  // namespace ports::gamma
