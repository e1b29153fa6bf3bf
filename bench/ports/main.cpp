// SPDX-License-Identifier: Apache-2.0
// The ports beside the billboard that they use.
#include "bench/ports/figures.hpp"
#include "bench/ports/flow_control.hpp"
#include "bench/ports/instructions.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <exception>
#include <functional>
#include <string>
#include <vector>

namespace bench {
namespace {

constexpr const char* kExamples = R"(examples:
  ports-bench latency                         one way of each port over bbp_send, link direct
  chrt -f 10 ports-bench latency --rounds 5   on a machine that others use
  ports-bench latency --link udp --think 500
  ports-bench gap --json
  ports-bench bandwidth                       n1/2, t0 and r_inf beside the papers'
  ports-bench udp-share --bytes 1400,8192
  ports-bench barrier --ranks 4
  ports-bench flow --senders 8 --slow         return-to-sender and windows of FM 1.0
  valgrind --tool=callgrind --toggle-collect='*counted_send*' \
      ports-bench instructions --system gamma
Of MU-Net: munet-bench. All of it, as a page: bench/ports/run.)";

/// The command line: the options of all figures, and the one that was chosen.
struct Program {
    bool json = false;
    GroupOptions group;
    Effort effort;
    double think_ns = 65;
    BandwidthPlan bandwidth;
    SharePlan share;
    FlowPlan flow;
    unsigned most_senders = 4;
    InstructionPlan instructions;
    std::function<void()> chosen;

