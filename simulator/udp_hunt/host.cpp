// SPDX-License-Identifier: Apache-2.0
#include "simulator/udp_hunt/host.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>
#include <utility>

namespace simulator::udp {

namespace {

constexpr std::size_t kHeldByFabric = std::size_t{1} << 30;  // bytes

constexpr std::int64_t kMillion = 1'000'000;
constexpr std::int64_t kWallNs = 1'700'000'000'000'000'000;  // when worlds begin
constexpr std::uint32_t kGarbage = 0xdeadbeef;  // what a bank has before its node has joined

}  // namespace

Host::Host(unsigned node, const Scenario& scenario, const rmem::udp::Authenticator& authenticator,
           const HostEvents& events)
    : node_(node),
      scenario_(scenario),
      authenticator_(authenticator),
      events_(events),
      clock_(scenario.clocks.at(node)),
      bank_(kBankWords, kGarbage) {}

// ---- Its clock

std::int64_t Host::local(std::int64_t now) const noexcept {
    return clock_.offset_ns + now + now / kMillion * clock_.drift_ppm +
           now % kMillion * clock_.drift_ppm / kMillion;
}

/// The first time at which the clock shows that.
std::int64_t Host::world(std::int64_t local_ns) const noexcept {
    if (local_ns == rmem::kNever) return rmem::kNever;
    std::int64_t now = std::max<std::int64_t>(local_ns - clock_.offset_ns, 0);
    for (int i = 0; i < 2; ++i) now += local_ns - local(now);
    now = std::max<std::int64_t>(now, 0);
    while (local(now) < local_ns) ++now;
    while (now > 0 && local(now - 1) >= local_ns) --now;
    return now;
}

// ---- Incarnations

rmem::udp::CoreConfig Host::config(std::int64_t now) const {
    rmem::udp::CoreConfig config;
    config.exchange.node = static_cast<std::uint16_t>(node_);
    config.exchange.nodes = scenario_.nodes;
    config.exchange.ring = 0x1234;
    config.exchange.incarnation = static_cast<std::uint64_t>(kWallNs + clock_.wall_offset_ns + now);
    config.exchange.salt = config.exchange.incarnation * 77 + node_;
    config.exchange.bank_bytes = kBankWords * rmem::kWordBytes;
    config.exchange.payload = scenario_.payloads.at(node_);
    config.exchange.most_batches = scenario_.most_batches;
    config.exchange.first_sequence = scenario_.first_sequence;
    config.exchange.is_reliable = scenario_.is_fabric;
    config.dead_ns = kSilenceNs;
    config.socket_room = socket_room();
    config.seed = config.exchange.incarnation * 1000 + node_;
    return config;
}

void Host::start(std::int64_t now) {
    RMEM_CHECK(!is_up());
    socket_.clear();
    socket_charged_ = 0;
    rmem::udp::CoreEdge& edge = *this;
    core_ = std::make_unique<rmem::udp::Core>(config(now), authenticator_, edge, local(now));
    events_.changed(node_, "started", node_);
}

void Host::stop(std::int64_t now) {
    (void)now;
    former_ = former_ + core_->exchange_counters();
    core_.reset();
    socket_.clear();
    socket_charged_ = 0;
    events_.changed(node_, "stopped", node_);
}

void Host::leave(std::int64_t now) {
    core_->depart(local(now));
    send_outgoing();
    stop(now);
}

// ---- What comes

std::size_t Host::socket_room() const noexcept {
    if (scenario_.is_fabric) return kHeldByFabric;
    return scenario_.socket_room * rmem::udp::bytes_charged(rmem::udp::kDefaultPayload);
}

bool Host::receive(std::vector<std::byte> datagram) {
    const std::size_t charged = rmem::udp::bytes_charged(datagram.size());
    if (charged > socket_room() - socket_charged_) return false;
    socket_charged_ += charged;
    socket_.push_back(std::move(datagram));
    return true;
}

std::int64_t Host::due_ns() const noexcept {
    if (!core_) return rmem::kNever;
    std::int64_t due = world(core_->due_ns());
    if (!socket_.empty()) due = std::min(due, starved_until_ns_);
    return std::max(due, stalled_until_ns_);
}

void Host::act(std::int64_t now) {
    if (!core_ || now < stalled_until_ns_) return;
    while (!socket_.empty() && now >= starved_until_ns_) {
        const std::vector<std::byte> datagram = std::move(socket_.front());
        socket_.pop_front();
        socket_charged_ -= rmem::udp::bytes_charged(datagram.size());
        core_->on_datagram(datagram, local(now));
        send_outgoing();
    }
    if (core_->due_ns() <= local(now)) core_->on_tick(local(now));
    send_outgoing();
}

void Host::send_outgoing() {
    core_->outgoing().drain([this](const rmem::udp::OutgoingDatagram& datagram) {
        using To = rmem::udp::OutgoingDatagram::To;
        if (datagram.to == To::all_nodes) events_.sent(node_, datagram.bytes);
    });
}

void Host::apply(unsigned origin, const rmem::udp::Batch& batch, std::int64_t) {
    if (!events_.applied(node_, origin, batch)) return;
    for (const rmem::udp::Record& record : batch.records()) {
        for (std::size_t i = 0; i < record.place.words; ++i) {
            bank_.at(record.place.index + i) = record.words[i];
        }
    }
}

bool Host::write(std::uint64_t index, std::size_t words, std::int64_t now) {
    if (!core_->has_room(words)) return false;
    core_->write(index, words, &bank_[index], local(now));
    send_outgoing();
    return true;
}

void Host::commit(std::int64_t now) {
    core_->commit(local(now));
    send_outgoing();
}

}  // namespace simulator::udp
