// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/sim/memory.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace rmem::sim {

static_assert(Memory<SimMemory>);

Membership::Membership(std::shared_ptr<Ring> ring, Member member)
    : ring_(std::move(ring)),
      process_(*current_process()),
      incarnation_(0),
      slot_{*ring_->world().ranks_.at(process_.rank()).protocol} {
    World::Rank& rank = ring_->world().ranks_[process_.rank()];
    if (member.rank != process_.rank()) {
        throw Error(Errc::bad_rank, fmt::format("this process is rank {} of its world, not {}",
                                                process_.rank(), member.rank));
    }
    if (rank.held) {
        throw Error(Errc::rank_taken,
                    fmt::format("rank {} is taken by this process already", member.rank));
    }
    rank.held = true;
    incarnation_ = ++rank.incarnation;
}

Membership::~Membership() {
    if (held()) ring_->world().let_go(process_.rank());
}

bool Membership::held() const noexcept {
    return process_.state_ != Process::State::dead;
}

SimMemory::SimMemory(Process& process)
    : world_(process.world()),
      process_(process),
      bank_(process.world().nodes_[process.node()].bank.data()) {}

const std::byte* SimMemory::data(std::size_t offset, std::size_t bytes) const {
    const std::size_t words = (bytes + kWordBytes - 1) / kWordBytes;
    pay(static_cast<std::int64_t>(words) * world_.config_.host.load_ns);
    return bank_ + offset;
}

bool SimMemory::room(std::size_t bytes) {
    pay(0);
    const std::uint32_t depth = world_.config_.ring.timing.fifo_words;
    if (depth == 0 || world_.config_.ring.timing.overflow == FifoPolicy::lose) return true;
    const auto words = static_cast<std::uint32_t>(
        std::min<std::size_t>((bytes + kWordBytes - 1) / kWordBytes, depth));
    if (world_.fifo_words(process_) + words <= depth) return true;
    process_.no_room_ = true;
    process_.room_at_ns_ = world_.room_at(process_, words);
    world_.ranks_[process_.rank()].link->add(LinkCounter::back_pressure);
    return false;
}

void SimMemory::write(std::size_t offset, const void* from, std::size_t bytes) {
    if (bytes != 0) world_.store(process_, offset, from, bytes);
}

Step SimMemory::wait(Deadline deadline) {
    pay(0);
    Process& p = process_;
    Step step = Step::poll;
    if (p.checks_due_ == 0 && p.watch_.is_on()) {
        if (deadline.passed(p.clock_ns_)) return Step::expired;
        park(deadline.at_ns);
        if (deadline.passed(p.clock_ns_)) step = Step::expired;
    }
    if (p.checks_due_ == 0 && world_.liveness_changes_ != 0 && p.clock_ns_ >= p.next_check_ns_) {
        p.checks_due_ = 1;
    }
    if (p.checks_due_ != 0) {
        --p.checks_due_;
        p.next_check_ns_ = p.clock_ns_ + kCheckNs;
        step = Step::check_peers;
    }
    p.no_room_ = false;
    p.watch_.begin(p.clock_ns_);
    return step;
}

/// Until a watched word changes, room is there, peers are to be looked at, or that time.
void SimMemory::park(std::int64_t until_ns) {
    Process& p = process_;
    const bool changed_already =
        std::any_of(p.watch_.words().begin(), p.watch_.words().end(), [&](const Watch::Word& word) {
            return std::memcmp(bank_ + word.offset, &word.value, sizeof word.value) != 0;
        });
    if (changed_already || has_awaited_interrupt()) return;
    p.watch_.park(p.clock_ns_);
    if (world_.liveness_changes_ != 0) {
        until_ns = std::min(until_ns, p.watch_.poll_from(p.next_check_ns_));
    }
    if (p.no_room_) until_ns = std::min(until_ns, p.watch_.poll_from(p.room_at_ns_));
    world_.park(p, until_ns);
}

bool SimMemory::has_awaited_interrupt() const noexcept {
    const auto& interrupts = world_.nodes_[process_.node()].interrupts;
    return process_.awaits_interrupt_ && !process_.on_interrupt_ && interrupts &&
           interrupts->pending(process_.rank());
}

bool SimMemory::flush(Deadline deadline) {
    progress();
    const std::uint64_t last = world_.flight_.count_of(static_cast<std::uint16_t>(process_.node()));
    while (world_.nodes_[process_.node()].finished < last) {
        if (deadline.passed(process_.clock_ns_)) return false;
        const std::int64_t next = world_.wire_.next_time_ns();
        if (next == kNever) return false;
        process_.clock_ns_ = std::max(process_.clock_ns_ + 1, std::min(next, deadline.at_ns));
        pay(0);
    }
    world_.ranks_[process_.rank()].link->add(LinkCounter::flushes);
    return true;
}

}  // namespace rmem::sim
