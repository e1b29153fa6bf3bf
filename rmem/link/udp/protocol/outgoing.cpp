// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/outgoing.hpp"

#include "rmem/base/check.hpp"

namespace rmem::udp {

std::span<std::byte> Outgoing::lend() {
    if (spare_.empty()) {
        buffers_.push_back(std::make_unique_for_overwrite<std::byte[]>(kMaxPayload));
        spare_.reserve(buffers_.size());
        return {buffers_.back().get(), kMaxPayload};
    }
    std::byte* const buffer = spare_.back();
    spare_.pop_back();
    return {buffer, kMaxPayload};
}

void Outgoing::give_back(std::span<std::byte> buffer) noexcept {
    RMEM_CHECK(spare_.size() + places_.size() < buffers_.size());
    spare_.push_back(buffer.data());
}

/// One more place, with a buffer. False: there are as many as there may be.
bool Outgoing::grow() {
    if (places_.size() == kMaxOutgoing) {
        ++no_room_;
        return false;
    }
    const std::size_t filled = places_.size();
    places_.push_back({lend()});
    next_ = places_.data() + filled;
    end_ = next_ + 1;
    return true;
}

}  // namespace rmem::udp
