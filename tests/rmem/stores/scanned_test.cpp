// SPDX-License-Identifier: Apache-2.0
// ctest: check plain

/// Stores that are found by comparing, page by page: with the kernel's help, and with signals.

#include "rmem/stores/scanned.hpp"

#include "rmem/ring/bank.hpp"
#include "tests/rmem/stores/two_mappings.hpp"
#include "tests/rmem/threads.hpp"
#include "tests/support/broken.hpp"
#include "tests/support/child.hpp"

#include <fcntl.h>
#include <gmock/gmock.h>

#include <csetjmp>
#include <csignal>
#include <memory>
#include <set>

namespace rmem::test {
namespace {

using stores::PageWatchKind;
using stores::ScannedStores;

constexpr std::size_t kPages = 300;
constexpr std::size_t kScannedBytes = kPages * kPageBytes - 64;

struct ScannedStoresTest : ::testing::TestWithParam<PageWatchKind> {
    RingName name;
    std::shared_ptr<Ring> ring = open();
    StoringTaker taker{ring->bank(0)};
    std::unique_ptr<ScannedStores> scanned;

    std::shared_ptr<Ring> open() const {
        return Ring::open(name.config(2, LinkKind::ring, kScannedBytes), Deadline::never());
    }
    void SetUp() override {
        try {
            scanned = std::make_unique<ScannedStores>(*ring, 0, taker, GetParam());
        } catch (const Error& error) {
            if (GetParam() == PageWatchKind::userfaultfd) GTEST_SKIP() << error.what();
            throw;
        }
    }
    volatile std::uint32_t& word(std::size_t offset) const {
        return *reinterpret_cast<volatile std::uint32_t*>(scanned->memory() + offset);
    }
    void await_taken() const { EXPECT_TRUE(scanned->await_taken(Deadline::in(20'000'000'000))); }
    std::vector<Taken> taken() {
        await_taken();
        return taker.taken();
    }
};

// All of it in the child that the check ends: what it forks from may not store there.
TEST(PageWatchDeathTest, unprotects_each_page_that_it_tells_of) {
    EXPECT_BROKEN({
        const TwoMappings memory;
        const auto watch =
            stores::watch_pages({memory.bank(), TwoMappings::kBytes}, PageWatchKind::mprotect);
        *static_cast<volatile std::byte*>(memory.bank()) = std::byte{1};
        watch->wait(0, [](std::size_t) { return std::size_t{0}; });
    });
}

TEST(ScannedStoresDeathTest, send_what_was_found_and_no_more) {
    RingName name;
    name.may_be_left();
    EXPECT_BROKEN({
        const auto ring =
            Ring::open(name.config(2, LinkKind::ring, kScannedBytes), Deadline::never());
        StoringTaker taker(ring->bank(0));
        taker.untrue = 1;
        ScannedStores scanned(*ring, 0, taker, PageWatchKind::mprotect);
        *static_cast<volatile std::byte*>(scanned.memory()) = std::byte{1};
        static_cast<void>(scanned.await_taken(Deadline::never()));
    });
}

INSTANTIATE_TEST_SUITE_P(By, ScannedStoresTest,
                         ::testing::Values(PageWatchKind::userfaultfd, PageWatchKind::mprotect),
                         [](const auto& kind) {
                             return kind.param == PageWatchKind::mprotect ? "mprotect"
                                                                          : "userfaultfd";
                         });

TEST_P(ScannedStoresTest, only_words_that_change_are_taken_neighbours_together) {
    EXPECT_EQ(taken(), std::vector<Taken>{});
    word(8) = 1;
    EXPECT_EQ(taken(), (std::vector<Taken>{{8, 4}}));
    word(8) = 1;  // as it was
    EXPECT_EQ(taken(), std::vector<Taken>{});
    scanned->memory()[13] = std::byte{5};
    EXPECT_EQ(taken(), (std::vector<Taken>{{12, 4}}));
    word(kScannedBytes - 4) = 3;
    EXPECT_EQ(taken(), (std::vector<Taken>{{kScannedBytes - 4, 4}}));
    word(kScannedBytes) = 4;
    EXPECT_EQ(taken(), std::vector<Taken>{}) << "behind the memory";
}

TEST_P(ScannedStoresTest, of_a_word_only_the_bytes_that_change_are_taken) {
    taker.room = 0;  // so that all of it is found in one look
    word(64) = 0x01010101;
    word(68) = 0x01010101;
    word(72) = 0x00010001;
    word(76) = 0x01010101;
    word(84) = 0x01010101;
    EXPECT_FALSE(scanned->await_taken(Deadline::in(5'000'000)));
    taker.room = 99;
    EXPECT_EQ(taken(), (std::vector<Taken>{{64, 8}, {72, 4}, {76, 4}, {84, 4}}));
    EXPECT_EQ(taker.parts, (std::vector<WordPart>{kWholeWord, 0b0101, kWholeWord, kWholeWord}));
}

TEST_P(ScannedStoresTest, a_page_that_has_cooled_is_watched_as_at_first) {
    for (std::uint32_t round = 1; round <= 3; ++round) {
        word(0) = round;
        EXPECT_EQ(taken(), (std::vector<Taken>{{0, 4}}));
        const timespec longer{0, 2 * ScannedStores::kHotNs};
        ::nanosleep(&longer, nullptr);
    }
}

TEST_P(ScannedStoresTest, a_program_that_fills_its_memory_loses_nothing) {
    std::memset(scanned->memory(), 7, kScannedBytes);
    await_taken();
    std::set<std::size_t> words;
    for (const auto& [offset, bytes] : taker.taken()) {
        for (std::size_t at = 0; at < bytes; at += kWordBytes) words.insert(offset + at);
    }
    EXPECT_EQ(words.size(), kScannedBytes / kWordBytes);
}

TEST_P(ScannedStoresTest, what_finds_no_room_is_offered_again) {
    taker.room = 1;
    word(0) = 1;
    word(100) = 2;
    word(8192) = 3;
    std::set<std::size_t> offsets;
    EXPECT_TRUE(eventually([&] {
        for (const auto& run : taker.taken()) offsets.insert(run.offset);
        return offsets.size() == 3;
    }));
    taker.room = 0;
    word(4) = 4;
    EXPECT_FALSE(scanned->await_taken(Deadline::in(5'000'000)));
    EXPECT_EQ(taker.taken(), std::vector<Taken>{});
    taker.room = 9;
    EXPECT_EQ(taken(), (std::vector<Taken>{{4, 4}}));
}

TEST_P(ScannedStoresTest, sync_words_are_taken_last_whatever_their_place) {
    scanned->set_sync(0, 8);
    scanned->set_sync(8192 + 64, 4);
    taker.room = 0;  // so that all of it is found in one look
    word(8192 + 64) = 1;
    word(0) = 0x01010101;
    word(4) = 0x01010101;
    word(8) = 1;
    word(4096) = 1;
    word(8192) = 1;
    EXPECT_FALSE(scanned->await_taken(Deadline::in(5'000'000)));
    taker.room = 99;
    const auto runs = taken();
    ASSERT_EQ(runs.size(), 5U);
    EXPECT_THAT((std::vector(runs.begin(), runs.begin() + 3)),
                ::testing::UnorderedElementsAre(Taken{8, 4}, Taken{4096, 4}, Taken{8192, 4}));
    EXPECT_EQ((std::vector(runs.begin() + 3, runs.end())),
              (std::vector<Taken>{{0, 8}, {8192 + 64, 4}}));
}

TEST_P(ScannedStoresTest, a_write_into_a_page_that_the_program_stores_into_is_left_alone) {
    const Membership writer(ring, {1, 1});  // one that is not alive is mended
    const Bank bank(*ring, 0);
    for (std::uint32_t round = 1; round <= 100; ++round) {
        word(0) = round;
        {
            const Applying applying({*ring, ring->rank(1).writer}, 4, 1);
            bank.store(4, &round, sizeof round, applying.any_twin());
        }
        EXPECT_EQ(taken(), (std::vector<Taken>{{0, 4}})) << round;
    }
}

TEST_P(ScannedStoresTest, threads_may_store_anywhere_at_once) {
    Threads(3, [&](unsigned t) {
        for (std::uint32_t i = 1; i <= 2000; ++i) word((i * 37 + t) % (kScannedBytes / 4) * 4) = i;
    }).join();
    await_taken();
    EXPECT_EQ(std::memcmp(ring->bank(0), ring->twin(0), kScannedBytes), 0);
}

TEST_P(ScannedStoresTest, what_is_stored_last_is_taken_at_the_end) {
    word(4096) = 1;
    scanned.reset();
    EXPECT_EQ(taker.taken(), (std::vector<Taken>{{4096, 4}}));
}

TEST_P(ScannedStoresTest, the_system_stores_where_it_asks_this_library) {
    const int file = ::open("/proc/self/exe", O_RDONLY);
    std::array<std::byte, 64> begin{};
    ASSERT_EQ(::pread(file, begin.data(), begin.size(), 0), 64);
    const ssize_t got = ::pread(file, scanned->memory() + 8192, 64, 0);
    const int error = errno;
    if (GetParam() == PageWatchKind::mprotect || got < 0) {
        EXPECT_EQ(got, -1);
        EXPECT_EQ(error, EFAULT);
        word(8192) = 1;  // into a page that was stored into of late it works
        EXPECT_EQ(::pread(file, scanned->memory() + 8192, 64, 0), 64);
    } else {
        EXPECT_EQ(got, 64);
    }
    EXPECT_FALSE(taken().empty());
    EXPECT_EQ(std::memcmp(scanned->memory() + 8192, begin.data(), 64), 0);
    ::close(file);
}

sigjmp_buf back_from_scanned;

TEST_P(ScannedStoresTest, the_programs_own_faults_are_its_handlers) {
    scanned.reset();
    run_in_child([&] {
        const SignalHandler handler(SIGSEGV, [](int) { ::siglongjmp(back_from_scanned, 1); });
        const auto mine = open();
        StoringTaker own_taker{mine->bank(0)};
        ScannedStores own(*mine, 0, own_taker, GetParam());
        auto* const words = reinterpret_cast<volatile std::uint32_t*>(own.memory());
        static volatile int* nowhere = nullptr;
        volatile int faults = 0;
        for (std::uint32_t i = 1; i <= 3; ++i) {
            words[i * 1024] = i;
            if (::sigsetjmp(back_from_scanned, 1) != 0) {
                faults = faults + 1;
            } else {
                static_cast<void>(*nowhere);
            }
        }
        EXPECT_EQ(faults, 3);
        EXPECT_TRUE(own.await_taken(Deadline::in(20'000'000'000)));
        EXPECT_EQ(own_taker.taken().size(), 3U);
    });
}

TEST_P(ScannedStoresTest, a_childs_store_ends_the_child_and_its_loads_do_not) {
    word(0) = 5;
    await_taken();
    Child child([&] {
        if (word(0) != 5) ::_exit(3);
        word(0) = 6;
    });
    EXPECT_EQ(child.wait(), -SIGSEGV);
    EXPECT_EQ(word(0), 5U);
    word(4) = 1;
    taker.taken();
    word(4096) = 2;
    await_taken();
}

}  // namespace
}  // namespace rmem::test
