// SPDX-License-Identifier: Apache-2.0
// ctest: check plain

/// Plain stores that travel (rmem_stores): on every link, in every way that captures them.

#include "rmem/rmem.h"

#include "rmem/ring/config.hpp"
#include "rmem/ring/segment.hpp"
#include "tests/rmem/stores/two_mappings.hpp"
#include "tests/rmem/threads.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"

#include <gmock/gmock.h>
#include <sys/time.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::HasSubstr;

constexpr std::size_t kStoredBytes = 65536;

/// As a program stores it.
volatile std::uint32_t& word_at(char* place) {
    return *reinterpret_cast<volatile std::uint32_t*>(place);
}

struct Way {
    const char* link;
    int mode;
    const char* faults;
    const char* name;
};
void PrintTo(const Way& way, std::ostream* out) {
    *out << way.name;
}

constexpr Way kWays[] = {
    {"direct", RMEM_STORES_EXACT, nullptr, "direct_exact"},
#if defined(__x86_64__)
    {"ring", RMEM_STORES_EXACT, nullptr, "ring_exact"},
    {"udp", RMEM_STORES_EXACT, nullptr, "udp_exact"},
    {"fabric", RMEM_STORES_EXACT, nullptr, "fabric_exact"},
    {"udp", RMEM_STORES_EXACT, "seed=7;drop:share=3%", "udp_exact_with_loss"},
#endif
    {"ring", RMEM_STORES_SCAN, nullptr, "ring_scan"},
    {"udp", RMEM_STORES_SCAN, nullptr, "udp_scan"},
    {"udp", RMEM_STORES_SCAN, "seed=7;drop:share=3%", "udp_scan_with_loss"},
};

struct CapturedStores : ::testing::TestWithParam<Way> {
    RingName name;
    std::string group = "RMEM_GROUP=" + own_group(name.get(), parse_link(GetParam().link));
    std::string faults =
        std::string("RMEM_FAULTS=") + (GetParam().faults == nullptr ? "" : GetParam().faults);
    std::array<const char*, 4> settings = {"RMEM_INTERFACE=lo", group.c_str(), faults.c_str(),
                                           nullptr};

    rmem_node* open(int node) {
        rmem_options options = RMEM_OPTIONS;
        options.ring = name.get().c_str();
        options.link = GetParam().link;
        options.node = node;
        options.nodes = 2;
        options.memory_bytes = kStoredBytes;
        if (is_remote(parse_link(options.link))) options.settings = settings.data();
        rmem_node* opened = nullptr;
        EXPECT_EQ(rmem_open_with(&opened, &options), RMEM_OK) << rmem_last_error();
        return opened;
    }
    char* stores(rmem_node* node) {
        void* memory = nullptr;
        EXPECT_EQ(rmem_stores(node, GetParam().mode, &memory), RMEM_OK) << rmem_last_error();
        return static_cast<char*>(memory);
    }
    std::uint64_t counted_by_a(const char* counter) const {
        std::uint64_t value = 0;
        EXPECT_EQ(rmem_counter(a, counter, &value), RMEM_OK) << counter;
        return value;
    }
    bool is_captured() const { return std::strcmp(GetParam().link, "direct") != 0; }

    void expect_same_banks() {
        EXPECT_EQ(rmem_flush(a, kPatienceNs), RMEM_OK) << rmem_last_error();
        const auto* mine = static_cast<const char*>(rmem_bank(a));
        const auto* others = static_cast<const char*>(rmem_bank(b));
        EXPECT_EQ(std::memcmp(mine, others, kStoredBytes), 0);
    }

    rmem_node* a = open(0);
    rmem_node* b = open(1);
    /// Where datagrams are lost each may begin a ring of its own first.
    CapturedStores() {
        for (rmem_node* node : {a, b})
            EXPECT_EQ(rmem_await(node, kPatienceNs), RMEM_OK) << rmem_last_error();
    }
    ~CapturedStores() override {
        rmem_close(b);
        rmem_close(a);
    }
};

