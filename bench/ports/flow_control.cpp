// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/flow_control.hpp"

#include "bench/ports/progress.hpp"
#include "bench/ports/rounds.hpp"

#include "billboard/bbp.h"
#include "ports/fm/fm1.hpp"
#include "rmem/base/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace bench {

namespace {

using ports::fm::Fm1;
using ports::fm::Hello;
using ports::fm::Kind;
using ports::fm::Layer;
using ports::fm::Network;

constexpr int kSampleEvery = 16;
constexpr std::int64_t kSlowNs = 1000;

int received;
bool is_slow;
std::vector<double> latencies;

void note(int low, int high, int, int) {
    ++received;
    if (low != 0 || high != 0) {
        const auto sent = static_cast<std::int64_t>(static_cast<std::uint32_t>(low)) |
                          static_cast<std::int64_t>(high) << 32;
        latencies.push_back(static_cast<double>(rmem::now_ns() - sent));
    }
    if (!is_slow) return;
    for (const std::int64_t until = rmem::now_ns() + kSlowNs; rmem::now_ns() < until;) {
    }
}

/// There are no packets of 2.x here.
class Nothing final : public Layer {
public:
    void take_in(unsigned, std::span<const std::byte>) override {}
    unsigned forget(unsigned, bool) override { return 0; }
    void meet(unsigned, const Hello&) override {}
};

void send_all(billboard::ProcessEndpoint& process, Fm1& fm1, int messages) {
    const auto* const handler = reinterpret_cast<const void*>(&note);
    for (int i = 0; i < messages; ++i) {
        const std::int64_t now = i % kSampleEvery == 0 ? rmem::now_ns() : 0;
        const int words[4] = {static_cast<int>(now), static_cast<int>(now >> 32), 0, 0};
        auto held = process.hold();
        if (!fm1.try_send(0, Kind::four, handler, words, sizeof words) &&
            fm1.send(held, 0, Kind::four, handler, words, sizeof words) != 0) {
            throw rmem::Error(rmem::Errc::system, "the receiver is gone");
        }
    }
}

struct FlowSamples {
    std::vector<double> times, rejected, latencies;
};

void one_round(RankContext& rank, billboard::ProcessEndpoint& process, const FlowWay& way,
               unsigned senders, const FlowPlan& plan, FlowSamples& series) {
    Network network(process, {.is_quiet = true, .window = static_cast<std::uint16_t>(way.to_one)});
    Fm1 fm1(network, {.slots = Fm1::kDefaultSlots, .queue = way.places, .to_one = way.to_one});
    Nothing nothing;
    network.set_layers(fm1, nothing);
    received = 0;
    is_slow = plan.is_slow;
    latencies.clear();
    const auto rejected = network.counts().get(FM_FRAMES_REJECTED);
    checked(bbp_barrier());
    const std::int64_t start = rmem::now_ns();
    const int all = static_cast<int>(senders) * plan.messages;
    if (rank.rank == 0) {
        while (received < all) fm1.extract();
        series.times.push_back(static_cast<double>(rmem::now_ns() - start) / all);
        series.rejected.push_back(
            static_cast<double>(network.counts().get(FM_FRAMES_REJECTED) - rejected) / all);
        series.latencies.insert(series.latencies.end(), latencies.begin(), latencies.end());
    } else if (rank.rank <= senders) {
        send_all(process, fm1, plan.messages);
    }
    fm1.settle(process.endpoint().deadline_in(1'000'000'000));
    checked(bbp_barrier());
}

}  // namespace

std::vector<FlowWay> flow_ways(unsigned senders) {
    return {{"returned", kPlaces, Fm1::kMostSlots},
            {"same_memory", kPlaces, std::max(1U, kPlaces / senders)},
            {"own_windows", kPlaces * senders, kPlaces}};
}

std::size_t flow_bytes(const FlowWay& way) {
    return Fm1::queue_bytes(way.places);
}

void measure_flow(const GroupOptions& options, const FlowPlan& plan, Results& results) {
    run_ranks(options, results, [&](RankContext& rank) {
        const auto process = billboard::ProcessEndpoint::open();
        const unsigned senders = rank.ranks - 1;
        std::map<std::string, FlowSamples> all;
        for (std::size_t round = 0; round < plan.rounds; ++round) {
            for (const FlowWay& way : flow_ways(senders)) {
                one_round(rank, *process, way, senders, plan, all[way.name + std::string("_all")]);
                one_round(rank, *process, way, 1, plan, all[way.name + std::string("_one")]);
            }
        }
        if (rank.rank != 0) return;
        for (const auto& [name, series] : all) {
            results.put(name, series.times);
            results.put("latency_" + name, series.latencies);
            results.put("rejected_" + name, series.rejected);
        }
    });
}

Table compare_flow(GroupOptions options, unsigned most_senders, const FlowPlan& plan) {
    Table table("flow",
                "ns for each message until its handler has run; latency: from the call to the "
                "handler. ratio: to return-to-sender.\n"
                "all: that many senders at once; one: one of them. bytes: of the receiver's "
                "queue. returned: frames for each message.\n");
    Progress progress("flow");
    for (unsigned senders = 1; senders <= most_senders; senders *= 2) {
        progress.tell(fmt::format("{} senders", senders));
        options.ranks = senders + 1;
        Results results;
        measure_flow(options, plan, results);
        const auto all = results.all();
        for (const char* who : {"all", "one"}) {
            const auto& returned = all.at(fmt::format("returned_{}", who));
            for (const FlowWay& way : flow_ways(senders)) {
                const std::string name = fmt::format("{}_{}", way.name, who);
                Row row = {{"way", way.name}, {"senders", senders}, {"who", who}};
                put(row, "ns", spread_of(all.at(name)));
                row["ratio"] = median(quotients(all.at(name), returned));
                row["latency_ns"] = median(all.at("latency_" + name));
                row["bytes"] = flow_bytes(way);
                row["returned"] = median(all.at("rejected_" + name));
                table.add(std::move(row));
            }
        }
    }
    return table;
}

}  // namespace bench
