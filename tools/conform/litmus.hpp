// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The rules of a reflective memory, each with a program that tries to see it broken.
///
/// A litmus runs at all members at once. It takes what it needs from the trial and leaves nothing
/// behind but values in its place; it counts the rounds in which a break would have been seen,
/// since one that nobody could have seen says nothing.
///
/// Thread safety: one thread. Errors: what the card and the members throw.

#include "tools/conform/members.hpp"

#include <array>
#include <optional>
#include <span>

namespace tools::conform {

/// Lines of a litmus's place that all use; behind them each member has one of its own.
inline constexpr unsigned kCommonLines = 8;

struct Trial {
    Card& card;
    Members& members;
    std::size_t at;  ///< the litmus's place
    unsigned rounds;
    std::int64_t floor_ns;     ///< 0: none is known
    std::int64_t patience_ns;  ///< until what was written must have come

    static constexpr std::size_t place_bytes(unsigned members) noexcept {
        return (kCommonLines + members) * kLineBytes;
    }
    std::size_t line(std::size_t number) const noexcept { return at + number * kLineBytes; }
    std::size_t line_of(unsigned member) const noexcept { return line(kCommonLines + member); }
};

struct Litmus {
    const char* name;
    const char* rule;
    const char* observation;  ///< what one is, in the plural
    /// How the rule can be broken; {writer}, {round}, {place}, {seen} and {expected} are filled in.
    std::array<const char*, 3> breaks;
    const char* note;  ///< what Finding::noted counts; empty: nothing
    unsigned enough;   ///< observations, of all members
    unsigned share;    ///< of the rounds one is made: one that members make in step takes long
    std::optional<Feature> needs;
    Finding (*run)(const Trial&);
};

/// In the order in which they run.
std::span<const Litmus> all_litmuses();

// ---- The programs, by the file that has them

Finding words_in_order(const Trial& trial);  // order_litmuses.cpp
Finding block_before_flag(const Trial& trial);
Finding word_before_block(const Trial& trial);
Finding long_burst(const Trial& trial);
Finding whole_words(const Trial& trial);
Finding no_way_back(const Trial& trial);
Finding own_data(const Trial& trial);

Finding neighbours(const Trial& trial);  // shared_litmuses.cpp
Finding bytes_alone(const Trial& trial);
Finding bytes_at_once(const Trial& trial);
Finding two_writers(const Trial& trial);
Finding write_me_last(const Trial& trial);
Finding outstanding(const Trial& trial);
Finding late_join(const Trial& trial);

Finding without_a_program(const Trial& trial);  // leaving_litmuses.cpp
Finding sent_or_taken_back(const Trial& trial);

Finding data_before_interrupt(const Trial& trial);  // interrupt_litmuses.cpp
Finding interrupts_once(const Trial& trial);

Finding word_time(const Trial& trial);  // time_litmuses.cpp
Finding interrupt_time(const Trial& trial);

// ---- What they share

/// Until when a look is worth while. Gives the processor away, at each look or at some.
class Patience {
public:
    explicit Patience(const Trial& trial, unsigned looks = 1);
    bool goes_on();
    /// Something has come.
    void renew();
    /// Whether it has looked on since the last renewal, and so while others wrote: had it given the
    /// processor away, they could have been done with it all.
    bool is_watching() const noexcept { return is_watching_; }

private:
    std::int64_t patience_ns_, until_ns_;
    bool is_watching_ = false;
    unsigned looks_, look_ = 0;
};

/// A writer lets others look now and then, where there are fewer processors than members.
void let_look(unsigned round);

/// Each member writes in turn, while the others look. At the begin of each turn the lines that all
/// use are 0, and so is the first word of each member's own; no interrupt of an earlier one waits.
template <class Write, class Look>
void in_turns(const Trial& trial, Write write, Look look) {
    Members& members = trial.members;
    for (unsigned writer = 0; writer < members.count(); ++writer) {
        // Two writers' words may arrive in either order: a member that has met the others has what
        // the last writer wrote, and one that has met them again knows that all have it.
        members.meet();
        if (trial.card.offers(Feature::interrupts)) {
            while (trial.card.next_interrupt(0)) {
            }
        }
        if (writer == members.self()) {
            constexpr std::array<std::uint32_t, kLineBytes / 4> kZeros{};
            for (unsigned line = 0; line < kCommonLines; ++line) {
                trial.card.write(trial.line(line), kZeros.data(), kLineBytes);
            }
        }
        trial.card.write_word(trial.line_of(members.self()), 0);
        members.meet();
        if (writer == members.self()) {
            write();
        } else {
            look(writer);
        }
        members.meet();
    }
}

}  // namespace tools::conform