INSTANTIATE_TEST_SUITE_P(Ways, CapturedStores, ::testing::ValuesIn(kWays),
                         [](const auto& way) { return std::string(way.param.name); });

TEST_P(CapturedStores, plain_stores_of_every_size_arrive) {
    char* const memory = stores(a);
    ASSERT_NE(memory, nullptr);
    word_at(memory + 4) = 0x01020304;
    *reinterpret_cast<volatile char*>(memory + 9) = 7;
    *reinterpret_cast<volatile std::uint16_t*>(memory + 14) = 0x0809;
    *reinterpret_cast<volatile double*>(memory + 64) = 3.5;
    std::memset(memory + 1001, 9, 333);
    const std::vector<char> block(5000, 3);
    std::memcpy(memory + 4001, block.data(), block.size());
    __atomic_fetch_add(reinterpret_cast<std::uint32_t*>(memory + 4), 6, __ATOMIC_SEQ_CST);
    expect_same_banks();
    EXPECT_EQ(rmem_load(b, 4), 0x0102030AU);
    EXPECT_EQ(rmem_load(b, 8), 0x0700U);
    EXPECT_EQ(rmem_load(b, 12), 0x08090000U);
    double value = 0;
    EXPECT_EQ(rmem_read(b, 64, &value, sizeof value), RMEM_OK);
    EXPECT_EQ(value, 3.5);
    EXPECT_EQ(counted_by_a("stores_captured") > 0, is_captured());
}

TEST_P(CapturedStores, a_row_of_stores_has_each_of_them_and_the_next_instruction_reads_it) {
    auto* const words = reinterpret_cast<volatile std::uint32_t*>(stores(a));
    constexpr std::uint32_t kRow = 1000, kMore = 5000;
    const std::uint64_t stored = counted_by_a("stores_captured");
    const std::uint64_t sent = counted_by_a("writes_sent");
    for (std::uint32_t i = 0; i < kRow; ++i) words[i] = i + 1;
    if (is_captured() && GetParam().mode == RMEM_STORES_EXACT) {
        EXPECT_EQ(counted_by_a("stores_captured") - stored, kRow);
        EXPECT_LE(counted_by_a("writes_sent") - sent, kRow / 32) << "they go together";
    }
    for (std::uint32_t i = 0; i < kRow; ++i) {
        words[i] = i + 2;
        __atomic_fetch_add(&words[i], kMore, __ATOMIC_SEQ_CST);
    }
    expect_same_banks();
    for (std::uint32_t i = 0; i < kRow; ++i) EXPECT_EQ(rmem_load(b, 4 * i), i + 2 + kMore);
}

TEST_P(CapturedStores, what_others_write_is_seen_through_the_view_and_sent_by_nobody) {
    char* const memory = stores(a);
    const std::uint64_t before = counted_by_a("writes_sent");
    const auto* word = reinterpret_cast<const std::atomic<std::uint32_t>*>(memory + 256);
    EXPECT_EQ(rmem_write_word(b, 256, 77), RMEM_OK);
    EXPECT_TRUE(eventually([&] { return word->load(std::memory_order_acquire) == 77; }));
    EXPECT_EQ(rmem_flush(a, kPatienceNs), RMEM_OK);
    EXPECT_EQ(counted_by_a("writes_sent"), before);
}

TEST_P(CapturedStores, neighbours_in_other_words_are_left_alone) {
    char* const memory = stores(a);
    EXPECT_EQ(rmem_write_word(b, 0, 1), RMEM_OK);
    EXPECT_EQ(rmem_write_word(b, 8, 3), RMEM_OK);
    word_at(memory + 4) = 2;
    EXPECT_EQ(rmem_flush(b, kPatienceNs), RMEM_OK);
    expect_same_banks();
    EXPECT_EQ(rmem_load(b, 0), 1U);
    EXPECT_EQ(rmem_load(b, 4), 2U);
    EXPECT_EQ(rmem_load(b, 8), 3U);
}

