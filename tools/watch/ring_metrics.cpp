// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/ring_metrics.hpp"

#include "billboard/core/counters.hpp"
#include "ports/munet/counter_board.hpp"
#include "tools/watch/metrics_text.hpp"
#include "tools/watch/port_counters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <tuple>

namespace tools {

namespace {

using Names = std::span<const rmem::CounterName>;
/// The counting object, and its counters.
using Source = std::pair<Labels, const CounterValues*>;

void add_counter_metrics(MetricsText& text, const std::string& prefix, Names names,
                         const std::vector<Source>& sources) {
    for (std::size_t i = 0; i < names.size(); ++i) {
        const std::string_view name = names[i].name;
        // The only ones that are no sums.
        const bool is_gauge = name.ends_with("_max_ns") || name.ends_with("_now_ns");
        const std::string_view base = name.substr(0, name.size() - (is_gauge ? 3 : 0));
        const std::string help =
            is_gauge ? names[i].meaning : fmt::format("{}: {}", names[i].unit, names[i].meaning);
        text.family(fmt::format("rmem_{}_{}_{}", prefix, base, is_gauge ? "seconds" : "total"),
                    is_gauge ? MetricType::gauge : MetricType::counter, help);
        for (const auto& [labels, values] : sources) {
            const std::uint64_t value = i < values->size() ? (*values)[i] : 0;
            is_gauge ? text.sample_seconds(labels, static_cast<double>(value))
                     : text.sample(labels, value);
        }
    }
}

class RingMetrics {
public:
    explicit RingMetrics(const RingSample& sample) : sample_(sample) {}

    void add_to(MetricsText& text) const {
        add_ring(text);
        add_states(text);
        add_propagation(text);
        add_engines(text);
        add_peers(text);
        add_all_counters(text);
        add_ports(text);
        add_munet(text);
    }

private:
    Labels ring() const { return {{"ring", sample_.config.name}}; }
    Labels node(std::size_t n) const {
        Labels labels = ring();
        labels.emplace_back("node", fmt::format("{}", n));
        return labels;
    }
    Labels rank(std::size_t r) const {
        Labels labels = node(sample_.ranks[r].node);
        labels.emplace_back("rank", fmt::format("{}", r));
        return labels;
    }

    void add_ring(MetricsText& text) const {
        text.family("rmem_ring_members", MetricType::gauge, "1 while anybody takes part here");
        text.sample(ring(), sample_.has_members ? 1 : 0);
        text.family("rmem_bank_bytes", MetricType::gauge,
                    "Size of a bank, system regions included");
        text.sample(ring(), sample_.config.bank_bytes());
        text.family("rmem_bound_seconds", MetricType::gauge, "Promised propagation; 0: none");
        text.sample_seconds(ring(), static_cast<double>(sample_.bound_ns));
    }

    void add_states(MetricsText& text) const {
        text.family("rmem_node_up", MetricType::gauge, "1 while the node takes part, as seen here");
        for (std::size_t n = 0; n < sample_.nodes.size(); ++n) {
            text.sample(node(n), sample_.nodes[n].state == NodeState::up ? 1 : 0);
        }
        text.family("rmem_rank_up", MetricType::gauge, "1 while the rank is joined and alive");
        for (std::size_t r = 0; r < sample_.ranks.size(); ++r) {
            if (has_come(r)) text.sample(rank(r), sample_.ranks[r].is_alive() ? 1 : 0);
        }
    }

    void add_propagation(MetricsText& text) const {
        text.family("rmem_propagation_seconds", MetricType::histogram,
                    "From a store to its being in the node's bank; of a node on another host: of "
                    "its stores to the banks here. The sum is good to 1/16");
        for (std::size_t n = 0; n < sample_.nodes.size(); ++n) {
            text.histogram(node(n), sample_.nodes[n].propagation);
        }
    }

    template <class Value>
    void add_of_engines(MetricsText& text, const char* name, MetricType type, const char* help,
                        Value value) const {
        if (!sample_.config.is_remote()) return;
        text.family(name, type, help);
        for (std::size_t n = 0; n < sample_.nodes.size(); ++n) {
            if (sample_.nodes[n].engine) text.sample(node(n), value(*sample_.nodes[n].engine));
        }
    }

    void add_engines(MetricsText& text) const {
        add_of_engines(text, "rmem_udp_engine_up", MetricType::gauge,
                       "1 while a process runs the node's engine",
                       [](const EngineSample& engine) { return engine.runs ? 1U : 0U; });
        add_of_engines(text, "rmem_udp_incarnations_total", MetricType::counter,
                       "Incarnations of the node in the ring", [](const EngineSample& engine) {
                           return (engine.membership_epoch + 1) / 2;
                       });
        add_of_engines(text, "rmem_udp_window_batches", MetricType::gauge,
                       "Batches that may be under way",
                       [](const EngineSample& engine) { return engine.window; });
    }

    template <class Add>
    void for_each_peer(Add add) const {
        for (std::size_t n = 0; n < sample_.nodes.size(); ++n) {
            if (!sample_.nodes[n].engine) continue;
            for (const PeerSample& peer : sample_.nodes[n].engine->peers) {
                Labels labels = node(n);
                labels.emplace_back("peer", fmt::format("{}", peer.node));
                add(labels, peer);
            }
        }
    }

