// SPDX-License-Identifier: Apache-2.0
#include "simulator/paper/experiments.hpp"

#include "billboard/bbp.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace simulator {

namespace {

using rmem::sim::Process;

constexpr std::int64_t kPsPerNs = 1000;
constexpr std::int64_t kWarmUp = 4;  // rounds until everything repeats itself

/// So many rounds, each by a step later within the poll of the one that waits: together all phases. A
/// poll loads one word. For messages that take many polls' time a few phases will do.
struct Phases {
    std::int64_t rounds, step_ns;

    Phases(const Testbed& testbed, std::size_t bytes) {
        constexpr std::int64_t kFew = 16;
        const std::int64_t poll_ns = testbed.host.load_ns;
        const bool all = bytes <= 64 && testbed.ranks <= 16;
        step_ns = all ? 1 : std::max<std::int64_t>(poll_ns / kFew, 1);
        rounds = all ? poll_ns : kFew;
    }
};

void receive(int from, std::vector<std::byte>& message) {
    checked(bbp_recv(from, message.data(), message.size(), nullptr));
}

std::vector<int> first_receivers(unsigned receivers) {
    std::vector<int> ranks(receivers);
    std::iota(ranks.begin(), ranks.end(), 1);
    return ranks;
}

/// The mean time of a round of rank 0, without its thinking.
template <class Round>
std::int64_t mean_round_ps(Process& me, const Phases& phases, Round&& round) {
    for (std::int64_t i = 0; i < kWarmUp; ++i) round();
    const std::int64_t begun = me.now_ns();
    for (std::int64_t i = 0; i < phases.rounds; ++i) {
        me.sleep(phases.step_ns);
        round();
    }
    return (me.now_ns() - begun - phases.rounds * phases.step_ns) * kPsPerNs / phases.rounds;
}

template <class Round>
void repeat(const Phases& phases, Round&& round) {
    for (std::int64_t i = 0; i < kWarmUp + phases.rounds; ++i) round();
}

}  // namespace

std::int64_t one_way_ps(const Testbed& testbed, std::size_t bytes) {
    const Phases phases(testbed, bytes);
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
    const Phases phases(testbed, bytes);
    const std::int64_t poll_ns = testbed.host.load_ns;
    // Long enough that every round begins on an idle ring; idle time costs nothing.
    const std::int64_t period_ns =
        1'000'000 + static_cast<std::int64_t>(bytes) * 5000 + testbed.ranks * 50'000;
    std::int64_t first_ns = 0, last_ns = 0, sum_ns = 0;
    run_billboard(testbed, [&](Process& me) {
        std::vector<std::byte> message(bytes);
        const std::vector<int> all = first_receivers(receivers);
        if (me.rank() == 0) first_ns = me.now_ns() + period_ns;
        checked(bbp_barrier());  // behind it, everybody knows when
        for (std::int64_t i = 0; me.rank() <= receivers && i < phases.rounds; ++i) {
            const std::int64_t begin_ns = first_ns + i * period_ns;
            if (me.rank() == 0) {
                sleep_until(me, begin_ns);
                last_ns = 0;
                checked(bbp_mcast(all.data(), static_cast<int>(receivers), message.data(), bytes));
            } else {
                // Strides without a common pattern: each receiver meets all phases, each in its own order.
                const std::int64_t stride = (1 + 36 * (me.rank() - 1)) * phases.step_ns;
                sleep_until(me, begin_ns - period_ns / 4 + i * stride % poll_ns);
                receive(0, message);
                const std::int64_t took_ns = me.now_ns() - begin_ns;
                sum_ns += std::max<std::int64_t>(took_ns - last_ns, 0);
                last_ns = std::max(last_ns, took_ns);
            }
        }
    });
    return sum_ns * kPsPerNs / phases.rounds;
}

std::int64_t multicast_by_answer_ps(const Testbed& testbed, std::size_t bytes, unsigned receivers) {
    const Phases phases(testbed, bytes);
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
    const Phases phases(testbed, 0);
    std::int64_t begun_ns = 0, ended_ns = 0;
    run_billboard(testbed, [&](Process& me) {
        for (std::int64_t i = 0; i < kWarmUp + phases.rounds; ++i) {
            if (me.rank() == 0 && i == kWarmUp) begun_ns = me.now_ns();
            // Some think a few nanoseconds longer than others, too little to be taken off: the phases
            // between them wander from round to round.
            me.sleep(me.rank() % 4 * phases.step_ns);
            checked(bbp_barrier());
        }
        if (me.rank() == 0) ended_ns = me.now_ns();
    });
    return (ended_ns - begun_ns) * kPsPerNs / phases.rounds;
}

}  // namespace simulator
