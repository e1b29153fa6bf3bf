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

/// Multicasts from rank 0, each on an idle ring and to ranks that are waiting.
class Multicasts {
public:
    Multicasts(const Testbed& testbed, std::size_t bytes, unsigned receivers)
        : phases_(testbed, bytes),
          poll_ns_(testbed.host.load_ns),
          period_ns_(1'000'000 + static_cast<std::int64_t>(bytes) * 5000 + testbed.ranks * 50'000),
          message_bytes_(bytes),
          receivers_(receivers) {}

    void run(Process& me) {
        std::vector<std::byte> message(message_bytes_);
        const std::vector<int> all = first_receivers(receivers_);
        if (me.rank() == 0) first_ns_ = me.now_ns() + period_ns_;
        checked(bbp_barrier());  // behind it, everybody knows when
        for (std::int64_t i = 0; me.rank() <= receivers_ && i < phases_.rounds; ++i) {
            const std::int64_t begin_ns = first_ns_ + i * period_ns_;
            if (me.rank() == 0) {
                sleep_until(me, begin_ns);
                last_ns_ = 0;
                checked(bbp_mcast(all.data(), static_cast<int>(receivers_), message.data(),
                                  message.size()));
            } else {
                sleep_until(me, begin_ns - period_ns_ / 4 + phase_ns(me.rank(), i));
                receive(0, message);
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
    const std::size_t message_bytes_;
    const unsigned receivers_;
    std::int64_t first_ns_ = 0, last_ns_ = 0, sum_ns_ = 0;
};

/// Barriers of all ranks, one after the other, in batches. Each batch begins in other phases between the
/// ranks; within it everybody's polls go on where they left off, as in a program's loop.
class Barriers {
public:
    explicit Barriers(const Testbed& testbed)
        : poll_ns_(testbed.host.load_ns),
          batches_(testbed.ranks <= 16 ? 128 : 4),
          rounds_(testbed.ranks <= 16 ? 8 : 4) {}

    void run(Process& me) {
        for (std::int64_t batch = 0; batch < batches_; ++batch) {
            me.sleep(phase_ns(me.rank(), batch));
            for (std::int64_t i = 0; i < kWarmUp / 2; ++i) checked(bbp_barrier());
            const std::int64_t begun_ns = me.now_ns();
            for (std::int64_t i = 0; i < rounds_; ++i) checked(bbp_barrier());
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
    Multicasts multicasts(testbed, bytes, receivers);
    run_billboard(testbed, [&](Process& me) { multicasts.run(me); });
    return multicasts.mean_ps();
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
    Barriers barriers(testbed);
    run_billboard(testbed, [&](Process& me) { barriers.run(me); });
    return barriers.mean_ps();
}

Collectives collectives(const Testbed& testbed, std::size_t bytes) {
    Multicasts multicasts(testbed, bytes, testbed.ranks - 1);
    Barriers barriers(testbed);
    run_billboard(testbed, [&](Process& me) {
        multicasts.run(me);
        barriers.run(me);
    });
    return {multicasts.mean_ps(), barriers.mean_ps()};
}

}  // namespace simulator
