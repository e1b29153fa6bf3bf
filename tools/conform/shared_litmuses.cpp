// SPDX-License-Identifier: Apache-2.0
// What holds where several members write, and between a member's own bank and the others'.
#include "tools/conform/litmus.hpp"

#include "rmem/base/clock.hpp"

#include <array>
#include <bit>
#include <vector>

namespace tools::conform {

Finding neighbours(const Trial& trial) {
    // Words side by side, each the next member's.
    constexpr std::size_t kWords = kCommonLines * kLineBytes / 4;
    Members& members = trial.members;
    const unsigned self = members.self(), count = members.count();
    const auto write_own = [&](std::uint32_t value) {
        for (std::size_t word = self; word < kWords; word += count) {
            trial.card.write_word(trial.at + 4 * word, value);
        }
    };
    const auto line_of_word = [](std::size_t word) {
        return static_cast<std::uint32_t>(word * 4 / kLineBytes);
    };
    Finding finding;
    finding.rounds = trial.rounds;
    /// All go at the same pace, so that each writes while the others do.
    const auto await_others = [&](std::uint32_t round) {
        Patience patience(trial);
        for (unsigned member = 0; member < count; ++member) {
            std::uint32_t seen = 0;
            while (member != self && (seen = trial.card.load(trial.line_of(member))) < round) {
                if (patience.goes_on()) continue;
                finding.broken({2, member, round, kCommonLines + member, seen, round});
                return false;
            }
        }
        return true;
    };
    write_own(0);
    trial.card.write_word(trial.line_of(self), 0);
    members.meet();
    std::vector<std::uint32_t> last(kWords, 0);
    for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
        if (!await_others(round - 1)) break;
        write_own(round);
        trial.card.write_word(trial.line_of(self), round);
        bool has_changed = false;
        for (std::size_t word = 0; word < kWords; ++word) {
            const auto writer = static_cast<std::uint32_t>(word % count);
            if (writer == self) last[word] = round;  // which nobody else may take back
            const std::uint32_t value = trial.card.load(trial.at + 4 * word);
            if (value < last[word])
                finding.broken({0, writer, round, line_of_word(word), value, last[word]});
            has_changed = has_changed || value != last[word];
            last[word] = value;
        }
        if (has_changed) ++finding.observations;
    }
    members.meet();
    for (std::size_t word = 0; word < kWords; ++word) {
        const auto writer = static_cast<std::uint32_t>(word % count);
        const std::uint32_t value = trial.card.load(trial.at + 4 * word);
        if (value != trial.rounds)
            finding.broken({1, writer, trial.rounds, line_of_word(word), value, trial.rounds});
    }
    members.meet();
    return finding;
}

/// Of a byte, neither 0 nor its first one.
std::uint8_t byte_of(std::uint32_t round) {
    return static_cast<std::uint8_t>(1 + round % 0x80);
}

Finding bytes_alone(const Trial& trial) {
    // The bytes of the word are the next member's; one whose number is too high has none.
    constexpr std::size_t kBytes = 4;
    constexpr std::uint8_t kFirst = 0xa5;
    using Word = std::array<std::uint8_t, kBytes>;
    Members& members = trial.members;
    const unsigned self = members.self(), count = members.count();
    const auto write_own = [&](std::uint32_t round) {
        for (std::size_t byte = self; byte < kBytes; byte += count)
            trial.card.write_byte(trial.at + byte, byte_of(round));
    };
    Finding finding;
    finding.rounds = trial.rounds;

    if (self == 0) {
        const std::vector<std::uint8_t> first(kBytes, kFirst);
        trial.card.write(trial.at, first.data(), first.size());
    }
    trial.card.write_word(trial.line_of(self), 0);
    members.meet();
    // In turn, so that the others' bytes are what their owners wrote last.
    for (unsigned writer = 0; writer < count; ++writer) {
        const auto check_others = [&] {
            const auto seen = std::bit_cast<Word>(trial.card.load(trial.at));
            Word right = seen;
            for (std::size_t byte = 0; byte < kBytes; ++byte) {
                const auto owner = static_cast<unsigned>(byte % count);
                if (owner != writer) right[byte] = owner < writer ? byte_of(trial.rounds) : kFirst;
            }
            if (seen == right) return;
            finding.broken({0, writer, 0, 0, std::bit_cast<std::uint32_t>(seen),
                            std::bit_cast<std::uint32_t>(right)});
        };
        if (writer == self) {
            for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
                write_own(round);
                trial.card.write_word(trial.line_of(self), round);
                let_look(round);
            }
        }
        Patience patience(trial);
        for (std::uint32_t last = 0; writer != self && last < trial.rounds;) {
            const std::uint32_t round = trial.card.load(trial.line_of(writer));
            check_others();
            if (round > last) {
                if (writer < kBytes) ++finding.observations;
                patience.renew();
                last = round;
            } else if (!patience.goes_on()) {
                finding.broken({1, writer, last, kCommonLines + writer, last, trial.rounds});
                break;
            }
        }
        members.meet();
    }
    return finding;
}

