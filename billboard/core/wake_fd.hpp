// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A descriptor that becomes readable when this rank is told of a message: for poll and epoll.
///
/// From the first on, the rank's attention word asks posters to make it readable, which costs one
/// an atomic instruction for each post, and a system call for the first after arm()
/// (rmem/ring/waiting/waiting.hpp, rmem/ring/waiting/rank_bell.hpp). Where they cannot, they wake a
/// thread that sleeps on the rank's wake word, and looks each kLookNs whether one was killed before
/// it rang.
///
/// Use: `arm` when nothing more is to be received; it clears the descriptor. The caller then looks
/// once more and calls `signal` if something is there: what came before arming rings no bell.
/// Thread safety: arm and signal from the rank's thread.
/// Errors: the constructor throws `rmem::Error` (system).

#include "rmem/base/helper_thread.hpp"
#include "rmem/ring/interrupt_helper.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/waiting/rank_bell.hpp"

#include <cstdint>

namespace billboard {

class RMEM_API WakeFd {
public:
    static constexpr std::int64_t kLookNs = 100'000'000;

    /// `source`: what brings messages in this process; the descriptor is readable when that has
    /// something to do, too. May be null; it outlives this.
    WakeFd(rmem::Ring& ring, unsigned rank, rmem::InterruptSource* source = nullptr);

    int get() const noexcept { return bell_.handle(); }
    void arm() noexcept;
    void signal() noexcept;
    bool has_source() const noexcept { return source_ != nullptr; }
    /// Whether a message may be about to come for which it will not be readable.
    bool is_busy() const noexcept { return source_ != nullptr && source_->is_busy(); }

private:
    void run(std::uint32_t seen) noexcept;

    rmem::Ring& ring_;
    unsigned rank_;
    rmem::InterruptSource* source_;
    rmem::RankBell bell_;
    rmem::HelperThread thread_;
};

}  // namespace billboard