    void add_peers(MetricsText& text) const {
        if (!sample_.config.is_remote()) return;
        text.family("rmem_udp_round_trip_seconds", MetricType::gauge, "Smoothed, to the peer");
        for_each_peer([&](const Labels& labels, const PeerSample& peer) {
            text.sample_seconds(labels, static_cast<double>(peer.round_trip_ns));
        });
        text.family("rmem_udp_clock_error_seconds", MetricType::gauge,
                    "How well the peer's clock is known; absent while it is not");
        for_each_peer([&](const Labels& labels, const PeerSample& peer) {
            if (peer.clock_error_ns < 0) return;
            text.sample_seconds(labels, static_cast<double>(peer.clock_error_ns));
        });
    }

    void add_all_counters(MetricsText& text) const {
        std::vector<Source> link, billboard, udp;
        for (std::size_t r = 0; r < sample_.ranks.size(); ++r) {
            if (!has_come(r)) continue;
            link.emplace_back(rank(r), &sample_.ranks[r].link);
            billboard.emplace_back(rank(r), &sample_.ranks[r].protocol);
        }
        for (std::size_t n = 0; n < sample_.nodes.size(); ++n) {
            if (sample_.nodes[n].is_here) link.emplace_back(node(n), &sample_.nodes[n].link);
            if (!sample_.nodes[n].engine) continue;
            udp.emplace_back(node(n), &sample_.nodes[n].engine->counters);
        }
        add_counter_metrics(text, "link", rmem::kLinkCounterNames, link);
        add_counter_metrics(text, "billboard", billboard::kCounterNames, billboard);
        if (sample_.config.is_remote()) {
            add_counter_metrics(text, "udp", rmem::udp::kUdpCounterNames, udp);
        }
    }

    /// Only what ranks have used; of MU-Net also what its endpoints here have counted.
    void add_ports(MetricsText& text) const {
        for (std::size_t p = 0; p < rmem::kPortBlocks; ++p) {
            std::vector<Source> sources;
            for (std::size_t r = 0; r < sample_.ranks.size(); ++r) {
                if (!has_come(r) || sample_.ranks[r].ports[p].empty()) continue;
                sources.emplace_back(rank(r), &sample_.ranks[r].ports[p]);
            }
            if (p == ports::port_block(billboard::Class::munet)) add_munet_endpoints(sources);
            const auto& [port, names] = ports::kPortNames[p];
            if (!sources.empty()) add_counter_metrics(text, port, names, sources);
        }
    }

    void add_munet_endpoints(std::vector<Source>& sources) const {
        for (std::size_t n = 0; n < sample_.nodes.size(); ++n) {
            if (!sample_.nodes[n].munet) continue;
            for (const auto& [number, values] : sample_.nodes[n].munet->endpoints) {
                Labels labels = node(n);
                labels.emplace_back("endpoint", fmt::format("{}", number));
                sources.emplace_back(std::move(labels), &values);
            }
        }
    }

    template <class Value>
    void add_of_daemons(MetricsText& text, const char* name, const char* help, Value value) const {
        text.family(name, MetricType::gauge, help);
        for (std::size_t n = 0; n < sample_.nodes.size(); ++n) {
            if (sample_.nodes[n].munet) text.sample(node(n), value(*sample_.nodes[n].munet));
        }
    }

    void add_munet(MetricsText& text) const {
        std::vector<Source> daemons;
        for (std::size_t n = 0; n < sample_.nodes.size(); ++n) {
            if (sample_.nodes[n].munet)
                daemons.emplace_back(node(n), &sample_.nodes[n].munet->node);
        }
        if (daemons.empty()) return;
        add_of_daemons(text, "rmem_munet_up", "1 while the node's MU-Net daemon runs",
                       [](const MunetSample& daemon) { return daemon.runs ? 1U : 0U; });
        add_of_daemons(text, "rmem_munet_endpoints", "Endpoints that programs have now",
                       [](const MunetSample& daemon) { return daemon.active; });
        add_of_daemons(
            text, "rmem_munet_backlog_frames", "Frames that wait for a link now",
            [](const MunetSample& daemon) {
                return daemon.node[static_cast<std::size_t>(ports::munet::NodeCounter::backlog)];
            });
        add_counter_metrics(text, "munet_node", ports::munet::kNodeSumNames, daemons);
    }

    /// Whether it is or was on this host: others count elsewhere.
    bool has_come(std::size_t r) const {
        const std::string& state = sample_.ranks[r].state;
        return state != "absent" && state != "elsewhere" && state != "lost";
    }

    const RingSample& sample_;
};

}  // namespace

std::string metrics_of(const std::string& name, const RingSample& sample) {
    MetricsText text;
    text.family("rmem_ring_up", MetricType::gauge, "1 while there is a ring of this name here");
    text.sample({{"ring", sample.exists ? sample.config.name : name}}, sample.exists ? 1 : 0);
    if (sample.exists) RingMetrics(sample).add_to(text);
    return text.text();
}

}  // namespace tools
