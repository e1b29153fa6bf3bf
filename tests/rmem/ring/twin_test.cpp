// SPDX-License-Identifier: Apache-2.0

/// The twin of a bank: what a program has stored by itself is told from what comes by writes,
/// whatever those who store them do.

#include "rmem/ring/twin.hpp"

#include "rmem/ring/bank.hpp"
#include "rmem/ring/unsent.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include <atomic>
#include <bit>
#include <csignal>
#include <cstring>
#include <memory>
#include <thread>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;

struct TwinTest : ::testing::Test {
    RingName name;
    std::shared_ptr<Ring> ring = open();
    Bank bank{*ring, 0};
    Applier& applier = ring->rank(1).writer;

    std::shared_ptr<Ring> open() const {
        return Ring::open(name.config(2, LinkKind::ring, 8192), Deadline::never());
    }
    std::unique_ptr<Twin> keep(std::int64_t patience_ns = kPatienceNs) const {
        return std::make_unique<Twin>(*ring, 0, Deadline::in(patience_ns));
    }
    void write(std::size_t offset, std::uint32_t value) {
        const Applying applying({*ring, applier}, offset, 1);
        bank.store(offset, &value, sizeof value, applying.any_twin());
    }
    /// By the program.
    void store(std::size_t offset, std::uint32_t value) {
        *reinterpret_cast<volatile std::uint32_t*>(bank.data() + offset) = value;
    }
    /// Another process, in the middle of a write of these words from the second on, of which it
    /// has stored the first.
    Child stopped_while_it_writes(std::size_t words) const {
        Child writer([&] {
            const auto mine = open();
            const Membership member(mine, {1, 1});
            const Applying applying({*mine, mine->rank(1).writer}, 4, words);
            const std::uint32_t half = 7;
            std::memcpy(mine->bank(0) + 4, &half, sizeof half);
            ::raise(SIGSTOP);
        });
        writer.await_stop();
        return writer;
    }
    bool is_odd() const { return applier.count % 2 != 0; }
    /// Those of the first block that are the program's, a bit each.
    static std::uint64_t take(Twin& twin) {
        const Twin::Seen seen = twin.look(0, Twin::kBlockBytes);
        for (std::uint64_t left = seen.words; left != 0; left &= left - 1) {
            const auto i = static_cast<unsigned>(std::countr_zero(left));
            twin.set_sent(i * kWordBytes, seen.before[i], seen.now[i]);
        }
        return seen.words;
    }
};

TEST_F(TwinTest, what_the_program_stores_is_taken_once_and_writes_never) {
    store(4, 1);  // before
    const auto twin = keep();
    EXPECT_FALSE(twin->differs(0, 8192));
    store(8, 2);
    write(12, 3);
    EXPECT_TRUE(twin->differs(0, 8192));
    EXPECT_EQ(take(*twin), 1U << 2);
    EXPECT_FALSE(twin->differs(0, 8192));
    EXPECT_EQ(take(*twin), 0U);
    store(12, 4);  // of a word that others write, too
    EXPECT_EQ(take(*twin), 1U << 3);
    write(8, 5);
    EXPECT_EQ(take(*twin), 0U);
}

TEST_F(TwinTest, what_was_seen_is_seen_again_until_it_is_sent_unless_a_write_has_come) {
    const auto twin = keep();
    store(8, 2);
    const Twin::Seen seen = twin->look(0, Twin::kBlockBytes);
    EXPECT_EQ(seen.words, 1U << 2);
    EXPECT_EQ(twin->look(0, Twin::kBlockBytes).words, 1U << 2);
    write(8, 3);
    twin->set_sent(8, seen.before[2], seen.now[2]);
    EXPECT_FALSE(twin->differs(0, 8192)) << "the write counts";
}

