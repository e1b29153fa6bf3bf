// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/engine_board.hpp"

#include "rmem/base/clock.hpp"

#include <unistd.h>

#include <utility>

namespace rmem::udp {

EngineBoard::EngineBoard(Ring& ring, EngineKind kind, const Shown& shown)
    : board_(ring.board()), nodes_(ring.config().nodes), shown_(shown) {
    // relaxed is enough for these: what the engine releases when it joins, or in the bank,
    // publishes them to programs that rely on them
    board_.real_time.store(0, std::memory_order_relaxed);
    board_.kind.store(static_cast<std::uint32_t>(kind), std::memory_order_relaxed);
    board_.pid.store(static_cast<std::uint32_t>(::getpid()), std::memory_order_relaxed);
    board_.started_ns.store(now_ns(), std::memory_order_relaxed);
    board_.socket_room.store(
        static_cast<std::uint32_t>(shown.carrier.bytes_held() / bytes_charged(kDefaultPayload)),
        std::memory_order_relaxed);
    for (std::size_t i = 0; i < former_.size(); ++i) {
        former_[i] = board_.counters.get(static_cast<UdpCounter>(i));
    }
    board_.notice.say("");
}

void EngineBoard::show_real_time(bool has) noexcept {
    board_.real_time.store(has ? 1 : 0,
                           std::memory_order_relaxed);  // relaxed is enough: for people
}

void EngineBoard::say(std::string text) {
    if (text == said_) return;
    said_ = std::move(text);
    board_.notice.say(said_);
}

void EngineBoard::show_members() noexcept {
    std::array<std::uint64_t, kMaxNodes / 64> bits{};
    shown_.core.view().for_each([&](unsigned n) { bits[n / 64] |= std::uint64_t{1} << n % 64; });
    for (std::size_t i = 0; i < bits.size(); ++i) {
        board_.members[i].store(bits[i],
                                std::memory_order_relaxed);  // relaxed is enough: for people
    }
}

void EngineBoard::show_nodes(std::int64_t now) noexcept {
    const Exchange& exchange = shown_.core.exchange();
    for (unsigned n = 0; n < nodes_; ++n) {
        if (!exchange.takes(n)) continue;
        NodeView& view = board_.nodes[n];
        const auto offset = exchange.round_trip(n).offset(now);
        // relaxed is enough for these: for people
        view.incarnation.store(shown_.core.incarnation_of(n), std::memory_order_relaxed);
        view.round_trip_ns.store(exchange.round_trip(n).smoothed_ns(), std::memory_order_relaxed);
        view.clock_error_ns.store(offset ? offset->error_ns : -1, std::memory_order_relaxed);
        view.batches_applied.store(exchange.applied(n), std::memory_order_relaxed);
    }
    board_.window.store(exchange.window(),
                        std::memory_order_relaxed);  // relaxed is enough: for people
}

void EngineBoard::show_counters() noexcept {
    const auto show = [this](UdpCounter id, std::uint64_t value) {
        board_.counters.raise_to(id, former_[static_cast<std::size_t>(id)] + value);
    };
    const CarrierCounters& socket = shown_.carrier.counters();
    show(UdpCounter::datagrams_sent, socket.sent);
    show(UdpCounter::datagrams_received, socket.received);
    show(UdpCounter::send_no_room, socket.no_room + shown_.core.outgoing().no_room());
    show(UdpCounter::send_refused, socket.refused);
    show(UdpCounter::receive_errors, socket.receive_errors);
    show(UdpCounter::overflowed, shown_.carrier.overflowed());
    const CoreCounters& core = shown_.core.counters();
    show(UdpCounter::joined, core.joined);
    show(UdpCounter::formed, core.rings_formed);
    show(UdpCounter::dropped, core.dropped);
    show(UdpCounter::members_came, core.members_came);
    show(UdpCounter::members_left, core.members_left);
    show(UdpCounter::requests_answered, core.requests_answered);
    const ExchangeCounters exchange = shown_.core.exchange_counters();
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
    show(UdpCounter::refused_namesake, shown_.oddities.namesakes());
    show(UdpCounter::refused_outside, exchange.outside);
    show(UdpCounter::faults_injected, shown_.faults.counts().injected());
    show(UdpCounter::deferred, shown_.arrivals.deferred());
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
