// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/figures.hpp"
#include "bench/ports/line.hpp"
#include "bench/ports/rounds.hpp"
#include "bench/ports/streams.hpp"
#include "bench/ports/systems.hpp"
#include "tools/measure/rank_group.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>
#include <type_traits>

namespace bench {

namespace {

constexpr double kMegabyte = 1048576;  // as in the paper of FM

/// Its paper's figure, where there is one.
struct Published {
    const char* system;
    double n_half, t0_us, r_inf;
};
constexpr Published kPublished[] = {
    {Fm1::kName, 54, 4.1, 21.4}, {Gamma::kName, 192, 0, 12.2}, {Dp::kName, 0, 0, 12.2}};

template <class System>
std::vector<double> sizes_of() {
    std::vector<double> sizes;
    for (const double size :
         {8, 16, 32, 48, 64, 96, 128, 192, 256, 384, 512, 1024, 2048, 4096, 8192, 16384}) {
        if (size <= static_cast<double>(System::kMost)) sizes.push_back(size);
    }
    return sizes;
}

template <class System>
Subject curves_of(const BandwidthPlan& plan) {
    return on_ring(System::kName, [=](RankContext& rank) {
        with_system<System>(rank, [&](System& system) {
            std::vector<double> gaps, trips;
            for (const double size : sizes_of<System>()) {
                const auto bytes = static_cast<std::size_t>(size);
                const std::size_t window = window_of(bytes),
                                  windows = std::max<std::size_t>(plan.messages / window, 1);
                stream(system, rank.rank, bytes, window, 1);
                gaps.push_back(
                    time_of(1, [&] { stream(system, rank.rank, bytes, window, windows); }) /
                    static_cast<double>(window * windows));
                trips.push_back(one_way(system, rank.rank, bytes, plan.trips));
            }
            if (rank.rank != 0) return;
            rank.results.put("gap", gaps);
            rank.results.put("one_way", trips);
        });
    });
}

struct Parameters {
    std::vector<double> r_inf, n_half, n_half_of_line, t0, peak;
};

template <class System>
Parameters parameters_of(const Rounds& rounds) {
    Parameters all;
    const auto sizes = sizes_of<System>();
    const auto gaps = rounds.each(System::kName, "gap"),
               trips = rounds.each(System::kName, "one_way");
    for (std::size_t round = 0; round < gaps.size(); ++round) {
        const Line line = fit_relative(sizes, gaps[round]);
        const double r_inf = 1 / line.per_byte;
        all.r_inf.push_back(r_inf * 1e9 / kMegabyte);
        all.n_half_of_line.push_back(line.fixed * r_inf);
        if (const auto n = size_at_rate(sizes, gaps[round], r_inf / 2)) all.n_half.push_back(*n);
        all.t0.push_back(fit_relative(sizes, trips[round]).fixed);
        double peak = 0;
        for (std::size_t i = 0; i < sizes.size(); ++i)
            peak = std::max(peak, sizes[i] / gaps[round][i]);
        all.peak.push_back(peak * 1e9 / kMegabyte);
    }
    return all;
}

Row known(double value) {
    return value == 0 ? Row() : Row(value);
}

template <class System>
void add(Table& table, const Rounds& rounds) {
    const Parameters all = parameters_of<System>(rounds);
    const Spread n_half = spread_of(all.n_half);
    Row row = {{"system", System::kName},
               {"sizes", fmt::format("8-{}", System::kMost)},
               {"n_half_p10", n_half.p10},
               {"n_half", n_half.samples == 0 ? Row() : Row(n_half.p50)},
               {"n_half_p90", n_half.p90},
               {"n_half_of_line", spread_of(all.n_half_of_line).p50},
               {"t0_ns", spread_of(all.t0).p50},
               {"r_inf_mb_s", spread_of(all.r_inf).p50},
               {"peak_mb_s", spread_of(all.peak).p50}};
    const auto* const published =
        std::find_if(std::begin(kPublished), std::end(kPublished),
                     [](const Published& p) { return std::string(p.system) == System::kName; });
    const bool is_published = published != std::end(kPublished);
    row["paper_n_half"] = is_published ? known(published->n_half) : Row();
    row["paper_t0_us"] = is_published ? known(published->t0_us) : Row();
    row["paper_r_inf"] = is_published ? known(published->r_inf) : Row();
    table.add(std::move(row));
}

/// Each round's i-th value of a curve: their median.
double at(const std::vector<std::vector<double>>& curves, std::size_t i) {
    std::vector<double> values;
    for (const auto& curve : curves) values.push_back(curve[i]);
    return median(std::move(values));
}

/// Two columns: its bandwidth, and its one-way time.
template <class System>
void add_curves(std::vector<Row>& rows, const Rounds& rounds) {
    const auto sizes = sizes_of<System>();
    const auto gaps = rounds.each(System::kName, "gap"),
               trips = rounds.each(System::kName, "one_way");
    for (std::size_t i = 0; i < rows.size(); ++i) {
        const bool is_there = i < sizes.size();
        rows[i][fmt::format("{} MB/s", System::kName)] =
            is_there ? Row(sizes[i] / at(gaps, i) * 1e9 / kMegabyte) : Row();
        rows[i][fmt::format("{} one way", System::kName)] = is_there ? Row(at(trips, i)) : Row();
    }
}

}  // namespace

std::vector<Table> measure_bandwidth(const GroupOptions& options, const BandwidthPlan& plan) {
    const Rounds rounds("bandwidth", options,
                        {curves_of<Billboard>(plan), curves_of<Fm1>(plan), curves_of<Fm2>(plan),
                         curves_of<Gamma>(plan), curves_of<Dp>(plan)},
                        plan.rounds);
    Table table(
        "bandwidth",
        fmt::format(
            "Link {}; {} messages of each size, time until the last has been received; MB of 2^20 "
            "bytes; medians of {} rounds.\n"
            "r_inf: slope of the line through the time of a message over its size (relative least "
            "squares). n_half: the size at which\n"
            "the measured bandwidth reaches half of that; of line: the same by the line. t0: where "
            "the line through the one-way times meets\n"
            "0 bytes. Papers: MB of 2^20 for FM, of 10^6 for GAMMA and Directed Point.\n",
            options.link, plan.messages, plan.rounds));
    Table curves(
        "bandwidth-curve",
        "The curves that these are taken from: bandwidth of a stream, and one way in ns.\n");
    std::vector<Row> rows;
    for (const double size : sizes_of<Billboard>())
        rows.push_back({{"bytes", static_cast<unsigned>(size)}});
    const auto add_both = [&](auto* system) {
        using System = std::remove_pointer_t<decltype(system)>;
        add<System>(table, rounds);
        add_curves<System>(rows, rounds);
    };
    add_both(static_cast<Billboard*>(nullptr));
    add_both(static_cast<Fm1*>(nullptr));
    add_both(static_cast<Fm2*>(nullptr));
    add_both(static_cast<Gamma*>(nullptr));
    add_both(static_cast<Dp*>(nullptr));
    for (Row& row : rows) curves.add(std::move(row));
    return {table, curves};
}

}  // namespace bench
