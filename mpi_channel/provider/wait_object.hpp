// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A descriptor to be polled for a completion queue: readable while a descriptor of its endpoints
/// is, or after raise() until lower().
/// Thread safety: one thread at a time; the descriptor may be polled by others meanwhile.
/// Errors: std::system_error when the process has no descriptors left.

#include "rmem/base/descriptor.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace mpi_channel::provider {

class WaitObject {
public:
    WaitObject() : epoll_(::epoll_create1(EPOLL_CLOEXEC)), event_(::eventfd(0, kEventFlags)) {
        if (epoll_.get() < 0 || event_.get() < 0)
            throw std::system_error(errno, std::generic_category(), "a queue's descriptor");
        add(event_.get());
    }
    WaitObject(const WaitObject&) = delete;
    WaitObject& operator=(const WaitObject&) = delete;

    [[nodiscard]] int descriptor() const noexcept { return epoll_.get(); }
    /// None: below 0.
    void add(int descriptor) noexcept {
        epoll_event event{};
        event.events = EPOLLIN;
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event);
    }
    void remove(int descriptor) noexcept {
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, descriptor, nullptr);
    }
    void raise() noexcept {
        if (!std::exchange(raised_, true)) event_.raise();
    }
    void lower() noexcept {
        eventfd_t value = 0;
        if (std::exchange(raised_, false)) ::eventfd_read(event_.get(), &value);
    }

private:
    static constexpr int kEventFlags = EFD_CLOEXEC | EFD_NONBLOCK;

    const rmem::Descriptor epoll_, event_;
    bool raised_ = false;
};

}  // namespace mpi_channel::provider
