// SPDX-License-Identifier: Apache-2.0

/// How long a node takes to become a member of a ring on link udp whose members go on writing, and
/// its effect on them.
///
///     late-join [--mib 8] [--joins 20] [--writers 2]
///
/// The writers are processes of this host. They fill their parts of the bank, then write words of
/// theirs as fast as they find room. Another node joins, checks that each word of the bank is one
/// that was written there, and leaves, again and again. One JSON line: `join_ms`, percentiles from
/// the call until it is a member with the whole bank; `writes_per_s` of each writer while the
/// joiner is away and while it joins; `pause_ms`, the longest time in which a writer found no room
/// meanwhile. RMEM_INTERFACE is lo unless it is set.

#include "rmem/node.hpp"
#include "tools/measure/rank_group.hpp"
#include "tools/measure/samples.hpp"
#include "tools/options.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace rmem;

constexpr std::int64_t kPatienceNs = 60'000'000'000;
constexpr unsigned kMostWriters = 8;

/// The joiner's program.
enum State : unsigned { kAway, kJoining, kThere };
/// Counted by each writer, for each state.
struct Tally {
    std::array<std::atomic<std::uint64_t>, 3> writes;
    std::array<std::atomic<std::int64_t>, 3> longest_ns;
};
struct Shared {
    std::atomic<unsigned> ready, state, stop;
    std::array<Tally, kMostWriters> writers;
};

struct Options {
    unsigned mib = 8, joins = 20, writers = 2;

    RingConfig config(const std::string& name) const {
        RingConfig config;
        config.name = name;
        config.link = LinkKind::udp;
        config.nodes = config.ranks = writers + 1;
        config.user_bytes = std::size_t{mib} << 20;
        return config;
    }
    /// Of the bank's words a writer's begin there.
    std::size_t first_word(unsigned writer) const {
        return (std::size_t{mib} << 20) / kWordBytes / writers * writer;
    }
};

/// The value at a place: it tells its writer, so that a wrong word shows.
std::uint32_t value_at(std::size_t word, std::uint32_t round) {
    return static_cast<std::uint32_t>(word % 0xffff) << 16 | (round & 0xffff);
}

void fill(Node& node, std::size_t first, std::size_t end) {
    std::array<std::uint32_t, 256> words{};
    for (std::size_t at = first; at < end; at += words.size()) {
        const std::size_t count = std::min(words.size(), end - at);
        for (std::size_t i = 0; i < count; ++i) words[i] = value_at(at + i, 1);
        while (node.write(at * kWordBytes, words.data(), count * kWordBytes) != WriteResult::ok)
            node.poll();
    }
}

void flush(Node& node) {
    if (node.flush(Deadline::in(kPatienceNs))) return;
    throw Error(Errc::timed_out, "the others do not have all of a writer's writes in time");
}

void write_on(const Options& options, const std::string& name, Shared& shared, unsigned id) {
    Node node(options.config(name), {id, id});
    const std::size_t first = options.first_word(id), end = options.first_word(id + 1);
    fill(node, first, end);
    flush(node);
    ++shared.ready;
    Tally& tally = shared.writers[id];
    std::size_t at = first;
    for (std::uint32_t round = 1; shared.stop == 0;) {
        const unsigned state = shared.state;
        const auto is_refused = [&] {
            return node.write_word(at * kWordBytes, value_at(at, round)) != WriteResult::ok;
        };
        if (is_refused()) {
            const std::int64_t since = now_ns();
            do {
                node.poll();
            } while (is_refused() && shared.stop == 0);
            const std::int64_t pause = now_ns() - since;
            tally.longest_ns[state] = std::max<std::int64_t>(tally.longest_ns[state], pause);
        }
        ++tally.writes[state];
        at += 17;
        if (at >= end) at = first + round++ % 17;
    }
    flush(node);
}

