// SPDX-License-Identifier: Apache-2.0
#include "simulator/paper/table.hpp"

#include "billboard/bbp.h"
#include "rmem/wire/timing.hpp"
#include "simulator/paper/calibration.hpp"
#include "simulator/paper/experiments.hpp"
#include "simulator/paper/hardware.hpp"
#include "simulator/paper/mpi_experiments.hpp"

#include <fmt/format.h>

#include <iterator>
#include <tuple>

namespace simulator {

namespace {

using billboard::BarrierKind;
using Rows = std::vector<Row>;

constexpr const char* kFixed = "scramnet-burst";
constexpr const char* kPackets256 = "scramnet-burst-plus";
constexpr const char* kPackets1024 = "scramnet-burst-plus-1k";
constexpr const char* kNeedsNetworks =
    "needs the other network's curve, which the paper only draws";
constexpr const char* kOtherBarrier = "three messages of MPICH over TCP, which are taken from it";

double us(std::int64_t ps) {
    return static_cast<double>(ps) / 1e6;
}

double mb(std::int64_t bytes_per_s) {
    return static_cast<double>(bytes_per_s) / 1e6;
}

Row absent(const char* id, const char* what, const char* unit, const char* paper, double value,
           const char* why) {
    return {id, what, unit, paper, value, std::nullopt, Standing::not_modelled, why};
}

void add_messages(Rows& rows) {
    const Testbed testbed;
    rows.push_back({"B1", "one way, 4 bytes", "us", "7.8", 7.8, us(one_way_ps(testbed, 4)),
                    Standing::fitted, "two ranks of four nodes"});
    rows.push_back({"B2", "one way, 0 bytes", "us", "6.5", 6.5, us(one_way_ps(testbed, 0)),
                    Standing::fitted, "two ranks of four nodes"});
    rows.push_back({"B3", "one way by MPI, 4 bytes", "us", "49", 49, us(mpi_one_way_ps(testbed, 4)),
                    Standing::predicted, "a word more than an empty one"});
    rows.push_back({"B4", "one way by MPI, 0 bytes", "us", "44", 44, us(mpi_one_way_ps(testbed, 0)),
                    Standing::fitted, "the software of MPICH above the channel interface"});
}

void add_broadcasts(Rows& rows) {
    const Testbed four;
    Testbed five;
    five.nodes = five.ranks = 5;
    const auto add = [&rows](const char* what, std::int64_t ps, const char* note) {
        rows.push_back({"B5", what, "us", "10.1", 10.1, us(ps), Standing::predicted, note});
    };
    add("broadcast to 4 nodes: 3 receivers", multicast_ps(four, 4, 3),
        "from bbp_mcast to the last receiver's bbp_recv, by one clock; 4 bytes");
    add("the same, measured by an answer", multicast_by_answer_ps(four, 4, 3),
        "round trip with the last receiver, less one way of 4 bytes");
    add("broadcast to 4 nodes: 4 receivers", multicast_ps(five, 4, 4),
        "the other reading, on a ring of five");
}

void add_mpi_barriers(Rows& rows) {
    Testbed three;
    three.ranks = 3;
    rows.push_back({"B7", "MPI_Barrier point to point, 3 nodes", "us", "179", 179,
                    us(mpi_barrier_ps(three)), Standing::predicted,
                    "MPICH's algorithm over the device"});
    rows.push_back({"B8", "MPI_Barrier, Fast Ethernet, 3 nodes", "us", "554", 554,
                    us(kFastEthernet.barrier_ps), Standing::given, kOtherBarrier});
    rows.push_back({"B9", "MPI_Barrier, ATM, 3 nodes", "us", "660", 660, us(kAtm.barrier_ps),
                    Standing::given, kOtherBarrier});
}

void add_barriers(Rows& rows) {
    for (const BarrierKind kind : {BarrierKind::paper, BarrierKind::arrival}) {
        for (const unsigned ranks : {4U, 3U}) {
            Testbed testbed;
            testbed.ranks = ranks;
            testbed.barrier = kind;
            const double simulated = us(barrier_ps(testbed));
            const std::string nodes = std::to_string(ranks) + " nodes";
            if (kind == BarrierKind::paper) {
                rows.push_back({"B6", "barrier by multicast, " + nodes, "us", "37", 37, simulated,
                                Standing::predicted,
                                ranks == 4 ? "the abstract says 4 nodes; bbp_barrier alone, the "
                                             "paper's is an MPI_Barrier over it"
                                           : "section 5 reads as 3 nodes; bbp_barrier alone"});
            } else {
                rows.push_back({"", "barrier by arrival words, " + nodes, "us", "", std::nullopt,
                                simulated, Standing::predicted, "this library's own algorithm"});
            }
        }
    }
    add_mpi_barriers(rows);
}

void add_ring(Rows& rows) {
    const HopTimes hop = hop_times(kFixed, rmem::kWordBytes);
    const auto add = [&rows](const char* id, const char* what, const char* unit, const char* paper,
                             double value, double simulated, Standing standing, const char* note) {
        rows.push_back({id, what, unit, paper, value, simulated, standing, note});
    };
    const auto ns = [](std::int64_t time_ns) { return static_cast<double>(time_ns); };
    add("B10", "hop to the next node, least", "ns", "250", 250, ns(hop.least_ns), Standing::given,
        "the manual's 247 ns");
    add("B10", "hop to the next node, longest", "ns", "800", 800, ns(hop.longest_ns),
        Standing::predicted, "behind the node's own word");
    add("B11", "throughput, fixed packets", "MB/s", "6.5", 6.5, mb(throughput(kFixed, 1)),
        Standing::given, "615 ns a word");
    add("ring", "the same, each of 4 transmitters", "MB/s", "6.5/4", 6.5 / 4,
        mb(throughput(kFixed, 4)), Standing::predicted, "");
    add("B12", "throughput, packets of 1 KB", "MB/s", "16.7", 16.7, mb(throughput(kPackets1024, 1)),
        Standing::predicted, "words of 36 bits at 150 Mbit/s and 46 bits a packet");
    add("ring", "throughput, packets of 256 B", "MB/s", "16.2", 16.2,
        mb(throughput(kPackets256, 1)), Standing::predicted, "");
    add("ring", "longest node delay, packets of 256 B", "us", "16.2", 16.2,
        ns(hop_times(kPackets256, 256).longest_ns) / 1e3, Standing::predicted, "");
    add("ring", "longest node delay, packets of 1 KB", "us", "61.8", 61.8,
        ns(hop_times(kPackets1024, 1024).longest_ns) / 1e3, Standing::predicted, "");
    add("B13", "nodes of one ring", "", "256", 256, largest_ring(kFixed), Standing::given,
        "a hierarchy of rings beyond: rmem sim scale");
}

void add_manual(Rows& rows) {
    const rmem::TimingProfile profile = rmem::parse_timing(kFixed);
    const auto add = [&rows](const char* what, const char* unit, double value, double simulated) {
        rows.push_back({"ring", what, unit, std::to_string(static_cast<int>(value)), value,
                        simulated, Standing::given, ""});
    };
    add("line rate", "Mbit/s", 150, static_cast<double>(profile.bits_per_s) / 1e6);
    add("smallest message", "bit", 82,
        profile.header_bits + static_cast<double>(profile.bits_per_byte) * rmem::kWordBytes);
    add("words in a transmit FIFO", "", 1024, profile.fifo_words);
    add("nodes that a packet may pass", "", 256, profile.max_age);
}

void add_crossovers(Rows& rows) {
    rows.push_back({"B14", "faster than Fast Ethernet (TCP) below", "B", "several thousand",
                    std::nullopt, std::nullopt, Standing::not_modelled, kNeedsNetworks});
    rows.push_back(absent("B15", "faster than ATM (TCP) below", "B", "1000", 1000, kNeedsNetworks));
    rows.push_back(
        absent("B16", "faster than the Myrinet API below", "B", "~500", 500, kNeedsNetworks));
}

/// The other networks as lines through their barriers.
void add_mpi_crossovers(Rows& rows) {
    constexpr std::size_t kMax = 4000;  // still a packet of the channel interface
    const auto add = [&rows](const char* id, const char* what, double paper, std::size_t bytes,
                             const char* note) {
        rows.push_back({id, what, "B", fmt::format("~{}", paper), paper, static_cast<double>(bytes),
                        Standing::predicted, note});
    };
    add("B17", "MPI faster than on Fast Ethernet below", 512, one_way_crossing(kFastEthernet, kMax),
        "a third of B8, and 80 ns a byte");
    add("B18", "MPI faster than on ATM below", 580, one_way_crossing(kAtm, kMax),
        "a third of B9, and 59 ns a byte");
    add("B19", "MPI_Bcast point to point, the same below", 450,
        broadcast_crossing(kFastEthernet, BroadcastKind::tree, kMax), "two messages of B17");
    rows.push_back(
        {"B20", "MPI_Bcast by multicast, the same up to", "B", "1 KB measured", std::nullopt,
         static_cast<double>(broadcast_crossing(kFastEthernet, BroadcastKind::multicast, kMax)),
         Standing::predicted, "two messages of B17"});
}

void add_functions(Rows& rows) {
    // That they are there is what the compiler sees.
    constexpr auto kPaperFunctions =
        std::make_tuple(&bbp_init, &bbp_send, &bbp_recv, &bbp_mcast, &bbp_msgavail);
    constexpr auto kCount = std::tuple_size_v<decltype(kPaperFunctions)>;
    rows.push_back({"B21", "functions of the interface", "", "5", 5, static_cast<double>(kCount),
                    Standing::given, "the paper's are all there; this library has others beside"});
}

}  // namespace

const char* name_of(Standing standing) noexcept {
    switch (standing) {
        case Standing::given: return "given";
        case Standing::fitted: return "fitted";
        case Standing::predicted: return "predicted";
        case Standing::not_modelled: return "not modelled";
    }
    return "?";
}

std::optional<double> Row::error_percent() const noexcept {
    if (!paper_value || !simulated) return std::nullopt;
    return (*simulated / *paper_value - 1) * 100;
}

std::vector<Row> paper_table() {
    Rows rows;
    for (const auto add : {add_messages, add_broadcasts, add_barriers, add_ring, add_manual,
                           add_crossovers, add_mpi_crossovers, add_functions}) {
        add(rows);
    }
    return rows;
}

}  // namespace simulator
