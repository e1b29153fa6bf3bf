// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Streams and ping-pongs of a system (bench/ports/systems.hpp) between ranks 0 and 1.

#include "tools/measure/floor.hpp"
#include "tools/measure/rank_group.hpp"

#include "billboard/bbp.h"

#include <algorithm>
#include <cstddef>

namespace bench {

/// Messages of a window: as many as fit into a receiver's buffers twice, whichever the system.
inline std::size_t window_of(std::size_t bytes) {
    constexpr std::size_t kInWindow = std::size_t{128} << 10;
    return std::clamp<std::size_t>(kInWindow / std::max<std::size_t>(bytes, 1), 8, 500);
}

template <class System>
void send_many(System& system, std::size_t bytes, std::size_t count) {
    if constexpr (requires { system.send_many(bytes, count); }) {
        system.send_many(bytes, count);
    } else {
        for (std::size_t i = 0; i < count; ++i) system.send(bytes);
    }
}
template <class System>
void receive_many(System& system, std::size_t bytes, std::size_t count) {
    if constexpr (requires { system.receive_many(bytes, count); }) {
        system.receive_many(bytes, count);
    } else {
        for (std::size_t i = 0; i < count; ++i) system.receive(bytes);
    }
}

/// `windows` windows from rank 0 to rank 1, two at most on their way: each is answered by a small
/// message, which its sender awaits while the next one is. The slowest of all systems has no flow
/// control, and would lose messages otherwise.
template <class System>
void stream(System& system, unsigned rank, std::size_t bytes, std::size_t window,
            std::size_t windows) {
    for (std::size_t i = 0; i < windows; ++i) {
        if (rank == 0) {
            send_many(system, bytes, window);
            if (i > 0) system.receive(System::kSmall);
        } else {
            receive_many(system, bytes, window);
            system.send(System::kSmall);
        }
    }
    if (rank == 0) system.receive(System::kSmall);
}

/// One way; each side thinks before it sends, which is not counted.
template <class System>
double one_way(System& system, unsigned rank, std::size_t bytes, std::size_t trips,
               Thinking* thinking = nullptr) {
    const auto think = [&] {
        if (thinking != nullptr) (*thinking)();
    };
    const double round_trips = time_of(trips, [&] {
        if (rank == 0) {
            think();
            system.send(bytes);
            system.receive(bytes);
        } else {
            system.receive(bytes);
            think();
            system.send(bytes);
        }
    });
    const double thought = thinking == nullptr ? 0 : time_of(trips, *thinking);
    return (round_trips / 2 - thought) / static_cast<double>(trips);
}

/// A system's part in its ring, from when both ranks have it until neither needs it.
template <class System, class Body>
void with_system(RankContext& rank, Body&& body) {
    System system(rank);
    checked(bbp_barrier());
    body(system);
    checked(bbp_barrier());
}

}  // namespace bench
