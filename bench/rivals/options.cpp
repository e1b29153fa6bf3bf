// SPDX-License-Identifier: Apache-2.0
#include "method.hpp"

#include <CLI/CLI.hpp>

namespace rivals {
namespace {

/// The first two processors that this process may use.
std::array<int, 2> allowed_cpus() {
    cpu_set_t set;
    require(sched_getaffinity(0, sizeof set, &set) == 0, "cannot read the CPU affinity");
    std::vector<int> allowed;
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu)
        if (CPU_ISSET(cpu, &set)) allowed.push_back(cpu);
    return {allowed.at(0), allowed.size() > 1 ? allowed[1] : allowed[0]};
}

}  // namespace

Options parse_options(int argc, char** argv, const char* about) {
    Options options;
    options.cpus = allowed_cpus();
    std::vector<int> cpus{options.cpus[0], options.cpus[1]};

    CLI::App app{about};
    app.add_option("--cpus", cpus, "the two CPUs, as in 0,1")->delimiter(',')->expected(2);
    app.add_option("--samples", options.samples, "samples per figure, at most");
    app.add_option("--warmup", options.warmup, "operations before the first sample, at most");
    app.add_option("--seconds", options.seconds, "time per figure, roughly, at most");
    app.add_option("--deadline", options.deadline, "give up after this many seconds");
    app.add_option("--ranks", options.ranks,
                   "processes that enter the barrier, two per CPU and more; "
                   "an MPI's launcher says how many")
        ->check(CLI::Range(2, 256));
    app.add_option("--bytes", options.bytes, "of a ping-pong's message, 8 or more")
        ->check(CLI::Range(std::size_t{8}, std::size_t{1} << 24U));
    app.add_option("--figures", options.figures, "of pingpong,barrier,stream")
        ->delimiter(',')
        ->check(CLI::IsMember({"pingpong", "barrier", "stream"}));
    app.add_option("--message-bytes", options.message_bytes, "of a stream's message")
        ->check(CLI::Range(std::size_t{8}, stream_bytes));
    app.add_option("--window", options.window, "messages of a stream per acknowledgement");
    std::vector<std::string> spaces, addresses{options.addresses[0], options.addresses[1]};
    app.add_option("--spaces", spaces, "the network namespaces of the two ranks")
        ->delimiter(',')
        ->expected(2);
    app.add_option("--addresses", addresses, "the ranks' addresses")->delimiter(',')->expected(2);
    app.add_option("--interface", options.interface, "the network interface of both");
    app.add_option("--steps", options.steps,
                   "a directory with a FIFO for each rank: measure what these say (rhythms.hpp)");
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        std::exit(app.exit(error));
    }
    options.cpus = {cpus[0], cpus[1]};
    if (spaces.size() == 2) options.spaces = {spaces[0], spaces[1]};
    options.addresses = {addresses[0], addresses[1]};
    return options;
}

}  // namespace rivals
