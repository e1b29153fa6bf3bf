// SPDX-License-Identifier: Apache-2.0
#include "simulator/sizing/core_ring.hpp"

#include "rmem/error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <numeric>
#include <span>
#include <utility>

namespace simulator::sizing {

namespace {

using rmem::udp::bytes_charged;

constexpr std::int64_t kFirstNs = 1'000'000;
constexpr std::uint64_t kWallNs = 1'700'000'000'000'000'000;  // when the first node starts
/// After it nobody asks anybody for anything that it lacked while it joined.
constexpr std::int64_t kSettleNs = 500'000'000;
constexpr std::size_t kLeastBankWords = 16'384;
constexpr unsigned kReadAtOnce = 16;  // before timers are looked at: as many as one call takes
constexpr std::uint64_t kParts = 1'000'000;

std::size_t words_of(const RingShape& shape) {
    return std::max<std::size_t>(shape.write_bytes / rmem::kWordBytes, 1);
}

/// Each node has a place of its own.
std::size_t bank_words(const RingShape& shape) {
    return std::max(shape.nodes * words_of(shape), kLeastBankWords);
}

std::int64_t percentile(const std::vector<std::int64_t>& ascending, std::size_t percent) {
    if (ascending.empty()) return 0;
    return ascending[std::min(ascending.size() * percent / 100, ascending.size() - 1)];
}

std::int64_t mean_of(const std::vector<std::int64_t>& times) {
    if (times.empty()) return 0;
    return std::accumulate(times.begin(), times.end(), std::int64_t{0}) /
           static_cast<std::int64_t>(times.size());
}

}  // namespace

class CoreRing::Host final : private rmem::udp::CoreEdge {
public:
    Host(CoreRing& ring, unsigned number)
        : node(number), words(bank_words(ring.shape_)), ring_(ring) {}

    void start(std::int64_t now) {
        const RingShape& shape = ring_.shape_;
        rmem::udp::CoreConfig config;
        config.exchange.node = static_cast<std::uint16_t>(node);
        config.exchange.nodes = shape.nodes;
        config.exchange.ring = 1;
        config.exchange.incarnation = kWallNs + static_cast<std::uint64_t>(now);
        config.exchange.first_incarnation = config.exchange.incarnation;
        config.exchange.salt = config.exchange.incarnation * 77 + node;
        config.exchange.bank_bytes = words.size() * rmem::kWordBytes;
        config.exchange.most_batches = shape.window;
        config.socket_room = socket_room();
        config.seed = (shape.seed << 32U) + node;
        rmem::udp::CoreEdge& edge = *this;
        core = std::make_unique<rmem::udp::Core>(config, ring_.authenticator_, edge, now);
    }

    void receive(Bytes datagram) {
        const std::size_t charged = bytes_charged(datagram->size());
        if (!core) return;
        if (charged_ + charged > socket_room()) {
            ++overflowed;
            return;
        }
        charged_ += charged;
        socket_.push_back(std::move(datagram));
    }

    /// When its processor is free and has something to do.
    std::int64_t due_ns() const noexcept {
        if (!core) return rmem::kNever;
        return std::max(socket_.empty() ? core->due_ns() : 0, free_ns);
    }

    /// One thing that is due.
    void act(std::int64_t now) {
        free_ns = now;
        const bool looks_at_timers = socket_.empty() || read_at_once_ >= kReadAtOnce;
        if (looks_at_timers && core->due_ns() <= now) {
            core->on_tick(now);
        } else if (!socket_.empty()) {
            const Bytes datagram = std::move(socket_.front());
            socket_.pop_front();
            charged_ -= bytes_charged(datagram->size());
            free_ns += ring_.costs_.receive_ns + ring_.costs_.bytes_ns(datagram->size());
            core->on_datagram(*datagram, free_ns);
        }
        read_at_once_ = looks_at_timers ? 0 : read_at_once_ + 1;
        ring_.send_to_all(*this);
        busy_ns += free_ns - now;
    }

