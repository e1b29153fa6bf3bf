// SPDX-License-Identifier: Apache-2.0

/// What a store costs its program, in each of the ways in which it may travel, beside the floors:
/// a plain store, and a fault whose handler does nothing. (`stores-bench-instrumented` is the same
/// program, compiled as rmem-cc does.)
///
///     stores-bench --benchmark_enable_random_interleaving --benchmark_repetitions=9
///
/// Two nodes of a ring in one process, timing none: the writes of the first are in the bank of the
/// second when the call or store returns, or soon after.

#include "rmem/base/clock.hpp"
#include "rmem/node.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "rmem/rmem.h"

#include <benchmark/benchmark.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <random>
#include <string>
#include <vector>

namespace {

constexpr std::size_t kBytes = std::size_t{1} << 20;
constexpr int kMode = STORES_MODE;  // as this program is compiled

/// Two nodes; the first one's stores are captured, unless `mode` is none.
class Nodes {
public:
    static constexpr int kNone = -1;

    explicit Nodes(const char* link, int mode = kMode, std::size_t bytes = kBytes) {
        const std::string ring =
            "stores-bench-" + std::to_string(::getpid()) + "-" + link + std::to_string(mode);
        rmem_options options = RMEM_OPTIONS;
        options.ring = ring.c_str();
        options.link = link;
        options.nodes = 2;
        options.memory_bytes = bytes;
        for (int n = 0; n < 2; ++n) {
            options.node = n;
            check(rmem_open_with(&nodes_[n], &options));
        }
        void* memory = nullptr;
        if (mode != kNone) check(rmem_stores(nodes_[0], mode, &memory));
        word_ = static_cast<volatile std::uint32_t*>(memory);
    }
    ~Nodes() {
        for (rmem_node* node : nodes_) rmem_close(node);
    }
    Nodes(const Nodes&) = delete;
    Nodes& operator=(const Nodes&) = delete;

    rmem_node* node() const { return nodes_[0]; }
    volatile std::uint32_t* word() const { return word_; }
    /// As the second node sees it.
    const volatile std::uint32_t* others_word() const {
        return static_cast<const volatile std::uint32_t*>(rmem_bank(nodes_[1]));
    }

private:
    static void check(int code) {
        if (code >= 0) return;
        std::fprintf(stderr, "stores-bench: %s\n", rmem_last_error());
        std::exit(1);
    }
    rmem_node* nodes_[2] = {};
    volatile std::uint32_t* word_ = nullptr;
};

void plain_store(benchmark::State& state) {
    auto* const word = static_cast<volatile std::uint32_t*>(std::malloc(sizeof(std::uint32_t)));
    std::uint32_t value = 0;
    for (auto _ : state) *word = ++value;
    std::free(const_cast<std::uint32_t*>(word));
}
BENCHMARK(plain_store);

#if defined(__x86_64__)
void skip(int, siginfo_t*, void* context) {
    constexpr greg_t kBytesOfMov = 6;
    static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += kBytesOfMov;
}
void bare_fault(benchmark::State& state) {
    void* const page = ::mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct sigaction action {
    }, before{};
    action.sa_sigaction = skip;
    action.sa_flags = SA_SIGINFO;
    sigfillset(&action.sa_mask);
    ::sigaction(SIGSEGV, &action, &before);
    for (auto _ : state) asm volatile("movl $5, (%0)" ::"a"(page) : "memory");
    ::sigaction(SIGSEGV, &before, nullptr);
    ::munmap(page, 4096);
}
BENCHMARK(bare_fault);
#endif

void node_write_word(benchmark::State& state, const char* link) {
    rmem::RingConfig config;
    config.name = "stores-bench-" + std::to_string(::getpid()) + "-cpp-" + link;
    config.nodes = config.ranks = 2;
    config.user_bytes = kBytes;
    config.link = rmem::parse_link(link);
    rmem::Node writer(config, {0, 0}), reader(config, {1, 1});
    std::uint32_t value = 0;
    for (auto _ : state) {
        while (writer.write_word(64, ++value) == rmem::WriteResult::again) writer.poll();
    }
}
BENCHMARK_CAPTURE(node_write_word, direct, "direct");
BENCHMARK_CAPTURE(node_write_word, ring, "ring");

void rmem_write_word_c(benchmark::State& state, const char* link) {
    const Nodes nodes(link, Nodes::kNone);
    std::uint32_t value = 0;
    for (auto _ : state) {
        while (rmem_write_word(nodes.node(), 64, ++value) == RMEM_EAGAIN) rmem_poll(nodes.node());
    }
}
BENCHMARK_CAPTURE(rmem_write_word_c, direct, "direct");
BENCHMARK_CAPTURE(rmem_write_word_c, ring, "ring");

/// A call ends a run of stores.
[[gnu::noinline]] void elsewhere() {
    asm volatile("");
}

void store(benchmark::State& state, const char* link) {
    const Nodes nodes(link);
    std::uint32_t value = 0;
    for (auto _ : state) {
        nodes.word()[16] = ++value;
        elsewhere();
    }
}
BENCHMARK_CAPTURE(store, direct, "direct");
BENCHMARK_CAPTURE(store, ring, "ring");
BENCHMARK_CAPTURE(store, udp, "udp");

/// A program fills its memory, word by word.
void fill(benchmark::State& state, const char* link, const char* timing) {
    ::setenv("RMEM_TIMING", timing, 1);
    {
        const Nodes nodes(link);
        volatile std::uint32_t* const to = nodes.word();
        std::uint32_t value = 0;
        for (auto _ : state) {
            ++value;
            for (std::size_t i = 0; i < kBytes / sizeof value; ++i) to[i] = value;
        }
    }
    ::unsetenv("RMEM_TIMING");
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(kBytes));
}
BENCHMARK_CAPTURE(fill, ring, "ring", "none");
BENCHMARK_CAPTURE(fill, ring_gt200, "ring", "gt200");
BENCHMARK_CAPTURE(fill, udp, "udp", "none");

