// SPDX-License-Identifier: Apache-2.0
#include "tools/bridge/bridged_ring.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/ring/joining.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/ring/write_log.hpp"

#include <fmt/format.h>
#include <sys/random.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <set>
#include <span>
#include <utility>

namespace tools {

using bridge::Slot;
using rmem::GroupedWrite;
using rmem::RecordedWrite;
using rmem::WriteResult;

namespace {

rmem::Node open_node(const BridgedRingConfig& config) {
    const rmem::GivenSettings given(config.settings);
    return rmem::Node::open(false);
}

std::uint64_t new_hop() {
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number)
        throw rmem::Error(rmem::Errc::system, "the host gives no random numbers");
    return number;
}

std::int64_t wall_ns() {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
               std::chrono::system_clock::now().time_since_epoch())
        .count();
}

std::uint32_t microseconds(std::int64_t ns) {
    return static_cast<std::uint32_t>(
        std::clamp<std::int64_t>(ns / 1000, 0, std::numeric_limits<std::uint32_t>::max() - 1));
}

}  // namespace

BridgedRing::BridgedRing(const BridgedRingConfig& config, Noticing noticing)
    : config_(config),
      node_(open_node(config)),
      is_sampled_(node_.config().link == rmem::LinkKind::direct),
      slots_at_(config_.table + node_.id() * bridge::kTableBytes),
      end_(config.sent, config.received),
      slots_(config.sent.size() + config.received.size()) {
    check_places(config_, node_.size(), table_bytes());
    for (std::size_t r = 0; r < config_.sent.size(); ++r) hops_.push_back(new_hop());
    const auto& counters = node_.ring().rank(node_.rank()).ports[bridge::kCounterBlock];
    for (std::size_t i = 0; i < before_.size(); ++i)
        before_[i] = counters.get(static_cast<bridge::Counter>(i));
    table_.resize(table_bytes());
    // Others' writes are applied from now on, also while this process sleeps or computes.
    if (noticing == Noticing::asleep) node_.bank();
    fd_ = node_.interrupt_fd();
    if (config_.sent.empty()) return;
    const bool is_woken = noticing == Noticing::asleep && !is_sampled_;
    for (const bridge::SentRegion& region : config_.sent)
        node_.watch(region.offset, region.bytes,
                    is_woken ? rmem::Trigger::any_write : rmem::Trigger::marked);
    source_ = open_source(node_.ring().segment_name(), {node_.id(), is_sampled_ ? kSampleNs : 0});
    for (const bridge::SentRegion& region : config_.sent) {
        for (const rmem::WordRange& sync : region.sync)
            source_->look_first_at(sync.offset, sync.bytes);
    }
    begin(rmem::now_ns());
}

BridgedRing::~BridgedRing() {
    // Nobody is to wait for the beat to be missed. Where there is no room it is.
    for (std::size_t i = 0; i < slots_.size(); ++i) {
        const bridge::SlotBytes none{};
        static_cast<void>(node_.write(slot_place(i), none.data(), none.size()));
    }
}

// ---- The configuration, against the ring

void check_places(const BridgedRingConfig& config, std::uint64_t memory,
                  std::uint64_t table_bytes) {
    const auto refuse = [&](const std::string& problem) {
        throw rmem::Error(rmem::Errc::invalid_argument,
                          fmt::format("ring '{}': {}", config.name, problem));
    };
    const auto check = [&](const std::string& what, std::uint64_t offset, std::uint64_t bytes) {
        if (offset > memory || bytes > memory - offset)
            refuse(
                fmt::format("{}, {} bytes at {:#x}, is not within its memory of {} bytes; give "
                            "a place inside it",
                            what, bytes, offset, memory));
        if (what != "the table" && offset < config.table + table_bytes &&
            config.table < offset + bytes)
            refuse(fmt::format("{} overlaps the table, {} bytes at {:#x}; move one of them", what,
                               table_bytes, config.table));
    };
    for (const auto& region : config.sent)
        check(fmt::format("region '{}'", region.name), region.offset, region.bytes);
    for (const auto& region : config.received)
        check(fmt::format("region '{}'", region.name), region.at, region.bytes);
    check("the table", config.table, table_bytes);
}

void check_unopened(const BridgedRingConfig& config) {
    const rmem::GivenSettings given(config.settings);
    const rmem::Environment environment = rmem::Environment::read();
    rmem::RingConfig ring = environment.ring_config();
    if (!rmem::Segment::list_of(ring.name).empty()) {  // it may say what the settings leave open
        try {
            const auto there = rmem::Ring::observe(ring.name)->config();
            ring = rmem::completed(environment, there).ring_config();
        } catch (const rmem::Error& error) {
            if (error.code() == rmem::Errc::config_mismatch) throw;
        }
    }
    check_places(config, ring.user_bytes, ring.nodes * bridge::kTableBytes);
}

// ---- What is written in the ring

