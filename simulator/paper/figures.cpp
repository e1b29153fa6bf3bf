// SPDX-License-Identifier: Apache-2.0
#include "simulator/paper/figures.hpp"

#include "simulator/paper/experiments.hpp"
#include "simulator/paper/mpi_experiments.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace simulator {

namespace {

using billboard::BarrierKind;
using Sizes = std::vector<std::size_t>;

/// From 0 on, closer at the beginning.
Sizes steps(std::size_t step, std::size_t last) {
    Sizes sizes;
    for (std::size_t size = 0; size <= last; size += step) sizes.push_back(size);
    sizes.insert(sizes.begin() + 1, {4, 8, 16, 32});
    return sizes;
}

Sizes powers(std::size_t first, std::size_t last) {
    Sizes sizes;
    for (std::size_t size = first; size <= last; size *= 2) sizes.push_back(size);
    return sizes;
}

Figure one_way_figure(const std::string& title, const Sizes& sizes) {
    Figure result{title, {"bytes", "fixed packets", "packets up to 256 B"}, {}};
    Testbed variable;
    variable.timing = "scramnet-burst-plus";
    for (const std::size_t bytes : sizes) {
        result.rows.push_back({static_cast<std::int64_t>(bytes), one_way_ps(Testbed{}, bytes),
                               one_way_ps(variable, bytes)});
    }
    return result;
}

Figure api_and_mpi_figure() {
    Figure result = one_way_figure("one way, small messages", steps(64, 1024));
    result.columns.emplace_back("by MPI, fixed packets");
    for (auto& row : result.rows) {
        row.push_back(mpi_one_way_ps(Testbed{}, static_cast<std::size_t>(row.front())));
    }
    return result;
}

Figure mpi_figure() {
    Figure result{"one way by MPI, and over other networks as lines through their barriers",
                  {"bytes", "ring, fixed packets", "Fast Ethernet", "ATM"},
                  {}};
    for (const std::size_t bytes : steps(64, 1024)) {
        result.rows.push_back({static_cast<std::int64_t>(bytes), mpi_one_way_ps(Testbed{}, bytes),
                               kFastEthernet.one_way_ps(bytes), kAtm.one_way_ps(bytes)});
    }
    return result;
}

Figure mpi_broadcast_figure() {
    Figure result{"MPI_Bcast to all of four nodes",
                  {"bytes", "point to point", "by multicast", "Fast Ethernet"},
                  {}};
    for (const std::size_t bytes : steps(64, 1024)) {
        result.rows.push_back({static_cast<std::int64_t>(bytes),
                               mpi_broadcast_ps(Testbed{}, bytes, BroadcastKind::tree),
                               mpi_broadcast_ps(Testbed{}, bytes, BroadcastKind::multicast),
                               kFastEthernet.broadcast_ps(bytes)});
    }
    return result;
}

Figure broadcast_figure() {
    Figure result{"a message to one, and a broadcast to all of four nodes",
                  {"bytes", "to one", "to the last of three"},
                  {}};
    for (const std::size_t bytes : steps(64, 1024)) {
        result.rows.push_back({static_cast<std::int64_t>(bytes), one_way_ps(Testbed{}, bytes),
                               multicast_ps(Testbed{}, bytes, 3)});
    }
    return result;
}

Figure barrier_figure() {
    Figure result{"a barrier",
                  {"nodes", "by messages and multicast, as in the paper", "by arrival words",
                   "MPI_Barrier point to point"},
                  {}};
    for (unsigned ranks = 2; ranks <= 16; ++ranks) {
        Testbed testbed;
        testbed.ranks = ranks;
        testbed.nodes = std::max(testbed.nodes, ranks);
        const std::int64_t paper_ps = barrier_ps(testbed);
        const std::int64_t mpi_ps = mpi_barrier_ps(testbed);
        testbed.barrier = BarrierKind::arrival;
        result.rows.push_back({ranks, paper_ps, barrier_ps(testbed), mpi_ps});
    }
    return result;
}

}  // namespace

Figure figure(unsigned number) {
    switch (number) {
        case 1: return api_and_mpi_figure();
        case 2: return one_way_figure("one way, up to 16 KiB", powers(4, 16384));
        case 3: return mpi_figure();
        case 4: return broadcast_figure();
        case 5: return mpi_broadcast_figure();
        case 6: return barrier_figure();
        default:
            throw rmem::Error(rmem::Errc::bad_size,
                              fmt::format("the paper has no figure {}; give 1 to 6", number));
    }
}

std::string data_of(const Figure& figure) {
    std::string text =
        fmt::format("# {}\n# {} (us)\n", figure.title, fmt::join(figure.columns, " | "));
    for (const auto& row : figure.rows) {
        text += std::to_string(row.front());
        for (std::size_t i = 1; i < row.size(); ++i) {
            const std::int64_t ns = (row[i] + 500) / 1000;
            text += fmt::format(" {}.{:03}", ns / 1000, ns % 1000);
        }
        text += '\n';
    }
    return text;
}

}  // namespace simulator
