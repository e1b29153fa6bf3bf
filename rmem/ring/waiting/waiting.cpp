// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/waiting/waiting.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/base/host_limits.hpp"
#include "rmem/ring/waiting/rank_bell.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <climits>
#include <optional>

namespace rmem {

ProcessorSet own_processors() {
    ProcessorSet set{};
    cpu_set_t mask;
    CPU_ZERO(&mask);
    if (::sched_getaffinity(0, sizeof mask, &mask) != 0) return set;
    for (unsigned p = 0; p < CPU_SETSIZE; ++p) {
        if (CPU_ISSET(p, &mask)) set[p / 64 % set.size()] |= std::uint64_t{1} << (p % 64);
    }
    return set;
}

unsigned within_quota(unsigned processors) noexcept {
    try {
        // A part of one is stopped for the rest of each period, spinning or not.
        if (const auto quota = processors_of_cgroup(); quota && *quota < processors)
            return static_cast<unsigned>(*quota);
    } catch (...) {  // an unreadable quota is no quota
        return processors;
    }
    return processors;
}

unsigned allowed_processors() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    if (::sched_getaffinity(0, sizeof set, &set) != 0) return 1;
    return std::max(1U, within_quota(static_cast<unsigned>(CPU_COUNT(&set))));
}

namespace {

/// RMEM_SPIN: polls before yielding, whatever the processors; nothing: as they allow.
std::optional<unsigned> spin_setting() {
    const char* text = environment_setting("RMEM_SPIN");
    if (text == nullptr) return std::nullopt;
    return parse_unsigned("RMEM_SPIN", text, kMaxSpinPolls);
}

}  // namespace

Waiter::Waiter(Ring& ring, unsigned rank)
    : spin_setting_(spin_setting()),
      has_fences_(register_fences()),
      rank_(rank),
      quota_(within_quota(UINT_MAX)),
      ring_(ring),
      attention_(ring.attention()) {
    refresh_spin_limit();
}

void Waiter::set_company(Company company) noexcept {
    {
        const std::lock_guard lock(company_mutex_);
        std::swap(company_, company);
    }
    refresh_spin_limit();
}

void Waiter::refresh_spin_limit() noexcept {
    const ProcessorSet all = ring_.shared_processors();
    const std::lock_guard lock(company_mutex_);
    unsigned count = 0;
    for (std::size_t i = 0; i < all.size(); ++i) {
        count += static_cast<unsigned>(std::popcount(all[i] | company_.processors[i]));
    }
    const unsigned processors = std::min(quota_, count);
    unsigned ranks = ring_.awake_ranks() + company_.daemons;
    for (const Company::Rank& other : company_.ranks) {
        ranks += other.ring->is_asleep(other.rank) ? 0U : 1U;
    }
    const bool are_many = ranks > processors;
    crowd_.set(std::clamp(ranks / std::max(1U, processors), 1U, kMaxCrowd));
    spin_limit_.set(spin_setting_.value_or(are_many ? 0 : most_polls_));
}

void Waiter::give_way_if_crowded(unsigned looks) noexcept {
    if (looks % kLooksPerCount == 0) refresh_spin_limit();
    if (spin_limit() == 0) ::sched_yield();
}

Step Waiter::slow_step(Deadline deadline) noexcept {
    const std::int64_t now = now_ns();
    if (deadline.passed(now)) {
        if (stages_.is_spinning()) give_way();  // it has only looked
        return Step::expired;
    }
    // Others may have woken up since, and wait for this one's processor. To count many ranks takes
    // longer than to give way to one.
    const bool spins = stages_.is_spinning() && spin_limit() != 0;
    const bool ends = stages_.ends_spinning(now, spin_limit());
    if (spins || (ends && ++waits_ % kLooksPerCount == 0)) refresh_spin_limit();
    switch (stages_.next(now, spin_limit())) {
        case WaitStages::Act::spin: cpu_relax(); break;
        case WaitStages::Act::yield: ::sched_yield(); break;
        case WaitStages::Act::arm: arm(); return Step::poll;  // once more, now that posters know
        case WaitStages::Act::sleep:
            if (!has_asked()) {  // it was woken since, for another word or post
                arm();
                return Step::poll;
            }
            sleep(std::min(has_fences_ ? kMaxSleepNs : kBlindSleepNs, deadline.at_ns - now));
            break;
    }
    if (now < next_check_ns_) return Step::poll;
    // Each look is a system call, and all of the crowd look.
    next_check_ns_ = now + kCheckNs * crowd_.get();
    return Step::check_peers;
}

