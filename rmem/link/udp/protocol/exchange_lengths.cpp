// SPDX-License-Identifier: Apache-2.0
// How long datagrams are: as long as reach all receivers (docs/design/udp-link.md: Length).
#include "rmem/link/udp/protocol/exchange.hpp"

#include <algorithm>
#include <utility>

namespace rmem::udp {

namespace {

/// Of the longest datagrams the window has at least as many: what is begun, what comes, and what is
/// under way meanwhile.
constexpr std::size_t kLeastWindow = 8;

}  // namespace

std::uint64_t Exchange::admit(unsigned node, std::int64_t now) {
    if (composing_ && peers_[node].payload < open_payload_) send_batch(Length::as_needed, now);
    const std::uint64_t first = out_.admit(node);
    find_payload();
    return first;
}

void Exchange::set_window(std::size_t charged) noexcept {
    out_.set_window(std::max(charged, kLeastWindow * bytes_charged(kLeastPayload)));
    find_payload();
}

/// The origin says what has reached it, and shows what reaches this node.
void Exchange::hear_of_payload(Peer& peer, const Header& header, std::size_t bytes) noexcept {
    reached_by_ = std::max(reached_by_, std::min(bytes, config_.payload));
    const auto reaches = std::clamp<std::size_t>(header.payload, kLeastPayload, kMostPayload);
    if (std::exchange(peer.payload, reaches) != reaches) find_payload();
}

/// What reaches all receivers, and of which the window has some.
void Exchange::find_payload() noexcept {
    std::size_t most = config_.payload;
    out_.receivers().for_each(
        [&](unsigned node) { most = std::min<std::size_t>(most, peers_[node].payload); });
    while (kLeastWindow * bytes_charged(most) > out_.window() && most > kLeastPayload) {
        most = std::max(most / 2 / kWordBytes * kWordBytes, kLeastPayload);
    }
    payload_ = most;
}

void Exchange::send_other_at_length(std::int64_t now) {
    bool all_know = !out_.receivers().empty();
    out_.receivers().for_each(
        [&](unsigned node) { all_know = all_know && peers_[node].payload >= config_.payload; });
    if (all_know || config_.sure >= config_.payload) return send_other(now);
    other_.set_limit(std::max(config_.payload, payload_));
    send(other_, now, Length::full);
}

}  // namespace rmem::udp
