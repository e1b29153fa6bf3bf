// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/interrupt_helper.hpp"

#include "rmem/base/fence.hpp"
#include "rmem/base/signals_blocked.hpp"
#include "rmem/ring/waiting.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace rmem {

InterruptHelper::InterruptHelper(Ring& ring, unsigned rank, InterruptBoard& board)
    : ring_(ring), rank_(rank), board_(board), fd_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (fd_.get() < 0) {
        throw Error(Errc::system, fmt::format("the interrupt descriptor of rank {}: {}", rank,
                                              std::strerror(errno)));
    }
    const SignalsBlocked blocked;
    thread_ = std::thread([this] { work(); });
}

InterruptHelper::~InterruptHelper() {
    if (fd_.get() < 0) {  // a forked child has the object without the thread
        thread_.detach();
        return;
    }
    // relaxed is enough: the wake-up that follows publishes it
    stop_.store(true, std::memory_order_relaxed);
    wake_rank(ring_, rank_);
    thread_.join();
}

void InterruptHelper::on_interrupt(Callback callback) {
    {
        std::lock_guard lock(mutex_);
        callback_ = std::move(callback);
    }
    wake_rank(ring_, rank_);
}

std::optional<Interrupt> InterruptHelper::take() {
    std::lock_guard lock(mutex_);
    if (callback_) return std::nullopt;
    auto taken = board_.take();
    if (!board_.pending()) drain();
    return taken;
}

void InterruptHelper::work() {
    const std::int64_t longest = register_fences() ? kLongestSleepNs : kBlindSleepNs;
    ask_attention(ring_, rank_, kAttentionInterrupts);
    // relaxed is enough: wake_count acquires what came before the wake-up
    while (!stop_.load(std::memory_order_relaxed)) {
        const std::uint32_t count = wake_count(ring_, rank_);
        if (stop_.load(std::memory_order_relaxed)) break;  // enough: as above
        look();
        sleep_until_woken(ring_, rank_, count, longest);
    }
    clear_attention(ring_, rank_, kAttentionInterrupts);
}

/// Hands out or shows what waits.
void InterruptHelper::look() {
    for (;;) {
        std::unique_lock lock(mutex_);
        if (!callback_) {
            if (board_.pending()) signal();
            return;
        }
        const auto taken = board_.take();
        if (!taken) {
            drain();
            return;
        }
        const Callback callback = callback_;
        lock.unlock();
        callback(*taken);
    }
}

void InterruptHelper::signal() noexcept {
    constexpr std::uint64_t kOne = 1;
    [[maybe_unused]] const auto written = ::write(fd_.get(), &kOne, sizeof kOne);
}

void InterruptHelper::drain() noexcept {
    std::uint64_t count = 0;
    [[maybe_unused]] const auto read = ::read(fd_.get(), &count, sizeof count);
}

}  // namespace rmem
