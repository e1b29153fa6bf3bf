// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A descriptor that becomes readable when this rank is told of a message: for poll and epoll.
///
/// While armed, the rank's attention word asks posters to make it readable, at no cost to them
/// otherwise (rmem/ring/waiting.hpp, rmem/ring/rank_bell.hpp). Where they cannot, they wake a
/// thread that sleeps on the rank's wake word.
///
/// Use: `arm` when nothing more is to be received; it clears the descriptor. The caller then looks
/// once more and calls `signal` if something is there: what came before arming rings no bell.
/// Thread safety: arm and signal from the rank's thread.
/// Errors: the constructor throws `rmem::Error` (system).

#include "rmem/base/helper_thread.hpp"
#include "rmem/ring.hpp"
#include "rmem/ring/rank_bell.hpp"

namespace billboard {

class RMEM_API WakeFd {
public:
    WakeFd(rmem::Ring& ring, unsigned rank);

    int get() const noexcept { return bell_.handle(); }
    void arm() noexcept;
    void signal() noexcept;

private:
    void run(std::uint32_t seen) noexcept;

    rmem::Ring& ring_;
    unsigned rank_;
    rmem::RankBell bell_;
    rmem::HelperThread thread_;
};

}  // namespace billboard
