// SPDX-License-Identifier: Apache-2.0
#include "simulator/sizing/points.hpp"

#include "rmem/config.hpp"
#include "simulator/sizing/core_ring.hpp"

#include <algorithm>
#include <map>
#include <utility>

namespace simulator::sizing {

namespace {

/// Writes of a ring that is run: fewer where each has more arrivals.
unsigned writes_for(unsigned nodes) {
    constexpr unsigned kArrivals = 16'384, kLeast = 64;
    return std::max(kArrivals / nodes, kLeast);
}

/// When rings of some sizes have joined, each run once.
class Joins {
public:
    explicit Joins(const Task& task) : task_(task) {}

    void note(const Plan& plan, std::int64_t ns) { known_[{plan.carrier, plan.nodes}] = ns; }

    std::optional<std::int64_t> of_ring(Carrier carrier, unsigned nodes) {
        if (nodes < 2) return 0;
        Plan ring;
        ring.carrier = carrier;
        ring.nodes = nodes;
        if (!can_run(ring, task_.most_run)) return std::nullopt;
        const auto known = known_.find({carrier, nodes});
        if (known != known_.end()) return known->second;
        RingShape shape;
        shape.nodes = nodes;
        shape.fan_out = carrier == Carrier::fan_out;
        shape.write_bytes = task_.load.write_bytes;
        CoreRing cores(shape, task_.costs);
        cores.join();
        return known_[{carrier, nodes}] = cores.figures().join_ns;
    }

    std::optional<std::int64_t> of(const Plan& plan) {
        if (plan.rack_count() == 1) return of_ring(plan.carrier, plan.nodes);
        const auto rack = of_ring(plan.carrier, plan.rack_nodes);
        const auto between =
            of_ring(plan.carrier, plan.racks == Racks::tree ? plan.rack_count() : 2);
        if (!rack || !between) return std::nullopt;
        return *rack + *between;
    }

private:
    const Task& task_;
    std::map<std::pair<Carrier, unsigned>, std::int64_t> known_;
};

bool fits_the_link(const Plan& plan) noexcept {
    return std::max(plan.rack_count() == 1 ? plan.nodes : plan.rack_nodes, plan.rack_count()) <=
               rmem::kMaxNodes ||
           (plan.racks == Racks::chain && plan.rack_nodes <= rmem::kMaxNodes);
}

}  // namespace

bool can_run(const Plan& plan, unsigned most_nodes) noexcept {
    return plan.carrier != Carrier::fabric && plan.rack_count() == 1 &&
           plan.nodes <= std::min(most_nodes, rmem::kMaxNodes);
}

SizedPoint run(const Plan& plan, const Load& load, const Costs& costs) {
    RingShape shape;
    shape.nodes = plan.nodes;
    shape.fan_out = plan.carrier == Carrier::fan_out;
    shape.write_bytes = load.write_bytes;
    shape.lost_ppm = load.lost_ppm;
    CoreRing ring(shape, costs);
    ring.join();
    ring.write_alone(writes_for(plan.nodes));
    const RingFigures found = ring.figures();

    SizedPoint point;
    point.plan = plan;
    point.was_run = true;
    point.figures = {found.p50_ns,  found.p99_ns, found.last_ns,   found.sender_ns,
                     found.node_ns, found.sends,  found.datagrams, found.resent};
    point.join_ns = found.join_ns;
    return point;
}

std::vector<Plan> plans_for(const Task& task) {
    std::vector<std::pair<Carrier, Racks>> ways;
    if (task.is_fabric) {
        ways = {{Carrier::fabric, Racks::none},
                {Carrier::fabric, Racks::tree},
                {Carrier::fabric, Racks::chain}};
    } else {
        ways = {{Carrier::multicast, Racks::none},
                {Carrier::fan_out, Racks::none},
                {Carrier::multicast, Racks::tree},
                {Carrier::multicast, Racks::chain}};
    }
    std::vector<Plan> plans;
    for (const auto& [carrier, racks] : ways) {
        for (unsigned nodes = kLeastSized; nodes <= task.most_nodes; nodes *= 2) {
            const Plan plan{nodes, carrier, racks, task.rack_nodes};
            // One rack alone is the ring that is there already.
            if (racks == Racks::none || plan.rack_count() > 1) plans.push_back(plan);
        }
    }
    return plans;
}

std::vector<SizedPoint> measure(const Task& task) {
    Joins joins(task);
    std::optional<Memory> memory;
    if (!task.is_fabric) memory.emplace(task.load.write_bytes);
    std::vector<SizedPoint> points;
    for (const Plan& plan : plans_for(task)) {
        SizedPoint point;
        if (can_run(plan, task.most_run)) {
            point = run(plan, task.load, task.costs);
            joins.note(plan, *point.join_ns);
        } else {
            point.plan = plan;
            point.figures = figures_of(plan, task.load, task.costs);
            if (!task.is_fabric) point.join_ns = joins.of(plan);
        }
        if (memory && fits_the_link(plan)) point.memory_bytes = memory->bytes(plan);
        points.push_back(point);
    }
    return points;
}

const char* name_of(Carrier carrier) noexcept {
    switch (carrier) {
        case Carrier::multicast: return "multicast";
        case Carrier::fan_out: return "fan-out";
        case Carrier::fabric: return "fabric";
    }
    return "?";
}

const char* name_of(Racks racks) noexcept {
    switch (racks) {
        case Racks::none: return "none";
        case Racks::tree: return "tree";
        case Racks::chain: return "chain";
    }
    return "?";
}

}  // namespace simulator::sizing
