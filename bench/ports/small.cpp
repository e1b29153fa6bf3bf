// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/figures.hpp"
#include "bench/ports/rounds.hpp"
#include "bench/ports/streams.hpp"
#include "bench/ports/systems.hpp"
#include "tools/measure/floor.hpp"

#include <fmt/format.h>

#include <optional>
#include <type_traits>

namespace bench {

namespace {

constexpr double kMostOfLatency = 1.4, kMostOfGap = 1.5;  // what is asked for

/// Each batch is preceded by a tenth of it that nobody times.
template <class Operation>
double warm(unsigned batch, Operation&& operation) {
    checked(bbp_barrier());
    operation(std::max(batch / 10, 1U));
    return operation(batch);
}

template <class System>
Subject latency_of(const Effort& effort, double think_ns, bool is_direct) {
    return on_ring(System::kName, [=](RankContext& rank) {
        with_system<System>(rank, [&](System& system) {
            Series series;
            Billboard beside(rank);
            Floor floor(rank.user, rank.rank);
            Thinking thinking(2 * think_ns, rank.rank);
            const auto trips = [&](auto& with, Thinking* thinks) {
                using With = std::remove_reference_t<decltype(with)>;
                return warm(effort.batch, [&](unsigned count) {
                    return one_way(with, rank.rank, With::kSmall, count, thinks);
                });
            };
            for (unsigned i = 0; i < effort.batches; ++i) {
                if (is_direct)
                    series["hop"].push_back(warm(effort.batch, [&](unsigned count) {
                        return time_of(count, [&] { floor.bounce(); }) / 2 / count;
                    }));
                series["bare"].push_back(trips(system, nullptr));
                series["thinking"].push_back(trips(system, &thinking));
                series["beside"].push_back(trips(beside, nullptr));
            }
            report(rank, series);
        });
    });
}

template <class System>
Subject gap_of(const Effort& effort) {
    return on_ring(System::kName, [=](RankContext& rank) {
        with_system<System>(rank, [&](System& system) {
            Series series;
            for (unsigned i = 0; i < effort.batches; ++i) {
                series["gap"].push_back(warm(effort.batch, [&](unsigned count) {
                    return time_of(1,
                                   [&] { stream(system, rank.rank, System::kSmall, count, 1); }) /
                           count;
                }));
            }
            report(rank, series);
        });
    });
}

/// `asked` is a ratio's upper limit; none: it is only reported.
Row row_of(const Rounds& rounds, const char* system, std::size_t bytes, const std::string& series,
           std::optional<double> asked) {
    Row row = {{"system", system}, {"bytes", bytes}};
    put(row, "ns", rounds.of(system, series));
    const Spread ratio = spread_of(
        quotients(rounds.medians(system, series), rounds.medians(Billboard::kName, series)));
    put(row, "ratio", ratio);
    row["asked"] = asked ? Row(*asked) : Row();
    row["met"] = asked ? Row(ratio.p50 <= *asked) : Row();
    return row;
}

/// What is asked for, is so on link direct.
template <class System>
void add_latency(Table& table, const Rounds& rounds, bool is_direct) {
    const bool is_port = is_direct && !std::is_same_v<System, Billboard>;
    Row row = row_of(rounds, System::kName, System::kSmall, "bare",
                     is_port ? std::optional(kMostOfLatency) : std::nullopt);
    const Spread thinking = rounds.of(System::kName, "thinking");
    row["thinking_ns"] = thinking.p50;
    row["thinking_ratio"] = spread_of(quotients(rounds.medians(System::kName, "thinking"),
                                                rounds.medians(Billboard::kName, "thinking")))
                                .p50;
    row["beside_ratio"] = spread_of(quotients(rounds.medians(System::kName, "bare"),
                                              rounds.medians(System::kName, "beside")))
                              .p50;
    row["hop_ns"] =
        rounds.has(System::kName, "hop") ? Row(rounds.of(System::kName, "hop").p50) : Row();
    table.add(std::move(row));
}

}  // namespace

Table measure_latency(const GroupOptions& options, const Effort& effort, double think_ns) {
    const bool is_direct = options.link == "direct";
    const Rounds rounds(
        "latency", options,
        {latency_of<Billboard>(effort, think_ns, is_direct),
         latency_of<Fm4>(effort, think_ns, is_direct), latency_of<Fm2>(effort, think_ns, is_direct),
         latency_of<Gamma>(effort, think_ns, is_direct),
         latency_of<Dp>(effort, think_ns, is_direct)},
        effort.rounds);
    Table table(
        "latency",
        fmt::format(
            "One way in ns on link {}, medians, 10th and 90th percentile. ns, ratio: a bare "
            "ping-pong; the ratio to bbp_send is what is asked for.\n"
            "thinking: each side works for {:.0f} ns on average between receiving and answering; "
            "its time is measured alone and subtracted.\n"
            "beside: ÷ bbp_send in the same process, turn by turn, which pays for the port's "
            "threads. hop: one cache line of the same ring, bare.\n",
            options.link, think_ns));
    add_latency<Billboard>(table, rounds, is_direct);
    add_latency<Fm4>(table, rounds, is_direct);
    add_latency<Fm2>(table, rounds, is_direct);
    add_latency<Gamma>(table, rounds, is_direct);
    add_latency<Dp>(table, rounds, is_direct);
    return table;
}

Table measure_gap(const GroupOptions& options, const Effort& effort) {
    const Rounds rounds("gap", options,
                        {gap_of<Billboard>(effort), gap_of<Fm4>(effort), gap_of<Fm2>(effort),
                         gap_of<Gamma>(effort), gap_of<Dp>(effort)},
                        effort.rounds);
    Table table("gap",
                fmt::format("ns from message to message of {} on link {}, until the last has been "
                            "received; ratio: to bbp_send.\n",
                            effort.batch, options.link));
    const auto add = [&](auto* system, std::optional<double> asked) {
        using System = std::remove_pointer_t<decltype(system)>;
        table.add(row_of(rounds, System::kName, System::kSmall, "gap", asked));
    };
    add(static_cast<Billboard*>(nullptr), std::nullopt);
    add(static_cast<Fm4*>(nullptr), kMostOfGap);
    add(static_cast<Fm2*>(nullptr), kMostOfGap);
    add(static_cast<Gamma*>(nullptr), kMostOfGap);
    add(static_cast<Dp*>(nullptr), std::nullopt);
    return table;
}

}  // namespace bench