Finding bytes_at_once(const Trial& trial) {
    constexpr std::size_t kBytes = kCommonLines * kLineBytes;
    constexpr unsigned kWriters = 4;  // of a word; one with a higher number looks on
    Members& members = trial.members;
    const unsigned self = members.self(), writers = std::min(members.count(), kWriters);
    Finding finding;
    finding.rounds = trial.rounds;
    for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
        members.meet();
        for (std::size_t byte = self; byte < kBytes && self < writers; byte += writers)
            trial.card.write_byte(trial.at + byte, byte_of(round));
        members.meet();
        std::array<std::uint8_t, kBytes> seen{};
        trial.card.read(trial.at, seen.data(), seen.size());
        for (std::size_t byte = 0; byte < kBytes; ++byte) {
            ++finding.observations;
            const auto writer = static_cast<unsigned>(byte % writers);
            if (seen[byte] != byte_of(round))
                finding.broken(
                    {0, writer, round, narrowed(byte / kLineBytes), seen[byte], byte_of(round)});
        }
    }
    members.meet();
    return finding;
}

Finding two_writers(const Trial& trial) {
    enum : unsigned { kContested, kDone };  // and the second writer's behind it
    Members& members = trial.members;
    const unsigned self = members.self();
    Finding finding;
    finding.rounds = trial.rounds;
    const auto done = [&](unsigned writer) { return trial.line(kDone + writer); };
    /// False, and the finding says so, where the word does not get there in time.
    const auto await = [&](std::size_t offset, unsigned writer, std::uint32_t line,
                           std::uint32_t value) {
        Patience patience(trial);
        std::uint32_t seen = 0;
        while ((seen = trial.card.load(offset)) < value) {
            if (patience.goes_on()) continue;
            finding.broken({1, writer, value, line, seen, value});
            return false;
        }
        return true;
    };
    if (self < 2) trial.card.write_word(done(self), 0);
    trial.card.write_word(trial.line_of(self), 0);
    members.meet();
    for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
        if (self < 2) {
            trial.card.write_word(trial.line(kContested), 2 * round + self);
            if (trial.card.load(done(1 - self)) < round) ++finding.observations;
            trial.card.write_word(done(self), round);
        }
        // A writer's word comes before what it wrote next, so nothing more can come.
        if (!await(done(0), 0, kDone, round) || !await(done(1), 1, kDone + 1, round)) break;
        const std::uint32_t value = trial.card.load(trial.line(kContested));
        if (value / 2 != round) finding.broken({0, 0, round, kContested, value, 2 * round});
        trial.card.write_word(trial.line_of(self), 2 * round + value % 2);
        bool differ = false, have_all = true;
        for (unsigned member = 0; member < members.count() && have_all; ++member) {
            if (member == self) continue;
            have_all = await(trial.line_of(member), member, kCommonLines + member, 2 * round);
            differ = differ || trial.card.load(trial.line_of(member)) % 2 != value % 2;
        }
        if (!have_all) break;
        if (differ && self == 0) ++finding.noted;
    }
    members.meet();
    return finding;
}

