// SPDX-License-Identifier: Apache-2.0
#include "simulator/udp_hunt/world.hpp"

#include "rmem/base/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace simulator::udp {

namespace {

/// Without time going on: it goes round and round.
constexpr std::uint64_t kMaxActsAtOnce = 100'000;

rmem::udp::Authenticator authenticator_for(const Scenario& scenario) {
    if (!scenario.has_key) return {};
    std::array<std::byte, rmem::udp::MasterKey::kBytes> key{};
    key.fill(std::byte{7});
    return rmem::udp::Authenticator(rmem::udp::MasterKey(key));
}

}  // namespace

World::World(const Scenario& scenario, const HuntOptions& options, Findings& findings)
    : scenario_(scenario),
      options_(options),
      findings_(findings),
      trace_(options.trace),
      ledger_(scenario.nodes, kBankWords, findings),
      network_(scenario.nodes, scenario.seed * 2 + 1, scenario.weather,
               scenario.is_fabric ? Network::Kind::fabric : Network::Kind::datagrams),
      authenticator_(authenticator_for(scenario)),
      drops_(scenario.nodes),
      record_random_(scenario.seed * 31) {
    rmem::check_from_now_on();
    events_.sent = [this](unsigned node, std::span<const std::byte> d) { on_sent(node, d); };
    events_.applied = [this](unsigned node, unsigned origin, const rmem::udp::Batch& batch) {
        return on_applied(node, origin, batch);
    };
    events_.changed = [this](unsigned node, const char* what, unsigned other) {
        on_changed(node, what, other);
    };
    for (unsigned n = 0; n < scenario.nodes; ++n) {
        hosts_.push_back(std::make_unique<Host>(n, scenario, authenticator_, events_));
    }
}

void World::start(unsigned node) {
    if (!host(node).is_up()) host(node).start(now_);
}

// ---- What the hosts say

void World::on_sent(unsigned node, std::span<const std::byte> datagram) {
    if (options_.alter) {
        altered_.assign(datagram.begin(), datagram.end());
        options_.alter(node, altered_);
        datagram = altered_;
    }
    trace_.note(now_, node, "sent", node, datagram);
    if (is_recorded) record(node, datagram);
    network_.post(node, datagram, now_);
}

/// Any of all that was sent is as likely to be here, but those that do not only carry writes are
/// more so.
void World::record(unsigned node, std::span<const std::byte> datagram) {
    const auto first = static_cast<rmem::udp::SectionType>(datagram[rmem::udp::kHeaderBytes]);
    if (first == rmem::udp::SectionType::batch && !record_random_.one_in(8)) return;
    const std::uint64_t place = sent_ < kMaxRecorded ? sent_ : record_random_.below(sent_ + 1);
    ++sent_;
    if (place >= kMaxRecorded) return;
    if (place == recorded_.size()) recorded_.emplace_back();
    recorded_[place] = {node,
                        rmem::udp::Header::read(datagram.data()).incarnation,
                        {datagram.begin(), datagram.end()}};
}

bool World::is_of_now(const Recorded& recorded) const {
    const Host& host = *hosts_[recorded.from];
    return host.is_up() && host.core().incarnation() == recorded.incarnation;
}

void World::play(const Recorded& recorded) {
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if (n != recorded.from && hosts_[n]->is_up()) hosts_[n]->receive(recorded.bytes);
    }
}

bool World::on_applied(unsigned node, unsigned origin, const rmem::udp::Batch& batch) {
    trace_.note(now_, node, "applied", origin, batch.sequence());
    if (options_.may_store && !options_.may_store(node, origin, batch)) return false;
    ledger_.applies(node, hosts_[node]->core().incarnation(), origin, batch);
    return true;
}

void World::on_changed(unsigned node, const char* what, unsigned other) {
    const std::string_view event = what;
    trace_.note(now_, node, what, other);
    if (event == "left") ++members_left_;
    if (event == "dropped") {
        ++dropped_;
        ++drops_[node];
    }
    if (event != "joined") return;
    if (in_trouble) findings_.cover(CoverageMark::joined_in_traffic);
    for (const auto& host : hosts_) {
        if (!host->is_up() || !host->core().is_member()) continue;
        if (host->core().ring_incarnation() == hosts_[node]->core().ring_incarnation()) continue;
        findings_.cover(CoverageMark::two_rings);
    }
}

// ---- Time

void World::run_for(std::int64_t span_ns) {
    const std::int64_t until = now_ + span_ns;
    while (acts_ < kMaxActsAtOnce) {
        const std::int64_t next = due_ns();
        if (next > until) break;
        if (next > now_) acts_ = 0;
        now_ = std::max(now_, next);
        act();
        check_windows();
    }
    if (acts_ >= kMaxActsAtOnce) findings_.violate("a core is due again and again, at one instant");
    now_ = std::max(now_, until);
}