    /// Its words get that value, in one write that leaves at once.
    void write(std::uint32_t value, std::int64_t now) {
        const std::size_t count = words_of(ring_.shape_), first = node * count;
        if (!core->has_room(count)) {
            throw rmem::Error(rmem::Errc::system,
                              fmt::format("node {} has no room for a write of {} words, though "
                                          "nothing is under way",
                                          node, count));
        }
        std::fill_n(words.begin() + static_cast<std::ptrdiff_t>(first), count, value);
        free_ns = std::max(free_ns, now);
        const std::int64_t before = free_ns;
        core->write(first, count, &words[first], free_ns);
        core->commit(free_ns);
        ring_.send_to_all(*this);
        busy_ns += free_ns - before;
    }

    const unsigned node;
    std::vector<std::uint32_t> words;
    std::unique_ptr<rmem::udp::Core> core;  ///< once it has started
    std::int64_t free_ns = 0;               ///< its processor is, from then on
    std::int64_t busy_ns = 0;
    std::int64_t wakes_ns = rmem::kNever;  ///< the event that the processor waits for
    std::int64_t line_free_ns = 0;         ///< from the host to the switch
    std::int64_t port_free_ns = 0;         ///< from the switch to the host
    std::uint64_t handed_over = 0;         ///< datagrams; by fan-out each copy
    std::uint64_t overflowed = 0;

private:
    std::size_t socket_room() const noexcept {
        return ring_.shape_.socket_datagrams * bytes_charged(rmem::udp::kDefaultPayload);
    }

    void apply(unsigned origin, const rmem::udp::Batch& batch, std::int64_t now) override {
        for (const rmem::udp::Record& record : batch.records()) {
            for (std::size_t i = 0; i < record.place.words; ++i) {
                words.at(record.place.index + i) = record.words[i];
            }
        }
        if (origin == 0) ring_.note_arrival(now);
    }
    void store(std::uint64_t index, std::uint32_t value) override { words.at(index) = value; }
    std::span<const std::byte> bank() override { return std::as_bytes(std::span(words)); }
    void clear_bank() override { std::fill(words.begin(), words.end(), 0); }
    void has_joined(std::int64_t) override {}
    void was_dropped(std::int64_t) override {}
    void member_came(unsigned, std::int64_t) override {}
    void member_left(unsigned, std::int64_t) override {}

