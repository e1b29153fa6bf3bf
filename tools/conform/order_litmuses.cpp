// SPDX-License-Identifier: Apache-2.0
// What holds between the writes of one member.
#include "tools/conform/litmus.hpp"

#include <sched.h>

#include <algorithm>

namespace tools::conform {

namespace {

constexpr unsigned kLooksInARow = 32;  // between which a reader keeps its processor

/// The other members look at a word that counts the writer's rounds. `check` sees each of its
/// values, and looks at what was written before it; true: that is ahead, so a look fell between.
template <class Check>
void look_at_rounds(const Trial& trial, Finding& finding, unsigned writer, unsigned line,
                    Check check) {
    Patience patience(trial, kLooksInARow);
    std::uint32_t last = 0;
    while (last < trial.rounds) {
        const std::uint32_t round = trial.card.load(trial.line(line));
        const bool is_between = check(round, last);
        if (round != last) {
            if (is_between || patience.is_watching()) ++finding.observations;
            patience.renew();
            last = std::max(last, round);
        } else if (!patience.goes_on()) {
            finding.broken({2, writer, last, line, last, trial.rounds});
            return;
        }
    }
}

}  // namespace

Finding words_in_order(const Trial& trial) {
    enum : unsigned { kEarlier, kLater };
    Finding finding;
    finding.rounds = trial.rounds;
    const auto write = [&] {
        for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
            trial.card.write_word(trial.line(kEarlier), round);
            trial.card.write_word(trial.line(kLater), round);
            let_look(round);
        }
    };
    in_turns(trial, write, [&](unsigned writer) {
        look_at_rounds(trial, finding, writer, kLater,
                       [&](std::uint32_t later, std::uint32_t last) {
                           const std::uint32_t earlier = trial.card.load(trial.line(kEarlier));
                           if (earlier < later)
                               finding.broken({0, writer, later, kEarlier, earlier, later});
                           if (later < last)
                               finding.broken({1, writer, later, kLater, later, last});
                           return earlier > later;
                       });
    });
    return finding;
}

Finding block_before_flag(const Trial& trial) {
    constexpr unsigned kFlag = 4;  // behind the block's lines
    constexpr std::size_t kWords = kFlag * kLineBytes / 4;
    Finding finding;
    finding.rounds = trial.rounds;
    std::array<std::uint32_t, kWords> block;
    const auto write = [&] {
        for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
            block.fill(round);
            trial.card.write(trial.line(0), block.data(), sizeof block);
            trial.card.write_word(trial.line(kFlag), round);
            let_look(round);
        }
    };
    in_turns(trial, write, [&](unsigned writer) {
        look_at_rounds(trial, finding, writer, kFlag, [&](std::uint32_t flag, std::uint32_t last) {
            trial.card.read(trial.line(0), block.data(), sizeof block);
            const auto [least, most] = std::minmax_element(block.begin(), block.end());
            if (*least != *most) ++finding.noted;
            const auto word = static_cast<std::uint32_t>(least - block.begin());
            const auto line = static_cast<std::uint32_t>(word * 4 / kLineBytes);
            if (*least < flag) finding.broken({0, writer, flag, line, *least, flag});
            if (flag < last) finding.broken({1, writer, flag, kFlag, flag, last});
            return *least > flag;
        });
    });
    return finding;
}

Finding word_before_block(const Trial& trial) {
    enum : unsigned { kWord, kBlock };
    constexpr std::size_t kWords = (kCommonLines - kBlock) * kLineBytes / 4;
    Finding finding;
    finding.rounds = trial.rounds;
    std::array<std::uint32_t, kWords> block;
    const auto write = [&] {
        for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
            trial.card.write_word(trial.line(kWord), round);
            block.fill(round);
            trial.card.write(trial.line(kBlock), block.data(), sizeof block);
            let_look(round);
        }
    };
    in_turns(trial, write, [&](unsigned writer) {
        look_at_rounds(trial, finding, writer, kBlock, [&](std::uint32_t seen, std::uint32_t last) {
            trial.card.read(trial.line(kBlock), block.data(), sizeof block);
            const std::uint32_t word = trial.card.load(trial.line(kWord));
            const std::uint32_t most = *std::max_element(block.begin(), block.end());
            if (word < most) finding.broken({0, writer, most, kWord, word, most});
            if (seen < last) finding.broken({1, writer, seen, kBlock, seen, last});
            return word > most;
        });
    });
    return finding;
}

Finding long_burst(const Trial& trial) {
    constexpr std::uint32_t kBurst = 16'384;  // more than any card's FIFO that we know of
    constexpr std::uint32_t kWords = kCommonLines * kLineBytes / 4;
    Finding finding;
    finding.rounds = 1;
    const auto write = [&] {
        for (std::uint32_t i = 0; i < kBurst; ++i)
            trial.card.write_word(trial.at + 4 * (i % kWords), i);
        trial.members.meet();
    };
    in_turns(trial, write, [&](unsigned writer) {
        trial.members.meet();
        ++finding.observations;
        for (std::uint32_t word = 0; word < kWords; ++word) {
            const std::uint32_t expected = kBurst - kWords + word;
            const std::uint32_t seen = trial.card.load(trial.at + 4 * word);
            if (seen == expected) continue;
            finding.broken({0, writer, 1, narrowed(4 * word / kLineBytes), seen, expected});
        }
    });
    return finding;
}

Finding whole_words(const Trial& trial) {
    constexpr std::uint32_t kBothHalves = 0x10001;
    constexpr std::uint32_t kHalf = 0xffff;
    Finding finding;
    finding.rounds = trial.rounds;
    const auto write = [&] {
        for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
            trial.card.write_word(trial.line(0), round * kBothHalves);
            let_look(round);
        }
    };
    in_turns(trial, write, [&](unsigned writer) {
        Patience patience(trial, kLooksInARow);
        std::uint32_t last = 0;
        while (last != trial.rounds * kBothHalves) {
            const std::uint32_t word = trial.card.load(trial.line(0));
            if ((word & kHalf) != word >> 16) finding.broken({0, writer, 0, 0, word, 0});
            if (word != last) {
                if (patience.is_watching()) ++finding.observations;
                patience.renew();
                last = word;
            } else if (!patience.goes_on()) {
                finding.broken({2, writer, 0, 0, last & kHalf, trial.rounds});
                return;
            }
        }
    });
    return finding;
}

Finding no_way_back(const Trial& trial) {
    Finding finding;
    finding.rounds = trial.rounds;
    const auto write = [&] {
        for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
            trial.card.write_word(trial.line(0), round);
            let_look(round);
        }
    };
    in_turns(trial, write, [&](unsigned writer) {
        look_at_rounds(trial, finding, writer, 0, [&](std::uint32_t round, std::uint32_t last) {
            if (round < last) finding.broken({0, writer, round, 0, round, last});
            return false;
        });
    });
    return finding;
}

Finding own_data(const Trial& trial) {
    constexpr unsigned kLooks = 4;  // after each write: an older one comes back some time later
    Finding finding;
    finding.rounds = trial.rounds;
    const auto write = [&] {
        for (std::uint32_t round = 1; round <= trial.rounds; ++round) {
            trial.card.write_word(trial.line(0), round);
            for (unsigned look = 0; look < kLooks; ++look) {
                const std::uint32_t own = trial.card.load(trial.line(0));
                ++finding.observations;
                if (own != round) finding.broken({0, trial.members.self(), round, 0, own, round});
            }
            let_look(round);
        }
    };
    in_turns(trial, write, [](unsigned) {});
    return finding;
}

}  // namespace tools::conform