/// What the source gives first may be in the memory already, and older: so as much as a log holds
/// is taken before any of it leaves.
void BridgedRing::begin(std::int64_t now_ns) {
    has_missed_ = false;
    end_.sender().begin_anew(now_ns);
    source_->begin(now_ns, [&](const RecordedWrite& write) { take(write, now_ns); });
    constexpr unsigned kLooks = 4;
    static_assert(kLooks * kMaxAtOnce > rmem::kLogBytes / rmem::kLogUnitBytes);
    for (unsigned i = 0; i < kLooks; ++i) {
        if (!source_->look(now_ns, [&](const RecordedWrite& write) { take(write, now_ns); })) break;
    }
}

void BridgedRing::take(const RecordedWrite& write, std::int64_t now_ns) {
    has_taken_ = true;
    if ((write.flags & RecordedWrite::kMissed) != 0) {
        has_missed_ = true;
        return;
    }
    const bridge::SourceWrite taken = {write.rank,
                                       write.time_ns,
                                       write.offset,
                                       write.words,
                                       (write.flags & RecordedWrite::kInterrupt) != 0,
                                       (write.flags & RecordedWrite::kMore) != 0,
                                       write.part()};
    if ((write.flags & (RecordedWrite::kAtStart | RecordedWrite::kSampled)) != 0)
        return end_.sender().take_seen(taken, now_ns);
    // What the bridge itself brings lies in none of these regions; what others of its node write
    // may.
    end_.sender().take(taken, now_ns);
}

bool BridgedRing::look(std::int64_t now_ns) {
    static_cast<void>(node_.load(slot_place(0) + bridge::kBeatAt));  // applies what is due
    if (!source_) {
        look_ns_ = rmem::kNever;
        return false;
    }
    if (is_sampled_ && now_ns < look_ns_) return false;
    if (is_sampled_) take_interrupts(now_ns);
    const bool goes_on =
        source_->look(now_ns, [&](const RecordedWrite& write) { take(write, now_ns); });
    if (has_missed_) {
        ++missed_;
        begin(now_ns);
    }
    look_ns_ = now_ns + (is_sampled_ ? kSampleNs : kLongestLookNs);
    return std::exchange(has_taken_, false) || goes_on;
}

/// On link direct they tell of marks; elsewhere the log does, and they only wake.
void BridgedRing::take_interrupts(std::int64_t now_ns) {
    while (const auto interrupt = node_.next_interrupt(rmem::Deadline::now())) {
        if (!is_sampled_ || interrupt->kind != rmem::Interrupt::Kind::written) continue;
        end_.sender().mark(interrupt->offset, now_ns);
        source_->look_first_at(interrupt->offset, rmem::kWordBytes);
        has_taken_ = true;
        look_ns_ = 0;  // the mark's word is looked at before it leaves
    }
}

// ---- What comes from the other end

bool BridgedRing::make(std::int64_t now_ns) {
    bool any = false;
    while (const bridge::Delivery* delivery = end_.delivery()) {
        if (!is_done(make_all(*delivery, now_ns))) {
            ++no_room_;
            break;
        }
        any = true;
        end_.delivered(now_ns);
    }
    return any;
}

bool BridgedRing::is_done(WriteResult result) const {
    if (result == WriteResult::dropped)
        throw rmem::Error(rmem::Errc::not_permitted,
                          fmt::format("ring '{}' has dropped the bridge's node {}; start the "
                                      "bridge once more",
                                      config_.name, node_.id()));
    return result == WriteResult::ok;
}

WriteResult BridgedRing::make_all(const bridge::Delivery& delivery, std::int64_t now_ns) {
    group_.clear();
    regions_.clear();
    stamps_.clear();
    for (const auto& write : delivery.writes) {
        group_.push_back({write.offset, write.words.data(), write.words.size()});
        if (std::find(regions_.begin(), regions_.end(), write.region) == regions_.end())
            regions_.push_back(write.region);
        if (write.is_interrupt) node_.mark(write.offset, write.words.size());
    }
    for (const std::size_t region : regions_) stamps_.push_back(stamp(region, delivery, now_ns));
    for (std::size_t i = 0; i < regions_.size(); ++i)
        group_.push_back({slot_place(slot_of_received(regions_[i])) + bridge::kStampAt,
                          stamps_[i].data(), stamps_[i].size()});
    const WriteResult result = node_.write_group(group_);
    for (const auto& write : delivery.writes)
        if (write.is_interrupt) node_.unmark(write.offset, write.words.size());
    if (result == WriteResult::ok)
        for (const std::size_t region : regions_) ++slots_[slot_of_received(region)].frames;
    return result;
}

bridge::StampBytes BridgedRing::stamp(std::size_t region, const bridge::Delivery& delivery,
                                      std::int64_t now_ns) {
    const OwnSlot& slot = slots_[slot_of_received(region)];
    bridge::Stamp stamp;
    stamp.frames = slot.frames + 1;
    stamp.hops = static_cast<std::uint32_t>(slot.shown.path.size());
    stamp.error_us = std::numeric_limits<std::uint32_t>::max();
    const auto stored = end_.local_time(delivery.head.stored_ns, now_ns);
    const std::int64_t age = stored ? std::max<std::int64_t>(now_ns - stored->value_ns, 0) : 0;
    if (stored) stamp.error_us = microseconds(stored->error_ns + 999);
    stamp.age_us = microseconds(age);
    stamp.stored_wall_ns = static_cast<std::uint64_t>(wall_ns() - age);
    return encoded(stamp);
}

