// SPDX-License-Identifier: Apache-2.0
// ctest: serial

/// Once a program has warmed up, no message costs an allocation or a system call, neither its
/// sender nor its receiver, as long as nobody has to wait for long: waiting is what the kernel is
/// for, and these ranks never leave the processor (RMEM_SPIN). A rank that the host keeps waiting
/// looks once a millisecond whether its peer is alive: such looks are bounded, all else is counted
/// exactly.

#include "billboard/endpoint.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "tests/support/call_watch.hpp"
#include "tests/support/child.hpp"
#include "tests/support/conformance.hpp"

#include <sched.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <thread>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RMEM_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || \
    __has_feature(memory_sanitizer)
#define RMEM_TEST_SANITIZED 1
#endif
#endif

namespace {

volatile unsigned long allocations = 0;  // of this process, which has one thread when it is read

}  // namespace

#if !defined(RMEM_TEST_SANITIZED) && defined(__GLIBC__)
// In the C library's stead, for the whole process and the libraries that it loads; the others
// (operator new among them) end in these.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* block, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);

[[gnu::visibility("default")]] void* malloc(std::size_t bytes) noexcept {
    allocations = allocations + 1;
    return __libc_malloc(bytes);
}
[[gnu::visibility("default")]] void* calloc(std::size_t count, std::size_t bytes) noexcept {
    allocations = allocations + 1;
    return __libc_calloc(count, bytes);
}
[[gnu::visibility("default")]] void* realloc(void* block, std::size_t bytes) noexcept {
    allocations = allocations + 1;
    return __libc_realloc(block, bytes);
}
[[gnu::visibility("default")]] void* aligned_alloc(std::size_t alignment,
                                                   std::size_t bytes) noexcept {
    allocations = allocations + 1;
    return __libc_memalign(alignment, bytes);
}
[[gnu::visibility("default")]] int posix_memalign(void** block, std::size_t alignment,
                                                  std::size_t bytes) noexcept {
    allocations = allocations + 1;
    *block = __libc_memalign(alignment, bytes);
    return *block == nullptr ? ENOMEM : 0;
}
}
constexpr bool kCountsAllocations = true;
#else
constexpr bool kCountsAllocations = false;
#endif

