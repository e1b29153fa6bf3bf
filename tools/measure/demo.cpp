// SPDX-License-Identifier: Apache-2.0
// `rmem demo`: four processes exchange messages through an emulated ring; then one table.

#include "rmem/base/clock.hpp"
#include "tools/commands.hpp"
#include "tools/measure/billboard_channel.hpp"
#include "tools/measure/figures.hpp"
#include "tools/measure/samples.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>
#include <string>

namespace tools {

namespace {

constexpr const char* kDemoExamples = R"(
Examples:
  rmem demo                             half a minute
  rmem demo --quick                     a few seconds, with fewer samples

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

/// What the 1999 paper measured with the card, in microseconds.
struct PaperFigure {
    const char* what;
    double us;
};
constexpr PaperFigure kPaper[] = {{"message of 0 bytes, one way", 6.5},
                                  {"message of 4 bytes, one way", 7.8},
                                  {"broadcast of 4 bytes to 4 nodes", 10.1},
                                  {"barrier of 4 nodes (MPI_Barrier over it)", 37}};

struct Measured {
    double one_way_0 = 0, one_way_4 = 0, broadcast = 0, barrier = 0, floor = 0;
};

double half_median(std::vector<double> samples) {
    return median(std::move(samples));
}

/// Every rank greets every other; rank 0 shows what came round.
void greet(RankContext& rank) {
    const std::string text = fmt::format("hello from rank {}", rank.rank);
    std::vector<int> others;
    for (unsigned r = 0; r < rank.ranks; ++r) {
        if (r != rank.rank) others.push_back(static_cast<int>(r));
    }
    checked(
        bbp_mcast(others.data(), static_cast<int>(others.size()), text.c_str(), text.size() + 1));
    for (std::size_t i = 0; i < others.size(); ++i) {
        char heard[64];
        std::size_t len = 0;
        const int from = checked(bbp_recv(BBP_ANY, heard, sizeof heard, &len));
        if (rank.rank == 0) show(fmt::format("  rank 0 received from rank {}: {}\n", from, heard));
    }
    checked(bbp_barrier());
}

/// From the sender's clock before the multicast to the last receiver's clock after it: all
/// processes of a host share the clock.
double time_broadcast(RankContext& rank, std::size_t samples) {
    std::vector<double> times;
    int others[3] = {1, 2, 3};
    for (std::size_t i = 0; i < samples; ++i) {
        checked(bbp_barrier());
        std::int64_t last = 0;
        std::int64_t stamp = rmem::now_ns();
        const std::uint32_t word = 42;
        if (rank.rank == 0) {
            checked(bbp_mcast(others, 3, &word, sizeof word));
            for (int r = 0; r < 3; ++r) {
                std::int64_t at = 0;
                checked(bbp_recv(BBP_ANY, &at, sizeof at, nullptr));
                last = std::max(last, at);
            }
            times.push_back(static_cast<double>(last - stamp));
        } else {
            std::uint32_t got = 0;
            checked(bbp_recv(0, &got, sizeof got, nullptr));
            stamp = rmem::now_ns();
            checked(bbp_send(0, &stamp, sizeof stamp));
        }
    }
    return rank.rank == 0 ? median(times) : 0;
}

Measured measure(const std::string& link, const std::string& timing, const Plan& plan) {
    GroupOptions options;
    options.link = link;
    options.timing = timing;
    Measured measured;
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{4}}) {
        Results results;
        Plan one = plan;
        one.bytes = bytes;
        measure_pingpong(options, one, results);
        const auto all = results.all();
        (bytes == 0 ? measured.one_way_0 : measured.one_way_4) = half_median(all.at("ours"));
        measured.floor = half_median(all.at("floor"));
    }
    options.ranks = 4;
    Results results;
    run_ranks(options, results, [&](RankContext& rank) {
        const double broadcast = time_broadcast(rank, plan.rounds);
        if (rank.rank == 0) rank.results.put("broadcast", {broadcast});
    });
    measured.broadcast = results.all().at("broadcast").front();
    Results barrier;
    measure_barrier(options, plan, barrier);
    measured.barrier = half_median(barrier.all().at("ours"));
    return measured;
}

std::string us(double ns) {
    return fmt::format("{:.3f}", ns / 1000);
}

void demo(bool quick) {
    Plan plan;
    plan.samples = 10;  // rounds are what is shown
    plan.rounds = quick ? 20 : 100;
    plan.batch = quick ? 50 : 200;

    show("Four processes on an emulated SCRAMNet ring (link ring, timing scramnet-burst):\n");
    GroupOptions four;
    four.ranks = 4;
    four.link = "ring";
    four.timing = "scramnet-burst";
    Results none;
    run_ranks(four, none, greet);

    show("\nMeasuring: the ring in real time …\n");
    const Measured ring = measure("ring", "scramnet-burst", plan);
    show("Measuring: this machine's shared memory …\n\n");
    const Measured direct = measure("direct", "", plan);

    Table table({"microseconds", ">paper, 1999", ">ring, emulated", ">direct, this machine"});
    const double ring_values[] = {ring.one_way_0, ring.one_way_4, ring.broadcast, ring.barrier};
    const double direct_values[] = {direct.one_way_0, direct.one_way_4, direct.broadcast,
                                    direct.barrier};
    for (int i = 0; i < 4; ++i) {
        table.add({kPaper[i].what, fmt::format("{:.1f}", kPaper[i].us), us(ring_values[i]),
                   us(direct_values[i])});
    }
    table.add({"the floor: one cache line, one way", "", "", us(direct.floor)});
    show(table.text() +
         "\nThe paper's times include a 300 MHz host and its PCI bus; the emulated ring keeps the\n"
         "wire's times only, with two processes for each processor where four share two.\n"
         "Next: README.md, `rmem bench --help`.\n");
}

}  // namespace

void add_demo(cli::App& app) {
    auto quick = std::make_shared<bool>(false);
    cli::App* command = app.add_subcommand(kDemo.word, kDemo.description);
    command->footer(kDemoExamples);
    command->add_flag("--quick", *quick, "Fewer samples");
    command->callback([quick] { demo(*quick); });
}

}  // namespace tools
