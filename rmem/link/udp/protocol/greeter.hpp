// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a node says to others so that they believe its incarnation, and asks of them before it
/// believes theirs (docs/design/udp-link.md: Greeting).
///
///     greeter.owe(node, 0, now);               // a stranger was heard: it is asked
///     greeter.owe(node, greeting.nonce, now);  // it asked: it gets an answer
///     if (greeter.is_answered(node, greeting.answer, now)) …   // it is of now
///     if (now >= greeter.due_ns()) greeter.add_to(writer, flags, believed, now);
///
/// Invariants
///   A nonce is nobody else's and is never drawn twice; after renew() the former one is worth
///   nothing, nor after twice kNonceNs. At most kMaxGreetings are owed. What does not fit is
///   dropped: a node that is not answered speaks again.
/// Threads: one user at a time. Progress: no call waits.
/// Units: nanoseconds.

#include "rmem/base/time.hpp"
#include "rmem/link/udp/protocol/datagram_writer.hpp"

#include <cstdint>
#include <functional>
#include <vector>

namespace rmem::udp {

inline constexpr std::int64_t kGreetNs = 200'000;  ///< between two datagrams with greetings
/// Between two greetings of one node; it doubles up to kMaxGreetAgainNs while that one is not
/// believed: in a crowd that starts together most have no processor yet.
inline constexpr std::int64_t kGreetAgainNs = 10'000'000;
inline constexpr std::int64_t kMaxGreetAgainNs = 160'000'000;
inline constexpr std::int64_t kNonceNs = 1'000'000'000;  ///< older ones are not sent
inline constexpr std::size_t kMaxGreetings = 24;  ///< with a join they fit the smallest datagram

class RMEM_API Greeter {
public:
    /// `seed`: from a true source of random numbers, or of one that such a source began.
    Greeter(unsigned nodes, std::uint64_t first_incarnation, std::uint64_t seed);

    /// Whether that repeats what the node was asked.
    bool is_answered(unsigned node, std::uint64_t answer, std::int64_t now) const noexcept {
        return answer != 0 && answer == nodes_[node].nonce &&
               now - nodes_[node].drawn_ns < 2 * kNonceNs;
    }
    /// What it was asked is over.
    void renew(unsigned node) noexcept { nodes_[node] = Node{}; }

    /// The node is greeted; `answer`: its nonce, or 0 to ask it, which is done only now and then.
    void owe(unsigned node, std::uint64_t answer, std::int64_t now);
    std::int64_t due_ns() const noexcept { return owed_.empty() ? kNever : next_ns_; }
    /// Adds what is owed to the datagram. `believed`: the incarnation of a node that is believed, 0
    /// for none.
    void add_to(DatagramWriter& writer, std::uint16_t flags,
                const std::function<std::uint64_t(unsigned)>& believed, std::int64_t now);

private:
    friend struct PlantedBug;  ///< a test's, which a check finds
    struct Node {
        std::uint64_t nonce = 0;  ///< 0: none; no greeting answers that
        std::int64_t drawn_ns = 0;
        std::int64_t challenge_next_ns = 0;
        std::int64_t challenge_ns = kGreetAgainNs;  ///< from the next one to the one after it
    };
    struct Owed {
        unsigned node = 0;
        std::uint64_t answer = 0;
        friend bool operator==(const Owed&, const Owed&) = default;
    };

    std::uint64_t nonce(unsigned node, std::int64_t now) noexcept;

    std::uint64_t first_incarnation_;
    std::uint64_t state_;
    std::vector<Node> nodes_;
    std::vector<Owed> owed_;
    std::int64_t next_ns_ = 0;
};

}  // namespace rmem::udp
