// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The thread that watches what others do with the descriptors: read, write and close them.
///
/// It sleeps until the own end of an endpoint tells so. That somebody has read is told by the room
/// this makes.
/// Thread safety: watch() from any thread; who is closed is watched no more. Errors:
/// std::system_error. A fork()ed child has no such thread.

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <thread>

namespace ports::dp {

class Engine {
public:
    /// What has happened at an end: something came in, room was made, all others have closed it.
    struct Event {
        bool input, room, closed;
    };
    using Serve = std::function<void(std::uint64_t id, Event event)>;

    explicit Engine(Serve serve);
    ~Engine();
    Engine(const Engine&) = delete;
    Engine& operator=(const Engine&) = delete;

    void watch(int own_end, std::uint64_t id);
    /// In a fork()ed child: gives up what it has inherited.
    void abandon() noexcept;

private:
    void run();

    static constexpr std::uint64_t kStop = 0;  ///< no endpoint's id
    Serve serve_;
    int poll_ = -1, stop_ = -1;
    std::thread thread_;
};

}  // namespace ports::dp
