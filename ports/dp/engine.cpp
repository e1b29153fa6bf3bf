// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/engine.hpp"

#include "rmem/base/signals_blocked.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace ports::dp {

namespace {

[[noreturn]] void refused(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

}  // namespace

Engine::Engine(Serve serve) : serve_(std::move(serve)) {
    poll_ = ::epoll_create1(EPOLL_CLOEXEC);
    stop_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (poll_ < 0 || stop_ < 0) refused("the engine that serves descriptors");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kStop;
    if (::epoll_ctl(poll_, EPOLL_CTL_ADD, stop_, &event) != 0) refused("the engine's end");
    const rmem::SignalsBlocked blocked;
    thread_ = std::thread([this] { run(); });
}

Engine::~Engine() {
    if (poll_ < 0) return;
    const std::uint64_t one = 1;
    if (::write(stop_, &one, sizeof one) == sizeof one) thread_.join();
    ::close(poll_);
    ::close(stop_);
}

void Engine::abandon() noexcept {
    ::close(poll_);
    ::close(stop_);
    poll_ = stop_ = -1;
    thread_.detach();
}

void Engine::watch(int own_end, std::uint64_t id) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.u64 = id;
    if (::epoll_ctl(poll_, EPOLL_CTL_ADD, own_end, &event) != 0) refused("to watch a descriptor");
}

void Engine::run() {
    std::array<epoll_event, 16> events;
    for (;;) {
        const int n = ::epoll_wait(poll_, events.data(), static_cast<int>(events.size()), -1);
        for (int i = 0; i < n; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            if (event.data.u64 == kStop) return;
            serve_(event.data.u64, {(event.events & EPOLLIN) != 0, (event.events & EPOLLOUT) != 0,
                                    (event.events & EPOLLHUP) != 0});
        }
    }
}

}  // namespace ports::dp
