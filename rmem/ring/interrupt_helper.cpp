// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/interrupt_helper.hpp"

#include "rmem/base/fence.hpp"
#include "rmem/ring/waiting.hpp"

#include <fmt/format.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace rmem {

namespace {

Descriptor make_eventfd(unsigned rank) {
    const int fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd >= 0) return Descriptor(fd);
    throw Error(Errc::system,
                fmt::format("the interrupt descriptor of rank {}: {}", rank, std::strerror(errno)));
}

}  // namespace

InterruptHelper::InterruptHelper(Ring& ring, unsigned rank, InterruptBoard& board)
    : ring_(ring),
      rank_(rank),
      board_(board),
      fd_(make_eventfd(rank)),
      thread_(
          "rmem-interrupts", [this] { work(); }, [this] { wake_rank(ring_, rank_); }) {}

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