    void print(const Table& table) const { table.print(json); }
};

void add_effort(CLI::App& command, Effort& effort) {
    command.add_option("--rounds", effort.rounds, "of all subjects in turn")
        ->check(CLI::Range(1U, 10'000U))
        ->capture_default_str();
    command.add_option("--batches", effort.batches, "of a subject's turn")
        ->check(CLI::Range(1U, 10'000U))
        ->capture_default_str();
    command.add_option("--batch", effort.batch, "messages between two readings of the clock")
        ->check(CLI::Range(10U, 5'000U))
        ->capture_default_str();
}
void add_link(CLI::App& command, GroupOptions& group) {
    command.add_option("--link", group.link, "of the ring")
        ->check(CLI::IsMember({"direct", "ring", "udp"}))
        ->capture_default_str();
}

void add_small(CLI::App& app, Program& p) {
    CLI::App& latency = *app.add_subcommand("latency", "one way of small messages over bbp_send's");
    add_link(latency, p.group);
    add_effort(latency, p.effort);
    latency.add_option("--think", p.think_ns, "ns of work before each answer, on average")
        ->check(CLI::Range(1.0, 100'000.0))
        ->capture_default_str();
    latency.callback(
        [&p] { p.chosen = [&p] { p.print(measure_latency(p.group, p.effort, p.think_ns)); }; });
    CLI::App& gap = *app.add_subcommand("gap", "from small message to small message");
    add_link(gap, p.group);
    add_effort(gap, p.effort);
    gap.callback([&p] { p.chosen = [&p] { p.print(measure_gap(p.group, p.effort)); }; });
}

void add_streams(CLI::App& app, Program& p) {
    CLI::App& bandwidth = *app.add_subcommand("bandwidth", "n1/2, t0 and r_inf");
    add_link(bandwidth, p.group);
    bandwidth.add_option("--rounds", p.bandwidth.rounds, "of all subjects in turn")
        ->check(CLI::Range(1U, 10'000U))
        ->capture_default_str();
    bandwidth.add_option("--messages", p.bandwidth.messages, "of each size")
        ->check(CLI::Range(1U, 10'000'000U))
        ->capture_default_str();
    bandwidth.callback([&p] {
        p.chosen = [&p] {
            for (const Table& table : measure_bandwidth(p.group, p.bandwidth)) p.print(table);
        };
    });
    CLI::App& share = *app.add_subcommand("udp-share", "bandwidth over that of bare datagrams");
    share.add_option("--rounds", p.share.rounds, "of all subjects in turn")
        ->check(CLI::Range(1U, 10'000U))
        ->capture_default_str();
    share.add_option("--seconds", p.share.seconds, "of a subject's turn, about")
        ->check(CLI::Range(0.001, 60.0))
        ->capture_default_str();
    share.add_option("--bytes", p.share.sizes, "of a message; several: 64,1400")
        ->delimiter(',')
        ->check(CLI::Range(9, 16384))
        ->capture_default_str();
    share.callback([&p] { p.chosen = [&p] { p.print(measure_share(p.group, p.share)); }; });
}

void add_others(CLI::App& app, Program& p) {
    CLI::App& barrier = *app.add_subcommand("barrier", "gamma_sync beside bbp_barrier");
    add_link(barrier, p.group);
    add_effort(barrier, p.effort);
    barrier.add_option("--ranks", p.group.ranks, "that meet")
        ->check(CLI::Range(2, 64))
        ->capture_default_str();
    barrier.callback([&p] { p.chosen = [&p] { p.print(measure_barriers(p.group, p.effort)); }; });
    CLI::App& handlers = *app.add_subcommand("handlers", "FM's messages to 1000 handlers, and one");
    add_link(handlers, p.group);
    add_effort(handlers, p.effort);
    handlers.callback([&p] { p.chosen = [&p] { p.print(measure_handlers(p.group, p.effort)); }; });
    CLI::App& both = *app.add_subcommand("both-ways", "Directed Point both ways at once");
    add_link(both, p.group);
    add_effort(both, p.effort);
    both.callback([&p] { p.chosen = [&p] { p.print(measure_both_ways(p.group, p.effort)); }; });
}

void add_insides(CLI::App& app, Program& p) {
    CLI::App& flow = *app.add_subcommand("flow", "FM's return-to-sender beside windows");
    add_link(flow, p.group);
    flow.add_option("--senders", p.most_senders, "at most")
        ->check(CLI::Range(1, 63))
        ->capture_default_str();
    flow.add_option("--rounds", p.flow.rounds, "of all ways in turn")->capture_default_str();
    flow.add_option("--messages", p.flow.messages, "of each sender in a round")
        ->capture_default_str();
    flow.add_flag("--slow", p.flow.is_slow, "the receiver works 1 us for each message");
    flow.callback(
        [&p] { p.chosen = [&p] { p.print(compare_flow(p.group, p.most_senders, p.flow)); }; });
    CLI::App& counted =
        *app.add_subcommand("instructions", "messages to be counted by callgrind, nothing printed");
    counted.add_option("--system", p.instructions.system, "whose messages")
        ->check(CLI::IsMember(systems_counted()))
        ->capture_default_str();
    counted.add_option("--rounds", p.instructions.rounds, "in which each rank sends once")
        ->capture_default_str();
    counted.add_option("--turn", p.instructions.turn, "messages sent at once")
        ->check(CLI::Range(1, 4))
        ->capture_default_str();
    counted.callback([&p] { p.chosen = [&p] { run_counted(p.group, p.instructions); }; });
}

}  // namespace
}  // namespace bench

int main(int argc, char** argv) {
    bench::Program program;
    CLI::App app("The ports beside the billboard, each in processes of its own, in turn.");
    app.footer(bench::kExamples);
    app.fallthrough();
    app.require_subcommand(1);
    app.add_flag("--json", program.json, "a line of JSON for each row");
    app.add_option("--cpus", program.group.processors, "the ranks' processors, as in 0,1")
        ->delimiter(',');
    app.add_option("--deadline", program.group.deadline_s, "seconds for a subject's turn, at most")
        ->check(CLI::Range(1.0, 3600.0))
        ->capture_default_str();
    bench::add_small(app, program);
    bench::add_streams(app, program);
    bench::add_others(app, program);
    bench::add_insides(app, program);
    CLI11_PARSE(app, argc, argv);
    try {
        program.chosen();
    } catch (const std::exception& e) {
        fmt::print(stderr, "ports-bench: {}\n", e.what());
        return 1;
    }
    return 0;
}
