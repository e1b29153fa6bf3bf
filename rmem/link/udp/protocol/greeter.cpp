// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/greeter.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/random.hpp"
#include "rmem/wire/faults.hpp"

#include <algorithm>

namespace rmem::udp {

namespace {

constexpr std::size_t kGreetedAtOnce = 8;  // of rings with more nodes more greetings leave together

}  // namespace

static_assert(kEnvelopeBytes + 2 * kSectionHeadBytes + kMaxGreetings * Greeting::kBytes +
                  Join::kBytes <=
              kLeastPayload);

Greeter::Greeter(unsigned nodes, std::uint64_t first_incarnation, std::uint64_t seed)
    : first_incarnation_(first_incarnation), state_(seed), nodes_(nodes) {}

std::uint64_t Greeter::nonce(unsigned node, std::int64_t now) noexcept {
    Node& asked = nodes_[node];
    if (asked.nonce != 0 && now - asked.drawn_ns < kNonceNs) return asked.nonce;
    do {
        asked.nonce = next_random(state_);
    } while (asked.nonce == 0);
    asked.drawn_ns = now;
    RMEM_CHECK(std::count_if(nodes_.begin(), nodes_.end(),
                             [&](const Node& other) { return other.nonce == asked.nonce; }) == 1);
    return asked.nonce;
}

void Greeter::owe(unsigned node, std::uint64_t answer, std::int64_t now) {
    if (answer == 0) {
        Node& asked = nodes_[node];
        if (now < asked.challenge_next_ns) return;
        asked.challenge_next_ns = now + asked.challenge_ns;
        asked.challenge_ns = std::min(2 * asked.challenge_ns, kMaxGreetAgainNs);
    }
    const Owed owed{node, answer};
    const bool is_owed = std::find(owed_.begin(), owed_.end(), owed) != owed_.end();
    if (!is_owed && owed_.size() < kMaxGreetings) owed_.push_back(owed);
    RMEM_CHECK(owed_.size() <= kMaxGreetings);
}

void Greeter::add_to(DatagramWriter& writer, std::uint16_t flags,
                     const std::function<std::uint64_t(unsigned)>& believed, std::int64_t now) {
    const auto left = std::find_if_not(owed_.begin(), owed_.end(), [&](const Owed& owed) {
        return writer.add_greeting({static_cast<std::uint16_t>(owed.node), flags,
                                    nonce(owed.node, now), owed.answer, believed(owed.node),
                                    first_incarnation_});
    });
    const auto crowd = static_cast<std::int64_t>(nodes_.size() / kGreetedAtOnce);
    if (left != owed_.begin()) next_ns_ = now + kGreetNs * std::max<std::int64_t>(crowd, 1);
    owed_.erase(owed_.begin(), left);
}

}  // namespace rmem::udp