namespace rmem::test {
namespace {

constexpr int kWarmUp = 1'000;
constexpr int kSteadyMessages = 3'000;
constexpr int kStumble = 512;  // a receiver falls back once in this many messages
constexpr std::size_t kSteadyBytes = 1024;
constexpr unsigned kMaxTestRanks = 4;  // that one check looks at

/// Two that spin must not share a processor: nothing would make one give way to the other.
void stay_on_own_processor(int process) {
    cpu_set_t allowed, own;
    check(::sched_getaffinity(0, sizeof allowed, &allowed) == 0, "sched_getaffinity");
    CPU_ZERO(&own);
    for (unsigned p = 0; p < CPU_SETSIZE && CPU_COUNT(&own) == 0; ++p) {
        if (CPU_ISSET(p, &allowed) && process-- == 0) CPU_SET(p, &own);
    }
    check(::sched_setaffinity(0, sizeof own, &own) == 0, "sched_setaffinity");
}

/// Runs `operation` until it is warm, and then watches it. `endpoints`: of this process, one of
/// two.
void check_steady(Rank& me, const std::function<void(int)>& operation, unsigned endpoints = 1) {
    stay_on_own_processor(me.rank);
    check(CallWatch::install(), "cannot watch the system calls");
    for (int i = 0; i < kWarmUp; ++i) operation(i);
    const std::int64_t start = now_ns();
    const unsigned long before = allocations;
    CallWatch::start();
    for (int i = 0; i < kSteadyMessages; ++i) operation(i);
    const CallsSeen seen = CallWatch::stop();
    const unsigned long allocated = allocations - before;
    me.raise(0);
    me.await_word(0, 2);  // nobody leaves before the other has been watched
    const auto checks = static_cast<unsigned>((now_ns() - start) / kCheckNs) + 1;
    check_equal(seen.calls, 0U, fmt::format("system calls, the first is number {}", seen.first));
    check_equal(allocated, 0UL, "allocations");
    check(seen.looks <= endpoints * checks * kMaxTestRanks,
          fmt::format("{} looks at peers in {} ms", seen.looks, checks));
}

/// Work that lets a sender fill its FIFO now and then.
void stumble(int i) {
    if (i % kStumble != 0) return;
    for (unsigned step = 0; step < 20'000; ++step) cpu_relax();
}

class SteadyState : public ::testing::TestWithParam<const char*> {
protected:
    void SetUp() override {
        if (!kCountsAllocations) GTEST_SKIP() << "a sanitizer's own allocations and calls are many";
        if (allowed_processors() < 2) GTEST_SKIP() << "two that never yield need two processors";
        if (!CallWatch::supported()) GTEST_SKIP() << "no seccomp filter on x86-64 can be had here";
    }
    static RingSetup setup(unsigned ranks = 2) {
        RingSetup setup;
        setup.ranks = ranks;
        setup.layout = GetParam();
        setup.extra["RMEM_SPIN"] = std::to_string(kMaxSpinPolls);
        return setup;
    }
};
INSTANTIATE_TEST_SUITE_P(On, SteadyState, ::testing::Values("inline", "paper"),
                         [](const auto& layout) { return std::string(layout.param); });

TEST_P(SteadyState, a_steady_state_of_messages_needs_no_kernel_and_no_heap) {
    // There and back, or as a stream that fills the FIFO; through the data partition, if large.
    for (const auto& [bytes, answered] : {std::pair{std::size_t{8}, true},
                                          {8, false},
                                          {kSteadyBytes, true},
                                          {kSteadyBytes, false}}) {
        SCOPED_TRACE(testing::Message() << bytes << " bytes" << (answered ? ", answered" : ""));
        run_members(setup(), [&, bytes = bytes, answered = answered](Rank& me) {
            std::vector<char> message(bytes);
            const auto send = [&](int to) { check_ok(bbp_send(to, message.data(), bytes)); };
            const auto receive = [&](int from) {
                check_code(bbp_recv(from, message.data(), bytes, nullptr), 1 - me.rank);
            };
            check_steady(me, [&](int i) {
                if (me.rank == 0) send(1);
                if (me.rank == 0 && answered) receive(1);
                if (me.rank == 1) receive(answered ? 0 : BBP_ANY);
                if (me.rank == 1 && answered) send(0);
                if (me.rank == 1 && !answered) stumble(i);
            });
        });
    }
}

TEST_P(SteadyState, a_steady_state_of_barriers_needs_no_kernel_and_no_heap) {
    for (const char* kind : {"arrival", "paper"}) {
        SCOPED_TRACE(kind);
        RingSetup spec = setup();
        spec.extra["RMEM_BARRIER"] = kind;
        run_members(spec, [](Rank& me) { check_steady(me, [](int) { check_ok(bbp_barrier()); }); });
    }
}

/// Ranks `first` to `last`, all in this process: joined side by side, since each waits for all.
std::vector<std::unique_ptr<billboard::Endpoint>> open_ranks(unsigned first, unsigned last) {
    const auto settings = billboard::Settings::read();
    const auto deadline = Deadline::in(20'000'000'000);
    const auto ring = Ring::open(billboard::ring_config(Environment::read(), settings), deadline);
    std::vector<std::unique_ptr<billboard::Endpoint>> ranks(last - first + 1);
    std::vector<std::thread> joining;
    for (unsigned r = first; r <= last; ++r) {
        joining.emplace_back([&, r] {
            ranks[r - first] = billboard::Endpoint::open(ring, {r, r}, settings, deadline);
        });
    }
    for (std::thread& thread : joining) thread.join();
    return ranks;
}

/// Three receivers in one process: more processes than processors would have to yield.
TEST_P(SteadyState, a_steady_state_of_multicasts_to_three_needs_no_kernel_and_no_heap) {
    for (const std::size_t bytes : {std::size_t{8}, kSteadyBytes}) {
        RankProcesses ring(setup(4));
        ring.start_bare(0, [&](Rank& me) {
            const auto sender = open_ranks(0, 0);
            std::vector<char> message(bytes);
            const int all[] = {1, 2, 3};
            check_steady(me, [&](int) { check_ok(sender[0]->mcast(all, message.data(), bytes)); });
        });
        ring.start_bare(1, [&](Rank& me) {
            const auto receivers = open_ranks(1, 3);
            std::vector<char> message(bytes);
            check_steady(
                me,
                [&](int i) {
                    for (const auto& r : receivers)
                        check_code(r->recv(0, message.data(), bytes, nullptr), 0);
                    stumble(i);
                },
                3);
        });
        ring.finish();
    }
}

/// That the watch sees what it is there for.
TEST_P(SteadyState, watch_sees_calls_and_allocations) {
    Child watched([] {
        ASSERT_TRUE(CallWatch::install());
        const unsigned long before = allocations;
        CallWatch::start();
        ::syscall(SYS_getppid);
        const auto number = std::make_unique<int>(1);
        asm volatile("" : : "r"(number.get()) : "memory");
        const CallsSeen seen = CallWatch::stop();
        EXPECT_EQ(seen.calls, 1U);
        EXPECT_EQ(seen.first, SYS_getppid);
        EXPECT_EQ(allocations - before, 1U);
        EXPECT_EQ(::getppid() > 0, true);
    });
    EXPECT_EQ(watched.wait(), 0);
}

}  // namespace
}  // namespace rmem::test
