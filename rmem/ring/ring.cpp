// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/ring.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/base/limits.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/base/process.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/joining.hpp"
#include "rmem/ring/leaving_at_exit.hpp"
#include "rmem/ring/life_cycle.hpp"
#include "rmem/ring/membership.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/node_slot.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/ring/segment_names.hpp"
#include "rmem/ring/twin.hpp"
#include "rmem/ring/waiting/sleeping_engines.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "rmem/ring/waiting/word_sleepers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <utility>

namespace rmem {

namespace {

// Which byte of the segment says what by being locked.
constexpr std::uint64_t kPresenceByte = 1;   // shared by everybody who takes part
constexpr std::uint64_t kEngineByte = 2;     // what runs the engine of the segment's node
constexpr std::uint64_t kLauncherByte = 3;   // the launcher whose ranks the ring's are
constexpr std::uint64_t kExpectingByte = 4;  // the same, while programs are still to come
constexpr std::uint64_t kFirstRankByte = 16;
constexpr std::uint64_t kFirstTwinByte = kFirstRankByte + kMaxSeats;  // who keeps that node's

static_assert(sizeof(SegmentHeader) <= kSegmentHeaderBytes);
constexpr std::int64_t kLockNs = 1'000'000'000;  // others hold the life-cycle byte for less

/// Between two tries: longer and longer, since a crowd that waits takes the processors from the one
/// that it waits for.
class RetryPause {
public:
    void sleep() {
        std::this_thread::sleep_for(pause_);
        pause_ = std::min(2 * pause_, kMax);
    }

private:
    static constexpr std::chrono::microseconds kMax{8000};
    std::chrono::microseconds pause_{250};
};

SegmentHeader& header_of(const Segment& segment) {
    return *reinterpret_cast<SegmentHeader*>(segment.data());
}

std::string member_hint(const std::string& name) {
    return fmt::format("use another RMEM_RING, or `rmem clean {}` once nobody needs it", name);
}

/// The settings that both a configuration and its record have.
template <class From, class To>
void copy_settings(const From& from, To& to) {
    to.nodes = from.nodes;
    to.ranks = from.ranks;
    to.link = from.link;
    to.user_bytes = from.user_bytes;
    to.system_bytes = from.system_bytes;
    to.system_hash = from.system_hash;
    to.bound_ns = from.bound_ns;
    to.timing = from.timing;
}

ConfigRecord record_of(const RingConfig& config, unsigned node) {
    ConfigRecord record{};
    copy_settings(config, record);
    record.own_node = config.is_remote() ? node : 0;
    return record;
}

RingConfig config_of(const std::string& name, const ConfigRecord& record) {
    RingConfig config;
    copy_settings(record, config);
    config.name = config.is_remote() ? name.substr(0, name.rfind('@')) : name;
    return config;
}

/// Throws unless the configuration that a joiner wants is the one that the ring has.
void check_agreement(const RingConfig& found, RingConfig wanted, const std::string& name) {
    // A program without system regions joins any: a card's program beside the billboard.
    if (wanted.system_bytes == 0 && wanted.system_hash == 0) {
        wanted.system_bytes = found.system_bytes;
        wanted.system_hash = found.system_hash;
    }
    if (const auto differences = differences_of(found, wanted); !differences.empty()) {
        throw settings_differ(found.name, differences);
    }
    if (wanted.hash() != found.hash()) {
        throw Error(
            Errc::version_mismatch,
            found.system_bytes == 0
                ? fmt::format("ring '{}' is memory alone, made by a program that needs no room for "
                              "messages; start it with `rmem run`, or {}",
                              name, member_hint(name))
                : fmt::format("ring '{}' has another layout of its system regions ({:#x}, this "
                              "process computes {:#x}): another version of rmem, RMEM_LAYOUT or "
                              "RMEM_PARTITION; {}",
                              name, found.system_hash, wanted.system_hash, member_hint(name)));
    }
}

/// A segment's contents, checked before any of it is used. `expected` null: take it as it is.
RingConfig checked_config(const Segment& segment, const std::string& name,
                          const RingConfig* expected) {
    const std::string object = Segment::object_name(name);
    const auto foreign = [&](const std::string& found) {
        return Error(Errc::foreign_segment,
                     fmt::format("{} {}; {}", object, found, member_hint(name)));
    };
    if (segment.size() < kSegmentHeaderBytes) throw foreign("is too small to be a ring");
    const SegmentHeader& header = header_of(segment);
    if (header.magic != kSegmentMagic)
        throw foreign("is not a ring (its first bytes are not a ring's)");
    if (header.endian_mark != kEndianMark || header.version != kSegmentVersion) {
        throw Error(Errc::version_mismatch,
                    fmt::format("{} was made by version {} of the segment layout, this is version "
                                "{}; {}",
                                object, header.version, kSegmentVersion, member_hint(name)));
    }
    // (1) - this acquire-load synchronizes-with the release-store (2)
    if (header.state.load(std::memory_order_acquire) !=
        static_cast<std::uint32_t>(SegmentState::ready)) {
        throw foreign(fmt::format("was left half-written by process {}", header.creator_pid));
    }
    const RingConfig found = config_of(name, header.config);
    try {
        found.check();
        if (found.segment_name(header.config.own_node) != name ||
            header.config.own_node >= found.nodes) {
            throw Error(Errc::foreign_segment, "it belongs to another node");
        }
    } catch (const Error& e) {
        throw foreign(fmt::format("has an invalid configuration ({})", e.what()));
    }
    if (expected != nullptr) check_agreement(found, *expected, name);
    if (header.config_hash != found.hash() || header.segment_bytes != segment.size() ||
        SegmentLayout(found).total != segment.size()) {
        throw foreign("has a size or hash that does not match its configuration");
    }
    return found;
}

/// Of a ring that is joined by its name alone: its own user, or the group that is set.
Trust own_trust() {
    const char* group = environment_setting("RMEM_UNIX_GROUP");
    return {.group = group_named(group == nullptr ? "" : group)};
}

/// To ask first is one system call, a try that fails is four.
std::optional<ByteLock> try_life_cycle_lock(const Segment& segment) {
    if (segment.is_locked(kLifeCycleByte)) return std::nullopt;
    return segment.try_lock(kLifeCycleByte);
}

}  // namespace

ByteLock life_cycle_lock(const Segment& segment, const std::string& name, Deadline deadline) {
    for (RetryPause pause;; pause.sleep()) {
        if (auto lock = try_life_cycle_lock(segment)) return std::move(*lock);
        if (deadline.passed(now_ns())) {
            throw Error(
                Errc::timed_out,
                fmt::format("ring '{}' is locked by a process that makes or removes it and makes "
                            "no progress; if it is stopped, continue it (SIGCONT) or end it",
                            name));
        }
    }
}

namespace {

/// Whether only the dead have to do with a segment, seen with its life-cycle lock held: a ring
/// whose members died, of whatever version, or one whose maker died before it was one. What is
/// neither belongs to somebody else.
bool is_left_behind(const Segment& segment) {
    if (segment.is_locked(kPresenceByte)) return false;
    const std::size_t looked_at = std::min(segment.size(), kSegmentHeaderBytes);
    if (std::all_of(segment.data(), segment.data() + looked_at,
                    [](std::byte b) { return b == std::byte{0}; })) {
        return true;
    }
    return segment.size() >= kSegmentHeaderBytes && header_of(segment).magic == kSegmentMagic;
}

/// Whether a node's daemon has ended while programs were here, or was killed: it is expected back.
/// The last program to leave keeps the segment then, and a newcomer waits for the daemon.
bool awaits_daemon(const Segment& segment, const RingConfig& config) {
    if (!config.is_remote() || segment.is_locked(kEngineByte)) return false;
    const SegmentLayout layout(config);
    if (segment.size() != layout.total || header_of(segment).config_hash != config.hash()) {
        return false;
    }
    const auto& board = *reinterpret_cast<const udp::NodeBoard*>(segment.data() + layout.board);
    // relaxed is enough: only the holder of the engine's lock changes it
    return board.kind.load(std::memory_order_relaxed) ==
           static_cast<std::uint32_t>(udp::EngineKind::daemon);
}

/// Whether it was told to stay, looked up before the rest of it is checked.
bool is_to_stay(const Segment& segment) {
    if (segment.size() < kSegmentHeaderBytes) return false;
    const SegmentHeader& header = header_of(segment);
    // relaxed is enough: the life-cycle lock orders makers, and it is told before they let go of it
    // or leave
    return header.magic == kSegmentMagic && header.version == kSegmentVersion &&
           header.stays.load(std::memory_order_relaxed) != 0;
}

/// The configuration of a ring that is not only left behind by the dead; seen with its life-cycle
/// lock held.
std::optional<RingConfig> living_config(const Segment& segment, const std::string& name) {
    if (!is_left_behind(segment) || is_to_stay(segment)) {
        return checked_config(segment, name, nullptr);
    }
    try {
        RingConfig config = checked_config(segment, name, nullptr);
        if (awaits_daemon(segment, config)) return config;
    } catch (const Error&) {  // the next to open a ring of that name replaces it
    }
    return std::nullopt;
}

}  // namespace

struct Ring::Hold {
    Segment segment;
    std::optional<ByteLock> presence;  ///< nothing: an observer's
};

Ring::Ring(RingConfig config, Segment segment, std::optional<ByteLock> presence)
    : config_(std::move(config)),
      layout_(config_),
      hold_(new Hold{std::move(segment), std::move(presence)}),
      base_(hold_->segment.data()) {
    leave_at_exit(*this);
}

std::shared_ptr<Ring> Ring::make(const RingConfig& config, unsigned node) {
    const SegmentLayout layout(config);
    auto made = Segment::create(config.segment_name(node), layout.reserved, config.unix_group,
                                kLifeCycleByte, layout.total - layout.reserved);
    if (!made) return nullptr;
    RMEM_MARK("ring.mapped");
    SegmentHeader& header = header_of(made->segment);
    header.magic = kSegmentMagic;
    header.endian_mark = kEndianMark;
    header.version = kSegmentVersion;
    header.creator_pid = static_cast<std::uint32_t>(::getpid());
    header.creator_start_time = process_start_time(header.creator_pid);
    header.config = record_of(config, node);
    header.config_hash = config.hash();
    header.segment_bytes = layout.total;
    header.made_ns = now_ns();
    header.time_namespace = own_namespace("time");
    auto presence = made->segment.try_lock_shared(kPresenceByte);
    RMEM_MARK("ring.present");
    // (2) - this release-store synchronizes-with the acquire-load (1)
    header.state.store(static_cast<std::uint32_t>(SegmentState::ready), std::memory_order_release);
    RMEM_MARK("ring.ready");
    return std::shared_ptr<Ring>(new Ring(config, std::move(made->segment), std::move(presence)));
}

std::shared_ptr<Ring> Ring::join(const RingConfig* expected, const std::string& name,
                                 const Trust& trust, Deadline deadline) {
    while (auto segment = Segment::open(name, trust)) {
        const ByteLock joining = life_cycle_lock(*segment, name, deadline);
        if (!segment->is_linked() || !segment->is_whole()) continue;  // since we opened it
        if (expected != nullptr && is_left_behind(*segment) &&
            !awaits_daemon(*segment, *expected) && !is_to_stay(*segment)) {
            Segment::remove(name);
            return nullptr;
        }
        RingConfig config = checked_config(*segment, name, expected);
        return enter(std::move(config), std::move(*segment));
    }
    return nullptr;
}

std::shared_ptr<Ring> Ring::enter(RingConfig config, Segment segment) {
    refuse_other_clock(config.name, header_of(segment).time_namespace);
    const bool is_first = !segment.is_locked(kPresenceByte);
    auto presence = segment.try_lock_shared(kPresenceByte);
    RMEM_MARK("ring.joined");
    std::shared_ptr<Ring> ring(
        new Ring(std::move(config), std::move(segment), std::move(presence)));
    if (is_first && ring->stays()) ring->begin_anew();
    return ring;
}

std::shared_ptr<Ring> Ring::open(const RingConfig& config, Deadline deadline, unsigned node,
                                 const RingConfig* to_make) {
    config.check();
    const Trust trust{.group = group_named(config.unix_group)};
    for (;;) {
        if (auto ring = join(&config, config.segment_name(node), trust, deadline)) return ring;
        if (auto ring = make(to_make != nullptr ? *to_make : config, node)) return ring;
    }
}

std::shared_ptr<Ring> Ring::find(const std::string& name, bool is_remote, Deadline deadline) {
    std::vector<std::string> candidates = Segment::list_of(name);
    std::partition(candidates.begin(), candidates.end(),
                   [&](const auto& found) { return (found != name) == is_remote; });
    for (const std::string& found : candidates) {
        auto segment = Segment::open(found, own_trust());
        if (!segment) continue;
        const ByteLock joining = life_cycle_lock(*segment, found, deadline);
        if (!segment->is_linked() || !segment->is_whole()) continue;  // since we opened it
        auto config = living_config(*segment, found);
        if (config) return enter(std::move(*config), std::move(*segment));
    }
    return nullptr;
}

void Ring::expect(const RingConfig& wanted) const {
    check_agreement(config_, wanted, segment_name());
}

std::shared_ptr<Ring> Ring::attach(const std::string& given) {
    const std::string name = segment_named(given);
    const auto deadline = Deadline::in(kDefaultJoinTimeoutNs);
    if (auto ring = join(nullptr, name, own_trust(), deadline)) return ring;
    throw no_such_ring(name);
}

std::shared_ptr<Ring> Ring::observe(const std::string& given, Mapping::Access access) {
    std::string name = given;
    std::optional<Segment> segment;
    try {
        segment = Segment::open(name, {.only_looks = true}, access);
    } catch (const Error&) {  // another user's, beside an own one of a node perhaps
    }
    if (!segment) {
        name = segment_named(given);
        segment = Segment::open(name, {.only_looks = true}, access);
    }
    if (!segment) throw no_such_ring(name);
    RingConfig config = checked_config(*segment, name, nullptr);
    return std::shared_ptr<Ring>(new Ring(std::move(config), std::move(*segment), std::nullopt));
}

Ring::~Ring() {
    forget_at_exit(*this);
    leave();
}

void Ring::leave() noexcept {
    auto& [segment, presence] = *hold_;
    // Else it is an observer's, or inherited by a forked child, or was left.
    if (!presence || !presence->held()) return;
    try {
        auto leaving = segment.try_lock(kLifeCycleByte);
        const Deadline given_up = Deadline::in(kLockNs);
        for (RetryPause pause; !leaving && !given_up.passed(now_ns());) {
            pause.sleep();
            leaving = try_life_cycle_lock(segment);
        }
        presence->release();
        const Deadline dead = Deadline::in(kDyingNs);
        for (RetryPause pause; leaving && only_the_dying_remain() && !dead.passed(now_ns());) {
            pause.sleep();
        }
        if (leaving && !segment.is_locked(kPresenceByte) && segment.is_linked() && !stays() &&
            !awaits_daemon(segment, config_)) {
            RMEM_MARK("ring.leaving");
            Segment::remove(segment_name());
        }
    } catch (const Error&) {  // NOLINT: nobody to tell; `rmem clean` removes what stays
    }
}

/// A killed process lets go of its locks one after the other. A process that has lost its rank but
/// is still present removes nothing any more, so the last rank alive waits for it; others need not.
bool Ring::only_the_dying_remain() const noexcept {
    if (!has_members()) return false;
    bool any = false;
    for (unsigned r = 0; r < seats(); ++r) {
        // relaxed is enough: the lock decides
        const auto state = rank(r).state.load(std::memory_order_relaxed);
        if (state != static_cast<std::uint32_t>(RankState::joined)) continue;
        if (is_alive(r)) return false;
        any = true;
    }
    return any;
}

const Segment& Ring::segment() const noexcept {
    return hold_->segment;
}

const SegmentHeader& Ring::header() const noexcept {
    return header_of(hold_->segment);
}

bool Ring::is_alive(unsigned rank) const noexcept {
    return hold_->segment.is_locked(kFirstRankByte + rank) && !has_ended(this->rank(rank));
}

/// To those who come the members of before are nobody: no rank of theirs has left or died, and no
/// message of theirs waits.
void Ring::begin_anew() noexcept {
    if (config_.link == LinkKind::ring) level_banks(*this);
    header_of(hold_->segment).made_ns = now_ns();
    std::memset(base_ + layout_.attention, 0, layout_.tap - layout_.attention);
    segment().give_back(base_ + layout_.guests, layout_.total - layout_.guests);
    for (unsigned node = 0; node < config_.nodes; ++node)
        std::memset(interrupt_area(node), 0, interrupt_area_bytes(config_));
    for (unsigned bank = 0; bank < config_.banks(); ++bank) {
        std::byte* const system = this->bank(bank) + config_.user_bytes;
        std::memset(system, 0, config_.bank_bytes() - config_.user_bytes);
    }
}

bool Ring::is_present(unsigned node) const noexcept {
    // relaxed is enough, throughout: a rank says where it is before its node is taken in, and what
    // is not seen yet is seen at the next look
    if (config_.is_remote())
        return (board().members[node / 64].load(std::memory_order_relaxed) >> node % 64 & 1) != 0;
    for (unsigned r = 0; r < seats(); ++r) {
        const bool was_there = rank(r).incarnation.load(std::memory_order_relaxed) != 0;
        const bool is_here = rank(r).node.load(std::memory_order_relaxed) == node;
        if (was_there && is_here && is_alive(r)) return true;
    }
    return false;
}

std::optional<gid_t> Ring::group() const {
    return hold_->segment.group();
}

bool Ring::is_linked() const {
    return hold_->segment.is_linked();
}

bool Ring::stays() const noexcept {
    return is_to_stay(hold_->segment);
}

void Ring::set_stays(bool stays) noexcept {
    // relaxed is enough: the last to leave has locked the life cycle after this
    header_of(hold_->segment).stays.store(stays ? 1 : 0, std::memory_order_relaxed);
}

bool Ring::has_members() const noexcept {
    return hold_->segment.is_locked(kPresenceByte);
}

std::optional<ByteLock> Ring::try_lock_engine() const {
    return hold_->segment.try_lock(kEngineByte);
}

std::optional<ByteLock> Ring::try_lock_rank(unsigned rank) const {
    return hold_->segment.try_lock(kFirstRankByte + rank);
}

std::optional<ByteLock> Ring::try_lock_launcher() const {
    return hold_->segment.try_lock(kLauncherByte);
}

std::optional<ByteLock> Ring::try_lock_twin(unsigned node) const {
    return hold_->segment.try_lock(kFirstTwinByte + node);
}

std::optional<ByteLock> Ring::try_lock_expecting() const {
    return hold_->segment.try_lock(kExpectingByte);
}

bool Ring::is_expecting() const noexcept {
    return hold_->segment.is_locked(kExpectingByte);
}

bool Ring::has_engine() const noexcept {
    return hold_->segment.is_locked(kEngineByte);
}

bool Ring::is_joined(unsigned r) const noexcept {
    // (6) - this acquire-load synchronizes-with the release-stores rank_hold.cpp (4),
    // rank_hold.cpp (5) and rmem/link/udp/roster.cpp (1): a process that counts a rank may read its
    // slot
    const auto state = rank(r).state.load(std::memory_order_acquire);
    return state == static_cast<std::uint32_t>(RankState::joined);
}

bool Ring::is_asleep(unsigned r) const noexcept {
    // relaxed is enough: a rank that has just lain down, or risen, is as good
    return (attention()[r].load(std::memory_order_relaxed) & kAttentionAsleep) != 0;
}

unsigned Ring::joined_ranks() const noexcept {
    unsigned joined = 0;
    for (unsigned r = 0; r < config_.ranks; ++r) joined += is_joined(r) ? 1U : 0U;
    return joined;
}

unsigned Ring::awake_ranks() const noexcept {
    unsigned awake = 0;
    for (unsigned r = 0; r < seats(); ++r)
        awake += !is_asleep(r) && is_joined(r) && !config_.is_keeper(r) ? 1U : 0U;
    return awake;
}

ProcessorSet Ring::shared_processors() const noexcept {
    ProcessorSet all{};
    for (unsigned r = 0; r < seats(); ++r) {
        // (7) - this acquire-load synchronizes-with the release-store rank_hold.cpp (4), for the
        // set below
        const auto state = rank(r).state.load(std::memory_order_acquire);
        if (state != static_cast<std::uint32_t>(RankState::joined)) continue;
        for (std::size_t i = 0; i < all.size(); ++i) {
            all[i] |= rank(r).processors[i].load(std::memory_order_relaxed);  // enough: (7)
        }
    }
    return all;
}

}  // namespace rmem
