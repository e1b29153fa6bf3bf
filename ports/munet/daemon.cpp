// SPDX-License-Identifier: Apache-2.0
#include "ports/munet/daemon.hpp"

#include "ports/common/counters.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <poll.h>
#include <sched.h>

#include <array>

namespace ports::munet {

namespace {

constexpr unsigned kTurnsPerLook =
    4096;  ///< between looks at the clock and at connections, while busy
constexpr unsigned kIdleTurnsPerLook = 64;  ///< the same while yielding
constexpr int kSleepMs = 20;                ///< longest sleep
constexpr int kBlindSleepMs = 1;            ///< the same where wake-ups may be lost

}  // namespace

Daemon::Part::Part(std::unique_ptr<billboard::Endpoint> opened, unsigned nodes)
    : rank(std::move(opened)), network(*rank, nodes), non_member(*rank) {
    if (rank->ring() != nullptr)
        wake_fd =
            std::make_unique<billboard::WakeFd>(*rank->ring(), rank->rank(), rank->wake_source());
}

Daemon::Daemon(const DaemonConfig& config, Join join)
    : config_(config),
      join_(std::move(join)),
      ring_(join_ ? std::make_unique<Part>(join_(), config.driver.nodes) : nullptr),
      board_(config.board),
      relay_({.node = config.driver.node,
              .nodes = config.driver.nodes,
              .chunk = ring_ ? ring_->network.chunk() : kChunk},
             *this),
      driver_(config.driver, relay_, board_.blocks()),
      has_fences_(rmem::register_fences()),
      processors_(rmem::allowed_processors()) {
    board_.begin();
}

Daemon::~Daemon() = default;

Edge::Sent Daemon::send(unsigned node, std::span<const std::byte> head,
                        std::span<const std::byte> data) {
    return ring_ ? ring_->network.send(node, head, data) : Sent::lost;
}

void Daemon::wake(unsigned endpoint) noexcept {
    driver_.wake(endpoint);
}

bool Daemon::turn() {
    bool moved = relay_.turn();
    if (ring_) moved |= ring_->network.deliver_to(relay_);
    return moved;
}

/// What is not of every turn.
bool Daemon::keep(std::int64_t now) {
    const bool moved = driver_.look();
    driver_.say_pollers(relay_.active() + 1);
    if (ring_ && now >= next_check_) {
        next_check_ = now + Network::kCheckNs;
        look_at_ring();
        show_in_ring();
    }
    board_.show(driver_.counts(), relay_, rejoined_);
    return moved;
}

/// Which of the others are alive, and who asks whether this rank is GAMMA's; and if the others have
/// dropped this node, it becomes a new rank of theirs.
void Daemon::look_at_ring() {
    ring_->network.check(relay_);
    ring_->non_member.look();
    if (!ring_->network.is_over()) return;
    ring_.reset();
    ring_ = std::make_unique<Part>(join_(), config_.driver.nodes);
    ++rejoined_;
}

/// The endpoints' counters together, where those of all ports stand.
void Daemon::show_in_ring() noexcept {
    rmem::PortCounters* const block =
        counters_of(*ring_->rank, billboard::Class::munet, ring_->rank->rank());
    if (block == nullptr) return;
    for (std::size_t i = 0; i < static_cast<std::size_t>(Counter::count_); ++i) {
        std::uint64_t sum = 0;
        for (const auto& endpoint : board_.blocks()) sum += endpoint.get(i);
        block->raise_to(i, sum);
    }
}

void Daemon::run_for(std::int64_t ns) {
    const std::int64_t end = rmem::now_ns() + ns;
    while (true) {
        if (turn()) {
            idle_turns_ = 0;
        } else {
            ++idle_turns_;
            rmem::cpu_relax();
        }
        const bool is_crowded = !config_.spin && relay_.active() + 1 > processors_;
        const bool is_idle = idle_turns_ > (is_crowded ? 0 : rmem::kSpinPolls) && !config_.spin;
        if (++turns_ % (is_idle ? kIdleTurnsPerLook : kTurnsPerLook) != 0) {
            if (is_idle) ::sched_yield();
            continue;
        }
        const std::int64_t now = rmem::now_ns();
        if (keep(now)) idle_turns_ = 0;
        if (is_idle) idle(now);
        if (idle_turns_ == 0) idle_since_ = now;
        if (now >= end) return;
    }
}

void Daemon::idle(std::int64_t now) {
    if (now - idle_since_ < rmem::kYieldNs) return;
    rest();
}

/// What came before the programs and ranks knew that this process sleeps rings no bell.
bool Daemon::has_work_before_sleep() {
    driver_.say_sleeps(true);
    if (ring_ && ring_->wake_fd) ring_->wake_fd->arm();
    rmem::heavy_fence();
    return turn();
}

void Daemon::rest() {
    if (!has_work_before_sleep()) {
        const int ring_fd = ring_ && ring_->wake_fd ? ring_->wake_fd->get() : -1;
        std::array<pollfd, 2> waits{{{.fd = driver_.handle(), .events = POLLIN, .revents = 0},
                                     {.fd = ring_fd, .events = POLLIN, .revents = 0}}};
        ::poll(waits.data(), waits.size(), has_fences_ ? kSleepMs : kBlindSleepMs);
    }
    driver_.say_sleeps(false);
    if (driver_.look() || turn()) idle_turns_ = 0;
}

}  // namespace ports::munet
