// SPDX-License-Identifier: Apache-2.0
// A process's hold on a rank of a ring, or on another seat.
#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/process.hpp"
#include "rmem/ring/life_cycle.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/ring/twin.hpp"
#include "rmem/ring/waiting/sleeping_engines.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "rmem/ring/waiting/word_sleepers.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <utility>

namespace rmem {

bool has_ended(const RankSlot& slot) noexcept {
    // relaxed is enough: one that has just been replaced is gone
    return is_process_gone(slot.process.load(std::memory_order_relaxed));
}

namespace {

constexpr std::chrono::microseconds kDyingPause{500};

Error rank_taken(const RingConfig& config, unsigned rank, const RankSlot& slot) {
    const std::string& ring = config.name;
    // relaxed is enough: for people
    const std::uint32_t holder = slot.pid.load(std::memory_order_relaxed);
    if (holder == static_cast<std::uint32_t>(::getpid())) {
        return {Errc::rank_taken, fmt::format("this process has rank {} of ring '{}' already; use "
                                              "the one that it has opened, or close that first",
                                              rank, ring)};
    }
    if (has_ended(slot)) {
        return {Errc::rank_taken,
                fmt::format("process {}, which had rank {} of ring '{}', is gone, and a child that "
                            "it has made by vfork() or clone() and that shares its memory holds "
                            "the rank; end that child (`fuser -v {}` names it)",
                            holder, rank, ring, Segment::object_name(ring))};
    }
    return {Errc::rank_taken,
            fmt::format("rank {} of ring '{}' is already claimed by process {}; give each process "
                        "its own RMEM_RANK",
                        rank, ring, holder)};
}

Error node_full(const Ring& ring, unsigned node, unsigned rows) {
    const RingConfig& config = ring.config();
    if (rows == 1) {
        // relaxed is enough: for people
        const auto keeper = ring.rank(config.keeper_of(node)).pid.load(std::memory_order_relaxed);
        return {Errc::rank_taken,
                fmt::format("process {} keeps node {} of ring '{}' already; end it, or keep "
                            "another node (--node)",
                            keeper, node, config.name)};
    }
    return {Errc::rank_taken,
            fmt::format("node {} of ring '{}' has {} programs beside its ranks already, and no "
                        "room for more; end one (`rmem info {}` shows them)",
                        node, config.name, rows - 1, config.name)};
}

}  // namespace

Membership::Membership(std::shared_ptr<Ring> ring, Member member, bool is_keeper)
    : ring_(std::move(ring)), member_(member) {
    const RingConfig& config = ring_->config();
    const bool is_guest = member.rank == Member::kGuest;
    if ((!is_guest && member.rank >= config.ranks) || member.node >= config.nodes) {
        throw Error(
            Errc::bad_rank,
            fmt::format("{} on node {} is outside ring '{}', which has {} ranks and {} nodes; "
                        "ranks and nodes count from 0",
                        is_guest ? "a guest" : fmt::format("rank {}", member.rank), member.node,
                        config.name, config.ranks, config.nodes));
    }
    if (is_guest) {
        is_keeper ? sit_as_guest(0, 1) : sit_as_guest(1, config.guest_rows());
    } else {
        auto lock = ring_->try_lock_rank(member.rank);
        // A killed process is gone before the kernel has let go of all that it held.
        const Deadline end = Deadline::in(kDyingNs);
        while (!lock && has_ended(slot()) && !end.passed(now_ns())) {
            std::this_thread::sleep_for(kDyingPause);
            lock = ring_->try_lock_rank(member.rank);
        }
        if (!lock) throw rank_taken(config, member.rank, slot());
        sit(std::move(*lock));
    }
}

/// At the first free seat of its node in those rows.
void Membership::sit_as_guest(unsigned row, unsigned end) {
    for (; row < end; ++row) {
        ring_->open_row(row);
        member_.rank = ring_->config().guest_seat(row, member_.node);
        if (ring_->is_alive(member_.rank)) continue;  // one system call, where a lock takes some
        auto lock = ring_->try_lock_rank(member_.rank);
        if (!lock) continue;
        ring_->reserve_log(member_.rank);
        return sit(std::move(*lock));
    }
    throw node_full(*ring_, member_.node, end);
}

/// With the seat's lock.
void Membership::sit(ByteLock lock) {
    lock_ = std::make_unique<ByteLock>(std::move(lock));
    RankSlot& mine = slot();
    const auto pid = static_cast<std::uint32_t>(::getpid());
    // relaxed is enough for these five: the byte lock orders the incarnations of a rank, and the
    // release-store (4) orders the rest for readers
    incarnation_ = mine.incarnation.load(std::memory_order_relaxed) + 1;
    mine.pid.store(pid, std::memory_order_relaxed);                             // enough: (4)
    mine.process.store(own_process(), std::memory_order_relaxed);               // (4)
    mine.start_time.store(process_start_time(pid), std::memory_order_relaxed);  // enough: (4)
    mine.node.store(member_.node, std::memory_order_relaxed);                   // enough: (4)
    mine.incarnation.store(incarnation_, std::memory_order_relaxed);            // enough: (4)
    // relaxed is enough: a sleeping former incarnation needs no wake-up any more
    ring_->attention()[member_.rank].store(0, std::memory_order_relaxed);
    WordSleepers(*ring_).remove(member_.rank);
    mend_applier(*ring_, mine.engine_applier);
    SleepingEngines(*ring_).rise(member_.rank);
    const auto processors = own_processors();
    for (std::size_t i = 0; i < processors.size(); ++i) {
        mine.processors[i].store(processors[i], std::memory_order_relaxed);  // enough: (4)
    }
    // (4) - this release-store synchronizes-with the acquire-loads ring.cpp (6), ring.cpp (7) and
    // rmem/ring/waiting/awaiting.cpp (1), rmem/link/udp/outbox.cpp (1),
    // mpi_channel/device/peer_memory.cpp (1) and tools/watch/ring_sampler.cpp (1)
    mine.state.store(static_cast<std::uint32_t>(RankState::joined), std::memory_order_release);
}

void Membership::follow(std::uint32_t former) noexcept {
    if (former < incarnation_) return;
    incarnation_ = former + 1;
    slot().incarnation.store(incarnation_,
                             std::memory_order_relaxed);  // relaxed is enough: for people
}

bool Membership::held() const noexcept {
    return lock_->held();
}

Membership::~Membership() {
    if (!held()) return;
    // (5) - this release-store synchronizes-with the acquire-load ring.cpp (6)
    slot().state.store(static_cast<std::uint32_t>(RankState::left), std::memory_order_release);
    // relaxed is enough: nobody needs to wake this rank any more
    ring_->attention()[member_.rank].store(0, std::memory_order_relaxed);
}

}  // namespace rmem
