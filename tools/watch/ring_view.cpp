// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/ring_view.hpp"

#include "billboard/core/counters.hpp"
#include "ports/munet/counter_board.hpp"
#include "rmem/base/check.hpp"
#include "rmem/ring/write_stamps.hpp"
#include "tools/watch/port_counters.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <span>

namespace tools {

namespace {

using rmem::LinkCounter;
using Message = billboard::Counter;
using rmem::udp::UdpCounter;

/// Of rmem::CounterKind, in its order; that of work is no event.
constexpr std::array<const char*, static_cast<std::size_t>(rmem::CounterKind::work)> kKinds = {
    "losses", "retransmissions", "back-pressure", "refusals", "bound", "members", "other"};

std::uint64_t value(const CounterValues& values, std::size_t counter) {
    return counter < values.size() ? values[counter] : 0;
}

std::uint64_t more(std::uint64_t before, std::uint64_t now) {
    return now >= before ? now - before : now;
}

template <class Id>
std::uint64_t more(const CounterValues& before, const CounterValues& now, Id id) {
    const auto counter = static_cast<std::size_t>(id);
    return more(value(before, counter), value(now, counter));
}

TimesView times_of(const HistogramSample& histogram) {
    return {histogram.count(), histogram.quantile(0.5), histogram.quantile(0.99), histogram.max()};
}

/// The changes between two samples of one ring, which have the same ranks and nodes.
class Difference {
public:
    Difference(const RingSample& before, const RingSample& now) : before_(before), now_(now) {
        const std::int64_t elapsed = now.at_ns - before.at_ns;
        seconds_ = elapsed > 0 ? static_cast<double>(elapsed) / 1e9 : 0;
    }

    RingView view() {
        RingView view;
        describe(view);
        for (unsigned n = 0; n < now_.nodes.size(); ++n) {
            view.nodes.push_back(node(n));
            view.nodes_up += view.nodes.back().state == NodeState::up ? 1U : 0U;
            view.ranks_alive += view.nodes.back().ranks_alive;
            view.broken += view.nodes.back().broken;
            view.broken_more += view.nodes.back().broken_more;
            view.late += view.nodes.back().late;
            view.late_more += view.nodes.back().late_more;
            view.has_messages = view.has_messages || view.nodes.back().has_messages;
        }
        add_times(view);
        add_events(view);
        return view;
    }

private:
    void describe(RingView& view) const {
        const rmem::RingConfig& config = now_.config;
        view.exists = true;
        view.has_members = now_.has_members;
        view.stays = now_.stays;
        view.name = config.name;
        view.link = rmem::name_of(config.link);
        view.timing = rmem::to_string(config.timing);
        view.user_bytes = config.user_bytes;
        view.bank_bytes = config.bank_bytes();
        view.elapsed_ns = now_.at_ns - before_.at_ns;
        view.bound_ns = now_.bound_ns;
        view.ranks = config.ranks;
        view.has_wire = config.link != rmem::LinkKind::direct;
        view.is_remote = config.is_remote();
    }

    double rate(std::uint64_t more) const {
        return seconds_ > 0 ? static_cast<double>(more) / seconds_ : 0;
    }

    NodeView node(unsigned n) const {
        const NodeSample& before = before_.nodes[n];
        const NodeSample& now = now_.nodes[n];
        NodeView view;
        view.node = n;
        view.state = now.state;
        view.is_here = now.is_here;
        for (unsigned r = 0; r < now_.ranks.size(); ++r) add_rank(view, r);
        view.applied = rate(more(before.link, now.link, LinkCounter::writes_applied));
        view.broken = value(now.link, static_cast<std::size_t>(LinkCounter::bound_violations));
        view.broken_more = more(before.link, now.link, LinkCounter::bound_violations);
        view.late = value(now.link, static_cast<std::size_t>(LinkCounter::bound_missed_by_host));
        view.late_more = more(before.link, now.link, LinkCounter::bound_missed_by_host);
        view.now = times_of(now.propagation.since(before.propagation));
        view.ever = times_of(now.propagation);
        now.engine ? add_engine(view, before.engine, *now.engine) : add_peer(view);
        if (now.munet) {
            const auto backlog = static_cast<std::size_t>(ports::munet::NodeCounter::backlog);
            view.munet = {now.munet->runs, now.munet->pid, now.munet->active,
                          value(now.munet->node, backlog)};
        }
        return view;
    }

    /// On `direct` a message is made of plain stores, which nobody counts; a card's writes are
    /// counted.
    bool is_counted(const CounterValues& link) const {
        return now_.config.link != rmem::LinkKind::direct ||
               value(link, static_cast<std::size_t>(LinkCounter::writes_sent)) != 0;
    }

    void add_rank(NodeView& view, unsigned r) const {
        const RankSample& now = now_.ranks[r];
        if (now.node != view.node || now.state == "absent") return;
        const RankSample& before = before_.ranks[r];
        view.ranks += 1;
        view.ranks_alive += now.is_alive() ? 1U : 0U;
        view.writes += rate(more(before.link, now.link, LinkCounter::writes_sent));
        view.has_traffic =
            view.has_traffic || (now_.nodes[view.node].is_here && is_counted(now.link));
        view.bytes += rate(more(before.link, now.link, LinkCounter::bytes_sent));
        const auto count = [&](auto id, const CounterValues& values) {
            return value(values, static_cast<std::size_t>(id));
        };
        view.messages +=
            rate(more(before.protocol, now.protocol, Message::buffers_posted) +
                 rmem::kStampEvery * more(before.link, now.link, LinkCounter::messages_sampled));
        view.has_messages = view.has_messages ||
                            count(Message::buffers_posted, now.protocol) != 0 ||
                            count(LinkCounter::messages_sampled, now.link) != 0;
    }

