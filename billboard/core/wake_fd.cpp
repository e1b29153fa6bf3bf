// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/wake_fd.hpp"

#include "rmem/base/signals_blocked.hpp"
#include "rmem/ring/waiting.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace billboard {

namespace {

rmem::Descriptor make_eventfd() {
    const int fd = ::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (fd < 0) {
        throw rmem::Error(rmem::Errc::system,
                          std::string("no descriptor to poll: eventfd: ") + std::strerror(errno));
    }
    return rmem::Descriptor(fd);
}

}  // namespace

WakeFd::WakeFd(rmem::Ring& ring, unsigned rank) : ring_(ring), rank_(rank), fd_(make_eventfd()) {
    const rmem::SignalsBlocked blocked;
    // Before the thread: what wakes us while it starts must not be taken for seen.
    thread_ = std::thread([this, seen = rmem::wake_count(ring, rank)] { run(seen); });
}

WakeFd::~WakeFd() {
    if (fd_.get() < 0) {  // a forked child has the object without the thread
        thread_.detach();
        return;
    }
    // relaxed is enough: the wake-up that follows orders it
    stop_.store(true, std::memory_order_relaxed);
    rmem::wake_rank(ring_, rank_);
    thread_.join();
    rmem::clear_attention(ring_, rank_, rmem::kAttentionDescriptor);
}

void WakeFd::arm() noexcept {
    std::uint64_t ignored;
    while (::read(fd_.get(), &ignored, sizeof ignored) > 0) continue;
    rmem::ask_attention(ring_, rank_, rmem::kAttentionDescriptor);
}

void WakeFd::signal() noexcept {
    const std::uint64_t one = 1;
    // A full counter is readable already.
    [[maybe_unused]] const auto written = ::write(fd_.get(), &one, sizeof one);
}

void WakeFd::run(std::uint32_t seen) noexcept {
    for (;;) {
        rmem::sleep_until_woken(ring_, rank_, seen, rmem::kMaxSleepNs);
        const std::uint32_t now = rmem::wake_count(ring_, rank_);
        // relaxed is enough: the wake-up orders it
        if (stop_.load(std::memory_order_relaxed)) return;
        if (now == seen) continue;
        seen = now;
        rmem::clear_attention(ring_, rank_, rmem::kAttentionDescriptor);
        signal();
    }
}

}  // namespace billboard
