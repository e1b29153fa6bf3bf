// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/figures.hpp"
#include "bench/ports/rounds.hpp"
#include "bench/ports/streams.hpp"
#include "bench/ports/systems.hpp"

#include <fmt/format.h>

#include <atomic>
#include <memory>
#include <numeric>
#include <random>

namespace bench {

namespace {

// ---- Barriers

/// The least that ranks can do to know that all have come: a line each, which all others look at.
class BareBarrier {
public:
    BareBarrier(std::byte* user, unsigned rank, unsigned ranks) : rank_(rank) {
        for (unsigned i = 0; i < ranks; ++i)
            lines_.push_back(
                reinterpret_cast<std::atomic<std::uint32_t>*>(user + rmem::kLineBytes * (1 + i)));
    }
    void enter() {
        ++epoch_;
        // (1) - this release-store synchronizes-with the acquire-load (2)
        lines_[rank_]->store(epoch_, std::memory_order_release);
        for (const auto* line : lines_) {
            // (2) - this acquire-load synchronizes-with the release-store (1)
            while (line->load(std::memory_order_acquire) < epoch_) rmem::cpu_relax();
        }
    }

private:
    std::vector<std::atomic<std::uint32_t>*> lines_;
    unsigned rank_;
    std::uint32_t epoch_ = 0;
};

template <class Enter>
double barrier_ns(unsigned batch, Enter&& enter) {
    checked(bbp_barrier());
    time_of(batch / 10, enter);
    return time_of(batch, enter) / batch;
}

Subject billboard_barrier(const Effort& effort) {
    return on_ring(Billboard::kName, [=](RankContext& rank) {
        Series series;
        BareBarrier bare(rank.user, rank.rank, rank.ranks);
        for (unsigned i = 0; i < effort.batches; ++i) {
            series["floor"].push_back(barrier_ns(effort.batch, [&] { bare.enter(); }));
            series["barrier"].push_back(barrier_ns(effort.batch, [] { checked(bbp_barrier()); }));
        }
        report(rank, series);
    });
}
Subject gamma_barrier(const Effort& effort) {
    return on_ring(Gamma::kName, [=](RankContext& rank) {
        with_system<Gamma>(rank, [&](Gamma&) {
            Series series;
            for (unsigned i = 0; i < effort.batches; ++i)
                series["barrier"].push_back(barrier_ns(effort.batch, [] { Gamma::barrier(); }));
            report(rank, series);
        });
    });
}

// ---- Handlers

/// The same order in both versions: one that no table of branches foresees.
std::vector<std::size_t> shuffled_handlers() {
    std::vector<std::size_t> order(kMostHandlers);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(1));
    return order;
}

/// `send(handler)` sends to that one.
template <class System, class Send>
double to_handlers(System& system, unsigned rank, const std::vector<std::size_t>& order,
                   Send&& send) {
    checked(bbp_barrier());
    return time_of(1,
                   [&] {
                       for (const std::size_t handler : order)
                           rank == 0 ? send(handler) : system.receive(System::kSmall);
                       rank == 0 ? system.receive(System::kSmall) : system.send(System::kSmall);
                   }) /
           static_cast<double>(order.size());
}

template <class System, class Prepare>
Subject handlers_of(const Effort& effort, Prepare&& prepare) {
    return on_ring(System::kName, [=](RankContext& rank) {
        const auto send = prepare();
        with_system<System>(rank, [&](System& system) {
            const auto thousand = shuffled_handlers();
            const std::vector<std::size_t> one(kMostHandlers, 0);
            const auto to = [&](const auto& order) {
                return to_handlers(system, rank.rank, order,
                                   [&](std::size_t handler) { send(system, handler); });
            };
            Series series;
            for (unsigned i = 0; i < effort.batches; ++i) {
                series["one"].push_back(to(one));
                series["thousand"].push_back(to(thousand));
            }
            report(rank, series);
        });
    });
}

template <class System>
Row row_of_handlers(const Rounds& rounds) {
    Row row = {{"system", System::kName}, {"one_ns", rounds.of(System::kName, "one").p50}};
    put(row, "thousand_ns", rounds.of(System::kName, "thousand"));
    put(row, "ratio",
        spread_of(quotients(rounds.medians(System::kName, "thousand"),
                            rounds.medians(System::kName, "one"))));
    return row;
}

// ---- Both ways

/// `count` messages from each to the other at once, `lead` of them ahead of those received. A rank
/// that would wait for room where the other one may wait too receives instead; Directed Point takes
/// in what comes while it waits.
template <class System>
void exchange(System& system, std::size_t bytes, std::size_t lead, std::size_t count) {
    const auto send = [&] {
        if constexpr (requires { system.try_send(bytes); }) {
            return system.try_send(bytes);
        } else {
            system.send(bytes);
            return true;
        }
    };
    std::size_t sent = 0;
    for (std::size_t received = 0; received < count; ++received) {
        while (sent < std::min(received + lead, count) && send()) ++sent;
        system.receive(bytes);
    }
    for (; sent < count; ++sent) system.send(bytes);  // the other one only receives now
}

constexpr std::size_t kBothSizes[] = {8, 1500, 4096};
constexpr std::size_t kLeads[] = {
    8, 32};  ///< as much as the network of link direct takes unread, and more

template <class System>
Subject both_ways_of(const Effort& effort) {
    return on_ring(System::kName, [=](RankContext& rank) {
        with_system<System>(rank, [&](System& system) {
            Series series;
            for (unsigned i = 0; i < effort.batches; ++i) {
                for (const std::size_t bytes : kBothSizes) {
                    const std::size_t window = window_of(bytes);
                    const std::size_t windows = std::max<std::size_t>(2000 / window, 1);
                    const auto count = static_cast<double>(window * windows);
                    checked(bbp_barrier());
                    series[fmt::format("one_{}", bytes)].push_back(
                        time_of(1, [&] { stream(system, rank.rank, bytes, window, windows); }) /
                        count);
                    for (const std::size_t lead : kLeads) {
                        checked(bbp_barrier());
                        series[fmt::format("both_{}_{}", bytes, lead)].push_back(
                            time_of(1, [&] { exchange(system, bytes, lead, window * windows); }) /
                            count);
                    }
                }
            }
            report(rank, series);
        });
    });
}

template <class System>
void add_both_ways(Table& table, const Rounds& rounds) {
    for (const std::size_t bytes : kBothSizes) {
        const std::string one = fmt::format("one_{}", bytes);
        for (const std::size_t lead : kLeads) {
            const std::string both = fmt::format("both_{}_{}", bytes, lead);
            Row row = {{"system", System::kName},
                       {"bytes", bytes},
                       {"ahead", lead},
                       {"one_way_ns", rounds.of(System::kName, one).p50}};
            put(row, "both_ns", rounds.of(System::kName, both));
            put(row, "share",
                spread_of(quotients(rounds.medians(System::kName, one),
                                    rounds.medians(System::kName, both))));
            table.add(std::move(row));
        }
    }
}

}  // namespace