TEST_F(TwinTest, a_twin_has_memory_while_somebody_keeps_it) {
    const auto memory = [&] {
        struct stat found {};
        EXPECT_EQ(::stat(Segment::object_name(name.get()).c_str(), &found), 0);
        return static_cast<std::size_t>(found.st_blocks) * 512;
    };
    const std::size_t without = memory();
    auto twin = keep();
    EXPECT_EQ(memory(), without + 8192);
    twin.reset();
    EXPECT_EQ(memory(), without);
    write(0, 8);
    EXPECT_EQ(memory(), without) << "nobody stores there any more";
    store(4, 9);
    EXPECT_EQ(take(*keep()), 0U) << "what was stored before is nobody's to send";
}

TEST_F(TwinTest, a_second_keeper_is_refused) {
    const auto twin = keep();
    run_in_child([&] {
        const auto mine = open();
        EXPECT_THAT(refused(Errc::rank_taken,
                            [&] { const Twin another(*mine, 0, Deadline::in(kPatienceNs)); }),
                    HasSubstr("node 0"));
        const Twin of_another_node(*mine, 1, Deadline::in(kPatienceNs));
    });
    store(4, 1);
    EXPECT_EQ(take(*twin), 0b10U);
}

TEST_F(TwinTest, what_one_that_was_killed_had_not_sent_is_the_next_ones) {
    Child keeper([&] {
        const auto mine = open();
        const Twin twin(*mine, 0, Deadline::in(kPatienceNs));
        ::raise(SIGSTOP);
    });
    keeper.await_stop();
    write(0, 1);
    keeper.kill();
    store(4, 2);
    const auto twin = keep();
    EXPECT_EQ(take(*twin), 0b10U);
    EXPECT_FALSE(twin->differs(0, 8192));
}

TEST_F(TwinTest, one_that_cannot_begin_leaves_what_differs_to_the_next) {
    Child keeper([&] {
        const auto mine = open();
        const Twin twin(*mine, 0, Deadline::in(kPatienceNs));
        ::raise(SIGSTOP);
    });
    keeper.await_stop();
    keeper.kill();
    store(40, 2);
    Child writer = stopped_while_it_writes(1);
    refused(Errc::timed_out, [&] { keep(1'000'000); });
    writer.kill();
    EXPECT_EQ(take(*keep()) & 1U << 10, 1U << 10);
}

TEST_F(TwinTest, words_that_somebody_is_storing_are_undecided_and_others_are_not) {
    const auto twin = keep();
    store(4, 1);
    store(40, 2);
    {
        const Applying applying({*ring, applier}, 4, 2);
        store(8, 3);  // in the bank, and not in the twin yet
        const Twin::Seen seen = twin->look(0, Twin::kBlockBytes);
        EXPECT_EQ(seen.words, 1U << 10);
        EXPECT_EQ(seen.undecided, 0b110U);
    }
    EXPECT_EQ(take(*twin), 0b110U | 1U << 10);
}

TEST_F(TwinTest, a_write_of_any_size_covers_the_words_that_it_has) {
    const auto twin = keep();
    for (std::size_t i = 0; i < 64; ++i) store(i * 4, 1);
    const auto undecided = [&](std::size_t offset, std::size_t words) {
        const Applying applying({*ring, applier}, offset, words);
        return twin->look(0, Twin::kBlockBytes).undecided;
    };
    EXPECT_EQ(undecided(0, 1), 1U);
    EXPECT_EQ(undecided(252, 1), std::uint64_t{1} << 63);
    EXPECT_EQ(undecided(0, 64), ~std::uint64_t{0});
    EXPECT_EQ(undecided(0, 2048), ~std::uint64_t{0});
    EXPECT_EQ(undecided(256, 1), 0U);
    EXPECT_EQ(undecided(248, 100), std::uint64_t{3} << 62);
    EXPECT_EQ(undecided(0, Applying::Place::kMaxWords + 5), ~std::uint64_t{0});
}

