// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The billboard as a port sees it: the process's endpoint, in the port's class.
///
///     PortEndpoint<billboard::Class::gamma> endpoint(process.endpoint());
///     endpoint.send(1, frame, bytes, Deadline::now());
///     endpoint->give_way();                             // what has no class
///
/// The one place that tells where calls are worth compiling in (billboard::Fastest): what a port
/// expects goes that way there, by the calls with "at once" and "briefly", and elsewhere by the
/// endpoint's own.
///
/// Thread safety: that of the endpoint, which outlives it. Errors: the billboard's codes.

#include "billboard/core/endpoint_core.hpp"
#include "billboard/endpoint.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace ports {

using billboard::Deadline;

template <billboard::Class kClass>
class PortEndpoint {
public:
    using Bytes = billboard::Bytes;
    using Dests = std::span<const int>;
    /// There is nothing that a quick look finds: ask take(), and now and then anyway.
    static constexpr int kNobody = billboard::Fastest::kNobody;

    PortEndpoint() = default;
    explicit PortEndpoint(billboard::Endpoint& endpoint) noexcept
        : endpoint_(&endpoint),
          fastest_(billboard::fastest(&endpoint)),
          short_bytes_(std::max(billboard::kInlineBytes, endpoint.short_bytes())) {}

    billboard::Endpoint& operator*() const noexcept { return *endpoint_; }
    billboard::Endpoint* operator->() const noexcept { return endpoint_; }
    /// Null where calls are not worth compiling in.
    [[nodiscard]] billboard::Fastest* fastest() const noexcept { return fastest_; }

    /// A longer message is composed in place; at most kTakenBytes.
    [[nodiscard]] std::size_t short_bytes() const noexcept { return short_bytes_; }

    // ---- Expected cases

    [[nodiscard, gnu::always_inline]] int send_at_once(int dest, const void* data,
                                                       std::size_t bytes) const {
        return fastest_ != nullptr ? fastest_->send(dest, data, bytes, Deadline::now(), kClass)
                                   : endpoint_->send(dest, data, bytes, Deadline::now(), kClass);
    }
    /// In two pieces, of kHeadBytes together. False: not now, or a link that takes longer anyway.
    [[nodiscard, gnu::always_inline]] bool send_joined_at_once(int dest, Bytes head,
                                                               Bytes body) const {
        return fastest_ != nullptr && fastest_->send_joined_at_once(dest, head, body, kClass);
    }
    /// Into `small`, if it is there and fits. BBP_EAGAIN: it seems not to be.
    [[nodiscard, gnu::always_inline]] int take_at_once(std::span<std::byte> small,
                                                       std::size_t& bytes) const {
        if (fastest_ == nullptr) [[unlikely]]
            return kNobody;
        return fastest_->take_at_once(small, &bytes, kClass);
    }
    /// The same of one that comes within a brief wait, only where `fastest` is not null.
    [[nodiscard, gnu::always_inline]] int take_briefly(std::span<std::byte> small,
                                                       std::size_t& bytes,
                                                       billboard::AnswerPause& pause) const {
        return fastest_->take_briefly(small, &bytes, kClass, pause);
    }
    [[gnu::always_inline]] void give_way() const {
        if (fastest_ != nullptr) {
            fastest_->give_way();
        } else {
            endpoint_->give_way();
        }
    }

    // ---- All others

    [[nodiscard]] int send(int dest, const void* data, std::size_t bytes, Deadline deadline) const {
        return endpoint_->send(dest, data, bytes, deadline, kClass);
    }
    [[nodiscard]] int mcast(Dests dests, const void* data, std::size_t bytes,
                            Deadline deadline) const {
        return endpoint_->mcast(dests, data, bytes, deadline, kClass);
    }
    [[nodiscard]] int post(Dests dests, void* composed, std::size_t bytes,
                           Deadline deadline) const {
        return endpoint_->post(dests, composed, bytes, deadline, kClass);
    }
    /// The next message, into `small` or in a view, to be released in both cases;
    /// < 0: none.
    [[nodiscard]] int take(std::span<std::byte> small, Bytes& message, Deadline deadline) const {
        const void* data = nullptr;
        std::size_t bytes = 0;
        const int from = endpoint_->take(small, &data, &bytes, deadline, kClass);
        if (from >= 0) message = {static_cast<const std::byte*>(data), bytes};
        return from;
    }
    void release(const std::byte* small, Bytes message) const {
        if (message.data() != small) endpoint_->release(message.data());
    }
    /// Whether the rank is dead or has left, and all that it has sent in this class is taken in.
    [[nodiscard]] bool is_gone(unsigned rank) const {
        return endpoint_->probe(static_cast<int>(rank), nullptr, kClass) == BBP_EPEER;
    }
    /// On the link's clock.
    [[nodiscard]] std::int64_t now_ns() const { return endpoint_->deadline_in(1).at_ns - 1; }

private:
    billboard::Endpoint* endpoint_ = nullptr;
    billboard::Fastest* fastest_ = nullptr;
    std::size_t short_bytes_ = billboard::kInlineBytes;
};

}  // namespace ports
