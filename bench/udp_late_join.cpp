// SPDX-License-Identifier: Apache-2.0

/// How long a node takes to become a member of a ring on link udp whose members go on writing, and
/// its effect on them.
///
///     udp-late-join [--mib 8] [--joins 20] [--writers 2]
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

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <exception>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace rmem;

constexpr std::int64_t kPatienceNs = 60'000'000'000;
constexpr double kMostSeconds = 1e6;  // as many joins as one asks for
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
    unsigned mib = 8;
    unsigned joins = 20;
    unsigned writers = 2;
};

RingConfig config_of(const Options& options, const std::string& name) {
    RingConfig config;
    config.name = name;
    config.link = LinkKind::udp;
    config.nodes = config.ranks = options.writers + 1;
    config.user_bytes = std::size_t{options.mib} << 20;
    return config;
}

/// The value at a place: it tells its writer, so that a wrong word shows.
std::uint32_t value_at(std::size_t word, std::uint32_t round) {
    return static_cast<std::uint32_t>(word % 0xffff) << 16 | (round & 0xffff);
}

/// Words of the bank that are a writer's.
struct Part {
    std::size_t first, end;
};
Part part_of(const Options& options, unsigned writer) {
    const std::size_t words = (std::size_t{options.mib} << 20) / kWordBytes / options.writers;
    return {words * writer, words * (writer + 1)};
}

class Writer {
public:
    Writer(const Options& options, const std::string& name, Shared& shared, unsigned id)
        : options_(options), shared_(shared), id_(id), node_(config_of(options, name), {id, id}) {}

    void run() {
        const Part part = part_of(options_, id_);
        fill(part);
        ++shared_.ready;
        std::size_t at = part.first;
        for (std::uint32_t round = 1; shared_.stop == 0;) {
            write(at, value_at(at, round));
            at += 17;
            if (at < part.end) continue;
            at = part.first + round++ % 17;
        }
        flush();
    }

private:
    void fill(const Part& part) {
        constexpr std::size_t kAtATime = 256;
        std::array<std::uint32_t, kAtATime> words{};
        for (std::size_t at = part.first; at < part.end; at += kAtATime) {
            const std::size_t count = std::min(kAtATime, part.end - at);
            for (std::size_t i = 0; i < count; ++i) words[i] = value_at(at + i, 1);
            while (node_.write(at * kWordBytes, words.data(), count * kWordBytes) !=
                   WriteResult::ok) {
                node_.poll();
            }
        }
        flush();
    }
    void flush() {
        if (node_.flush(Deadline::in(kPatienceNs))) return;
        throw Error(Errc::timed_out, fmt::format("writer {}: the others do not have all of its "
                                                 "writes in time",
                                                 id_));
    }
    void write(std::size_t word, std::uint32_t value) {
        Tally& tally = shared_.writers[id_];
        const unsigned state = shared_.state;
        if (node_.write_word(word * kWordBytes, value) != WriteResult::ok) {
            const std::int64_t since = now_ns();
            do {
                node_.poll();
            } while (node_.write_word(word * kWordBytes, value) != WriteResult::ok &&
                     shared_.stop == 0);
            const std::int64_t pause = now_ns() - since;
            tally.longest_ns[state] = std::max<std::int64_t>(tally.longest_ns[state], pause);
        }
        ++tally.writes[state];
    }

    const Options& options_;
    Shared& shared_;
    const unsigned id_;
    Node node_;
};

/// Each word is its place's, of some round.
void check_bank(const Options& options, const std::byte* bank) {
    const auto* const words = reinterpret_cast<const std::atomic<std::uint32_t>*>(bank);
    for (unsigned w = 0; w < options.writers; ++w) {
        const Part part = part_of(options, w);
        for (std::size_t at = part.first; at < part.end; ++at) {
            // relaxed is enough: each word is looked at by itself
            const std::uint32_t found = words[at].load(std::memory_order_relaxed);
            if (found >> 16 == value_at(at, 0) >> 16 && (found & 0xffff) != 0) continue;
            throw Error(Errc::system, fmt::format("word {} of the bank is {:#x} after a join, "
                                                  "which nobody wrote there",
                                                  at, found));
        }
    }
}

/// Series: joins, in ms; spent, the seconds away and joining.
void join_again_and_again(const Options& options, const std::string& name, Shared& shared,
                          bench::Results& results) {
    std::vector<double> joins_ms;
    double away_s = 0, joining_s = 0;
    for (unsigned i = 0; i < options.joins; ++i) {
        const std::int64_t away = now_ns();
        shared.state = kAway;
        std::this_thread::sleep_for(std::chrono::milliseconds(200));
        const std::int64_t begin = now_ns();
        shared.state = kJoining;
        Node node(config_of(options, name), {options.writers, options.writers});
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

void print(const Options& options, const Shared& shared, const bench::Results& results) {
    const auto series = results.all();
    const bench::Percentiles ms(series.at("joins"));
    const auto& spent_s = series.at("spent");
    const auto rate = [&](unsigned state) {
        std::uint64_t writes = 0;
        for (const Tally& tally : shared.writers) writes += tally.writes[state];
        return static_cast<double>(writes) / options.writers / spent_s[state];
    };
    const auto pause = [&](unsigned state) {
        std::int64_t longest = 0;
        for (const Tally& tally : shared.writers) {
            longest = std::max<std::int64_t>(longest, tally.longest_ns[state]);
        }
        return static_cast<double>(longest) * 1e-6;
    };
    fmt::print(
        "{{\"mib\": {}, \"writers\": {}, \"joins\": {}, \"join_ms\": {{\"p50\": {:.1f}, \"p90\": "
        "{:.1f}, \"max\": {:.1f}}}, \"writes_per_s\": {{\"away\": {:.0f}, \"joining\": {:.0f}}}, "
        "\"pause_ms\": {{\"away\": {:.2f}, \"joining\": {:.2f}}}}}\n",
        options.mib, options.writers, options.joins, ms.p50, ms.p90, ms.max, rate(kAway),
        rate(kJoining), pause(kAway), pause(kJoining));
}

void measure(const Options& options) {
    bench::GroupOptions group;
    group.link = "udp";
    group.deadline_s = kMostSeconds;
    bench::Results results;
    const bench::Common<Shared> shared;
    run_processes(group, options.writers + 1, results, [&](unsigned id, const std::string& name) {
        if (id < options.writers) return Writer(options, name, *shared, id).run();
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
    app.add_option("--mib", options.mib, "the memory's size")->check(CLI::Range(1, 1024));
    app.add_option("--joins", options.joins, "how often a node joins")->check(CLI::Range(1, 10000));
    app.add_option("--writers", options.writers, "processes that write")
        ->check(CLI::Range(1U, kMostWriters));
    CLI11_PARSE(app, argc, argv);
    try {
        measure(options);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "udp-late-join: {}\n", error.what());
        return 1;
    }
}