Table measure_barriers(const GroupOptions& options, const Effort& effort) {
    const Rounds rounds("barrier", options, {billboard_barrier(effort), gamma_barrier(effort)},
                        effort.rounds);
    Table table("barrier",
                fmt::format("{} ranks, link {}, ns. floor: each rank writes a line that all others "
                            "look at. ratio: to the floor.\n",
                            options.ranks, options.link));
    const auto add = [&](const char* name, const char* subject, const char* series) {
        Row row = {{"barrier", name}};
        put(row, "ns", rounds.of(subject, series));
        put(row, "ratio",
            spread_of(quotients(rounds.medians(subject, series),
                                rounds.medians(Billboard::kName, "floor"))));
        table.add(std::move(row));
    };
    add("floor", Billboard::kName, "floor");
    add("bbp_barrier", Billboard::kName, "barrier");
    add("gamma_sync", Gamma::kName, "barrier");
    return table;
}

Table measure_handlers(const GroupOptions& options, const Effort& effort) {
    const auto fm1 = [] {
        return [](Fm4& system, std::size_t handler) { system.send_to(fm1_handler(handler)); };
    };
    const auto fm2 = [] {
        std::vector<ULONG> ids;
        for (std::size_t i = 0; i < kMostHandlers; ++i)
            ids.push_back(FM_register_handler(FM_ANY_ID, Fm2::handler(i)));
        return
            [ids](Fm2& system, std::size_t handler) { system.send_to(ids[handler], Fm2::kSmall); };
    };
    const Rounds rounds("handlers", options,
                        {handlers_of<Fm4>(effort, fm1), handlers_of<Fm2>(effort, fm2)},
                        effort.rounds);
    Table table("handlers",
                fmt::format("ns of a message of a stream to one handler, and to {} different ones "
                            "in random order, link {}.\n",
                            kMostHandlers, options.link));
    table.add(row_of_handlers<Fm4>(rounds));
    table.add(row_of_handlers<Fm2>(rounds));
    return table;
}

Table measure_both_ways(const GroupOptions& options, const Effort& effort) {
    const Rounds rounds("both-ways", options,
                        {both_ways_of<Billboard>(effort), both_ways_of<Dp>(effort)}, effort.rounds);
    Table table("both-ways",
                fmt::format("ns of a message in each direction, link {}; ahead: the most that are "
                            "sent before as many have been received.\nshare: of the bandwidth of "
                            "one way that each direction has. Paper: 0.73 on Gigabit, 1.0 on Fast "
                            "Ethernet.\n",
                            options.link));
    add_both_ways<Billboard>(table, rounds);
    add_both_ways<Dp>(table, rounds);
    return table;
}

}  // namespace bench