std::int64_t World::due_ns() const {
    std::int64_t next = network_.due_ns();
    if (!timers_.empty()) next = std::min(next, timers_.begin()->first);
    for (const auto& host : hosts_) next = std::min(next, host->due_ns());
    return next;
}

void World::act() {
    while (!timers_.empty() && timers_.begin()->first <= now_) {
        const auto what = std::move(timers_.begin()->second);
        timers_.erase(timers_.begin());
        what();
    }
    deliver();
    for (const auto& host : hosts_) {
        if (host->due_ns() > now_) continue;
        host->act(now_);
        ++acts_;
    }
}

void World::hurry() {
    for (auto timers = std::exchange(timers_, {}); auto& [time, what] : timers) what();
}

void World::deliver() {
    while (auto arrival = network_.take(now_)) {
        Host& to = *hosts_[arrival->to];
        if (!to.is_up()) continue;
        // Without a key, the sum that every datagram has is all there is.
        if (arrival->corrupted && !scenario_.has_key) {
            findings_.cover(CoverageMark::refused);
            continue;
        }
        if (arrival->bytes.size() > scenario_.payloads.at(arrival->to)) {
            findings_.cover(CoverageMark::too_long);
            trace_.note(now_, arrival->to, "too long", arrival->from, arrival->number);
            continue;
        }
        const bool fits = to.receive(std::move(arrival->bytes));
        trace_.note(now_, arrival->to, fits ? "arrived" : "overflowed", arrival->from,
                    arrival->number);
        if (!fits) findings_.cover(CoverageMark::socket_overflow);
    }
}

/// No stream is ahead of its slowest receiver by more than its history.
void World::check_windows() {
    for (const auto& host : hosts_) {
        if (!host->is_up()) continue;
        const auto& out = host->core().exchange().out();
        if (out.newest() - out.acknowledged() <= scenario_.most_batches) continue;
        findings_.violate(fmt::format("a writer is {} batches ahead, with a history of {}",
                                      out.newest() - out.acknowledged(), scenario_.most_batches));
    }
}

// ---- The end

bool World::is_whole(std::uint32_t nodes_as_bits) const {
    rmem::udp::NodeSet all;
    std::uint64_t ring = 0;
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if ((nodes_as_bits >> n & 1U) == 0 || !hosts_[n]->is_up()) continue;
        all.insert(n);
        if (ring == 0) ring = hosts_[n]->core().ring_incarnation();
    }
    bool is_whole = true;
    all.for_each([&](unsigned n) {
        const rmem::udp::Core& core = hosts_[n]->core();
        is_whole = is_whole && core.is_member() && core.view() == all &&
                   core.ring_incarnation() == ring && core.is_idle();
    });
    return is_whole;
}

std::string World::describe() const {
    std::string text;
    for (unsigned n = 0; n < scenario_.nodes; ++n) {
        if (!hosts_[n]->is_up()) continue;
        const rmem::udp::Core& core = hosts_[n]->core();
        text += fmt::format(" node {} {} ring {}, has", n, core.is_member() ? "in" : "joins, no",
                            core.ring_incarnation() % 1'000'000'000'000);
        for (unsigned other = 0; other < scenario_.nodes; ++other) {
            if (core.view().contains(other)) text += fmt::format(" {}", other);
            if (core.exchange().takes(other)) {
                text += fmt::format("@{}", core.exchange().applied(other));
            }
        }
        text += fmt::format(", sent {} acked {};", core.exchange().out().newest(),
                            core.exchange().out().acknowledged());
    }
    return text;
}

void World::check_banks(bool nothing_stopped) {
    std::vector<std::span<const std::uint32_t>> banks;
    for (const auto& host : hosts_) banks.emplace_back(host->words());
    ledger_.check_quiet(banks, nothing_stopped && members_left_ + dropped_ == 0);
}

void World::collect_coverage() {
    const Network::Counts& counts = network_.counts();
    findings_.cover(CoverageMark::overtaken, counts.overtaken);
    findings_.cover(scenario_.has_key ? CoverageMark::signed_run : CoverageMark::unsigned_run);
    findings_.cover(CoverageMark::died, members_left_);
    findings_.cover(CoverageMark::dropped, dropped_);
    for (const auto& host : hosts_) {
        const rmem::udp::ExchangeCounters sum =
            host->is_up() ? host->former() + host->core().exchange_counters() : host->former();
        findings_.cover(CoverageMark::nak_sent, sum.naks_sent);
        findings_.cover(CoverageMark::retransmitted, sum.retransmissions_sent);
        findings_.cover(CoverageMark::probed, sum.probes_sent);
        findings_.cover(CoverageMark::forwarded, sum.forwarded);
        findings_.cover(CoverageMark::replayed, sum.replayed);
        findings_.cover(CoverageMark::refused, sum.wrong_tag);
    }
    findings_.events = trace_.events();
    if (options_.hash) findings_.hash = trace_.hash();
}

}  // namespace simulator::udp
