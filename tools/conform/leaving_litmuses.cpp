// SPDX-License-Identifier: Apache-2.0
// What a node has whose program has ended, or was killed, when the next one comes.
#include "tools/conform/litmus.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/base/descriptor.hpp"
#include "rmem/error.hpp"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <exception>
#include <vector>

namespace tools::conform {

Finding without_a_program(const Trial& trial) {
    Members& members = trial.members;
    const unsigned self = members.self(), count = members.count();
    Finding finding;
    finding.rounds = trial.rounds;
    std::uint32_t value = 0;
    trial.card.write_word(trial.line_of(self), value);
    for (std::uint32_t round = 0; round < trial.rounds * count; ++round) {
        const unsigned away = round % count;
        const auto is_back = [&] { return trial.card.load(trial.line_of(away) + 8) == round + 1; };
        members.meet();
        if (self == away) {
            std::vector<std::uint32_t> before(count);
            for (unsigned member = 0; member < count; ++member)
                before[member] = trial.card.load(trial.line_of(member));
            trial.card.leave();
            ::usleep(1000);
            trial.card.enter();
            bool has_more = false;
            for (unsigned member = 0; member < count; ++member) {
                const std::uint32_t now = trial.card.load(trial.line_of(member));
                has_more = has_more || now > before[member];
                if (now < before[member])
                    finding.broken({0, member, round, kCommonLines + member, now, before[member]});
            }
            if (has_more) ++finding.observations;
            trial.card.write_word(trial.line_of(self) + 8, round + 1);
        }
        Patience patience(trial);
        while (self != away && !is_back()) {
            trial.card.write_word(trial.line_of(self), ++value);
            ::usleep(50);
            if (patience.goes_on()) continue;
            const std::uint32_t seen = trial.card.load(trial.line_of(away) + 8);
            finding.broken({2, away, round, kCommonLines + away, seen, round + 1});
            break;
        }
        // Each says how far it has come, in the line that it writes last.
        trial.card.write_word(trial.line_of(self) + 4, value);
        members.meet();
        for (unsigned member = 0; member < count; ++member) {
            const std::uint32_t last = trial.card.load(trial.line_of(member) + 4);
            const std::uint32_t now = trial.card.load(trial.line_of(member));
            if (now != last) finding.broken({1, member, round, kCommonLines + member, now, last});
        }
    }
    members.meet();
    return finding;
}

namespace {

constexpr std::size_t kPlaceWords = kCommonLines * kLineBytes / 4;
constexpr unsigned kTries = 50;
constexpr unsigned kTryUs = 20'000;  // until a keeper has looked

std::uint32_t sum_of_words(const Trial& trial) {
    std::array<std::uint32_t, kPlaceWords> words{};
    trial.card.read(trial.at, words.data(), sizeof words);
    std::uint32_t sum = 0;
    for (const std::uint32_t word : words) sum = sum * 31 + word;
    return sum;
}

/// In a process of its own, until it is killed: words, blocks and bytes.
[[noreturn]] void write_until_killed(Card& card, std::size_t at, int begun) {
    try {
        card.enter();
        const char sign = 0;
        if (::write(begun, &sign, 1) != 1) ::_exit(EXIT_FAILURE);
        std::array<std::uint32_t, kPlaceWords / 2> block{};
        for (std::uint32_t value = 1;; value = value * 1664525 + 1013904223) {
            block.fill(value);
            card.write_word(at + value % kPlaceWords * 4, value);
            card.write(at + value % (kPlaceWords / 2) * 4, block.data(), sizeof block);
            if (card.offers(Feature::single_bytes))
                card.write_byte(at + value % (kPlaceWords * 4),
                                static_cast<std::uint8_t>(value >> 8));
        }
    } catch (const std::exception&) {  // NOLINT: its parent finds that it has ended
    }
    ::_exit(EXIT_FAILURE);
}

/// The member's program is another one meanwhile.
void kill_one_that_writes(const Trial& trial, std::uint32_t round) {
    std::array<int, 2> begun{};
    if (::pipe(begun.data()) != 0) throw rmem::Error(rmem::Errc::system, "no pipe to be had");
    const rmem::Descriptor reading(begun[0]);
    trial.card.leave();
    const pid_t child = ::fork();
    if (child == 0) write_until_killed(trial.card, trial.at, begun[1]);
    ::close(begun[1]);
    char sign = 0;
    const bool has_begun = child > 0 && ::read(begun[0], &sign, 1) == 1;
    ::usleep(100 + round * 1237 % 3000);
    if (child > 0) {
        ::kill(child, SIGKILL);
        ::waitpid(child, nullptr, 0);
    }
    trial.card.enter();
    if (!has_begun) throw rmem::Error(rmem::Errc::system, "no second program can be had");
}

}  // namespace

Finding sent_or_taken_back(const Trial& trial) {
    Members& members = trial.members;
    const unsigned self = members.self();
    Finding finding;
    finding.rounds = trial.rounds;
    for (std::uint32_t round = 0; round < trial.rounds * members.count(); ++round) {
        const unsigned killed = round % members.count();
        members.meet();
        if (self == killed) {
            kill_one_that_writes(trial, round);
            ++finding.observations;
        }
        members.meet();
        // All see the same sums, and look as often.
        bool are_equal = false;
        for (unsigned look = 0; look < kTries && !are_equal; ++look) {
            if (look != 0) ::usleep(kTryUs);
            const std::uint32_t own = sum_of_words(trial);
            trial.card.write_word(trial.line_of(self), own);
            members.meet();
            const std::uint32_t there = trial.card.load(trial.line_of(killed));
            are_equal = true;
            for (unsigned member = 0; member < members.count(); ++member)
                are_equal = are_equal && trial.card.load(trial.line_of(member)) == there;
            members.meet();
            if (look + 1 == kTries && own != there)
                finding.broken({0, killed, round, 0, own, there});
        }
    }
    members.meet();
    return finding;
}

}  // namespace tools::conform
