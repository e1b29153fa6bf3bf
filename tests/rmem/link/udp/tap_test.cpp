// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/tap.hpp"

#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <memory>
#include <vector>

namespace rmem::udp {
namespace {

class TapTest : public ::testing::Test {
protected:
    static constexpr std::int64_t kNow = 1'000'000'000;

    TapTest() {
        ring_ = Ring::open(name_.config(2, LinkKind::udp), Deadline::in(kDefaultJoinTimeoutNs), 1);
        log_ = std::make_unique<LogReader>(LogArea(ring_->tap(), kTapBytes),
                                           LogReader::Role::observer);
    }

    /// A tap that somebody listens to.
    std::unique_ptr<Tap> open_tap() {
        auto tap = std::make_unique<Tap>(*ring_);
        listen(*ring_, kNow);
        tap->keep(kNow);
        return tap;
    }
    static TappedWrite write(unsigned origin, std::uint64_t offset) {
        TappedWrite made;
        made.origin = origin;
        made.written_ns = kNow;
        made.applied_ns = kNow + 5;
        made.offset = offset;
        return made;
    }
    static void show(Tap& tap, const TappedWrite& write, const std::vector<std::uint32_t>& words) {
        tap.show(write, std::as_bytes(std::span(words)));
    }
    /// The next that is shown, with its words.
    TappedWrite next() {
        LogReader::Entry entry;
        EXPECT_EQ(log_->peek(entry), LogReader::Found::record);
        words_.resize(entry.record.words);
        EXPECT_TRUE(log_->copy_words(entry, reinterpret_cast<std::byte*>(words_.data())));
        log_->pass(entry);
        return unpacked(entry.record);
    }
    bool has_more() { return log_->refresh(); }

    test::RingName name_;
    std::shared_ptr<Ring> ring_;
    std::unique_ptr<LogReader> log_;
    std::vector<std::uint32_t> words_;
};

TEST_F(TapTest, is_open_while_somebody_listens) {
    Tap tap(*ring_);
    tap.keep(kNow);
    EXPECT_FALSE(tap.is_open());
    EXPECT_FALSE(listen(*ring_, kNow));
    tap.keep(kNow);
    EXPECT_TRUE(tap.is_open());
    EXPECT_TRUE(listen(*ring_, kNow));
    tap.keep(kNow + Tap::kLeaseNs - 1);
    EXPECT_TRUE(tap.is_open());
    tap.keep(kNow + Tap::kLeaseNs);
    EXPECT_FALSE(tap.is_open());
    EXPECT_FALSE(listen(*ring_, kNow));
}

TEST_F(TapTest, shows_writes_as_they_were_behind_a_gap) {
    const auto tap = open_tap();
    TappedWrite marked = write(1, 0x40);
    marked.is_interrupt = marked.is_me_last = true;
    show(*tap, marked, {7});
    show(*tap, write(0, 0x80), {1, 2, 3});
    EXPECT_TRUE(next().is_gap);
    const TappedWrite first = next();
    EXPECT_EQ(first.origin, 1U);
    EXPECT_EQ(first.written_ns, kNow);
    EXPECT_EQ(first.applied_ns, kNow + 5);
    EXPECT_EQ(first.offset, 0x40U);
    EXPECT_TRUE(first.is_interrupt && first.is_me_last && !first.is_gap);
    EXPECT_EQ(words_, (std::vector<std::uint32_t>{7}));
    const TappedWrite second = next();
    EXPECT_EQ(second.origin, 0U);
    EXPECT_FALSE(second.is_interrupt || second.is_me_last || second.is_gap);
    EXPECT_EQ(words_, (std::vector<std::uint32_t>{1, 2, 3}));
    EXPECT_FALSE(has_more());
}

TEST_F(TapTest, shows_a_long_write_in_parts) {
    const auto tap = open_tap();
    std::vector<std::uint32_t> words(2 * kMaxRecordWords + 1);
    for (std::uint32_t i = 0; i < words.size(); ++i) words[i] = i;
    show(*tap, write(0, 0), words);
    next();  // the gap
    std::vector<std::uint32_t> all;
    while (has_more()) {
        EXPECT_EQ(next().offset, all.size() * kWordBytes);
        all.insert(all.end(), words_.begin(), words_.end());
    }
    EXPECT_EQ(all, words);
}

TEST_F(TapTest, waits_for_no_reader_which_finds_its_place_overwritten) {
    const auto tap = open_tap();
    const auto writes = static_cast<std::uint32_t>(3 * kTapBytes / kLogUnitBytes);
    for (std::uint32_t i = 1; i <= writes; ++i) show(*tap, write(0, 0), {i});
    LogReader::Entry entry;
    EXPECT_EQ(log_->peek(entry), LogReader::Found::lapped);
    log_->seek(log_->oldest());
    while (has_more()) next();
    EXPECT_EQ(words_, (std::vector<std::uint32_t>{writes}));
}

TEST_F(TapTest, the_tap_of_an_engine_that_comes_later_goes_on_behind_a_gap) {
    show(*open_tap(), write(0, 0), {1});
    const auto tap = open_tap();
    show(*tap, write(0, 0), {2});
    EXPECT_TRUE(next().is_gap);
    EXPECT_FALSE(next().is_gap);
    EXPECT_TRUE(next().is_gap);
    next();
    EXPECT_EQ(words_, (std::vector<std::uint32_t>{2}));
}

TEST_F(TapTest, keeps_times_that_cannot_be_within_what_can) {
    TappedWrite early = write(0, 0);
    early.applied_ns = early.written_ns - 1;
    EXPECT_EQ(unpacked(packed(early)).applied_ns, early.written_ns);
    LogRecord record;
    record.written_ns = std::numeric_limits<std::int64_t>::max();
    record.delay_ns = 1;
    EXPECT_EQ(unpacked(record).applied_ns, record.written_ns);
}

}  // namespace
}  // namespace rmem::udp
