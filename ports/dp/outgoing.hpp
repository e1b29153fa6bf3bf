// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One Directed Message on its way onto the ring: composed once, however often it has to be tried.
///
/// A short one is put together in private memory, a longer one where the billboard sends it from.
/// Thread safety: used while the process endpoint is held. Errors: results are the billboard's
/// codes.

#include "ports/common/port_endpoint.hpp"
#include "ports/dp/frame.hpp"
#include "rmem/base/marks.hpp"

#include <array>
#include <cstring>
#include <span>
#include <vector>

namespace ports::dp {

/// The rank's own, in class dp.
using Ring = PortEndpoint<billboard::Class::dp>;

class Outgoing {
public:
    /// `lead`: header and what else comes before the container.
    Outgoing(const Ring& ring, std::span<const int> dests, std::span<const std::byte> lead,
             std::span<const std::byte> container)
        : ring_(ring), dests_(dests), lead_(lead), container_(container) {
        if (is_short()) fill(short_.data());
    }
    ~Outgoing() {
        if (composed_ != nullptr) ring_->discard(composed_);
    }
    Outgoing(const Outgoing&) = delete;
    Outgoing& operator=(const Outgoing&) = delete;

    /// BBP_EAGAIN, BBP_ETIMEDOUT: try again.
    [[nodiscard]] int post(billboard::Deadline deadline) {
        if (is_short()) {
            return dests_.size() == 1 ? ring_.send(dests_[0], short_.data(), size(), deadline)
                                      : ring_.mcast(dests_, short_.data(), size(), deadline);
        }
        if (composed_ == nullptr) {
            if (const int result = ring_->compose(size(), &composed_); result != BBP_OK) {
                composed_ = nullptr;
                return result;
            }
            fill(static_cast<std::byte*>(composed_));
            RMEM_MARK("dp.composed");
        }
        const int result = ring_.post(dests_, composed_, size(), deadline);
        if (result == BBP_OK || result == BBP_EPEER)
            composed_ = nullptr;  // those that are alive have got it
        return result;
    }

private:
    [[nodiscard]] std::size_t size() const noexcept { return lead_.size() + container_.size(); }
    [[nodiscard]] bool is_short() const noexcept { return size() <= ring_.short_bytes(); }
    void fill(std::byte* to) const noexcept {
        std::memcpy(to, lead_.data(), lead_.size());
        if (!container_.empty())
            std::memcpy(to + lead_.size(), container_.data(), container_.size());
    }

    const Ring& ring_;
    std::span<const int> dests_;
    std::span<const std::byte> lead_, container_;
    std::array<std::byte, billboard::kTakenBytes> short_;
    void* composed_ = nullptr;
};

}  // namespace ports::dp
