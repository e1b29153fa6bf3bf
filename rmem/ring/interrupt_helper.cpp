// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/interrupt_helper.hpp"

#include "rmem/base/fence.hpp"
#include "rmem/ring/waiting.hpp"

#include <utility>

namespace rmem {

InterruptHelper::InterruptHelper(Ring& ring, unsigned rank, InterruptBoard& board)
    : ring_(ring),
      rank_(rank),
      board_(board),
      bell_(ring, rank, BellUse::interrupts),
      thread_(
          "rmem-interrupts", [this] { work(); }, [this] { wake_rank(ring_, rank_); }) {
    bell_.show();
}

void InterruptHelper::on_interrupt(Callback callback) {
    {
        std::lock_guard lock(mutex_);
        callback_ = std::move(callback);
        callback_ ? bell_.hide() : bell_.show();
    }
    wake_rank(ring_, rank_);
}

std::optional<Interrupt> InterruptHelper::take() {
    std::lock_guard lock(mutex_);
    if (callback_) return std::nullopt;
    auto taken = board_.take();
    if (!board_.pending()) {
        bell_.clear();
        if (board_.pending()) bell_.signal();  // raised meanwhile
    }
    return taken;
}

void InterruptHelper::work() {
    const std::int64_t longest = register_fences() ? kLongestSleepNs : kBlindLookNs;
    ask_attention(ring_, rank_, kAttentionInterrupts);
    while (!thread_.is_stopping()) {
        const std::uint32_t count = wake_count(ring_, rank_);
        if (thread_.is_stopping()) break;
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
            if (board_.pending()) bell_.signal();
            return;
        }
        const auto taken = board_.take();
        if (!taken) {
            bell_.clear();
            return;
        }
        const Callback callback = callback_;
        lock.unlock();
        callback(*taken);
    }
}

}  // namespace rmem
