// SPDX-License-Identifier: Apache-2.0
// How long a word and an interrupt are on their way, and that they are not there before they can.
//
// Hosts have no common clock, so one member measures to and fro, and a way is half of that. Members
// measure in turn, each with the next one.
#include "tools/conform/litmus.hpp"

#include "rmem/base/clock.hpp"

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace tools::conform {

namespace {

enum : unsigned { kThere, kBack, kEnd };

constexpr unsigned kLooks = 64;  // for as long nothing comes between
constexpr std::int64_t kAgainNs = 100'000'000;
constexpr std::int64_t kShortNs = 1'000'000;

/// One member's measurements.
class Ways {
public:
    Ways(const Trial& trial, Finding& finding) : trial_(trial), finding_(finding) {}
    ~Ways() {
        finding_.times = Times::of(histograms_->times, static_cast<std::uint64_t>(least_));
        finding_.jitter = Times::of(histograms_->jitter, 0);
    }
    Ways(const Ways&) = delete;
    Ways& operator=(const Ways&) = delete;

    void add(std::uint32_t round, std::int64_t to_and_fro_ns) {
        const std::int64_t way = to_and_fro_ns / 2;
        ++finding_.observations;
        histograms_->times.record(static_cast<std::uint64_t>(way));
        if (last_ != 0)
            histograms_->jitter.record(static_cast<std::uint64_t>(std::abs(way - last_)));
        last_ = way;
        least_ = finding_.observations == 1 ? way : std::min(way, least_);
        if (way < trial_.floor_ns) {
            finding_.broken({0, trial_.members.self(), round, kThere,
                             fitted_word(static_cast<std::uint64_t>(way)),
                             fitted_word(static_cast<std::uint64_t>(trial_.floor_ns))});
        }
    }

private:
    struct Histograms {
        rmem::Histogram times, jitter;
    };
    const Trial& trial_;
    Finding& finding_;
    std::unique_ptr<Histograms> histograms_ = std::make_unique<Histograms>();
    std::int64_t last_ = 0, least_ = 0;
};

unsigned next_of(const Trial& trial, unsigned member) {
    return (member + 1) % trial.members.count();
}

}  // namespace

Finding word_time(const Trial& trial) {
    Finding finding;
    finding.rounds = trial.rounds;
    /// Waits for the round's word; false, and the finding says so, where it does not come.
    const auto await = [&](unsigned line, unsigned writer, std::uint32_t round) {
        Patience patience(trial, kLooks);
        std::uint32_t seen = 0;
        while ((seen = trial.card.load(trial.line(line))) != round) {
            if (patience.goes_on()) continue;
            finding.broken({2, writer, round, line, seen, round});
            return false;
        }
        return true;
    };
    const auto measure = [&] {
        Ways ways(trial, finding);
        for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
            const std::int64_t start = rmem::now_ns();
            trial.card.write_word(trial.line(kThere), round);
            if (!await(kBack, next_of(trial, trial.members.self()), round)) return;
            ways.add(round, rmem::now_ns() - start);
        }
    };
    in_turns(trial, measure, [&](unsigned writer) {
        if (next_of(trial, writer) != trial.members.self()) return;
        for (std::uint32_t round = 1; round <= trial.rounds && await(kThere, writer, round);
             ++round) {
            trial.card.write_word(trial.line(kBack), round);
        }
    });
    return finding;
}

Finding interrupt_time(const Trial& trial) {
    Finding finding;
    finding.rounds = trial.rounds;
    /// The number of the next interrupt of this turn.
    const auto take = [&](std::uint32_t tag, std::int64_t timeout_ns) {
        const auto taken = trial.card.next_interrupt(timeout_ns);
        return taken && (taken->value & 0xffff0000) == tag ? taken->value & 0xffff : 0;
    };
    const auto measure = [&] {
        Ways ways(trial, finding);
        const std::uint32_t tag = trial.members.step() << 16;
        const unsigned other = trial.members.node_of(next_of(trial, trial.members.self()));
        for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
            const auto last = rmem::Deadline::in(trial.patience_ns);
            for (;;) {
                const std::int64_t start = rmem::now_ns();
                const auto again = rmem::Deadline::in(kAgainNs);
                trial.card.send_interrupt(other, tag | round);
                std::uint32_t number = 0;
                while (number != round && !again.passed(rmem::now_ns())) {
                    number = take(tag, kAgainNs);
                }
                if (number == round) {
                    ways.add(round, rmem::now_ns() - start);
                    break;
                }
                ++finding.noted;
                if (!last.passed(rmem::now_ns())) continue;
                finding.broken({2, trial.members.self(), round, kThere, 0, round});
                trial.card.write_word(trial.line(kEnd), 1);
                return;
            }
        }
        trial.card.write_word(trial.line(kEnd), 1);
    };
    in_turns(trial, measure, [&](unsigned writer) {
        if (next_of(trial, writer) != trial.members.self()) return;
        const std::uint32_t tag = trial.members.step() << 16;
        const unsigned node = trial.members.node_of(writer);
        Patience patience(trial);
        while (trial.card.load(trial.line(kEnd)) == 0 && patience.goes_on()) {
            if (const std::uint32_t number = take(tag, kShortNs); number != 0) {
                trial.card.send_interrupt(node, tag | number);
                patience.renew();
            }
        }
    });
    return finding;
}

}  // namespace tools::conform
