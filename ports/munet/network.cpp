// SPDX-License-Identifier: Apache-2.0
#include "ports/munet/network.hpp"

#include "billboard/boards/layout.hpp"

#include <algorithm>
#include <array>
#include <cstring>

namespace ports::munet {

using billboard::Class;
using billboard::Deadline;

namespace {

Edge::Sent meaning_of(int code) noexcept {
    switch (code) {
        case BBP_OK: return Edge::Sent::yes;
        case BBP_EAGAIN:
        case BBP_ETIMEDOUT: return Edge::Sent::full;
        default: return Edge::Sent::lost;
    }
}

constexpr std::size_t kFrames = 96;  // a partition has room for as many

}  // namespace

Network::Network(billboard::Endpoint& endpoint, unsigned nodes)
    : endpoint_(endpoint), nodes_(nodes) {}

unsigned Network::rank_of(unsigned node, unsigned nodes, unsigned ranks) noexcept {
    return (node * ranks + nodes - 1) / nodes;  // the first r with r * nodes / ranks == node
}

std::size_t Network::chunk() const noexcept {
    return std::min(kChunk, endpoint_->partition_bytes() / kFrames);
}

Edge::Sent Network::send(unsigned node, std::span<const std::byte> head,
                         std::span<const std::byte> data) {
    const int dest = static_cast<int>(rank_of(node, nodes_, endpoint_->ranks()));
    const std::size_t bytes = head.size() + data.size();
    if (bytes <= endpoint_.short_bytes()) {
        std::array<std::byte, billboard::kTakenBytes> frame;
        std::memcpy(frame.data(), head.data(), head.size());
        if (!data.empty()) std::memcpy(frame.data() + head.size(), data.data(), data.size());
        return meaning_of(endpoint_.send(dest, frame.data(), bytes, Deadline::now()));
    }
    void* place = nullptr;
    if (const int code = endpoint_->compose(bytes, &place); code != BBP_OK) return meaning_of(code);
    std::memcpy(place, head.data(), head.size());
    std::memcpy(static_cast<std::byte*>(place) + head.size(), data.data(), data.size());
    const int code = endpoint_.post({&dest, 1}, place, bytes, Deadline::now());
    if (code != BBP_OK && code != BBP_EPEER) endpoint_->discard(place);
    return meaning_of(code);
}

bool Network::deliver_to(Relay& relay) {
    std::array<std::byte, billboard::kTakenBytes> small;
    billboard::Bytes frame;
    for (unsigned n = 0; n < kFramesPerLook; ++n) {
        const int from = endpoint_.take(small, frame, Deadline::now());
        if (from < 0) return n != 0;
        const unsigned node = static_cast<unsigned>(from) * nodes_ / endpoint_->ranks();
        relay.deliver(node, frame);
        endpoint_.release(small.data(), frame);
    }
    return true;
}

void Network::check(Relay& relay) {
    const std::vector<bool> partners = relay.partners();
    for (unsigned node = 0; node < nodes_; ++node) {
        if (!partners[node]) continue;
        const unsigned rank = rank_of(node, nodes_, endpoint_->ranks());
        if (endpoint_->available(static_cast<int>(rank), Class::munet) == BBP_EPEER) {
            relay.lose(node);
        }
    }
}

bool Network::is_over() {
    return endpoint_->available(static_cast<int>(endpoint_->rank()), Class::munet) == BBP_EPEER;
}

}  // namespace ports::munet
