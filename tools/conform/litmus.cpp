// SPDX-License-Identifier: Apache-2.0
#include "tools/conform/litmus.hpp"

#include "rmem/base/clock.hpp"

#include <sched.h>

namespace tools::conform {

namespace {

constexpr unsigned kFew = 5;
constexpr unsigned kMany = 20;
constexpr unsigned kInStep = 4;  // members that wait for each other make less rounds: a quarter

constexpr unsigned kLeaving = 100;  // a node that is left and entered again may take a second

constexpr const char* kNeverCame =
    "round {expected} of member {writer} never came to {place}: {seen} was the last";

constexpr Litmus kLitmuses[] = {
    {"late-join",
     "a member that comes late finds what was written before",
     "members that came late",
     {"what member 0 wrote before has not come"},
     "",
     1,
     1,
     Feature::late_join,
     late_join},
    {"order",
     "the words of one writer arrive in their order",
     "arrivals that were watched",
     {"{place} held {seen} when the word that member {writer} wrote after its {expected} was here",
      "{place} went back from {expected} to {seen} of member {writer}", kNeverCame},
     "",
     kMany,
     1,
     {},
     words_in_order},
    {"flag",
     "a block is complete before the flag that is written after it",
     "arrivals that were watched",
     {"{place} held {seen} when the flag {expected} of member {writer} was here",
      "{place} went back from {expected} to {seen} of member {writer}", kNeverCame},
     "looks found a block in part: words of two rounds",
     kMany,
     1,
     {},
     block_before_flag},
    {"block",
     "a word is there before the block that is written after it",
     "arrivals that were watched",
     {"{place} held {seen} when the block that member {writer} wrote after its {expected} was here",
      "{place} went back from {expected} to {seen} of member {writer}", kNeverCame},
     "",
     kMany,
     1,
     {},
     word_before_block},
    {"burst",
     "what is written without a pause is there to its end",
     "bursts that came",
     {"{place} held {seen} at the end of the burst of member {writer}, which wrote {expected} "
      "last"},
     "",
     1,
     1,
     {},
     long_burst},
    {"whole-words",
     "a word is never seen in part",
     "arrivals that were watched",
     {"{place} held {seen:#010x}, half of one value of member {writer} and half of another", "",
      kNeverCame},
     "",
     kMany,
     1,
     {},
     whole_words},
    {"no-way-back",
     "a word never goes back to an older value",
     "arrivals that were watched",
     {"{place} went back from {expected} to {seen} of member {writer}", "", kNeverCame},
     "",
     kMany,
     1,
     {},
     no_way_back},
    {"own-data",
     "the own bank has an own write at once, and no older one comes back",
     "looks at an own word",
     {"{place} held {seen} at its writer, member {writer}, which had written {expected}"},
     "",
     kMany,
     1,
     {},
     own_data},
    {"neighbours",
     "a word that is written leaves its neighbours, of other writers, as they are",
     "rounds in which neighbours changed",
     {"{place} went back from {expected} to {seen} of member {writer}, its only writer",
      "{place} was {seen} at the end, and its only writer, member {writer}, wrote {expected} last",
      kNeverCame},
     "",
     kMany,
     kInStep,
     {},
     neighbours},
    {"bytes",
     "a byte that is written leaves the others of its word as they are",
     "arrivals after which the others were looked at",
     {"the word at {place} was {seen:#010x} and not {expected:#010x} when member {writer} alone "
      "had written bytes of it",
      kNeverCame},
     "",
     kMany,
     kInStep,
     {},
     bytes_alone},
    {"bytes-at-once",
     "no byte is lost that is written while others write those beside it",
     "bytes that were looked at when all had been written",
     {"a byte of {place} was {seen} and not {expected} at the end of a round in which member "
      "{writer} wrote it, and others those beside it"},
     "",
     kMany,
     kInStep,
     Feature::single_bytes,
     bytes_at_once},
    {"two-writers",
     "where two write one word, it holds what one of them wrote",
     "rounds in which a writer had not seen the other's write",
     {"{place} held {seen} when members 0 and 1 had written {expected} and the number after it",
      "round {expected} of member {writer} never came to {place}: {seen} was the last"},
     "rounds at whose end the banks differed, for good",
     kFew,
     kInStep,
     {},
     two_writers},
    {"write-me-last",
     "with write-me-last, the own bank has an own write only when all others have it",
     "looks, from the write to its coming back, that found the old value",
     {"member {writer} saw its write {round} {expected} ns before a look at {place} that found "
      "{seen}",
      "the write {expected} of member {writer} never came back to {place}: {seen} was the last",
      "round {expected} of member {writer} never came to {place}: {seen} was the last"},
     "",
     kFew,
     kInStep,
     Feature::write_me_last,
     write_me_last},
    {"outstanding",
     "with write-me-last, no more than a FIFO of own writes is on its way",
     "own writes",
     {"{place} held {seen} when member {writer} had written {expected}",
      "the write {expected} of member {writer} never came back to {place}: {seen} was the last"},
     "",
     kMany,
     1,
     Feature::write_me_last,
     outstanding},
    {"interrupt",
     "what was written before an interrupt is there when it is taken",
     "interrupts taken before anything newer had come",
     {"{place} held {seen} when the interrupt that member {writer} sent after its {expected} was "
      "taken",
      "", kNeverCame},
     "",
     kMany,
     kInStep,
     Feature::interrupts,
     data_before_interrupt},
    {"interrupts-once",
     "an interrupt, to one or to all, is taken once, in its order, or told as lost",
     "interrupts that were taken",
     {"the interrupts from {seen} on of member {writer}, before its {expected}, were lost without "
      "a word",
      "interrupt {seen} of member {writer} was taken again, or late, after {expected}", kNeverCame},
     "interrupts of a flood were lost",
     kMany,
     1,
     Feature::interrupts,
     interrupts_once},
    {"word-time",
     "no word arrives before it can",
     "words to and fro",
     {"a word of member {writer} took {seen} ns, where {expected} ns are the least", "",
      kNeverCame},
     "",
     kMany,
     1,
     {},
     word_time},
    {"interrupt-time",
     "no interrupt arrives before it can",
     "interrupts to and fro",
     {"an interrupt of member {writer} took {seen} ns, where {expected} ns are the least", "",
      "interrupt {expected} of member {writer} was not answered"},
     "interrupts were sent again because no answer had come",
     kMany,
     1,
     Feature::interrupts,
     interrupt_time},
    {"without-a-program",
     "a node whose program ended and came again has what others wrote, and nothing older",
     "comings again that found what was written meanwhile",
     {"{place} held {seen} when its node was entered again, and {expected} of member {writer} when "
      "it was left",
      "{place} held {seen} when all had met again, and member {writer} wrote {expected} last",
      kNeverCame},
     "",
     1,
     kLeaving,
     Feature::comes_again,
     without_a_program},
    {"sent-or-taken-back",
     "what a program that is killed has written is soon in all banks, or in none",
     "kills in the middle of writes",
     {"the place of member {writer} had the sum {seen} here and {expected} there, after its "
      "program "
      "was killed",
      "", kNeverCame},
     "",
     1,
     kLeaving,
     Feature::comes_again,
     sent_or_taken_back},
};

}  // namespace

std::span<const Litmus> all_litmuses() {
    return kLitmuses;
}

Patience::Patience(const Trial& trial, unsigned looks)
    : patience_ns_(trial.patience_ns), until_ns_(rmem::now_ns() + patience_ns_), looks_(looks) {}

bool Patience::goes_on() {
    if (++look_ % looks_ != 0) return true;
    is_watching_ = false;
    ::sched_yield();
    return rmem::now_ns() < until_ns_;
}

void Patience::renew() {
    is_watching_ = true;
    look_ = 0;
    until_ns_ = rmem::now_ns() + patience_ns_;
}

void let_look(unsigned round) {
    constexpr unsigned kRoundsBetween = 8;
    if (round % kRoundsBetween == 0) ::sched_yield();
}

}  // namespace tools::conform
