// SPDX-License-Identifier: Apache-2.0
// What holds for interrupts.
#include "rmem/base/time.hpp"
#include "tools/conform/litmus.hpp"

#include <vector>

namespace tools::conform {

namespace {

enum : unsigned { kData, kPause };

constexpr std::uint32_t kFlood = 2000;  // more than any card's queue that we know of
constexpr std::int64_t kShortNs = 1'000'000;

/// The interrupts of one turn: what was left behind by others is no more of it.
class Interrupts {
public:
    explicit Interrupts(const Trial& trial) : card_(trial.card), tag_(trial.members.step() << 16) {
        for (unsigned member = 0; member < trial.members.count(); ++member) {
            if (member != trial.members.self()) others_.push_back(trial.members.node_of(member));
        }
    }

    /// Nothing comes between what was written before and the first of them.
    void send_to_others(std::uint32_t number) {
        for (const unsigned node : others_) card_.send_interrupt(node, tag_ | number);
    }
    void send_to_all(std::uint32_t number) { card_.send_interrupt(kAllNodes, tag_ | number); }
    /// The next one's number; losses of others count, too, since they are no longer told.
    std::optional<std::uint32_t> take(std::int64_t timeout_ns) {
        while (const auto taken = card_.next_interrupt(timeout_ns)) {
            told_ += taken->missed;
            if ((taken->value & 0xffff0000) == tag_) return taken->value & 0xffff;
        }
        return std::nullopt;
    }
    std::uint64_t told() const noexcept { return told_; }

private:
    Card& card_;
    std::uint32_t tag_;
    std::vector<unsigned> others_;
    std::uint64_t told_ = 0;
};

/// The writer goes on when all others have taken what it sent.
bool pause(const Trial& trial, Finding& finding, std::uint32_t round) {
    trial.card.write_word(trial.line(kPause), round);
    Patience patience(trial);
    for (unsigned member = 0; member < trial.members.count(); ++member) {
        if (member == trial.members.self()) continue;
        std::uint32_t seen = 0;
        while ((seen = trial.card.load(trial.line_of(member))) < round) {
            if (patience.goes_on()) continue;
            finding.broken({2, member, round, kCommonLines + member, seen, round});
            return false;
        }
    }
    return true;
}

/// A reader waits until the writer pauses there, or later.
std::uint32_t await_pause(const Trial& trial, Finding& finding, unsigned writer,
                          std::uint32_t round) {
    Patience patience(trial);
    std::uint32_t seen = 0;
    while ((seen = trial.card.load(trial.line(kPause))) < round && patience.goes_on()) {
    }
    if (seen < round) finding.broken({2, writer, seen, kPause, seen, round});
    return seen;
}

}  // namespace

Finding data_before_interrupt(const Trial& trial) {
    constexpr std::uint32_t kBatch = 4;
    Finding finding;
    finding.rounds = trial.rounds;
    const auto write = [&] {
        Interrupts interrupts(trial);
        for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
            trial.card.write_word(trial.line(kData), round);
            interrupts.send_to_others(round);
            const bool pauses = round % kBatch == 0 || round == trial.rounds;
            if (pauses && !pause(trial, finding, round)) return;
        }
    };
    in_turns(trial, write, [&](unsigned writer) {
        Interrupts interrupts(trial);
        Patience patience(trial);
        for (std::uint32_t last = 0, answered = 0; answered < trial.rounds;) {
            const auto number = interrupts.take(kShortNs);
            if (number) {
                const std::uint32_t data = trial.card.load(trial.line(kData));
                if (data == *number) ++finding.observations;
                if (data < *number) finding.broken({0, writer, *number, kData, data, *number});
                last = *number;
            }
            // One that is lost is another litmus's business: the writer must not wait for it.
            const std::uint32_t paused = trial.card.load(trial.line(kPause));
            if (paused > answered && (last >= paused || !number)) {
                trial.card.write_word(trial.line_of(trial.members.self()), paused);
                answered = paused;
                patience.renew();
            } else if (!patience.goes_on()) {
                finding.broken({2, writer, last, kData, last, trial.rounds});
                return;
            }
        }
    });
    return finding;
}

