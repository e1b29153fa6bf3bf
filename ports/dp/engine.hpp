// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The thread that watches what others do with the descriptors: read, write and close them.
///
/// It sleeps until the own end of an endpoint tells so. That somebody has read is told by the room
/// this makes.
/// Thread safety: watch() from any thread; a closed descriptor is not watched. Errors:
/// std::system_error. A fork()ed child has no such thread.

#include "rmem/base/helper_thread.hpp"
#include "rmem/ring/segment.hpp"

#include <cstdint>
#include <functional>

namespace ports::dp {

class Engine {
public:
    /// What has happened at an end: something came in, room was made, all others have closed it.
    struct Event {
        bool input, room, closed;
    };
    using Serve = std::function<void(std::uint64_t id, Event event)>;

    explicit Engine(Serve serve);

    void watch(int own_end, std::uint64_t id);

private:
    void run();

    Serve serve_;
    rmem::Descriptor stop_, poll_;
    rmem::HelperThread thread_;
};

}  // namespace ports::dp
