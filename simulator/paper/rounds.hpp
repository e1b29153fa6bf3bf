// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How the experiments repeat what they measure, so that all phases between sender and poll are met
/// (simulator/paper/experiments.hpp). Part of the experiments' sources.
///
/// Units: picoseconds of virtual time where means are taken, else nanoseconds.
/// Thread safety, errors: simulator/paper/worlds.hpp.

#include "rmem/base/check.hpp"
#include "simulator/paper/worlds.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

namespace simulator {

inline constexpr std::int64_t kPsPerNs = 1000;
inline constexpr std::int64_t kWarmUp = 4;  // rounds until everything repeats itself

/// `rounds` rounds, each by a step later within the poll of the one that waits: together all
/// phases.
struct Phases {
    std::int64_t rounds, step_ns;

    static Phases of(std::int64_t poll_ns, std::int64_t rounds) {
        return {rounds, std::max<std::int64_t>(poll_ns / rounds, 1)};
    }
};

/// The mean time of a round of rank 0, without its thinking.
template <class Round>
std::int64_t mean_round_ps(rmem::sim::Process& me, const Phases& phases, Round&& round) {
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

/// Broadcasts from rank 0, each on an idle ring and to ranks that are waiting: from the call of the
/// root until the last of the receivers has it.
class Broadcasts {
public:
    Broadcasts(const Testbed& testbed, const Phases& phases, std::int64_t poll_ns,
               std::size_t bytes, unsigned receivers)
        : phases_(phases),
          poll_ns_(poll_ns),
          period_ns_(1'000'000 + static_cast<std::int64_t>(bytes) * 5000 + testbed.ranks * 50'000),
          receivers_(receivers) {}

    /// `meet` is a barrier.
    template <class Meet, class Send, class Receive>
    void run(rmem::sim::Process& me, Meet&& meet, Send&& send, Receive&& receive) {
        if (me.rank() == 0) first_ns_ = me.now_ns() + period_ns_;
        meet();  // after it, everybody knows when
        for (std::int64_t i = 0; me.rank() <= receivers_ && i < phases_.rounds; ++i) {
            const std::int64_t begin_ns = first_ns_ + i * period_ns_;
            RMEM_CHECK(me.now_ns() < begin_ns - period_ns_ / 4);  // all are through with the last
            if (me.rank() == 0) {
                sleep_until(me, begin_ns);
                last_ns_ = 0;
                send();
            } else {
                sleep_until(me, begin_ns - period_ns_ / 4 + phase_ns(me.rank(), i));
                receive();
                note(me.now_ns() - begin_ns);
            }
        }
    }
    std::int64_t mean_ps() const { return sum_ns_ * kPsPerNs / phases_.rounds; }

private:
    /// Strides without a common pattern: each receiver meets all phases, each in its own order.
    std::int64_t phase_ns(unsigned rank, std::int64_t round) const {
        return round * (1 + 36 * (rank - 1)) * phases_.step_ns % poll_ns_;
    }
    void note(std::int64_t took_ns) {  // together, the rounds' latest
        sum_ns_ += std::max<std::int64_t>(took_ns - last_ns_, 0);
        last_ns_ = std::max(last_ns_, took_ns);
    }

    const Phases phases_;
    const std::int64_t poll_ns_;
    const std::int64_t period_ns_;  // long enough for any; idle time costs nothing
    const unsigned receivers_;
    std::int64_t first_ns_ = 0, last_ns_ = 0, sum_ns_ = 0;
};

/// Barriers of all ranks, one after the other, in batches. Each batch begins in other phases
/// between the ranks; within it everybody's polls go on where they left off, as in a program's
/// loop.
class Barriers {
public:
    Barriers(std::int64_t poll_ns, std::int64_t batches, std::int64_t rounds)
        : poll_ns_(poll_ns), batches_(batches), rounds_(rounds) {}

    template <class Barrier>
    void run(rmem::sim::Process& me, Barrier&& barrier) {
        for (std::int64_t batch = 0; batch < batches_; ++batch) {
            me.sleep(phase_ns(me.rank(), batch));
            for (std::int64_t i = 0; i < kWarmUp / 2; ++i) barrier();
            const std::int64_t begun_ns = me.now_ns();
            for (std::int64_t i = 0; i < rounds_; ++i) barrier();
            if (me.rank() == 0) sum_ns_ += me.now_ns() - begun_ns;
        }
    }
    std::int64_t mean_ps() const { return sum_ns_ * kPsPerNs / (batches_ * rounds_); }

private:
    std::int64_t phase_ns(unsigned rank, std::int64_t batch) const {
        const std::int64_t mixed = (batch + 1) * 7919 * (rank + 1) + rank * rank * 104'729;
        return mixed % poll_ns_;
    }

    const std::int64_t poll_ns_;
    const std::int64_t batches_, rounds_;
    std::int64_t sum_ns_ = 0;
};

}  // namespace simulator