Finding interrupts_once(const Trial& trial) {
    constexpr std::uint32_t kBurst = 64;  // what every card's queue can hold
    const std::uint32_t bursts = (trial.rounds + kBurst - 1) / kBurst;
    Finding finding;
    finding.rounds = bursts * kBurst;
    // A program on a busy host hears of what has come some time later.
    constexpr std::int64_t kLateNs = rmem::kNsPerSecond;
    constexpr std::int64_t kQuietNs = 100'000'000;  // where the last ones may have been lost
    const bool is_told = trial.card.offers(Feature::losses_told);

    const auto write = [&] {
        Interrupts interrupts(trial);
        for (std::uint32_t burst = 1; burst <= bursts; ++burst) {
            for (std::uint32_t i = 1; i <= kBurst; ++i) {
                burst % 2 != 0 ? interrupts.send_to_others(i) : interrupts.send_to_all(i);
            }
            if (!pause(trial, finding, burst)) return;
        }
        for (std::uint32_t i = 1; i <= kFlood; ++i) interrupts.send_to_others(i);
        if (!pause(trial, finding, bursts + 1)) return;
        interrupts.send_to_others(kFlood + 1);  // which tells of losses at the end
        pause(trial, finding, bursts + 2);
    };

    struct Taken {
        std::uint32_t last = 0, gaps = 0, first_gap = 0;

        void goes_on_with(std::uint32_t next) noexcept {
            if (next != last + 1 && gaps == 0) first_gap = last + 1;
            gaps += next - last - 1;
            last = next;
        }
    };
    /// Takes interrupts until the one of this number, or until none has come for that time; the
    /// finding says what is wrong with them.
    const auto take_until = [&](Interrupts& interrupts, unsigned writer, std::uint32_t end,
                                std::int64_t quiet_ns, Taken& taken) {
        for (;;) {
            const auto number = interrupts.take(taken.last < end ? quiet_ns : 0);
            if (!number) return;
            ++finding.observations;
            if (*number > taken.last) {
                taken.goes_on_with(*number);
            } else {
                finding.broken({1, writer, 0, 0, *number, taken.last});
            }
        }
    };
    const auto blame = [&](unsigned writer, const Taken& taken, std::uint64_t told,
                           std::uint32_t end) {
        if (taken.gaps > told) finding.broken({0, writer, 0, 0, taken.first_gap, end + 1});
    };
    const auto answer = [&](std::uint32_t paused) {
        trial.card.write_word(trial.line_of(trial.members.self()), paused);
    };

    in_turns(trial, write, [&](unsigned writer) {
        for (std::uint32_t burst = 1; burst <= bursts; ++burst) {
            Interrupts interrupts(trial);
            Taken taken;
            if (await_pause(trial, finding, writer, burst) < burst) return;
            take_until(interrupts, writer, kBurst, kLateNs, taken);
            taken.goes_on_with(kBurst + 1);
            blame(writer, taken, interrupts.told(), kBurst);
            answer(burst);
        }
        Interrupts interrupts(trial);
        Taken taken;
        if (await_pause(trial, finding, writer, bursts + 1) < bursts + 1) return;
        take_until(interrupts, writer, kFlood, kQuietNs, taken);
        answer(bursts + 1);
        if (await_pause(trial, finding, writer, bursts + 2) < bursts + 2) return;
        take_until(interrupts, writer, kFlood + 1, kLateNs, taken);
        taken.goes_on_with(kFlood + 2);
        finding.noted += taken.gaps;
        if (is_told) blame(writer, taken, interrupts.told(), kFlood + 1);
        answer(bursts + 2);
    });
    return finding;
}

}  // namespace tools::conform
