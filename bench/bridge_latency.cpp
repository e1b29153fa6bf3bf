// SPDX-License-Identifier: Apache-2.0

/// What a bridge adds between two rings of this host.
///
///     bridge-latency --tool build/release/tools/rmem [--first ring] [--second udp]
///
/// A word is written at a node and awaited at another, one at a time: within the first ring, within
/// the second, and from the one to the other over `rmem bridge`. One JSON line: medians in ns of
/// each ring's own one-way latency and of that over the bridge, and `added`: what the bridge takes
/// longer than both, divided by both. It and this process need a processor each. RMEM_INTERFACE is
/// lo unless it is set.

#include "rmem/base/clock.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/node.hpp"
#include "tools/measure/rank_group.hpp"
#include "tools/measure/samples.hpp"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace rmem;

constexpr unsigned kBridge = 2;
constexpr std::size_t kUserBytes = 65536;
constexpr std::size_t kTable = kUserBytes - 3 * 4096;
constexpr std::size_t kOwnWord = 8192;  // awaited within a ring; 0 goes over the bridge
constexpr std::int64_t kPatienceNs = 30'000'000'000;

struct Options {
    std::string tool, first = "ring", second = "ring";
    unsigned rounds = 20'000;
    bool sleeps = false;
};

/// Two programs' nodes of a ring; the third is the bridge's.
struct Rig {
    Rig(const std::string& ring, const std::string& on_link) : name(ring), link(on_link) {
        for (unsigned node = 0; node < 2; ++node) {
            const GivenSettings given(settings(node));
            nodes.push_back(Node::open(false));
        }
    }
    GivenSettings::List settings(unsigned node) const {
        return {{"RMEM_RING", name},
                {"RMEM_LINK", link},
                {"RMEM_NODE", fmt::format("{}", node)},
                {"RMEM_NODES", "3"},
                {"RMEM_SIZE", fmt::format("{}", kUserBytes)},
                {"RMEM_GROUP", fmt::format("239.1.2.4:{}", 20'000 + ::getpid() % 10'000)}};
    }
    std::string json() const {
        std::string text;
        for (const auto& [key, value] : settings(kBridge))
            text += fmt::format("\"{}\": \"{}\", ", key, value);
        return fmt::format("{{{}\"table\": {}}}", text, kTable);
    }

    std::string name, link;
    std::vector<Node> nodes;
};

/// Nanoseconds of each way within a ring, from one node's word to another's on another processor.
std::vector<double> one_way(Node& writer, Node& reader, unsigned rounds) {
    std::atomic<std::uint32_t> seen{0};
    std::atomic<std::int64_t> seen_ns{0};
    std::thread thread([&] {
        for (std::uint32_t value = 1; value <= rounds; ++value) {
            while (reader.load(kOwnWord) != value) {
            }
            seen_ns = now_ns();
            seen = value;
        }
    });
    std::vector<double> samples;
    for (std::uint32_t value = 1; value <= rounds; ++value) {
        const std::int64_t start = now_ns();
        while (writer.write_word(kOwnWord, value) != WriteResult::ok) writer.poll();
        while (seen != value) {
        }
        samples.push_back(static_cast<double>(seen_ns - start));
    }
    thread.join();
    return samples;
}

/// The same over the bridge, by one thread: it and the bridge have a processor each where there are
/// two. What the writer's own node has to do is done while the reader waits.
std::vector<double> bridged(Node& writer, Node& reader, unsigned rounds) {
    std::vector<double> samples;
    for (std::uint32_t value = 2; value < 2 + rounds; ++value) {
        const std::int64_t start = now_ns();
        while (writer.write_word(0, value) != WriteResult::ok) writer.poll();
        while (reader.load(0) != value) {
        }
        samples.push_back(static_cast<double>(now_ns() - start));
    }
    return samples;
}

void wait_for_bridge(Node& writer, Node& reader) {
    static_cast<void>(writer.write_word(0, 1));
    if (reader.wait_change(0, 0, Deadline::in(kPatienceNs)) != 0) return;
    throw Error(Errc::timed_out, "nothing has come over the bridge; is --tool this build's rmem?");
}

void measure(const Options& options) {
    const std::string base = fmt::format("bench-bridge-{}", ::getpid());
    const std::string file = std::filesystem::temp_directory_path() / (base + ".json");
    const bench::Common<std::atomic<pid_t>> bridge;
    // Before there are threads; it begins when the file is there.
    const bench::Companion companion([&] {
        *bridge = ::getpid();
        while (!std::filesystem::exists(file)) ::usleep(1000);
        const char* const spin = options.sleeps ? "-q" : "--spin";
        ::execl(options.tool.c_str(), "rmem", "bridge", "-q", spin, file.c_str(), nullptr);
        ::_exit(127);
    });
    Rig first(base + "-a", options.first), second(base + "-b", options.second);
    const double a = bench::median(one_way(first.nodes[0], first.nodes[1], options.rounds));
    const double b = bench::median(one_way(second.nodes[0], second.nodes[1], options.rounds));
    // Each would take the processor to apply what it hears.
    first.nodes.pop_back();
    second.nodes.pop_back();
    std::ofstream(file + ".new") << fmt::format(
        R"({{"rings": {{"a": {}, "b": {}}}, "regions": [{{"name": "x", "from": "a", "offset": 0,
             "to": "b", "at": 0, "bytes": 4096}}]}})",
        first.json(), second.json());
    std::filesystem::rename(file + ".new", file);
    wait_for_bridge(first.nodes[0], second.nodes[0]);
    const bench::Percentiles over(bridged(first.nodes[0], second.nodes[0], options.rounds));
    std::filesystem::remove(file);
    // In good order, so that it leaves nothing behind.
    ::kill(*bridge, SIGTERM);
    siginfo_t ended;
    ::waitid(P_PID, static_cast<id_t>(bridge->load()), &ended, WEXITED | WNOWAIT);
    fmt::print(
        "{{\"first\": \"{}\", \"second\": \"{}\", \"spins\": {}, \"rounds\": {}, "
        "\"first_ns\": {:.0f}, \"second_ns\": {:.0f}, \"bridged_ns\": {:.0f}, "
        "\"bridged_p99_ns\": {:.0f}, \"added\": {:.2f}}}\n",
        options.first, options.second, !options.sleeps, options.rounds, a, b, over.p50, over.p99,
        (over.p50 - a - b) / (a + b));
}

}  // namespace

int main(int argc, char** argv) {
    Options options;
    CLI::App app("What a bridge adds between two rings of this host");
    app.add_option("--tool", options.tool, "The rmem command of this build")->required();
    app.add_option("--first", options.first, "The link that words are written on");
    app.add_option("--second", options.second, "The link that they arrive on");
    app.add_option("--rounds", options.rounds, "How many words, each way");
    app.add_flag("--sleeps", options.sleeps, "The bridge sleeps while there is nothing to do");
    CLI11_PARSE(app, argc, argv);
    ::setenv("RMEM_INTERFACE", "lo", 0);  // NOLINT(concurrency-mt-unsafe): one thread
    try {
        measure(options);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "bridge-latency: {}\n", error.what());
        return 1;
    }
}