/// Each word is its place's, of some round.
void check_bank(const Options& options, const std::byte* bank) {
    const auto* const words = reinterpret_cast<const std::atomic<std::uint32_t>*>(bank);
    for (std::size_t at = 0; at < options.first_word(options.writers); ++at) {
        // relaxed is enough: each word is looked at by itself
        const std::uint32_t found = words[at].load(std::memory_order_relaxed);
        if (found >> 16 == value_at(at, 0) >> 16 && (found & 0xffff) != 0) continue;
        throw Error(Errc::system, fmt::format("word {} of the bank is {:#x} after a join, which "
                                              "nobody wrote there",
                                              at, found));
    }
}

/// Series: joins, in ms; spent, the seconds away and joining.
void join_again_and_again(const Options& options, const std::string& name, Shared& shared,
                          tools::Results& results) {
    std::vector<double> joins_ms;
    double away_s = 0, joining_s = 0;
    for (unsigned i = 0; i < options.joins; ++i) {
        const std::int64_t away = now_ns();
        shared.state = kAway;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        const std::int64_t begin = now_ns();
        shared.state = kJoining;
        Node node(options.config(name), {options.writers, options.writers});
        const std::int64_t end = now_ns();
        shared.state = kThere;
        away_s += static_cast<double>(begin - away) * 1e-9;
        joining_s += static_cast<double>(end - begin) * 1e-9;
        joins_ms.push_back(static_cast<double>(end - begin) * 1e-6);
        check_bank(options, node.bank());
    }
    results.put("joins", joins_ms);
    results.put("spent", {away_s, joining_s});
}

void print(const Options& options, const Shared& shared, const tools::Results& results) {
    const auto series = results.all();
    const tools::Percentiles ms(series.at("joins"));
    double writes[2] = {}, pause_ms[2] = {};
    for (const unsigned state : {kAway, kJoining}) {
        for (const Tally& tally : shared.writers) {
            writes[state] += static_cast<double>(tally.writes[state]);
            pause_ms[state] =
                std::max(pause_ms[state], static_cast<double>(tally.longest_ns[state]) * 1e-6);
        }
        writes[state] /= options.writers * series.at("spent")[state];
    }
    fmt::print(
        R"({{"mib": {}, "writers": {}, "joins": {}, "join_ms": {{"p50": {:.1f}, "p90": {:.1f}, )"
        R"("max": {:.1f}}}, "writes_per_s": {{"away": {:.0f}, "joining": {:.0f}}}, )"
        R"("pause_ms": {{"away": {:.2f}, "joining": {:.2f}}}}})"
        "\n",
        options.mib, options.writers, options.joins, ms.p50, ms.p90, ms.max, writes[kAway],
        writes[kJoining], pause_ms[kAway], pause_ms[kJoining]);
}

void measure(const Options& options) {
    tools::GroupOptions group;
    group.link = "udp";
    group.deadline_s = 1e6;  // as many joins as one asks for
    tools::Results results;
    const tools::Common<Shared> shared;
    run_processes(group, options.writers + 1, [&](unsigned id, const std::string& name) {
        if (id < options.writers) return write_on(options, name, *shared, id);
        while (shared->ready < options.writers)
            std::this_thread::sleep_for(std::chrono::milliseconds(10));
        join_again_and_again(options, name, *shared, results);
        shared->stop = 1;
    });
    print(options, *shared, results);
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("Joins of a ring on link udp whose members go on writing");
    tools::cli::App line(app);
    line.add_option("--mib", options.mib, "The memory's size")->check(tools::cli::range(1U, 1024U));
    line.add_option("--joins", options.joins, "How often a node joins")
        ->check(tools::cli::range(1U, 10'000U));
    line.add_option("--writers", options.writers, "Processes that write")
        ->check(tools::cli::range(1U, kMostWriters));
    CLI11_PARSE(app, argc, argv);
    try {
        measure(options);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "late-join: {}\n", error.what());
        return 1;
    }
}
