// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/ring/engine_wire.hpp"

#include "rmem/base/check.hpp"

#include <algorithm>

namespace rmem {

namespace {

constexpr std::int64_t kOldestNs = 10'000'000'000;  // no write is believed to be older, nor…
constexpr std::int64_t kNewestNs = 1'000'000'000;   // …further in the future
constexpr std::int64_t kTotalsNs = 10'000'000;      // sum up the model's counters this often

}  // namespace

EngineWire::EngineWire(EngineNode& own, const std::vector<WireFault>& faults)
    : own_(own), faults_(faults) {
    for (auto& cables : cable_cut_) cables.resize(own_.config.nodes);
}

void EngineWire::restart(const std::vector<bool>& node_alive, std::int64_t start_ns) {
    told_ns_.assign(own_.config.nodes, 0);
    if (own_.config.timing.instant != 0 && faults_.empty()) return;
    const std::int64_t start = std::max(start_ns, own_.time.now() - kOldestNs);
    TimingProfile profile = own_.config.timing;
    profile.overflow =
        FifoPolicy::hold_off;  // the writer decides what is lost, for all banks alike
    model_.emplace(profile, own_.config.nodes, start);
    for (unsigned n = 0; n < own_.config.nodes; ++n) {
        if (!node_alive[n]) model_->set_alive(n, false, start);
    }
    for (const WireFault& fault : faults_) {
        const std::int64_t at = std::max(time_of(fault), start);
        if (fault.kind == WireFault::Kind::cable) {
            model_->set_cable(fault.ring, fault.place, fault.up, at);
        } else {
            model_->set_alive(fault.place, fault.up, at);
        }
    }
}

void EngineWire::set_alive(unsigned node, bool alive, std::int64_t time_ns) {
    RMEM_CHECK_IF(false, node != own_.node);
    if (!model_) return;
    // The model may not have come to the last change yet: before that, this one would be undone by
    // it.
    told_ns_[node] = std::max({time_ns, model_->now_ns(), told_ns_[node]});
    model_->set_alive(node, alive, told_ns_[node]);
}

std::int64_t EngineWire::submit(const LogRecord& record, unsigned origin, std::uint64_t tag,
                                std::int64_t published_ns) {
    const std::int64_t now = own_.time.now();
    WireWrite write;
    write.origin = static_cast<std::uint16_t>(origin);
    write.interrupt = (record.flags & LogRecord::kInterrupt) != 0;
    write.bytes = record.words * static_cast<std::uint32_t>(kWordBytes);
    write.offset = record.offset;
    write.time_ns = std::clamp(published_ns, now - kOldestNs, now + kNewestNs);
    // The model loses what a node has in its FIFO when it comes in, and this is not of before.
    if (told_ns_[origin] != 0) write.time_ns = std::max(write.time_ns, told_ns_[origin] + 1);
    write.extra_delay_ns = record.delay_ns;
    write.tag = tag;
    const std::int64_t unseen_ns = std::max(write.time_ns, model_->now_ns()) - record.written_ns;
    model_->submit(write);
    if (unseen_ns > EngineTime::kPublishNs) own_.slot.link.add(LinkCounter::late_published);
    return unseen_ns;
}

void EngineWire::tick(std::int64_t now) {
    if (!model_) return;
    if (faults_done_ < faults_.size()) note_faults(now);
    if (now < next_totals_ns_) return;
    next_totals_ns_ = now + kTotalsNs;
    const WireCounters totals = model_->totals();
    own_.slot.link.raise_to(LinkCounter::ring_switches, totals.switch_overs);
    own_.slot.link.raise_to(LinkCounter::aged_out, totals.aged_out);
}

std::int64_t EngineWire::time_of(const WireFault& fault) const noexcept {
    constexpr std::int64_t kEver = kNever / 4;
    const std::int64_t made = std::clamp<std::int64_t>(own_.ring.header().made_ns, 0, kEver);
    return made + std::min(fault.at_ns, kEver);
}

void EngineWire::note_faults(std::int64_t now) {
    for (; faults_done_ < faults_.size(); ++faults_done_) {
        const WireFault& fault = faults_[faults_done_];
        if (time_of(fault) > now) break;
        own_.slot.link.raise_to(LinkCounter::faults_injected, faults_done_ + 1);
        if (fault.kind != WireFault::Kind::cable) continue;
        cable_cut_[fault.ring][fault.place] = !fault.up;
        if (!fault.up && cable_cut_[1 - fault.ring][fault.place]) {
            own_.slot.link.raise_to(LinkCounter::ring_breaks, ++breaks_);
        }
    }
}

}  // namespace rmem
