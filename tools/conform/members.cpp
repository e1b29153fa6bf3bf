// SPDX-License-Identifier: Apache-2.0
#include "tools/conform/members.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/error.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <array>
#include <cstring>
#include <fstream>

namespace tools::conform {

namespace {

enum Word : unsigned { kRun, kBeat, kStep, kNode, kHost };

constexpr std::uint32_t kSmall = 0xffff;       // the most that a word of the line holds
constexpr std::int64_t kAgainNs = 20'000'000;  // until a line is written again
constexpr std::size_t kGreetingWords = kLineBytes / 4;

/// A finding on its way: to which step it belongs, and whether it is whole.
struct Message {
    std::uint32_t step, sum;
    Finding finding;
};
constexpr std::size_t kPlaceBytes = (sizeof(Message) + kLineBytes - 1) / kLineBytes * kLineBytes;

std::uint32_t hashed(const void* bytes, std::size_t count, std::uint32_t seed) noexcept {
    std::uint32_t hash = 2166136261U ^ seed;  // FNV-1a
    for (std::size_t i = 0; i < count; ++i) {
        hash = (hash ^ static_cast<const unsigned char*>(bytes)[i]) * 16777619U;
    }
    return hash;
}

std::uint32_t sum_of(const Message& message) noexcept {
    return hashed(&message.finding, sizeof message.finding, message.step);
}

/// The same on one host until it starts again, as its clock; 0 where that cannot be known.
std::uint32_t host_number() {
    std::string boot;
    std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
    return boot.empty() ? 0 : hashed(boot.data(), boot.size(), 0) % kSmall + 1;
}

}  // namespace

Members::Members(Card& card, unsigned self, unsigned count, std::size_t at,
                 std::int64_t patience_ns)
    : card_(card),
      self_(self),
      count_(count),
      at_(at),
      patience_ns_(patience_ns),
      host_(host_number()) {
    RMEM_CHECK(self < count && at % kLineBytes == 0);
    RMEM_CHECK(at + control_bytes(count) <= card.size());
    if (self_ == 0) {
        const std::uint32_t last = load(0, kRun);
        while (run_ == 0 || run_ == last) {
            run_ = static_cast<std::uint32_t>(rmem::now_ns() / 1000) & kSmall;
        }
        const auto words = greeting();
        card_.write(at_, words.data(), kLineBytes);
        announce();
    } else {
        came_late_ = load(0, kRun) != 0;  // if that member still runs, as join() finds out
    }
}

std::size_t Members::control_bytes(unsigned count) noexcept {
    return kLineBytes + count * (kLineBytes + kPlaceBytes);
}

std::size_t Members::word_of(unsigned member, unsigned word) const noexcept {
    RMEM_CHECK(member < count_ && word <= kHost);
    return at_ + kLineBytes + member * (kLineBytes + kPlaceBytes) + 4 * word;
}
std::size_t Members::place_of(unsigned member) const noexcept {
    return word_of(member, 0) + kLineBytes;
}
std::uint32_t Members::load(unsigned member, unsigned word) const {
    return card_.load(word_of(member, word));
}

void Members::announce() {
    card_.write_word(word_of(self_, kNode), card_.node());
    card_.write_word(word_of(self_, kHost), host_);
    card_.write_word(word_of(self_, kStep), step_);
    card_.write_word(word_of(self_, kRun), run_);
    beat_ = (beat_ + 1) & kSmall;
    card_.write_word(word_of(self_, kBeat), beat_);
}

void Members::give_up_on(unsigned member) const {
    throw rmem::Error(
        rmem::Errc::timed_out,
        fmt::format("member {} has not come to step {} of the run within {} s; start all {} with "
                    "the same --members, --at, --bytes, --rounds and --only",
                    member, step_, patience_ns_ / rmem::kNsPerSecond, count_));
}

void Members::await(unsigned member, const std::function<bool()>& holds,
                    const std::function<void()>& again) {
    const auto deadline = rmem::Deadline::in(patience_ns_);
    auto next = rmem::Deadline::in(kAgainNs);
    while (!holds()) {
        const std::int64_t now = rmem::now_ns();
        if (deadline.passed(now)) give_up_on(member);
        if (next.passed(now)) {
            again();
            next = rmem::Deadline::in(kAgainNs);
        }
        ::sched_yield();
    }
}

void Members::join() {
    if (self_ == 0) {
        for (unsigned member = 1; member < count_; ++member) {
            await(
                member, [&] { return load(member, kRun) == run_; }, [&] { announce(); });
        }
    } else {
        // A run whose number stays alone is one of the past: member 0's beat goes on.
        const std::uint32_t first = load(0, kRun);
        std::uint32_t beat = load(0, kBeat);
        const auto follows = [&] {
            const std::uint32_t run = load(0, kRun);
            if (run != run_) {
                run_ = run;
                beat = load(0, kBeat);
                announce();
            }
            return run_ != 0 && load(0, kBeat) != beat && load(0, kStep) != 0;
        };
        await(0, follows, [&] { announce(); });
        came_late_ = came_late_ && first == run_;
    }
    meet();
}

void Members::meet() {
    meet([] {});
}

void Members::meet(const std::function<void()>& again) {
    ++step_;
    announce();
    for (unsigned member = 0; member < count_; ++member) {
        if (member == self_) continue;
        const auto has_come = [&] {
            // At the first step it may not yet have joined.
            if (const std::uint32_t run = load(member, kRun); step_ > 1 && run != run_) {
                throw rmem::Error(rmem::Errc::config_mismatch,
                                  fmt::format("member {} is in run {}, and this one in {}; end all "
                                              "and start them again",
                                              member, run, run_));
            }
            return load(member, kStep) >= step_;
        };
        await(member, has_come, [&] {
            again();
            announce();
        });
    }
}

std::vector<Finding> Members::exchange(const Finding& own) {
    Message message{step_, 0, own};
    message.sum = sum_of(message);
    const auto hand_over = [&] { card_.write(place_of(self_), &message, sizeof message); };
    hand_over();
    meet(hand_over);
    std::vector<Finding> all(count_);
    for (unsigned member = 0; member < count_; ++member) {
        if (member == self_) {
            all[member] = own;
            continue;
        }
        Message heard{};
        await(
            member,
            [&] {
                card_.read(place_of(member), &heard, sizeof heard);
                return heard.step == message.step && heard.sum == sum_of(heard);
            },
            [&] {
                hand_over();
                announce();
            });
        all[member] = heard.finding;
    }
    meet(hand_over);  // until all have it
    return all;
}

unsigned Members::node_of(unsigned member) const {
    return member == self_ ? card_.node() : load(member, kNode);
}
bool Members::shares_clock(unsigned member) const {
    return host_ != 0 && load(member, kHost) == host_;
}

std::vector<std::uint32_t> Members::greeting() const {
    std::vector<std::uint32_t> words(kGreetingWords);
    for (std::uint32_t i = 0; i < kGreetingWords; ++i) words[i] = hashed(&i, sizeof i, run_);
    return words;
}
bool Members::has_greeting() const {
    std::vector<std::uint32_t> words(kGreetingWords);
    card_.read(at_, words.data(), kLineBytes);
    return words == greeting();
}

}  // namespace tools::conform
