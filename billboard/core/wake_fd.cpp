// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/wake_fd.hpp"

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

WakeFd::WakeFd(rmem::Ring& ring, unsigned rank)
    : ring_(ring),
      rank_(rank),
      fd_(make_eventfd()),
      // The count before the thread: what wakes it while it starts must not be taken for seen.
      thread_(
          "bbp-fd", [this, seen = rmem::wake_count(ring, rank)] { run(seen); },
          [this] { rmem::wake_rank(ring_, rank_); }) {}

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
        if (thread_.is_stopping()) break;
        if (now == seen) continue;
        seen = now;
        rmem::clear_attention(ring_, rank_, rmem::kAttentionDescriptor);
        signal();
    }
    rmem::clear_attention(ring_, rank_, rmem::kAttentionDescriptor);
}

}  // namespace billboard