    CoreRing& ring_;
    std::deque<Bytes> socket_;
    std::size_t charged_ = 0;
    unsigned read_at_once_ = 0;
};

CoreRing::CoreRing(const RingShape& shape, const Costs& costs)
    : shape_(shape), costs_(costs), random_(shape.seed) {
    for (unsigned node = 0; node < shape.nodes; ++node) {
        hosts_.push_back(std::make_unique<Host>(*this, node));
    }
}

CoreRing::~CoreRing() = default;

// ---- Time

void CoreRing::push(std::int64_t at_ns, unsigned node, Bytes datagram) {
    events_.push({at_ns, events_made_++, node, std::move(datagram)});
}

/// Its processor has an event for what it has to do next.
void CoreRing::wake(Host& host) {
    const std::int64_t due_ns = host.due_ns();
    if (due_ns >= host.wakes_ns || due_ns == rmem::kNever) return;
    host.wakes_ns = std::max(due_ns, now_);
    push(host.wakes_ns, host.node, {});
}

void CoreRing::take_event() {
    Event event = events_.top();
    events_.pop();
    now_ = event.at_ns;
    Host& host = *hosts_[event.node];
    if (event.datagram) {
        host.receive(std::move(event.datagram));
    } else {
        if (event.at_ns != host.wakes_ns) return;  // an earlier one took its place
        host.wakes_ns = rmem::kNever;
        if (host.due_ns() <= now_) host.act(now_);
    }
    wake(host);
}

void CoreRing::run_for(std::int64_t span_ns) {
    const std::int64_t until = now_ + span_ns;
    while (!events_.empty() && events_.top().at_ns <= until) take_event();
    now_ = until;
}

template <class Done>
void CoreRing::run_until(Done done, const char* what) {
    constexpr std::int64_t kStepNs = 100'000;
    const std::int64_t patience_ends = now_ + kPatienceNs;
    while (!done()) {
        if (now_ >= patience_ends) {
            throw rmem::Error(rmem::Errc::timed_out,
                              fmt::format("{} simulated nodes: after {} s of virtual time {}",
                                          shape_.nodes, kPatienceNs / 1'000'000'000, what));
        }
        run_for(kStepNs);
    }
}

// ---- The network

/// What the host's core has filled, in one call.
void CoreRing::send_to_all(Host& from) {
    bool is_first = true;
    from.core->outgoing().drain([&](const rmem::udp::OutgoingDatagram& datagram) {
        // A node does not hear itself, and nobody else has its number.
        if (datagram.to != rmem::udp::OutgoingDatagram::To::all_nodes) return;
        const auto bytes = std::make_shared<const std::vector<std::byte>>(datagram.bytes.begin(),
                                                                          datagram.bytes.end());
        const std::int64_t line_ns = costs_.line_ns(bytes->size());
        from.free_ns += costs_.bytes_ns(bytes->size());
        unsigned to = 0;
        for (unsigned copy = 0; copy < copies(); ++copy) {
            from.free_ns += std::exchange(is_first, false) ? costs_.call_ns : costs_.further_ns;
            from.line_free_ns = std::max(from.line_free_ns, from.free_ns) + line_ns;
            ++from.handed_over;
            if (shape_.fan_out) {
                to += to == from.node ? 1 : 0;
                post(to++, bytes, from.line_free_ns);
                continue;
            }
            for (; to < shape_.nodes; ++to) {
                if (to != from.node) post(to, bytes, from.line_free_ns);
            }
        }
    });
}

/// A copy, at the switch since then.
void CoreRing::post(unsigned to, const Bytes& datagram, std::int64_t at_switch_ns) {
    if (has_losses_ && random_.below(kParts) < shape_.lost_ppm) return;
    Host& host = *hosts_[to];
    host.port_free_ns = std::max(host.port_free_ns, at_switch_ns + costs_.switch_ns) +
                        costs_.line_ns(datagram->size());
    push(host.port_free_ns, to, datagram);
}

// ---- What is measured

void CoreRing::join() {
    run_for(kFirstNs);
    for (const auto& host : hosts_) {
        if (host->node != 0) run_for(shape_.start_ns);
        host->start(now_);
        wake(*host);
    }
    run_until([this] { return all_have_joined(); }, "not all have joined");
    figures_.join_ns = now_ - kFirstNs;
    run_for(kSettleNs);
}

void CoreRing::write_each() {
    for (const auto& host : hosts_) {
        host->write(host->node + 1, now_);
        wake(*host);
        run_until([this] { return all_are_idle(); }, "a write is not acknowledged");
    }
    took_ns_.clear();
}

void CoreRing::write_alone(unsigned writes) {
    has_losses_ = true;
    Host& writer = *hosts_.front();
    const Totals before = totals();
    const std::vector<std::int64_t> busy_ns = all_busy_ns();
    std::int64_t sender_ns = 0;
    std::uint64_t sends = 0;
    for (unsigned i = 0; i < writes; ++i) {
        const std::int64_t was_busy_ns = writer.busy_ns;
        const std::uint64_t had_sent = writer.handed_over;
        stored_ns_ = std::max(now_, writer.free_ns);
        arrived_ = 0;
        writer.write(shape_.nodes + 1 + i, stored_ns_);
        sender_ns += writer.busy_ns - was_busy_ns;
        sends += writer.handed_over - had_sent;
        wake(writer);
        const std::int64_t alone_until = stored_ns_ + kAloneNs;
        run_until([this] { return arrived_ == shape_.nodes - 1 && all_are_idle(); },
                  "a write is not everywhere");
        last_took_ns_.push_back(*std::max_element(took_ns_.end() - arrived_, took_ns_.end()));
        if (now_ < alone_until) run_for(alone_until - now_);
    }
    const Totals after = totals();
    const double count = writes;
    figures_.sender_ns = sender_ns / writes;
    figures_.sends = static_cast<double>(sends) / count;
    figures_.datagrams = static_cast<double>(after.datagrams - before.datagrams) / count;
    // Each receiver acknowledges once, if nothing is lost.
    const double acks = static_cast<double>(after.acks - before.acks) / count;
    figures_.resent = (static_cast<double>(after.again - before.again) / count +
                       std::max(acks - (shape_.nodes - 1), 0.0)) *
                      copies();
    figures_.node_ns = busiest_since(busy_ns) / writes;
}

FrameFigures CoreRing::write_frames(unsigned frames, std::int64_t frame_ns, bool together) {
    const Totals before = totals();
    const std::uint64_t overflowed_before = overflowed();
    const std::vector<std::int64_t> busy_ns = all_busy_ns();
    const std::int64_t begin_ns = now_;
    FrameFigures figures;
    for (unsigned i = 0; i < frames; ++i) {
        const std::int64_t frame_begins = begin_ns + i * frame_ns;
        for (const auto& host : hosts_) {
            const std::int64_t share_ns = together ? 0 : host->node * frame_ns / shape_.nodes;
            run_for(frame_begins + share_ns - now_);
            if (host->core->has_room(words_of(shape_))) {
                host->write(i + 1, now_);
                wake(*host);
            } else {
                ++figures.refused;
            }
        }
        run_for(frame_begins + frame_ns - now_);
    }
    const double span_ns = static_cast<double>(now_ - begin_ns);
    figures.busy = static_cast<double>(busiest_since(busy_ns)) / span_ns;
    figures.acks = static_cast<double>(totals().acks - before.acks) / frames / shape_.nodes;
    figures.overflowed = overflowed() - overflowed_before;
    return figures;
}

void CoreRing::note_arrival(std::int64_t at_ns) {
    ++arrived_;
    took_ns_.push_back(at_ns - stored_ns_);
}

bool CoreRing::all_have_joined() const {
    return std::all_of(hosts_.begin(), hosts_.end(), [this](const auto& host) {
        return host->core->is_member() && host->core->view().size() == shape_.nodes;
    });
}

bool CoreRing::all_are_idle() const {
    return std::all_of(hosts_.begin(), hosts_.end(),
                       [](const auto& host) { return host->core->is_idle(); });
}

bool CoreRing::banks_are_equal() const {
    return std::all_of(hosts_.begin(), hosts_.end(),
                       [this](const auto& host) { return host->words == hosts_.front()->words; });
}

CoreRing::Totals CoreRing::totals() const {
    Totals totals;
    for (const auto& host : hosts_) {
        const rmem::udp::ExchangeCounters counters = host->core->exchange_counters();
        totals.datagrams += host->handed_over;
        totals.again += counters.retransmissions_sent + counters.probes_sent + counters.naks_sent;
        totals.acks += counters.acks_alone;
    }
    return totals;
}

std::vector<std::int64_t> CoreRing::all_busy_ns() const {
    std::vector<std::int64_t> all;
    for (const auto& host : hosts_) all.push_back(host->busy_ns);
    return all;
}

std::int64_t CoreRing::busiest_since(const std::vector<std::int64_t>& then) const {
    std::int64_t most_ns = 0;
    for (const auto& host : hosts_) {
        most_ns = std::max(most_ns, host->busy_ns - then[host->node]);
    }
    return most_ns;
}

std::uint64_t CoreRing::overflowed() const {
    std::uint64_t sum = 0;
    for (const auto& host : hosts_) sum += host->overflowed;
    return sum;
}

RingFigures CoreRing::figures() const {
    RingFigures figures = figures_;
    std::vector<std::int64_t> took_ns = took_ns_;
    std::sort(took_ns.begin(), took_ns.end());
    figures.p50_ns = percentile(took_ns, 50);
    figures.p99_ns = percentile(took_ns, 99);
    figures.last_ns = mean_of(last_took_ns_);
    figures.overflowed = overflowed();
    for (const auto& host : hosts_) {
        figures.memory_bytes = std::max(figures.memory_bytes, host->core->memory_bytes());
    }
    return figures;
}

}  // namespace simulator::sizing
