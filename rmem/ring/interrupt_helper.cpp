// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/interrupt_helper.hpp"

#include "rmem/base/fence.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <poll.h>

#include <utility>

namespace rmem {

InterruptHelper::InterruptHelper(Ring& ring, unsigned rank, InterruptBoard& board,
                                 InterruptSource* source)
    : ring_(ring),
      rank_(rank),
      board_(board),
      source_(source),
      bell_(ring, rank, BellUse::interrupts, source != nullptr ? source->descriptor() : -1),
      thread_(
          "rmem-interrupts", [this] { work(); }, [this] { wake(); }) {
    bell_.show();
}

void InterruptHelper::wake() {
    bell_.signal();
    wake_rank(ring_, rank_);
}

void InterruptHelper::on_interrupt(Callback callback) {
    {
        std::lock_guard lock(mutex_);
        callback_ = std::move(callback);
        callback_&& source_ == nullptr ? bell_.hide() : bell_.show();
    }
    wake();
}

std::optional<Interrupt> InterruptHelper::take() {
    std::lock_guard lock(mutex_);
    if (callback_) return std::nullopt;
    auto taken = board_.take();
    if (!board_.pending()) clear_bell();
    return taken;
}

/// What was raised meanwhile rings again.
void InterruptHelper::clear_bell() {
    bell_.clear();
    if (board_.pending() || (source_ != nullptr && source_->is_busy())) bell_.signal();
}

void InterruptHelper::work() {
    const std::int64_t longest = register_fences() ? kLongestSleepNs : kBlindLookNs;
    ask_attention(ring_, rank_, kAttentionInterrupts);
    while (!thread_.is_stopping()) {
        const std::uint32_t count = wake_count(ring_, rank_);
        if (thread_.is_stopping()) break;
        look();
        if (serves()) {
            serve(longest);
        } else {
            sleep_until_woken(ring_, rank_, count, longest);
        }
    }
    clear_attention(ring_, rank_, kAttentionInterrupts);
}

/// Whether this thread runs what brings the interrupts.
bool InterruptHelper::serves() {
    const std::lock_guard lock(mutex_);
    return callback_ && source_ != nullptr;
}

void InterruptHelper::serve(std::int64_t longest_ns) {
    pollfd ready{bell_.handle(), POLLIN, 0};
    const timespec longest{longest_ns / 1'000'000'000, longest_ns % 1'000'000'000};
    ::ppoll(&ready, 1, &longest, nullptr);
    if (!thread_.is_stopping()) source_->serve();
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
        if (!taken) return clear_bell();
        const Callback callback = callback_;
        lock.unlock();
        callback(*taken);
    }
}

}  // namespace rmem