void Waiter::arm() noexcept {
    armed_ = true;
    has_slept_ = false;
    wake_seen_ = wake_count(ring_, rank_);
    if (words_ != nullptr) {
        words_->add(rank_, word_);
    } else {
        ask_attention(ring_, rank_, asks_);
    }
}

bool Waiter::has_asked() const noexcept {
    if (words_ != nullptr) return words_->has(rank_);
    // relaxed is enough: a waker that has cleared it wakes the rank after that
    return (attention_[rank_].load(std::memory_order_relaxed) & asks_) != 0;
}

void Waiter::disarm() noexcept {
    armed_ = false;
    if (words_ != nullptr) return words_->remove(rank_);
    clear_attention(ring_, rank_, asks_);
}

void Waiter::sleep(std::int64_t ns) noexcept {
    auto& attention = attention_[rank_];
    // relaxed is enough: others count it
    attention.fetch_or(kAttentionAsleep, std::memory_order_relaxed);
    has_slept_ = true;
    if (sleeper_ != nullptr) {
        sleeper_->sleep(ns);
    } else {
        sleep_until_woken(ring_, rank_, wake_seen_, ns);
        wake_seen_ = wake_count(ring_, rank_);
    }
    attention.fetch_and(~kAttentionAsleep, std::memory_order_relaxed);  // enough: as above
}

std::uint32_t wake_count(const Ring& ring, unsigned rank) noexcept {
    // (1) - this acquire-load synchronizes-with the acq_rel add (2): messages posted before a
    // wake-up that we count as seen are seen by the poll that follows
    return ring.rank(rank).wake.load(std::memory_order_acquire);
}

void ask_attention(const Ring& ring, unsigned rank, std::uint32_t bit) noexcept {
    // relaxed is enough: the fence orders it against the posters' loads, and before the poll after
    // it
    ring.attention()[rank].fetch_or(bit, std::memory_order_relaxed);
    heavy_fence();
}

void clear_attention(const Ring& ring, unsigned rank, std::uint32_t bit) noexcept {
    // relaxed is enough: a poster that still sees it wakes nobody
    ring.attention()[rank].fetch_and(~bit, std::memory_order_relaxed);
}

void sleep_until_woken(const Ring& ring, unsigned rank, std::uint32_t count_read,
                       std::int64_t longest_ns) noexcept {
    sleep_on(ring.rank(rank).wake, count_read, longest_ns);
}

void wake_rank(const Ring& ring, unsigned rank) noexcept {
    constexpr std::uint32_t kOnce = kAttentionSleeping | kAttentionTaking | kAttentionAsleep;
    // relaxed is enough: the add (2) comes after it, so a sleeper that asks again is woken by that
    ring.attention()[rank].fetch_and(~kOnce, std::memory_order_relaxed);
    auto& word = ring.rank(rank).wake;
    // (2) - this acq_rel add synchronizes-with the acquire-load (1)
    word.fetch_add(1, std::memory_order_acq_rel);
    wake_sleepers(word);
}

void wake_asked(const Ring& ring, unsigned rank, std::uint32_t asked) noexcept {
    if ((asked & kAttentionDescriptor) != 0 && ring_bell(ring, rank, BellUse::posts))
        asked &= ~kAttentionDescriptor;
    if (asked != 0) wake_rank(ring, rank);
}

void sleep_on(std::atomic<std::uint32_t>& word, std::uint32_t seen,
              std::int64_t longest_ns) noexcept {
    timespec timeout{};
    timeout.tv_sec = longest_ns / 1'000'000'000;
    timeout.tv_nsec = longest_ns % 1'000'000'000;
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAIT, seen, &timeout,
              nullptr, 0);
}

void wake_sleepers(std::atomic<std::uint32_t>& word) noexcept {
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(&word), FUTEX_WAKE, INT_MAX, nullptr,
              nullptr, 0);
}

}  // namespace rmem