TEST_P(CapturedStores, neighbours_in_one_word_are_left_alone) {
    constexpr unsigned kRounds = 300;
    char* const memory = stores(a);
    // Two rows in turn: a node may be a round ahead of the other.
    const auto row = [](unsigned round) { return 512 + round % 2 * 64; };
    const auto both = [&](rmem_node* node, unsigned round) {
        return eventually(
            [&] { return rmem_load(node, row(round)) == 0x0101'0101U * (round & 0xFF); });
    };
    std::thread other([&] {
        for (unsigned round = 1; round <= kRounds; ++round) {
            const auto value = static_cast<std::uint8_t>(round);
            for (const unsigned byte : {1U, 3U})
                EXPECT_EQ(rmem_write(b, row(round) + byte, &value, 1), RMEM_OK);
            if (!both(b, round)) return;
        }
    });
    unsigned made = 0;
    for (bool goes_on = true; goes_on && made < kRounds;) {
        volatile char* const own = memory + row(++made);
        own[0] = static_cast<char>(made);
        own[2] = static_cast<char>(made);
        goes_on = both(a, made);
    }
    other.join();
    EXPECT_EQ(made, kRounds);
    expect_same_banks();
}

/// The writer fills a block, then its flag; the reader that sees the flag finds that block, or a
/// later one.
TEST_P(CapturedStores, data_comes_before_its_flag) {
    constexpr std::uint32_t kRounds = 3000;
    constexpr std::size_t kWords = 4;
    char* const memory = stores(a);
    EXPECT_EQ(rmem_set_sync_words(a, 0, 4), RMEM_OK) << rmem_last_error();
    std::atomic<bool> is_broken{false};
    std::thread reader([&] {
        for (std::uint32_t seen = 0; seen < kRounds;) {
            if (rmem_wait_change(b, 0, seen, &seen, kPatienceNs) != RMEM_OK) {
                is_broken = true;
                return;
            }
            std::uint32_t block[kWords];
            rmem_read(b, 128, block, sizeof block);
            for (const std::uint32_t word : block) {
                if (static_cast<std::int32_t>(word - seen) < 0) is_broken = true;
            }
        }
    });
    for (std::uint32_t round = 1; round <= kRounds; ++round) {
        for (std::size_t i = 0; i < kWords; ++i) word_at(memory + 128 + 4 * i) = round;
        word_at(memory) = round;
    }
    reader.join();
    EXPECT_FALSE(is_broken);
    expect_same_banks();
}

TEST_P(CapturedStores, threads_store_beside_the_calls_of_the_node) {
    char* const memory = stores(a);
    constexpr std::uint32_t kStores = 400;
    Threads threads(3, [&](unsigned t) {
        for (std::uint32_t i = 1; i <= kStores; ++i) word_at(memory + 4096 * (t + 1)) = i;
    });
    for (std::uint32_t i = 1; i <= kStores; ++i) {
        while (rmem_write_word(a, 4, i) == RMEM_EAGAIN) rmem_poll(a);
        if (i % 64 == 0) {
            EXPECT_EQ(rmem_flush(a, kPatienceNs), RMEM_OK);
        }
    }
    threads.join();
    expect_same_banks();
    for (unsigned t = 1; t <= 3; ++t) EXPECT_EQ(rmem_load(b, 4096 * t), kStores);
    EXPECT_EQ(rmem_load(b, 4), kStores);
}

TEST_P(CapturedStores, atomic_operations_of_threads_are_atomic) {
    char* const memory = stores(a);
    const auto word = [&](std::size_t at) { return reinterpret_cast<std::uint32_t*>(memory + at); };
    constexpr std::uint32_t kTimes = 500, kThreads = 4;
    Threads(kThreads, [&](unsigned) {
        for (std::uint32_t i = 0; i < kTimes; ++i) {
            __atomic_fetch_add(word(640), 1, __ATOMIC_SEQ_CST);
            while (__atomic_exchange_n(word(644), 1, __ATOMIC_ACQUIRE) != 0) sched_yield();
            *word(648) = *word(648) + 1;
            __atomic_store_n(word(644), 0, __ATOMIC_RELEASE);
        }
    }).join();
    expect_same_banks();
    EXPECT_EQ(rmem_load(b, 640), kTimes * kThreads);
    EXPECT_EQ(rmem_load(b, 648), kTimes * kThreads);
}

/// What /proc/self/maps says of the page at `place`: "rw-s", "---p" and so on.
std::string rights_at(const char* place) {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
        unsigned long begin = 0, end = 0;
        char rights[8] = "";
        if (std::sscanf(line.c_str(), "%lx-%lx %7s", &begin, &end, rights) != 3) continue;
        const auto at = reinterpret_cast<unsigned long>(place);
        if (at >= begin && at < end) return rights;
    }
    return "none";
}

TEST_P(CapturedStores, nobody_may_touch_what_lies_before_and_behind_the_memory) {
    for (rmem_node* const node : {a, b}) {
        const char* const own = node == a ? stores(a) : nullptr;
        for (const char* memory : {own, static_cast<const char*>(rmem_bank(node))}) {
            if (memory == nullptr) continue;
            EXPECT_EQ(rights_at(memory - 1), "---p");
            EXPECT_EQ(rights_at(memory + kStoredBytes), "---p");
        }
        if (is_captured()) {
            EXPECT_EQ(rights_at(static_cast<const char*>(rmem_bank(node))), "r--s");
        }
    }
}

TEST_P(CapturedStores, a_handler_on_a_stack_of_8192_bytes_stores) {
    static volatile std::uint32_t* counted = nullptr;
    counted = &word_at(stores(a) + 768);
    std::thread([&] {
        std::vector<std::byte> small(8192);
        const SignalStack stack(small);
        const SignalHandler handler(
            SIGUSR1, [](int) { *counted = *counted + 1; }, SA_ONSTACK);
        for (int i = 0; i < 20; ++i) ::raise(SIGUSR1);
    }).join();
    expect_same_banks();
    EXPECT_EQ(rmem_load(b, 768), 20U);
}

TEST_P(CapturedStores, a_thread_stores_while_the_nodes_own_waits) {
    char* const memory = stores(a);
    const std::jthread other([&] {
        for (std::uint32_t i = 1; i <= 50; ++i) {
            word_at(memory + 512) = i;
            ::usleep(200);
        }
        std::uint32_t last = 0;
        while (rmem_wait_change(b, 512, last, &last, kPatienceNs) == RMEM_OK && last != 50) {
        }
        EXPECT_EQ(rmem_write_word(b, 516, 1), RMEM_OK);
    });
    EXPECT_EQ(rmem_wait_change(a, 516, 0, nullptr, kPatienceNs), RMEM_OK) << rmem_last_error();
}

volatile std::uint32_t* ticked = nullptr;
std::atomic<unsigned> ticks_missed{0};
constexpr std::uint32_t kStoresPerTick = 4;
constexpr std::size_t kTickText = 72;  ///< stored at once now and then: set aside in two parts
bool has_tick_text = false;
std::array<char, kTickText> tick_text;

void tick(int) {
    std::uint32_t next = *ticked;
    for (const std::uint32_t last = next + kStoresPerTick; next != last;) {
        *ticked = ++next;
        if (*ticked != next) ticks_missed.fetch_add(1, std::memory_order_relaxed);
    }
    if (!has_tick_text || next % (8 * kStoresPerTick) != 0) return;
    char* to = reinterpret_cast<char*>(const_cast<std::uint32_t*>(ticked + 1));
    const char* from = tick_text.data();
    std::size_t count = kTickText;
#if defined(__x86_64__)
    asm volatile("rep movsb" : "+S"(from), "+D"(to), "+c"(count)::"memory");
#else
    std::memcpy(to, from, count);
#endif
}

TEST_P(CapturedStores, a_signal_handler_may_store_while_its_thread_is_in_a_call) {
    char* const memory = stores(a) + 2048;
    ticked = &word_at(memory);
    const auto* const there = static_cast<const char*>(rmem_bank(b)) + 2048 + 4;
    // Where calls are short: what is set aside in one is bounded.
    has_tick_text = std::strcmp(GetParam().link, "ring") == 0;
    bool is_damaged = false;
    for (std::size_t i = 0; i < kTickText; ++i) tick_text.at(i) = static_cast<char>(i);
    ticks_missed = 0;
    std::atomic<unsigned> went_back{0};
    sigset_t alarm;
    ::sigemptyset(&alarm);
    ::sigaddset(&alarm, SIGALRM);
    ::pthread_sigmask(SIG_BLOCK, &alarm, nullptr);  // the watcher's
    std::jthread watcher([&](const std::stop_token& end) {
        for (std::uint32_t last = 0; !end.stop_requested();) {
            const std::uint32_t seen = rmem_load(a, 2048);
            if (seen < last) went_back.fetch_add(1, std::memory_order_relaxed);
            last = seen;
        }
    });
    ::pthread_sigmask(SIG_UNBLOCK, &alarm, nullptr);
    const SignalHandler handler(SIGALRM, tick);
    const itimerval often{{0, 500}, {0, 500}}, never{};
    ::setitimer(ITIMER_REAL, &often, nullptr);
    for (std::uint32_t i = 1; *ticked < 40 * kStoresPerTick; ++i) {
        while (rmem_write_word(a, 4, i) == RMEM_EAGAIN) rmem_poll(a);
        if (i % 256 != 0) continue;
        const bool has_text = has_tick_text && *ticked > 8 * kStoresPerTick;
        rmem_flush(a, kPatienceNs);
        is_damaged =
            is_damaged || (has_text && std::memcmp(there, tick_text.data(), kTickText) != 0);
    }
    ::setitimer(ITIMER_REAL, &never, nullptr);
    watcher.request_stop();
    watcher.join();
    expect_same_banks();
    EXPECT_GE(rmem_load(b, 2048), 40 * kStoresPerTick);
    EXPECT_EQ(went_back, 0U) << "what a handler has stored is not stored again when it is sent";
    EXPECT_FALSE(is_damaged);
    EXPECT_EQ(ticks_missed, 0U) << "a handler reads what it has stored";
    EXPECT_EQ(counted_by_a("stores_lost"), 0U);
}

TEST_P(CapturedStores, a_program_killed_while_it_stores_leaves_the_ring_whole) {
    for (std::uint32_t time = 1; time <= 5; ++time) {
        rmem_close(a);
        a = nullptr;
        Child writer([&] {
            char* const memory = stores(open(0));
            for (std::uint32_t i = 1;; ++i) {
                word_at(memory + 64 + i % 16 * 4) = i;
                word_at(memory) = i;
            }
        });
        std::uint32_t seen = rmem_load(b, 0);
        EXPECT_EQ(rmem_wait_change(b, 0, seen, &seen, kPatienceNs), RMEM_OK) << rmem_last_error();
        writer.kill();
        a = open(0);
        ASSERT_NE(a, nullptr);
        word_at(stores(a) + 1024) = time;
        std::uint32_t word = rmem_load(b, 1024);
        while (word != time) {
            ASSERT_EQ(rmem_wait_change(b, 1024, word, &word, kPatienceNs), RMEM_OK)
                << rmem_last_error();
        }
    }
}

/// Both store into one page: a into a word of its own now and then, b into the others all the time.
TEST_P(CapturedStores, what_a_killed_writer_has_left_is_not_taken_for_a_store) {
    if (GetParam().mode != RMEM_STORES_SCAN || std::strcmp(GetParam().link, "ring") != 0) return;
    char* const memory = stores(a);
    rmem_close(b);
    b = nullptr;
    std::mt19937 random(1);
    constexpr std::uint32_t kTimes = 30;
    for (std::uint32_t time = 1; time <= kTimes; ++time) {
        Child writer([&] {
            rmem_node* const own = open(1);
            for (std::uint32_t i = 1;; ++i) {
                const std::uint32_t words[8] = {i, i, i, i, i, i, i, i};
                while (rmem_write(own, 64 + i % 100 * 32, words, sizeof words) == RMEM_EAGAIN)
                    rmem_poll(own);
            }
        });
        const std::uint32_t before = rmem_load(a, 96);
        EXPECT_EQ(rmem_wait_change(a, 96, before, nullptr, kPatienceNs), RMEM_OK);
        word_at(memory) = time;
        ::usleep(static_cast<unsigned>(random() % 2000));
        writer.kill();
        word_at(memory + 4) = time;
        EXPECT_EQ(rmem_flush(a, kPatienceNs), RMEM_OK) << rmem_last_error();
    }
    EXPECT_EQ(counted_by_a("stores_captured"), 2 * kTimes);
    b = open(1);
    expect_same_banks();
}

TEST_P(CapturedStores, the_same_memory_is_given_again_and_another_way_refused) {
    char* const memory = stores(a);
    EXPECT_EQ(stores(a), memory);
    void* other = nullptr;
    EXPECT_EQ(rmem_stores(a, 4, &other), RMEM_EINVAL);
    EXPECT_THAT(rmem_last_error(), HasSubstr("no way 4"));
    EXPECT_EQ(rmem_stores(a, 0, nullptr), RMEM_EINVAL);
    EXPECT_EQ(rmem_stores(nullptr, 0, &other), RMEM_EINVAL);
    if (!is_captured()) return;
    const int another = GetParam().mode == RMEM_STORES_EXACT ? RMEM_STORES_SCAN : RMEM_STORES_EXACT;
    EXPECT_EQ(rmem_stores(a, another, &other), RMEM_EINVAL);
    EXPECT_THAT(rmem_last_error(), HasSubstr("already"));
    EXPECT_EQ(other, nullptr);
}

TEST_P(CapturedStores, a_handler_set_later_follows_the_library_when_the_memory_is_asked_for_again) {
    if (!is_captured()) return;
    char* const memory = stores(a);
    const SignalHandler handler(SIGSEGV, [](int) { ::_exit(9); });
    EXPECT_EQ(stores(a), memory);
    word_at(memory + 8) = 5;
    expect_same_banks();
    EXPECT_EQ(rmem_load(b, 8), 5U);
    Child faulting([] { ::raise(SIGSEGV); });
    EXPECT_EQ(faulting.wait(), 9) << "what is not ours is still the program's";
}

TEST_P(CapturedStores, the_environment_chooses_for_programs_that_do_not) {
    void* memory = nullptr;
    ::setenv("RMEM_STORES", "telepathy", 1);
    EXPECT_EQ(rmem_stores(a, RMEM_STORES_DEFAULT, &memory), RMEM_EINVAL);
    EXPECT_THAT(rmem_last_error(), HasSubstr("RMEM_STORES"));
    ::setenv("RMEM_STORES", "exact,0x10", 1);
    EXPECT_EQ(rmem_stores(a, RMEM_STORES_DEFAULT, &memory), RMEM_OK) << rmem_last_error();
    EXPECT_NE(memory, nullptr);
    ::unsetenv("RMEM_STORES");
}

}  // namespace
}  // namespace rmem::test