Finding write_me_last(const Trial& trial) {
    enum : unsigned { kWord, kStamp, kFlag };
    // Processors read clocks early, and show their own stores to themselves before they do to
    // others: less is no break of the card's.
    constexpr std::int64_t kAtOnceNs = 1'000;
    struct Stamp {
        std::int64_t written_ns, back_ns, round, sum;

        std::int64_t right_sum() const noexcept { return written_ns ^ back_ns ^ round; }
    };
    Members& members = trial.members;
    Finding finding;
    finding.rounds = trial.rounds;

    const auto write_round = [&](std::uint32_t round) {
        Patience patience(trial);
        Stamp stamp{rmem::now_ns(), 0, round, 0};
        trial.card.write_word(trial.line(kWord), round);
        std::uint32_t own = 0;
        while ((own = trial.card.load(trial.line(kWord))) != round) {
            if (patience.goes_on()) continue;
            finding.broken({1, members.self(), round, kWord, own, round});
            break;
        }
        stamp.back_ns = rmem::now_ns();
        stamp.sum = stamp.right_sum();  // the flag may come too early: another litmus's business
        trial.card.write(trial.line(kStamp), &stamp, sizeof stamp);
        trial.card.write_word(trial.line(kFlag), round);
        for (unsigned member = 0; member < members.count(); ++member) {
            while (member != members.self() && trial.card.load(trial.line_of(member)) != round) {
                if (patience.goes_on()) continue;
                finding.broken({2, member, round, kCommonLines + member, 0, round});
                return false;
            }
        }
        return true;
    };
    const auto write = [&] {
        trial.card.set_write_me_last(true);
        for (std::uint32_t round = 1; round <= trial.rounds && write_round(round); ++round) {
        }
        trial.card.set_write_me_last(false);
    };

    // A look that began after the writer had seen its write, and found it missing here, is a break;
    // one that began before it was written is none that could have been.
    const auto look_at_round = [&](unsigned writer, std::uint32_t round) {
        Patience patience(trial, 8);
        std::int64_t missed_ns = 0;
        std::uint32_t seen = 0;
        for (;;) {
            const std::int64_t now = rmem::now_ns();
            const std::uint32_t word = trial.card.load(trial.line(kWord));
            if (word == round) break;
            seen = word;
            missed_ns = now;
            if (patience.goes_on()) continue;
            finding.broken({2, writer, round, kWord, seen, round});
            return false;
        }
        Stamp stamp{};
        const auto is_whole = [&] {
            return stamp.round == round && stamp.sum == stamp.right_sum();
        };
        while (!is_whole() && patience.goes_on()) {
            if (trial.card.load(trial.line(kFlag)) == round)
                trial.card.read(trial.line(kStamp), &stamp, sizeof stamp);
        }
        if (is_whole() && members.shares_clock(writer)) {
            if (missed_ns > stamp.written_ns) ++finding.observations;
            if (missed_ns > stamp.back_ns + kAtOnceNs) {
                finding.broken(
                    {0, writer, round, kWord, seen,
                     fitted_word(static_cast<std::uint64_t>(missed_ns - stamp.back_ns))});
            }
        }
        trial.card.write_word(trial.line_of(members.self()), round);
        return true;
    };
    in_turns(trial, write, [&](unsigned writer) {
        for (std::uint32_t round = 1; round <= trial.rounds && look_at_round(writer, round);
             ++round) {
        }
    });
    return finding;
}

Finding outstanding(const Trial& trial) {
    constexpr std::uint32_t kFifoWords = 1024;  // of each card that has one
    const std::uint32_t last = 2 * kFifoWords + trial.rounds;
    Finding finding;
    finding.rounds = last;
    const auto write = [&] {
        trial.card.set_write_me_last(true);
        std::uint32_t own = 0;
        for (std::uint32_t value = 1; value <= last; ++value) {
            trial.card.write_word(trial.at, value);
            own = trial.card.load(trial.at);
            ++finding.observations;
            if (value - own > kFifoWords)
                finding.broken({0, trial.members.self(), 0, 0, own, value});
        }
        Patience patience(trial);
        while ((own = trial.card.load(trial.at)) != last && patience.goes_on()) {
        }
        if (own != last) finding.broken({1, trial.members.self(), 0, 0, own, last});
        trial.card.set_write_me_last(false);
    };
    in_turns(trial, write, [](unsigned) {});
    return finding;
}

Finding late_join(const Trial& trial) {
    Finding finding;
    finding.rounds = trial.members.self() == 0 ? 0 : 1;
    if (trial.members.self() == 0) return finding;
    if (trial.members.came_late()) ++finding.observations;
    if (!trial.members.has_greeting()) finding.broken({});
    return finding;
}

}  // namespace tools::conform
