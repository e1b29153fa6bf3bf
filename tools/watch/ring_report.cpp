// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/ring_report.hpp"

#include "billboard/core/counters.hpp"
#include "maps/ring_map.hpp"
#include "rmem/ring/map_text.hpp"
#include "rmem/ring/owners.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/wire/timing.hpp"
#include "tools/output.hpp"
#include "tools/watch/munet_report.hpp"
#include "tools/watch/port_counters.hpp"
#include "tools/watch/ring_sampler.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

namespace tools {

namespace {

using Names = std::span<const rmem::CounterName>;

nlohmann::json counters_json(const CounterValues& values, Names names) {
    nlohmann::json result = nlohmann::json::object();
    for (std::size_t i = 0; i < names.size(); ++i) result[names[i].name] = values.at(i);
    return result;
}

nlohmann::json names_json(Names names) {
    nlohmann::json result = nlohmann::json::object();
    for (const auto& name : names) {
        result[name.name] = {{"unit", name.unit}, {"meaning", name.meaning}};
    }
    return result;
}

nlohmann::json histogram_json(const HistogramSample& histogram) {
    return {{"count", histogram.count()},         {"p50", histogram.quantile(0.5)},
            {"p90", histogram.quantile(0.9)},     {"p99", histogram.quantile(0.99)},
            {"p99.9", histogram.quantile(0.999)}, {"max", histogram.max()}};
}

nlohmann::json rank_json(const RankSample& sample, std::size_t rank) {
    nlohmann::json result = {
        {"rank", rank},
        {"node", sample.node},
        {"state", sample.state},
        {"pid", sample.pid},
        {"command", sample.command},
        {"incarnation", sample.incarnation},
        {"link_counters", counters_json(sample.link, rmem::kLinkCounterNames)},
        {"protocol_counters", counters_json(sample.protocol, billboard::kCounterNames)}};
    for (std::size_t p = 0; p < sample.ports.size(); ++p) {
        const auto& [port, names] = ports::kPortNames[p];
        if (!sample.ports[p].empty())
            result["port_counters"][port] = counters_json(sample.ports[p], names);
    }
    return result;
}

nlohmann::json node_json(const NodeSample& sample, std::size_t node) {
    return {{"node", node},
            {"present", sample.is_present},
            {"keeper", sample.keeper},
            {"guests", sample.guests},
            {"link_counters", counters_json(sample.link, rmem::kLinkCounterNames)},
            {"propagation_ns", histogram_json(sample.propagation)},
            {"lateness_ns", histogram_json(sample.lateness)}};
}

const char* kind_text(rmem::udp::EngineKind kind) {
    switch (kind) {
        case rmem::udp::EngineKind::program: return "program";
        case rmem::udp::EngineKind::daemon: return "daemon";
        case rmem::udp::EngineKind::none: break;
    }
    return "none";
}

/// The node's engine on link udp, as its board shows it.
nlohmann::json engine_json(const EngineSample& engine, unsigned node) {
    nlohmann::json members = nlohmann::json::array(), peers = nlohmann::json::array();
    for (unsigned n = 0; n < engine.members.size(); ++n) {
        if (engine.members[n]) members.push_back(n);
    }
    for (const PeerSample& peer : engine.peers) {
        if (!engine.members[peer.node]) continue;
        peers.push_back({{"node", peer.node},
                         {"round_trip_ns", peer.round_trip_ns},
                         {"clock_error_ns", peer.clock_error_ns}});
    }
    return {{"node", node},
            {"runs", engine.runs},
            {"kind", kind_text(engine.kind)},
            {"pid", engine.pid},
            {"in_ring", engine.is_member()},
            {"members", members},
            {"peers", peers},
            {"refuses", engine.remark},
            {"counters", counters_json(engine.counters, rmem::udp::kUdpCounterNames)}};
}

nlohmann::json config_json(const rmem::Ring& ring) {
    const rmem::RingConfig& config = ring.config();
    const std::int64_t bound =
        config.bound_ns != 0 ? config.bound_ns : rmem::bound_ns(config.timing, config.nodes);
    return {{"name", config.name},
            {"segment", ring.segment_name()},
            {"state", ring_state(ring)},
            {"live_ranks", live_ranks(ring)},
            {"ranks", config.ranks},
            {"nodes", config.nodes},
            {"link", name_of(config.link)},
            {"timing", rmem::to_string(config.timing)},
            {"bound_ns", bound},
            {"user_bytes", config.user_bytes},
            {"system_bytes", config.system_bytes},
            {"segment_bytes", rmem::SegmentLayout(config).reserved},
            {"creator_pid", ring.header().creator_pid}};
}

nlohmann::json known_map_json(const rmem::Ring& ring) {
    nlohmann::json map = {{"hash", fmt::format("{:016x}", rmem::map_hash(ring))}};
    try {
        if (const auto found = maps::map_of(ring)) map["variables"] = found->variables().size();
    } catch (const rmem::Error& error) {
        map["problem"] = error.sentence();
    }
    const rmem::OwnerMode mode = rmem::Owners::mode_of(ring);
    if (mode != rmem::OwnerMode::off) {
        map["owners"] = mode == rmem::OwnerMode::report ? "report" : "enforce";
        map["foreign_writes"] = rmem::Owners(ring, {rmem::Member::kGuest, 0}).reports();
    }
    return map;
}

// ---- Text

std::string heading(const nlohmann::json& r) {
    const auto bound = r["bound_ns"].get<std::int64_t>();
    return fmt::format(
        "ring {}: {}, {} of {} ranks alive\n"
        "  link {}, timing {}, bound {}\n"
        "  {} of user's memory, {} of system regions per bank; {} in {}\n",
        r["name"].get<std::string>(), r["state"].get<std::string>(),
        r["live_ranks"].get<unsigned>(), r["ranks"].get<unsigned>(), r["link"].get<std::string>(),
        r["timing"].get<std::string>(),
        bound == 0 ? "none" : duration_text(static_cast<std::uint64_t>(bound)),
        size_text(r["user_bytes"].get<std::uint64_t>()),
        size_text(r["system_bytes"].get<std::uint64_t>()),
        size_text(r["segment_bytes"].get<std::uint64_t>()),
        rmem::Segment::object_name(r["segment"].get<std::string>()));
}

/// A line of the map and its owners, where there is one.
std::string map_line(const nlohmann::json& report) {
    if (!report.contains("map")) return "";
    const auto& map = report["map"];
    std::string line = fmt::format("  map {}", map["hash"].get<std::string>());
    if (map.contains("variables"))
        line += fmt::format(", {} variables", map["variables"].get<std::size_t>());
    if (map.contains("owners")) {
        line += fmt::format("; owners: {}, {} writes of others' variables (`rmem who`)",
                            map["owners"].get<std::string>(),
                            map["foreign_writes"].get<std::uint64_t>());
    }
    return line + "\n";
}

/// A line for each process that keeps a node, and for each node's guests.
std::string guests_text(const nlohmann::json& report) {
    std::string text;
    for (const nlohmann::json& node : report["nodes_seen"]) {
        if (const auto keeper = node["keeper"].get<unsigned>(); keeper != 0)
            text += fmt::format("  node {}: kept by process {}\n", node["node"].get<unsigned>(),
                                keeper);
        if (const auto guests = node["guests"].get<std::vector<unsigned>>(); !guests.empty())
            text += fmt::format("  node {}: programs beside its ranks: {}\n",
                                node["node"].get<unsigned>(), fmt::join(guests, ", "));
    }
    return text;
}

/// Of link udp; else nothing.
std::string engine_text(const nlohmann::json& report) {
    if (!report.contains("engine")) return "";
    const nlohmann::json& engine = report["engine"];
    const bool runs = engine["runs"].get<bool>();
    std::string text =
        fmt::format("  node {}: {}, {}; members: {}\n", engine["node"].get<unsigned>(),
                    runs ? fmt::format("engine in {} {}", engine["kind"].get<std::string>(),
                                       engine["pid"].get<unsigned>())
                         : "no engine runs",
                    engine["in_ring"].get<bool>() ? "in the ring" : "not in the ring",
                    numbers_text(engine["members"].get<std::vector<unsigned>>()));
    if (const auto refuses = engine["refuses"].get<std::string>(); !refuses.empty())
        text += fmt::format("  it says: {}\n", refuses);
    for (const nlohmann::json& peer : engine["peers"]) {
        const auto trip = peer["round_trip_ns"].get<std::int64_t>();
        const auto error = peer["clock_error_ns"].get<std::int64_t>();
        text += fmt::format(
            "  to node {}: round trip {}, its clock known to {}\n", peer["node"].get<unsigned>(),
            trip <= 0 ? "not known" : duration_text(static_cast<std::uint64_t>(trip)),
            error < 0 ? "nothing" : duration_text(static_cast<std::uint64_t>(error)));
    }
    return text;
}

/// One line for each daemon.
std::string munet_text(const nlohmann::json& report) {
    std::string text;
    if (!report.contains("munet")) return text;
    for (const nlohmann::json& daemon : report["munet"]) text += "  " + munet_line(daemon) + "\n";
    return text;
}

std::string members_text(const nlohmann::json& members) {
    Table table({">rank", ">node", "state", ">process", "command", ">incarnation"});
    for (const nlohmann::json& m : members) {
        const bool never = m["incarnation"] == 0;
        table.add({fmt::format("{}", m["rank"].get<unsigned>()),
                   never ? "-" : fmt::format("{}", m["node"].get<unsigned>()),
                   m["state"].get<std::string>(),
                   never ? "-" : fmt::format("{}", m["pid"].get<unsigned>()),
                   printable(m["command"].get<std::string>()),
                   fmt::format("{}", m["incarnation"].get<unsigned>())});
    }
    return table.text();
}

std::string times_text(const nlohmann::json& nodes) {
    Table table({"", "measured", ">count", ">p50", ">p90", ">p99", ">p99.9", ">max"});
    for (const nlohmann::json& node : nodes) {
        for (const auto* what : {"propagation_ns", "lateness_ns"}) {
            const nlohmann::json& h = node[what];
            if (h["count"] == 0) continue;
            std::vector<std::string> row = {fmt::format("node {}", node["node"].get<unsigned>()),
                                            std::string(what, std::string_view(what).find('_')),
                                            fmt::format("{}", h["count"].get<std::uint64_t>())};
            for (const auto* q : {"p50", "p90", "p99", "p99.9", "max"}) {
                row.push_back(duration_text(h[q].get<std::uint64_t>()));
            }
            table.add(std::move(row));
        }
    }
    return table.empty() ? "" : "\n" + table.text();
}

void add_counters(Table& table, const std::string& where, const nlohmann::json& counters,
                  const nlohmann::json& names) {
    for (const auto& [name, value] : counters.items()) {
        if (value == 0) continue;
        table.add({where, fmt::format("{}", value.get<std::uint64_t>()),
                   names[name]["unit"].get<std::string>(), name,
                   names[name]["meaning"].get<std::string>()});
    }
}

std::string counters_text(const nlohmann::json& report) {
    Table table({"", ">value", "unit", "counter", "meaning"});
    for (const nlohmann::json& m : report["members"]) {
        const std::string where = fmt::format("rank {}", m["rank"].get<unsigned>());
        add_counters(table, where, m["link_counters"], report["counters"]);
        add_counters(table, where, m["protocol_counters"], report["counters"]);
        if (!m.contains("port_counters")) continue;
        for (const auto& [port, counters] : m["port_counters"].items()) {
            add_counters(table, where + ", " + port, counters, report["port_counters"][port]);
        }
    }
    for (const nlohmann::json& n : report["nodes_seen"]) {
        const std::string where = fmt::format("node {}", n["node"].get<unsigned>());
        add_counters(table, where, n["link_counters"], report["counters"]);
    }
    if (report.contains("engine")) {
        add_counters(table, "engine", report["engine"]["counters"], report["engine_counters"]);
    }
    return table.empty() ? "\nAll counters are zero.\n" : "\n" + table.text();
}

}  // namespace

const char* ring_state(const rmem::Ring& ring) {
    if (ring.has_members()) return "alive";
    return ring.stays() ? "kept" : "dead";
}

unsigned live_ranks(const rmem::Ring& ring) {
    unsigned alive = 0;
    for (unsigned rank = 0; rank < ring.config().ranks; ++rank) {
        if (ring.is_alive(rank)) ++alive;
    }
    return alive;
}

nlohmann::json ring_summary(const std::string& name) {
    try {
        return config_json(*rmem::Ring::observe(name));
    } catch (const rmem::Error& error) {
        return {{"name", name}, {"segment", name}, {"state", "broken"}, {"problem", error.what()}};
    }
}

nlohmann::json ring_report(const rmem::Ring& ring) {
    RingSample sample = sample_of(ring);
    add_munet(sample);
    nlohmann::json report = config_json(ring);
    if (rmem::map_hash(ring) != 0) report["map"] = known_map_json(ring);
    report["members"] = nlohmann::json::array();
    for (std::size_t r = 0; r < sample.ranks.size(); ++r) {
        report["members"].push_back(rank_json(sample.ranks[r], r));
        for (std::size_t p = 0; p < rmem::kPortBlocks; ++p) {
            const auto& [port, names] = ports::kPortNames[p];
            if (!sample.ranks[r].ports[p].empty())
                report["port_counters"][port] = names_json(names);
        }
    }
    // On `direct` there is no engine, and all nodes are one.
    report["nodes_seen"] = nlohmann::json::array();
    for (unsigned n = 0; n < sample.nodes.size(); ++n) {
        const NodeSample& node = sample.nodes[n];
        report["nodes_seen"].push_back(node_json(node, n));
        if (node.engine) report["engine"] = engine_json(*node.engine, n);
        if (node.munet)
            report["munet"].push_back(munet_json(board_name(sample.config.name, n), *node.munet));
    }
    report["counters"] = names_json(rmem::kLinkCounterNames);
    report["counters"].update(names_json(billboard::kCounterNames));
    if (sample.config.is_remote())
        report["engine_counters"] = names_json(rmem::udp::kUdpCounterNames);
    return report;
}

std::string report_text(const nlohmann::json& report) {
    return heading(report) + map_line(report) + guests_text(report) + engine_text(report) +
           munet_text(report) + "\n" + members_text(report["members"]) +
           times_text(report["nodes_seen"]) + counters_text(report);
}

}  // namespace tools
