// SPDX-License-Identifier: Apache-2.0

/// What the calls of a card's interface cost, beside those of the memory below; and how long an
/// event takes to a callback and to a thread that waits, beside a bare wake-up.
///
///     cards-bench --benchmark_enable_random_interleaving --benchmark_repetitions=9
///
/// Two nodes of a ring in one process, timing none. Of wake-ups each is measured by itself, by the
/// clock, from the call to the other thread's first instruction, which the sender spins for; then
/// it pauses until the other is asleep again.

#include "cards/rfm2g/rfm2g_api.h"
#include "rmem/base/clock.hpp"
#include "rmem/rmem.h"

#include <benchmark/benchmark.h>
#include <semaphore.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>

namespace {

void check(RFM2G_STATUS status) {
    if (status == RFM2G_SUCCESS) return;
    std::fprintf(stderr, "cards-bench: %s: %s\n", RFM2gErrorMsg(status), rmem_last_error());
    std::exit(1);
}

/// Two cards, as the environment names them: both are unit 0.
class Cards {
public:
    explicit Cards(const char* link) {
        const std::string ring = "cards-bench-" + std::to_string(::getpid()) + "-" + link;
        ::setenv("XDG_RUNTIME_DIR", "/nonexistent", 1);  // else a unit 0 of this host comes first
        ::setenv("RMEM_RING", ring.c_str(), 1);
        ::setenv("RMEM_LINK", link, 1);
        ::setenv("RMEM_NODES", "2", 1);
        ::setenv("RMEM_INTERFACE", "lo", 1);
        char path[] = "/dev/rfm2g0";
        for (int n = 0; n < 2; ++n) {
            ::setenv("RMEM_NODE", std::to_string(n).c_str(), 1);
            check(RFM2gOpen(path, &cards_[n]));
        }
    }
    ~Cards() {
        for (RFM2GHANDLE& card : cards_) check(RFM2gClose(&card));
    }
    Cards(const Cards&) = delete;
    Cards& operator=(const Cards&) = delete;