/// Many writes beside the program's stores: each of these is taken, and nothing else.
TEST_F(TwinTest, a_stream_of_writes_beside_the_programs_words_is_never_taken) {
    const auto twin = keep();
    constexpr std::uint64_t kPrograms = 0x0f0f0f0f0f0f0f0f;
    std::atomic<bool> stop{false};
    std::thread writer([&] {
        for (std::uint32_t i = 0; !stop; ++i) {
            const unsigned word = i * 7 % 64;
            if ((kPrograms >> word & 1) == 0) write(word * 4UL, i % 2);  // back and forth
        }
    });
    std::uint64_t taken = 0;
    for (std::uint32_t round = 1; round <= 20'000; ++round) {
        const unsigned word = round * 5 % 64;
        const bool is_own = (kPrograms >> word & 1) != 0;
        if (is_own) store(word * 4UL, round);
        bool has_come = !is_own;
        do {
            const std::uint64_t now = take(*twin);
            ASSERT_EQ(now & ~kPrograms, 0U) << "in round " << round;
            has_come = has_come || (now >> word & 1) != 0;
            taken += static_cast<unsigned>(std::popcount(now));
        } while (!has_come);
    }
    stop = true;
    writer.join();
    EXPECT_EQ(taken, 10'000U);
}

TEST_F(TwinTest, somebody_who_stores_more_than_it_can_say_leaves_nothing_decided) {
    const auto twin = keep();
    store(0, 1);
    const std::uint64_t count = applier.count;
    std::atomic<bool> stop{false};
    EXPECT_EQ(twin->look(0, Twin::kBlockBytes).words, 1U);
    // As if many writes had come within a look.
    std::thread writer([&] {
        while (!stop) applier.count += 2 * applier.places.size();
    });
    EXPECT_TRUE(eventually([&] { return twin->look(0, Twin::kBlockBytes).undecided == 1; }));
    stop = true;
    writer.join();
    EXPECT_GT(applier.count, count);
    EXPECT_EQ(take(*twin), 1U);
}

TEST_F(TwinTest, one_killed_in_the_middle_of_a_write_leaves_words_as_written) {
    const auto twin = keep();
    Child writer = stopped_while_it_writes(2);
    store(40, 1);
    twin->look_for_the_stuck();
    EXPECT_EQ(twin->look(0, Twin::kBlockBytes).undecided, 0b10U);
    twin->look_for_the_stuck();
    const Twin::Seen seen = twin->look(0, Twin::kBlockBytes);
    EXPECT_EQ(seen.words, 1U << 10) << "the other word may be the one's that is stopped";
    EXPECT_EQ(seen.undecided, 0U) << "and nobody is to wait for it";
    writer.kill();
    twin->look_for_the_stuck();
    EXPECT_FALSE(is_odd()) << "mended";
    EXPECT_EQ(take(*twin), 1U << 10);
    EXPECT_FALSE(twin->differs(0, 8192));
}

TEST_F(TwinTest, the_next_of_a_rank_mends_what_the_killed_one_left) {
    const auto twin = keep();
    Child writer = stopped_while_it_writes(1);
    writer.kill();
    EXPECT_TRUE(is_odd());
    const Membership next(ring, {1, 1});
    LogWriter log(ring->log(1));
    EXPECT_TRUE(send_unsent(*ring, 1, log));
    EXPECT_FALSE(is_odd());
    EXPECT_FALSE(twin->differs(0, 8192));
}

TEST_F(TwinTest, a_process_stopped_in_the_middle_of_a_write_is_waited_for) {
    Child writer([&] {
        const auto mine = open();
        const Membership member(mine, {1, 1});
        {
            const Applying applying({*mine, mine->rank(1).writer}, 4, 1);
            ::raise(SIGSTOP);
        }
        ::raise(SIGSTOP);
    });
    writer.await_stop();
    EXPECT_THAT(refused(Errc::timed_out, [&] { keep(1'000'000); }), HasSubstr("SIGCONT"));
    writer.resume();
    const auto twin = keep();
    EXPECT_FALSE(is_odd());
}

}  // namespace
}  // namespace rmem::test
