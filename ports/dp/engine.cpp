// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/engine.hpp"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>
#include <utility>

namespace ports::dp {

namespace {

constexpr std::uint64_t kStop = 0;  ///< no endpoint's id

[[noreturn]] void refused(const char* what) {
    throw std::system_error(errno, std::generic_category(), what);
}

rmem::Descriptor make_poll(int stop) {
    rmem::Descriptor poll(::epoll_create1(EPOLL_CLOEXEC));
    if (poll.get() < 0 || stop < 0) refused("the engine that serves descriptors");
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = kStop;
    if (::epoll_ctl(poll.get(), EPOLL_CTL_ADD, stop, &event) != 0) refused("the engine's end");
    return poll;
}

}  // namespace

Engine::Engine(Serve serve)
    : serve_(std::move(serve)),
      stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      poll_(make_poll(stop_.get())),
      thread_(
          "dp-descriptors", [this] { run(); }, [this] { stop_.raise(); }) {}

void Engine::watch(int own_end, std::uint64_t id) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLOUT | EPOLLET;
    event.data.u64 = id;
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, own_end, &event) != 0)
        refused("to watch a descriptor");
}

void Engine::run() {
    std::array<epoll_event, 16> events;
    for (;;) {
        const int n = ::epoll_wait(poll_.get(), events.data(), static_cast<int>(events.size()), -1);
        for (int i = 0; i < n; ++i) {
            const epoll_event& event = events[static_cast<std::size_t>(i)];
            if (event.data.u64 == kStop) return;
            serve_(event.data.u64, {(event.events & EPOLLIN) != 0, (event.events & EPOLLOUT) != 0,
                                    (event.events & EPOLLHUP) != 0});
        }
    }
}

}  // namespace ports::dp
