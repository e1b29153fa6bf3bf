// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/unsent.hpp"

#include "rmem/ring/bank.hpp"
#include "rmem/ring/twin.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <functional>
#include <memory>
#include <numeric>
#include <thread>
#include <tuple>
#include <vector>

namespace rmem::test {
namespace {

constexpr std::size_t kUser = 1U << 20;

/// Rank 1, alone at node 1, is killed in the middle of something.
struct UnsentTest : ::testing::Test {
    RingName name;
    std::shared_ptr<Ring> ring = open();
    RankSlot& slot = ring->rank(1);
    LogReader log{ring->log(1), LogReader::Role::observer};

    std::shared_ptr<Ring> open() const {
        return Ring::open(name.config(2, LinkKind::ring, kUser), Deadline::never());
    }
    struct Writer {
        Ring& ring;
        LogWriter log{ring.log(1)};
        ApplierUse applier{ring, ring.rank(1).writer};
        Bank bank{ring, 1};

        void store(std::size_t offset, const std::vector<std::uint32_t>& words) const {
            bank.store(offset, words.data(), words.size() * kWordBytes, false);
        }
        void append(std::size_t offset, const std::vector<std::uint32_t>& words) {
            LogRecord record;
            record.offset = offset;
            record.words = static_cast<std::uint32_t>(words.size());
            log.append(record, words.data());
        }
    };
    void killed(const std::function<void(Writer&)>& in) const {
        Child child([&] {
            const auto mine = open();
            const Membership member(mine, {1, 1});
            Writer writer{*mine};
            in(writer);
            ::raise(SIGSTOP);
        });
        child.await_stop();
        child.kill();
    }
    /// What comes in the log next: where, and which words.
    std::pair<LogRecord, std::vector<std::uint32_t>> next() {
        LogReader::Entry entry;
        if (log.peek(entry) != LogReader::Found::record) return {};
        std::vector<std::uint32_t> words(entry.record.words);
        EXPECT_TRUE(log.load_words(entry, words.data()));
        log.pass(entry);
        return {entry.record, words};
    }
    bool is_read() { return !log.refresh(); }
    bool is_odd() const { return slot.writer.count % 2 != 0; }
};

std::vector<std::uint32_t> numbers(std::size_t count, std::uint32_t first = 1) {
    std::vector<std::uint32_t> all(count);
    std::iota(all.begin(), all.end(), first);
    return all;
}

TEST_F(UnsentTest, what_was_stored_and_not_logged_is_sent_once) {
    killed([](Writer& w) {
        const Applying applying(w.applier, 64, 2, kWholeWord, w.log.head());
        w.store(64, {7, 8});
        ::raise(SIGSTOP);
    });
    ASSERT_TRUE(is_odd());
    EXPECT_TRUE(send_unsent_of_dead(*ring, 1));
    const auto [record, words] = next();
    EXPECT_EQ(record.offset, 64U);
    EXPECT_EQ(words, (std::vector<std::uint32_t>{7, 8}));
    EXPECT_FALSE(is_odd());
    EXPECT_TRUE(send_unsent_of_dead(*ring, 1));
    EXPECT_TRUE(is_read());
}

TEST_F(UnsentTest, of_a_long_write_the_rest_is_sent) {
    killed([](Writer& w) {
        const auto all = numbers(600);
        const Applying applying(w.applier, 0, all.size(), kWholeWord, w.log.head());
        w.store(0, all);
        w.append(0, numbers(256));
        ::raise(SIGSTOP);
    });
    EXPECT_TRUE(send_unsent_of_dead(*ring, 1));
    EXPECT_EQ(next().second, numbers(256)) << "by the one that was killed";
    EXPECT_EQ(next().second, numbers(256, 257));
    EXPECT_EQ(next().second, numbers(88, 513));
    EXPECT_TRUE(is_read());
}

TEST_F(UnsentTest, what_was_logged_or_was_never_stored_is_not_sent) {
    killed([](Writer& w) {
        const Applying applying(w.applier, 64, 1, kWholeWord, w.log.head());
        w.store(64, {7});
        w.append(64, {7});
        ::raise(SIGSTOP);
    });
    EXPECT_TRUE(send_unsent_of_dead(*ring, 1));
    EXPECT_EQ(next().second, numbers(1, 7));
    EXPECT_TRUE(is_read());
    killed([](Writer& w) {
        const Applying with_write_me_last(w.applier, 64, 1);
        ::raise(SIGSTOP);
    });
    EXPECT_TRUE(send_unsent_of_dead(*ring, 1));
    EXPECT_TRUE(is_read());
    EXPECT_FALSE(is_odd());
}

TEST_F(UnsentTest, of_bytes_these_alone_are_sent) {
    killed([](Writer& w) {
        const Applying applying(w.applier, 8, 1, 0b0100, w.log.head());
        w.bank.store_part(8, 0x00ab0000, 0b0100, false);
        ::raise(SIGSTOP);
    });
    EXPECT_TRUE(send_unsent_of_dead(*ring, 1));
    const auto [record, words] = next();
    EXPECT_EQ(record.part(), 0b0100);
    EXPECT_EQ(words, numbers(1, 0x00ab0000));
}

TEST_F(UnsentTest, without_room_it_goes_on_the_next_time) {
    const std::size_t words = kUser / kWordBytes;
    killed([&](Writer& w) {
        const Applying applying(w.applier, 0, words, kWholeWord, w.log.head());
        w.store(0, numbers(words));
        ::raise(SIGSTOP);
    });
    // As a node that is there, and has read nothing yet.
    const Membership reader(ring, {0, 0});
    ring->node(0).present = 2;
    EXPECT_FALSE(send_unsent_of_dead(*ring, 1)) << "the log is as large as the memory";
    EXPECT_TRUE(is_odd());
    std::uint32_t expected = 1;
    for (bool is_all = false; !is_all || !is_read();) {
        const auto [record, some] = next();
        if (some.empty()) {
            ring->node(0).applied[1] = log.position();
            is_all = send_unsent_of_dead(*ring, 1);
            continue;
        }
        ASSERT_EQ(record.offset, (expected - 1) * kWordBytes);
        for (const std::uint32_t word : some) ASSERT_EQ(word, expected++);
    }
    EXPECT_EQ(expected, words + 1);
    EXPECT_FALSE(is_odd());
}

TEST_F(UnsentTest, what_a_program_has_stored_by_itself_is_sent_by_what_differs) {
    {
        const Membership before(ring, {1, 1});
        Writer{*ring}.store(4, {0x11111111});
    }
    killed([](Writer& w) {
        Twin twin(w.ring, 1, Deadline::in(kPatienceNs));
        w.bank.data()[5] = std::byte{0x22};
        w.store(4096, {9, 10});
        ::raise(SIGSTOP);
    });
    EXPECT_TRUE(send_unsent_of_dead(*ring, 1));
    auto [record, words] = next();
    EXPECT_EQ(record.offset, 4U);
    EXPECT_EQ(record.part(), 0b0010);
    EXPECT_EQ(words, numbers(1, 0x11112211));
    EXPECT_EQ(next().second, numbers(1, 9));
    EXPECT_EQ(next().second, numbers(1, 10));
    EXPECT_TRUE(is_read());
    EXPECT_EQ(ring->node(1).keeps_twin, 0U);
    EXPECT_EQ(ring->delivery().twins, 0U);
}

// Appliers are of all banks: one that stores into another one hides the same words of this.
TEST_F(UnsentTest, words_that_are_stored_elsewhere_at_that_moment_are_waited_for) {
    killed([](Writer& w) {
        Twin twin(w.ring, 1, Deadline::in(kPatienceNs));
        w.store(128, {9});
        ::raise(SIGSTOP);
    });
    const Membership other(ring, {0, 0});
    std::atomic<bool> is_storing{false};
    std::thread engine([&] {
        const Applying applying({*ring, ring->rank(0).engine_applier}, 128, 1);
        is_storing = true;
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    });
    while (!is_storing) std::this_thread::yield();
    EXPECT_TRUE(send_unsent_of_dead(*ring, 1));
    EXPECT_EQ(next().second, numbers(1, 9));
    engine.join();
}

TEST_F(UnsentTest, a_new_process_of_the_rank_sends_it_itself) {
    killed([](Writer& w) {
        const Applying applying(w.applier, 64, 1, kWholeWord, w.log.head());
        w.store(64, {7});
        ::raise(SIGSTOP);
    });
    const Membership next_one(ring, {1, 1});
    EXPECT_TRUE(send_unsent_of_dead(*ring, 1));
    EXPECT_TRUE(is_read()) << "its log is its own";
    LogWriter own(ring->log(1));
    EXPECT_TRUE(send_unsent(*ring, 1, own));
    EXPECT_EQ(next().second, numbers(1, 7));
}

TEST_F(UnsentTest, nothing_is_read_outside_the_bank) {
    slot.node = 77;
    slot.writer.count = 1;
    EXPECT_TRUE(send_unsent_of_dead(*ring, 1)) << "there is no such node";
    slot.node = 1;
    const std::size_t bank = ring->config().bank_bytes();
    for (const std::size_t offset : {bank, bank - 4, std::size_t{1} << 33}) {
        slot.writer.count = 1;
        slot.writer.log_end = 0;
        slot.writer.place = Applying::Place{offset, 64, 3}.packed();
        EXPECT_TRUE(send_unsent_of_dead(*ring, 1));
        EXPECT_FALSE(is_odd());
        for (auto [record, words] = next(); !words.empty(); std::tie(record, words) = next())
            EXPECT_LE(record.offset + 4 * record.words, bank);
    }
}

}  // namespace
}  // namespace rmem::test
