// SPDX-License-Identifier: Apache-2.0
// What an engine shows of itself on its node's board.
#include "rmem/link/udp/engine.hpp"

#include <fmt/format.h>

#include <cstring>
#include <utility>

namespace rmem::udp {

namespace {
constexpr std::int64_t kRefusedNs = 500'000'000;  // between looks whether all is refused
}

void Engine::show_real_time(bool has) noexcept {
    board_.real_time.store(has ? 1 : 0,
                           std::memory_order_relaxed);  // relaxed is enough: for people
}

/// Networks change while nodes run, and a program may close what is not its own.
void Engine::keep_carrier(std::int64_t now) {
    if (!carrier_->is_ours() || !bell_.is_ours()) {
        problem_ = kDescriptorsClosed;
        was_dropped(now);
        is_lost_.set(true);
        return;
    }
    const bool looks = now >= next_refused_ns_;
    if (looks) {
        const CarrierCounters& all = carrier_->counters();
        next_refused_ns_ = now + kRefusedNs;
        const bool has_sent = std::exchange(sent_, all.sent) != all.sent;
        is_refused_ = std::exchange(refused_, all.refused) != all.refused && !has_sent &&
                      !carrier_->is_reliable();  // where it is, the others have gone
    }
    problem_ = carrier_->mend(looks && (is_refused_ || !problem_.empty()));
    if (!problem_.empty() || !is_refused_) return;
    problem_ = fmt::format(
        "the host refuses what this node sends ({}); look at its routes and "
        "firewall, and at `rmem doctor`",
        std::strerror(carrier_->counters().last_error));
}

/// Programs and daemon of this host read it from the board. Where datagrams come from costs time,
/// so it is asked only while a process may want to know.
void Engine::keep_oddities(std::int64_t now) {
    const bool wants_senders = !core_.is_member() || now - odd_ns_ < Oddities::kRecentNs;
    if (wants_senders != carrier_->asks_for_senders()) carrier_->ask_for_senders(wants_senders);
    if (!oddities_.has_news() && said_.empty() && problem_.empty()) return;
    std::string text = oddities_.text(now);
    if (!problem_.empty()) text = text.empty() ? problem_ : problem_ + "; " + text;
    if (text == said_) return;
    said_ = std::move(text);
    board_.notice.say(said_);
}

void Engine::show_members() noexcept {
    std::array<std::uint64_t, kMaxNodes / 64> bits{};
    core_.view().for_each([&](unsigned n) { bits[n / 64] |= std::uint64_t{1} << n % 64; });
    for (std::size_t i = 0; i < bits.size(); ++i) {
        board_.members[i].store(bits[i],
                                std::memory_order_relaxed);  // relaxed is enough: for people
    }
}

void Engine::show_nodes(std::int64_t now) noexcept {
    const Exchange& exchange = core_.exchange();
    for (unsigned n = 0; n < ring_.config().nodes; ++n) {
        if (!exchange.takes(n)) continue;
        NodeView& view = board_.nodes[n];
        const auto offset = exchange.round_trip(n).offset(now);
        // relaxed is enough for these: for people
        view.incarnation.store(core_.incarnation_of(n), std::memory_order_relaxed);
        view.round_trip_ns.store(exchange.round_trip(n).smoothed_ns(), std::memory_order_relaxed);
        view.clock_error_ns.store(offset ? offset->error_ns : -1, std::memory_order_relaxed);
        view.batches_applied.store(exchange.applied(n), std::memory_order_relaxed);
    }
    board_.window.store(exchange.window(),
                        std::memory_order_relaxed);  // relaxed is enough: for people
}

void Engine::show_counters() noexcept {
    const auto show = [this](UdpCounter id, std::uint64_t value) {
        board_.counters.raise_to(id, former_[static_cast<std::size_t>(id)] + value);
    };
    const CarrierCounters& socket = carrier_->counters();
    show(UdpCounter::datagrams_sent, socket.sent);
    show(UdpCounter::datagrams_received, socket.received);
    show(UdpCounter::send_no_room, socket.no_room + core_.outgoing().no_room());
    show(UdpCounter::send_refused, socket.refused);
    show(UdpCounter::receive_errors, socket.receive_errors);
    show(UdpCounter::overflowed, carrier_->overflowed());
    const CoreCounters& core = core_.counters();
    show(UdpCounter::joined, core.joined);
    show(UdpCounter::formed, core.rings_formed);
    show(UdpCounter::dropped, core.dropped);
    show(UdpCounter::members_came, core.members_came);
    show(UdpCounter::members_left, core.members_left);
    show(UdpCounter::requests_answered, core.requests_answered);
    const ExchangeCounters exchange = core_.exchange_counters();
    show(UdpCounter::datagrams_taken, exchange.datagrams_taken);
    show(UdpCounter::batches_sent, exchange.batches_sent);
    show(UdpCounter::batches_applied, exchange.batches_applied);
    show(UdpCounter::retransmissions_sent, exchange.retransmissions_sent);
    show(UdpCounter::probes_sent, exchange.probes_sent);
    show(UdpCounter::naks_sent, exchange.naks_sent);
    show(UdpCounter::repeated, exchange.repeated);
    show(UdpCounter::forwarded, exchange.forwarded);
    show(UdpCounter::acks_alone, exchange.acks_alone);
    show(UdpCounter::refused_unsigned, exchange.unsigned_ + exchange.signed_);
    show(UdpCounter::refused_tag, exchange.wrong_tag);
    show(UdpCounter::refused_replayed, exchange.replayed);
    show(UdpCounter::refused_incarnation, exchange.no_member);
    show(UdpCounter::refused_stranger, exchange.strangers);
    show(UdpCounter::refused_namesake, namesakes_);
    show(UdpCounter::refused_outside, exchange.outside);
    show(UdpCounter::faults_injected, faults_.counts().injected());
    show(UdpCounter::deferred, arrivals_.deferred());
    std::array<std::uint64_t, kRefusals> refused = exchange.refused;
    const auto take = [&](Refusal why) {
        return std::exchange(refused[static_cast<std::size_t>(why)], 0);
    };
    show(UdpCounter::refused_truncated, take(Refusal::too_short) + take(Refusal::length));
    show(UdpCounter::refused_oversized, take(Refusal::too_long));
    show(UdpCounter::refused_random, take(Refusal::magic));
    show(UdpCounter::refused_version, take(Refusal::version));
    show(UdpCounter::refused_ring, take(Refusal::other_ring));
    std::uint64_t malformed = 0;
    for (const std::uint64_t count : refused) malformed += count;
    show(UdpCounter::refused_malformed, malformed);
}

}  // namespace rmem::udp