    RFM2GHANDLE sender() const { return cards_[0]; }
    RFM2GHANDLE receiver() const { return cards_[1]; }

private:
    RFM2GHANDLE cards_[2] = {};
};

// ---- Calls

void peek32(benchmark::State& state, const char* link) {
    const Cards cards(link);
    RFM2G_UINT32 value = 0;
    for (auto _ : state) {
        check(RFM2gPeek32(cards.sender(), 0x100, &value));
        benchmark::DoNotOptimize(value);
    }
}
BENCHMARK_CAPTURE(peek32, direct, "direct");
BENCHMARK_CAPTURE(peek32, ring, "ring");

void poke32(benchmark::State& state, const char* link) {
    const Cards cards(link);
    RFM2G_UINT32 value = 0;
    for (auto _ : state) check(RFM2gPoke32(cards.sender(), 0x100, ++value));
}
BENCHMARK_CAPTURE(poke32, direct, "direct");
BENCHMARK_CAPTURE(poke32, ring, "ring");

void store(benchmark::State& state) {
    const Cards cards("direct");
    volatile void* memory = nullptr;
    check(RFM2gUserMemory(cards.sender(), &memory, 0, 1));
    auto* const word = static_cast<volatile RFM2G_UINT32*>(memory);
    RFM2G_UINT32 value = 0;
    for (auto _ : state) *word = ++value;
}
BENCHMARK(store);

void write_64_bytes(benchmark::State& state) {
    const Cards cards("direct");
    char bytes[64] = {};
    for (auto _ : state) check(RFM2gWrite(cards.sender(), 0x100, bytes, sizeof bytes));
}
BENCHMARK(write_64_bytes);

void rmem_load_and_write(benchmark::State& state) {
    const std::string ring = "cards-bench-" + std::to_string(::getpid()) + "-rmem";
    rmem_options options = RMEM_OPTIONS;
    options.ring = ring.c_str();
    options.link = "direct";
    options.node = 0;
    options.nodes = 1;
    rmem_node* node = nullptr;
    if (rmem_open_with(&node, &options) < 0) return state.SkipWithError(rmem_last_error());
    for (auto _ : state) rmem_write_word(node, 64, rmem_load(node, 64) + 1);
    rmem_close(node);
}
BENCHMARK(rmem_load_and_write);

// ---- Wake-ups

/// How often the woken thread has run.
std::atomic<std::uint32_t> woken;

/// Calls `wake` once for each iteration.
template <class Wake>
void measure(benchmark::State& state, Wake&& wake) {
    constexpr auto kUntilAsleep = std::chrono::microseconds(200);
    for (auto _ : state) {
        std::this_thread::sleep_for(kUntilAsleep);
        // relaxed is enough, here and below: a count, and nothing besides
        const std::uint32_t before = woken.load(std::memory_order_relaxed);
        const std::int64_t begin_ns = rmem::now_ns();
        wake();
        while (woken.load(std::memory_order_relaxed) == before) {
        }
        state.SetIterationTime(static_cast<double>(rmem::now_ns() - begin_ns) * 1e-9);
    }
}

void note_wake() {
    woken.fetch_add(1, std::memory_order_relaxed);  // enough: as above
}

void bare_wake(benchmark::State& state) {
    sem_t bell;
    ::sem_init(&bell, 0, 0);
    std::atomic<bool> ends{false};
    std::thread sleeper([&] {
        // relaxed is enough: the semaphore orders it
        while (::sem_wait(&bell) == 0 && !ends.load(std::memory_order_relaxed)) note_wake();
    });
    measure(state, [&] { ::sem_post(&bell); });
    ends.store(true, std::memory_order_relaxed);  // enough: as above
    ::sem_post(&bell);
    sleeper.join();
    ::sem_destroy(&bell);
}
BENCHMARK(bare_wake)->UseManualTime();

void event_to_callback(benchmark::State& state, const char* link) {
    const Cards cards(link);
    check(RFM2gEnableEvent(cards.receiver(), RFM2GEVENT_INTR1));
    check(RFM2gEnableEventCallback(cards.receiver(), RFM2GEVENT_INTR1,
                                   [](RFM2GHANDLE, RFM2GEVENTINFO*) { note_wake(); }));
    measure(state, [&] { check(RFM2gSendEvent(cards.sender(), 1, RFM2GEVENT_INTR1, 0)); });
}
BENCHMARK_CAPTURE(event_to_callback, direct, "direct")->UseManualTime();
BENCHMARK_CAPTURE(event_to_callback, ring, "ring")->UseManualTime();
BENCHMARK_CAPTURE(event_to_callback, udp, "udp")->UseManualTime();

void event_to_waiter(benchmark::State& state, const char* link) {
    const Cards cards(link);
    check(RFM2gEnableEvent(cards.receiver(), RFM2GEVENT_INTR1));
    std::thread waiter([&] {
        RFM2GEVENTINFO info{0, RFM2GEVENT_INTR1, RFM2G_INFINITE_TIMEOUT, 0, nullptr};
        do {
            check(RFM2gWaitForEvent(cards.receiver(), &info));
            note_wake();
        } while (info.ExtendedInfo == 0);
    });
    measure(state, [&] { check(RFM2gSendEvent(cards.sender(), 1, RFM2GEVENT_INTR1, 0)); });
    check(RFM2gSendEvent(cards.sender(), 1, RFM2GEVENT_INTR1, 1));
    waiter.join();
}
BENCHMARK_CAPTURE(event_to_waiter, direct, "direct")->UseManualTime();
BENCHMARK_CAPTURE(event_to_waiter, ring, "ring")->UseManualTime();
BENCHMARK_CAPTURE(event_to_waiter, udp, "udp")->UseManualTime();

}  // namespace