#if defined(__x86_64__)
/// Of an instruction that the handler does not know.
void stepped_store(benchmark::State& state) {
    if (kMode != RMEM_STORES_EXACT) return state.SkipWithError("assembly has no hooks");
    const Nodes nodes("ring");
    auto* const word = const_cast<std::uint32_t*>(nodes.word());
    for (auto _ : state) asm volatile("shll $1, %0" : "+m"(*word) : : "cc");
}
BENCHMARK(stepped_store);
#endif

void load(benchmark::State& state) {
    const Nodes nodes("ring");
    std::uint32_t sum = 0;
    for (auto _ : state) sum += nodes.word()[32];
    benchmark::DoNotOptimize(sum);
}
BENCHMARK(load);

// ---- Stores that are found by comparing

constexpr std::size_t kPageWords = 1024;

/// From a store, now into one page and then into another, to the other node's bank; after
/// pauses of `pause_us` on average.
void scan(benchmark::State& state) {
    const Nodes nodes("ring", RMEM_STORES_SCAN);
    const auto pages = static_cast<std::size_t>(state.range(0));
    const auto pause_us = static_cast<unsigned>(state.range(1));
    const volatile std::uint32_t* const others = nodes.others_word();
    std::minstd_rand random(1);
    std::vector<double> took;
    std::uint32_t value = 0;
    for (std::size_t page = 0; page < pages; ++page) nodes.word()[page * kPageWords] = ++value;
    for (auto _ : state) {
        if (pause_us != 0) ::usleep(static_cast<unsigned>(random() % (2 * pause_us)));
        const std::size_t place = random() % pages * kPageWords + random() % kPageWords;
        const std::int64_t since = rmem::now_ns();
        nodes.word()[place] = ++value;
        while (others[place] != value) rmem::cpu_relax();
        took.push_back(static_cast<double>(rmem::now_ns() - since));
        state.SetIterationTime(took.back() / 1e9);
    }
    std::sort(took.begin(), took.end());
    const auto percentile = [&](double p) {
        return took[static_cast<std::size_t>(p * static_cast<double>(took.size() - 1))];
    };
    state.counters["p50_us"] = percentile(0.5) / 1000;
    state.counters["p99_us"] = percentile(0.99) / 1000;
    state.counters["max_us"] = took.back() / 1000;
}
BENCHMARK(scan)
    ->ArgNames({"pages", "pause_us"})
    ->ArgsProduct({{1, 8, 64}, {0, 1000}})
    ->Args({64, 20'000})
    ->UseManualTime();
/// Each into a page that has cooled.
BENCHMARK(scan)
    ->ArgNames({"pages", "pause_us"})
    ->Args({8, 1'000'000})
    ->UseManualTime()
    ->Iterations(20);

/// What scanning costs a program that stores nothing, or one page a millisecond.
void scan_processor(benchmark::State& state) {
    const Nodes nodes("ring", RMEM_STORES_SCAN, std::size_t{128} << 20);
    std::memset(const_cast<std::uint32_t*>(nodes.word()), 1, std::size_t{128} << 20);
    ::sleep(1);
    const auto processor_ns = [] {
        timespec t{};
        ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
        return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
    };
    const auto pages = static_cast<std::size_t>(state.range(0));
    const double began = processor_ns();
    const std::int64_t since = rmem::now_ns();
    std::uint32_t value = 0;
    for (auto _ : state) {
        ++value;
        if (pages != 0) nodes.word()[value % pages * kPageWords] = value;
        ::usleep(1000);
    }
    state.counters["percent"] =
        (processor_ns() - began) / static_cast<double>(rmem::now_ns() - since) * 100;
}
BENCHMARK(scan_processor)->ArgName("pages")->Arg(0)->Arg(1)->Arg(64)->Iterations(3000);

}  // namespace