// ---- The table

std::uint64_t BridgedRing::slot_place(std::size_t index) const {
    return slots_at_ + index * bridge::kSlotBytes;
}

void BridgedRing::keep(std::int64_t now_ns) {
    if (now_ns < keep_ns_) return;
    keep_ns_ = now_ns + kTableNs;
    if (!node_.is_member()) static_cast<void>(is_done(WriteResult::dropped));
    node_.read(config_.table, table_.data(), table_.size());
    watch_.look(table_, now_ns);
    for (std::size_t r = 0; r < config_.sent.size(); ++r) {
        const auto& region = config_.sent[r];
        end_.set_path(r, path_to(watch_.live(), region.offset, region.bytes, hops_[r]));
        const auto state = end_.sender().is_open(r) ? Slot::State::open : Slot::State::waiting;
        show(r, {Slot::Use::takes, state, region.offset, region.bytes, hops_[r], {}});
    }
    for (std::size_t r = 0; r < config_.received.size(); ++r) judge(r, now_ns);
    ++beat_;
    for (std::size_t i = 0; i < slots_.size(); ++i)
        static_cast<void>(is_done(node_.write_word(slot_place(i) + bridge::kBeatAt, beat_)));
    count(now_ns);
}

/// Whether a region that is received may be written.
void BridgedRing::judge(std::size_t index, std::int64_t now_ns) {
    OwnSlot& own = slots_[slot_of_received(index)];
    const auto& region = config_.received[index];
    const bridge::Path* const path = end_.path_of(index);
    if (path == nullptr || path->empty()) {
        own.waiting_since_ns = now_ns;
        return show(slot_of_received(index), {});
    }
    const std::string problem = problem_of(index, *path);
    if (!problem.empty()) {
        own.waiting_since_ns = now_ns;
        end_.refuse(index, problem);
    } else if (now_ns - own.waiting_since_ns >= kSettleNs) {
        end_.admit(index);
    }
    show(slot_of_received(index), {Slot::Use::brings, state_of_received(index), region.at,
                                   region.bytes, path->back(), *path});
}

Slot::State BridgedRing::state_of_received(std::size_t index) const {
    if (end_.is_refused(index)) return Slot::State::refused;
    return end_.receiver().is_admitted(index) ? Slot::State::open : Slot::State::waiting;
}

/// Empty: there is none. One that is refused is judged as it would begin.
std::string BridgedRing::problem_of(std::size_t index, const bridge::Path& path) const {
    const auto& region = config_.received[index];
    if (path.size() > bridge::kMaxHops)
        return fmt::format(
            "region '{}' has come over more than {} bridges; bring it to ring '{}' "
            "on a shorter way",
            region.name, bridge::kMaxHops, config_.name);
    const Slot* const circle =
        circle_through(watch_.live(), region.at, region.bytes, path, state_of_received(index));
    if (circle == nullptr) return "";
    return fmt::format(
        "region '{}' would go in a circle: what it brings to {:#x} of ring '{}' is "
        "taken from there, {} bytes at {:#x}, and comes back over {} bridges; end "
        "one of them",
        region.name, region.at, config_.name, circle->bytes, circle->offset, path.size());
}

void BridgedRing::show(std::size_t index, const Slot& slot) {
    if (slots_[index].shown == slot) return;
    const bridge::SlotBytes bytes = encoded(slot);
    // Where there is no room now, the next beat finds it still to be shown.
    if (is_done(node_.write(slot_place(index), bytes.data(), bytes.size())))
        slots_[index].shown = slot;
}

// ---- Counters

void BridgedRing::count(std::int64_t now_ns) {
    using bridge::Counter;
    auto& counters = node_.ring().rank(node_.rank()).ports[bridge::kCounterBlock];
    const auto set = [&](Counter id, std::uint64_t value) {
        counters.set(id, before_[static_cast<std::size_t>(id)] + value);
    };
    const bridge::SenderCounts& sent = end_.sender().counts();
    const bridge::EndCounts& all = end_.counts();
    set(Counter::forwarded_writes, sent.writes);
    set(Counter::forwarded_bytes, sent.bytes);
    set(Counter::forwarded_frames, sent.frames);
    set(Counter::brought_writes, all.writes_made);
    set(Counter::brought_bytes, all.bytes_made);
    set(Counter::brought_frames, all.frames_made);
    set(Counter::fresh_copies, sent.copies);
    set(Counter::conflated, sent.conflated);
    set(Counter::missed, missed_);
    set(Counter::lost_lines, all.lines_lost);
    set(Counter::reconnects, all.lines == 0 ? 0 : all.lines - 1);
    set(Counter::refused_loops, all.refused);
    set(Counter::no_room, no_room_);
    const auto lag = static_cast<std::uint64_t>(end_.sender().lag_ns(now_ns));
    counters.set(Counter::lag_now_ns, lag);
    counters.raise_to(Counter::lag_max_ns, lag);
}

}  // namespace tools