    void add_engine(NodeView& view, const std::optional<EngineSample>& before,
                    const EngineSample& now) const {
        view.remark = now.remark;
        const CounterValues none;
        const CounterValues& old = before ? before->counters : none;
        view.datagrams_sent = rate(more(old, now.counters, UdpCounter::datagrams_sent));
        view.datagrams_received = rate(more(old, now.counters, UdpCounter::datagrams_received));
        view.batches = rate(more(old, now.counters, UdpCounter::batches_sent));
        for (const PeerSample& peer : now.peers) {
            if (!now.members[peer.node]) continue;
            view.round_trip_ns = std::max(view.round_trip_ns, peer.round_trip_ns);
        }
    }

    /// A node elsewhere: the most that one of the nodes here has heard of it.
    void add_peer(NodeView& view) const {
        for (unsigned here = 0; here < now_.nodes.size(); ++here) {
            const auto* now = peer(now_.nodes[here], view.node);
            if (now == nullptr) continue;
            const auto* before = peer(before_.nodes[here], view.node);
            const auto heard = more(before == nullptr ? 0 : before->batches, now->batches);
            view.batches = std::max(view.batches, rate(heard));
            view.round_trip_ns = now->round_trip_ns;
        }
    }

    static const PeerSample* peer(const NodeSample& node, unsigned id) {
        if (!node.engine) return nullptr;
        const auto& peers = node.engine->peers;
        const auto found = std::find_if(peers.begin(), peers.end(),
                                        [id](const PeerSample& one) { return one.node == id; });
        return found == peers.end() ? nullptr : &*found;
    }

    /// A node here has measured what others elsewhere wrote, too; each write counts once.
    void add_times(RingView& view) const {
        HistogramSample before, now;
        for (unsigned n = 0; n < now_.nodes.size(); ++n) {
            if (!now_.nodes[n].is_here) continue;
            before.add(before_.nodes[n].propagation);
            now.add(now_.nodes[n].propagation);
        }
        view.now = times_of(now.since(before));
        view.ever = times_of(now);
    }

    using Names = std::span<const rmem::CounterName>;

    void note(Names names, unsigned node, const CounterValues& before, const CounterValues& now) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            const auto kind = static_cast<std::size_t>(names[i].kind);
            if (kind >= kKinds.size()) continue;
            note(kind, kKinds[kind], names[i], node, value(before, i), value(now, i));
        }
    }

    void note_port(std::size_t port, Names names, unsigned node, const CounterValues& before,
                   const CounterValues& now) {
        for (std::size_t i = 0; i < names.size(); ++i) {
            note(kKinds.size() + port, ports::kPortNames[port].port, names[i], node,
                 value(before, i), value(now, i));
        }
    }

    /// `order`: of the kind.
    void note(std::size_t order, const char* kind, const rmem::CounterName& name, unsigned node,
              std::uint64_t before, std::uint64_t now) {
        if (now == 0) return;
        const EventView none{kind, name.name, name.unit, name.meaning, 0, 0, {}};
        EventView& event = events_.try_emplace({order, &name}, none).first->second;
        event.total += now;
        event.more += more(before, now);
        if (event.nodes.empty() || event.nodes.back() != node) event.nodes.push_back(node);
    }

    void add_events(RingView& view) {
        for (std::size_t r = 0; r < now_.ranks.size(); ++r) {
            const RankSample& now = now_.ranks[r];
            note(rmem::kLinkCounterNames, now.node, before_.ranks[r].link, now.link);
            note(billboard::kCounterNames, now.node, before_.ranks[r].protocol, now.protocol);
            for (std::size_t p = 0; p < now.ports.size(); ++p) {
                note_port(p, ports::kPortNames[p].counters, now.node, before_.ranks[r].ports[p],
                          now.ports[p]);
            }
        }
        for (unsigned n = 0; n < now_.nodes.size(); ++n) {
            const NodeSample& now = now_.nodes[n];
            note(rmem::kLinkCounterNames, n, before_.nodes[n].link, now.link);
            if (now.munet) {
                const auto& was = before_.nodes[n].munet;
                note_port(ports::port_block(billboard::Class::munet), ports::munet::kNodeSumNames,
                          n, was ? was->node : CounterValues{}, now.munet->node);
            }
            if (!now.engine) continue;
            const auto& old = before_.nodes[n].engine;
            note(rmem::udp::kUdpCounterNames, n, old ? old->counters : CounterValues{},
                 now.engine->counters);
        }
        for (auto& [key, event] : events_) {
            RMEM_CHECK(event.more <= event.total && !event.nodes.empty());
            std::sort(event.nodes.begin(), event.nodes.end());
            event.nodes.erase(std::unique(event.nodes.begin(), event.nodes.end()),
                              event.nodes.end());
            view.events.push_back(std::move(event));
        }
    }

    const RingSample& before_;
    const RingSample& now_;
    double seconds_ = 0;
    std::map<std::pair<std::size_t, const rmem::CounterName*>, EventView> events_;
};

}  // namespace

std::vector<const char*> event_kinds() {
    return {kKinds.begin(), kKinds.end()};
}

RingView view_of(const RingSample& before, const RingSample& now) {
    if (!now.exists) return {};
    now.check();
    RMEM_CHECK(before.at_ns <= now.at_ns);
    RingSample none;  // before a ring that was not there, or was another one
    none.at_ns = before.at_ns;
    none.ranks.resize(now.ranks.size());
    none.nodes.resize(now.nodes.size());
    const bool is_same = before.exists && before.ranks.size() == now.ranks.size() &&
                         before.nodes.size() == now.nodes.size();
    return Difference(is_same ? before : none, now).view();
}

}  // namespace tools
