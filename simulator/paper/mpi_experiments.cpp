// SPDX-License-Identifier: Apache-2.0
#include "simulator/paper/mpi_experiments.hpp"

#include "billboard/bbp.h"
#include "simulator/paper/rounds.hpp"

#include <vector>

namespace simulator {

namespace {

using rmem::sim::Process;

/// One look for a packet: a call, and a load for each other rank's flag word.
std::int64_t look_ns(const Testbed& testbed) {
    return testbed.host.call_ns + (testbed.ranks - 1) * testbed.host.load_ns;
}

/// For messages that take many looks' time a few phases will do.
Phases look_phases_of(const Testbed& testbed, std::size_t bytes) {
    return Phases::of(look_ns(testbed), bytes <= 64 ? 64 : 16);
}

/// The first size for which that is not below.
template <class IsBelow>
std::size_t first_size(std::size_t most, IsBelow&& is_below) {
    std::size_t low = 0, high = most;
    while (low < high) {
        const std::size_t middle = (low + high) / 2;
        if (is_below(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

}  // namespace

std::int64_t mpi_one_way_ps(const Testbed& testbed, std::size_t bytes, const MpiHost& host) {
    const Phases phases = look_phases_of(testbed, bytes);
    std::int64_t round_ps = 0;
    run_billboard(testbed, [&](Process& me) {
        Mpi mpi(me, host);
        std::vector<std::byte> message(bytes);
        if (me.rank() == 0) {
            round_ps = mean_round_ps(me, phases, [&] {
                mpi.send(1, message);
                mpi.receive(1, message);
            });
        } else if (me.rank() == 1) {
            repeat(phases, [&] {
                mpi.receive(0, message);
                mpi.send(0, message);
            });
        }
    });
    return round_ps / 2;
}

std::int64_t mpi_broadcast_ps(const Testbed& testbed, std::size_t bytes, BroadcastKind kind,
                              const MpiHost& host) {
    Broadcasts broadcasts(testbed, look_phases_of(testbed, bytes), look_ns(testbed), bytes,
                          testbed.ranks - 1);
    run_billboard(testbed, [&](Process& me) {
        Mpi mpi(me, host);
        std::vector<std::byte> message(bytes);
        const auto broadcast = [&] {
            if (kind == BroadcastKind::tree) {
                mpi.broadcast(message);
            } else {
                mpi.multicast(message);
            }
        };
        broadcasts.run(
            me, [] { checked(bbp_barrier()); }, broadcast, broadcast);
    });
    return broadcasts.mean_ps();
}

std::int64_t mpi_barrier_ps(const Testbed& testbed, const MpiHost& host) {
    Barriers barriers(look_ns(testbed), testbed.ranks <= 4 ? 32 : 8, 4);
    run_billboard(testbed, [&](Process& me) {
        Mpi mpi(me, host);
        barriers.run(me, [&] { mpi.barrier(); });
    });
    return barriers.mean_ps();
}

std::size_t one_way_crossing(const OtherNetwork& other, std::size_t most) {
    return first_size(most, [&](std::size_t bytes) {
        return mpi_one_way_ps({}, bytes) < other.one_way_ps(bytes);
    });
}

std::size_t broadcast_crossing(const OtherNetwork& other, BroadcastKind kind, std::size_t most) {
    return first_size(most, [&](std::size_t bytes) {
        return mpi_broadcast_ps({}, bytes, kind) < other.broadcast_ps(bytes);
    });
}

}  // namespace simulator
