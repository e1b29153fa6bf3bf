// SPDX-License-Identifier: Apache-2.0
// What Fast Messages cost beside the billboard's own messages, and return-to-sender beside windows.
#include "bench/ports-fm/flow_control.hpp"
#include "bench/samples.hpp"
#include "billboard/bbp.h"
#include "rmem/clock.hpp"

#include <fm/fm1.h>
#include <fm/fm2.h>
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <array>

namespace bench {
namespace {

struct MessagePlan {
    std::size_t rounds = 200;
    int batch = 500;
    unsigned think = 0;  ///< steps of work between receiving and sending, at most
};

int received;
ULONG stream_id;

void on_four(int, int, int, int) {
    ++received;
}
int on_stream(FM_stream* stream, unsigned) {
    std::array<char, 16> bytes;
    FM_receive(bytes.data(), stream, bytes.size());
    ++received;
    return FM_CONTINUE;
}

/// A pair of calls that is measured.
struct Way {
    const char* name;
    void (*send)(int to);
    void (*receive)(int from);
};
constexpr Way kWays[] = {{"bbp_send_8",
                          [](int to) {
                              const long long word = 0;
                              checked(bbp_send(to, &word, sizeof word));
                          },
                          [](int from) {
                              long long word = 0;
                              checked(bbp_recv(from, &word, sizeof word, nullptr));
                          }},
                         {"fm_send_4", [](int to) { FM_send_4(to, on_four, 1, 2, 3, 4); },
                          [](int) {
                              while (received == 0) FM_extract();
                              --received;
                          }},
                         {"fm2_16",
                          [](int to) {
                              std::array<char, 16> bytes{};
                              FM_stream* const stream =
                                  FM_begin_message(static_cast<ULONG>(to), 16, stream_id);
                              FM_send_piece(stream, bytes.data(), bytes.size());
                              FM_end_message(stream);
                          },
                          [](int) {
                              while (received == 0) FM_extract(~0UL);
                              --received;
                          }}};

/// Work of a random length: loops of fixed length fall into step with the processors' caches.
void think(unsigned most) {
    static std::uint32_t state = 2463534242U;
    if (most == 0) return;
    state ^= state << 13;
    state ^= state >> 17;
    state ^= state << 5;
    for (unsigned i = state % most; i > 0; --i) asm volatile("" : "+r"(i));
}

template <class Operation>
double time_of(int times, Operation&& operation) {
    const std::int64_t start = rmem::now_ns();
    for (int i = 0; i < times; ++i) operation();
    return static_cast<double>(rmem::now_ns() - start) / times;
}

double one_way(const Way& way, unsigned rank, const MessagePlan& plan) {
    checked(bbp_barrier());
    const double round_trip = time_of(plan.batch, [&] {
        if (rank == 1) way.receive(0);
        think(plan.think);
        way.send(static_cast<int>(1 - rank));
        if (rank == 0) way.receive(1);
    });
    return round_trip / 2 - time_of(plan.batch, [&] { think(plan.think); });
}
double gap(const Way& way, unsigned rank, const MessagePlan& plan) {
    checked(bbp_barrier());
    const std::int64_t start = rmem::now_ns();
    for (int i = 0; i < plan.batch; ++i) rank == 0 ? way.send(1) : way.receive(0);
    rank == 0 ? way.receive(1) : way.send(0);
    return static_cast<double>(rmem::now_ns() - start) / plan.batch;
}

void measure_messages(const GroupOptions& options, const MessagePlan& plan, Results& results) {
    run_ranks(options, results, [&](RankContext& rank) {
        stream_id = FM_register_handler(FM_ANY_ID, on_stream);
        FM_initialize();
        std::array<std::vector<double>, std::size(kWays)> ways, gaps;
        for (std::size_t round = 0; round < plan.rounds; ++round) {
            for (std::size_t i = 0; i < std::size(kWays); ++i) {
                ways[i].push_back(one_way(kWays[i], rank.rank, plan));
                gaps[i].push_back(gap(kWays[i], rank.rank, plan));
            }
        }
        for (std::size_t i = 0; i < std::size(kWays) && rank.rank == 0; ++i) {
            results.put(std::string("one_way_") + kWays[i].name, ways[i]);
            results.put(std::string("gap_") + kWays[i].name, gaps[i]);
        }
        FM_finalize();
    });
}

void print(const std::string& name, const std::vector<double>& values, double ratio, bool json,
           const std::string& more = "") {
    const Percentiles p(values);
    if (json) {
        fmt::print(
            "{{\"figure\": \"{}\", \"samples\": {}, \"p50\": {:.2f}, \"p90\": {:.2f}, \"p99\": "
            "{:.2f}, \"max\": {:.2f}, "
            "\"ratio\": {:.3f}}}\n",
            name, p.samples, p.p50, p.p90, p.p99, p.max, ratio);
        return;
    }
    fmt::print("{:28} p50 {:9.2f}  p90 {:9.2f}  p99 {:9.2f}", name, p.p50, p.p90, p.p99);
    if (ratio != 0) fmt::print("  x {:.2f}", ratio);
    fmt::print("{}\n", more);
}

/// Round by round, since the machine's speed changes.
double ratio_of(const std::vector<double>& ours, const std::vector<double>& floor) {
    std::vector<double> ratios;
    for (std::size_t i = 0; i < ours.size() && i < floor.size(); ++i)
        ratios.push_back(ours[i] / floor[i]);
    return median(std::move(ratios));
}

void messages(const GroupOptions& options, const MessagePlan& plan, bool json) {
    Results results;
    measure_messages(options, plan, results);
    const auto all = results.all();
    for (const char* figure : {"one_way_", "gap_"}) {
        const auto& floor = all.at(figure + std::string(kWays[0].name));
        for (const Way& way : kWays) {
            const std::string name = figure + std::string(way.name);
            print(name + "_ns", all.at(name), ratio_of(all.at(name), floor), json);
        }
    }
}

void flow(GroupOptions options, unsigned most_senders, const FlowPlan& plan, bool json) {
    for (unsigned senders = 1; senders <= most_senders; senders *= 2) {
        options.ranks = senders + 1;
        Results results;
        measure_flow(options, plan, results);
        const auto all = results.all();
        if (!json)
            fmt::print("{} senders, {} ranks on {} processors\n", senders, senders + 1,
                       options.processors.empty() ? "all" : "the given");
        for (const char* who : {"_all", "_one"}) {
            const auto& floor = all.at("returned" + std::string(who));
            for (const FlowWay& way : flow_ways(senders)) {
                const std::string name = way.name + std::string(who);
                const std::string label = fmt::format("senders_{}_{}", senders, name);
                print(label + "_ns", all.at(name), ratio_of(all.at(name), floor), json,
                      fmt::format("  {} bytes, {:.3f} returned for each", flow_bytes(way),
                                  median(all.at("rejected_" + name))));
                print(label + "_latency_ns", all.at("latency_" + name), 0, json);
            }
        }
    }
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    CLI::App app("Fast Messages beside the billboard, and return-to-sender beside windows");
    bool json = false;
    bench::GroupOptions options;
    bench::MessagePlan plan;
    bench::FlowPlan flow;
    unsigned senders = 4;
    app.add_flag("--json", json, "one line of JSON for each figure");
    app.add_option("--link", options.link, "link of the ring");
    app.add_option("--deadline", options.deadline_s, "seconds for a measurement");
    app.require_subcommand(1);
    CLI::App& small = *app.add_subcommand("messages", "one way and gap of small messages");
    small.add_option("--rounds", plan.rounds, "of all kinds in turn");
    small.add_option("--batch", plan.batch, "messages in a round");
    small.add_option("--think", plan.think, "steps of work before each answer, at most");
    CLI::App& window = *app.add_subcommand("flow", "return-to-sender and windows");
    window.add_option("--senders", senders, "at most")->check(CLI::Range(1, 63));
    window.add_option("--rounds", flow.rounds, "of all ways in turn");
    window.add_option("--messages", flow.messages, "of each sender in a round");
    window.add_flag("--slow", flow.is_slow, "the receiver works 1 us for each message");
    CLI11_PARSE(app, argc, argv);
    try {
        if (small.parsed()) bench::messages(options, plan, json);
        if (window.parsed()) bench::flow(options, senders, flow, json);
    } catch (const std::exception& e) {
        fmt::print(stderr, "ports-fm: {}\n", e.what());
        return 1;
    }
    return 0;
}
