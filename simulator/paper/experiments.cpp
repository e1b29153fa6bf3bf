// SPDX-License-Identifier: Apache-2.0
#include "simulator/paper/experiments.hpp"

#include "billboard/bbp.h"
#include "simulator/paper/rounds.hpp"

#include <numeric>
#include <vector>

namespace simulator {

namespace {

using rmem::sim::Process;

/// A poll loads one word. For messages that take many polls' time a few phases will do.
Phases phases_of(const Testbed& testbed, std::size_t bytes) {
    const std::int64_t poll_ns = testbed.host.load_ns;
    const bool all = bytes <= 64 && testbed.ranks <= 16;
    return Phases::of(poll_ns, all ? poll_ns : 16);
}

void receive(int from, std::vector<std::byte>& message) {
    checked(bbp_recv(from, message.data(), message.size(), nullptr));
}

std::vector<int> first_receivers(unsigned receivers) {
    std::vector<int> ranks(receivers);
    std::iota(ranks.begin(), ranks.end(), 1);
    return ranks;
}

void meet() {
    checked(bbp_barrier());
}

/// Multicasts from rank 0.
class Multicasts {
public:
    Multicasts(const Testbed& testbed, std::size_t bytes, unsigned receivers)
        : broadcasts_(testbed, phases_of(testbed, bytes), testbed.host.load_ns, bytes, receivers),
          message_bytes_(bytes),
          receivers_(receivers) {}

    void run(Process& me) {
        std::vector<std::byte> message(message_bytes_);
        const std::vector<int> all = first_receivers(receivers_);
        const auto send = [&] {
            checked(bbp_mcast(all.data(), static_cast<int>(receivers_), message.data(),
                              message.size()));
        };
        broadcasts_.run(me, meet, send, [&] { receive(0, message); });
    }
    std::int64_t mean_ps() const { return broadcasts_.mean_ps(); }

private:
    Broadcasts broadcasts_;
    const std::size_t message_bytes_;
    const unsigned receivers_;
};

Barriers barriers_of(const Testbed& testbed) {
    const bool few = testbed.ranks <= 16;
    return {testbed.host.load_ns, few ? 128 : 4, few ? 8 : 4};
}

}  // namespace

std::int64_t one_way_ps(const Testbed& testbed, std::size_t bytes) {
    const Phases phases = phases_of(testbed, bytes);
    std::int64_t round_ps = 0;
    run_billboard(testbed, [&](Process& me) {
        std::vector<std::byte> message(bytes);
        if (me.rank() == 0) {
            round_ps = mean_round_ps(me, phases, [&] {
                checked(bbp_send(1, message.data(), bytes));
                receive(1, message);
            });
        } else if (me.rank() == 1) {
            repeat(phases, [&] {
                receive(0, message);
                checked(bbp_send(0, message.data(), bytes));
            });
        }
    });
    return round_ps / 2;
}

std::int64_t multicast_ps(const Testbed& testbed, std::size_t bytes, unsigned receivers) {
    Multicasts multicasts(testbed, bytes, receivers);
    run_billboard(testbed, [&](Process& me) { multicasts.run(me); });
    return multicasts.mean_ps();
}

std::int64_t multicast_by_answer_ps(const Testbed& testbed, std::size_t bytes, unsigned receivers) {
    const Phases phases = phases_of(testbed, bytes);
    std::int64_t round_ps = 0;
    run_billboard(testbed, [&](Process& me) {
        std::vector<std::byte> message(bytes);
        const std::vector<int> all = first_receivers(receivers);
        const auto last = static_cast<int>(receivers);
        if (me.rank() == 0) {
            round_ps = mean_round_ps(me, phases, [&] {
                checked(bbp_mcast(all.data(), last, message.data(), bytes));
                receive(last, message);
            });
        } else if (me.rank() <= receivers) {
            repeat(phases, [&] {
                receive(0, message);
                if (me.rank() == receivers) checked(bbp_send(0, message.data(), bytes));
            });
        }
    });
    return round_ps - one_way_ps(testbed, bytes);
}

std::int64_t barrier_ps(const Testbed& testbed) {
    Barriers barriers = barriers_of(testbed);
    run_billboard(testbed, [&](Process& me) { barriers.run(me, meet); });
    return barriers.mean_ps();
}

Collectives collectives(const Testbed& testbed, std::size_t bytes) {
    Multicasts multicasts(testbed, bytes, testbed.ranks - 1);
    Barriers barriers = barriers_of(testbed);
    run_billboard(testbed, [&](Process& me) {
        multicasts.run(me);
        barriers.run(me, meet);
    });
    return {multicasts.mean_ps(), barriers.mean_ps()};
}

}  // namespace simulator
