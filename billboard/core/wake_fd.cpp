// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/wake_fd.hpp"

#include "rmem/ring/waiting/waiting.hpp"

namespace billboard {

WakeFd::WakeFd(rmem::Ring& ring, unsigned rank, rmem::InterruptSource* source)
    : ring_(ring),
      rank_(rank),
      source_(source),
      bell_(ring, rank, rmem::BellUse::posts, source != nullptr ? source->descriptor() : -1),
      // The count before the thread: what wakes it while it starts must not be taken for seen.
      thread_(
          "bbp-fd", [this, seen = rmem::wake_count(ring, rank)] { run(seen); },
          [this] { rmem::wake_rank(ring_, rank_); }) {
    bell_.show();
    rmem::ask_attention(ring_, rank_, rmem::kAttentionDescriptor);
}

void WakeFd::arm() noexcept {
    bell_.clear();
}

void WakeFd::signal() noexcept {
    bell_.signal();
}

void WakeFd::run(std::uint32_t seen) noexcept {
    for (;;) {
        rmem::sleep_until_woken(ring_, rank_, seen, kLookNs);
        seen = rmem::wake_count(ring_, rank_);
        if (thread_.is_stopping()) break;
        if (bell_.was_rung()) signal();
    }
    rmem::clear_attention(ring_, rank_, rmem::kAttentionDescriptor);
}

}  // namespace billboard
