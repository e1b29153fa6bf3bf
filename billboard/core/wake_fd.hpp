// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A descriptor that becomes readable when this rank is told of a message: for poll and epoll.
///
/// A thread sleeps on the rank's wake word and writes to an eventfd of this process. While armed,
/// the rank's attention word asks posters to wake it, at no cost to them otherwise
/// (rmem/ring/waiting.hpp). Nothing crosses processes but the wake word.
///
/// Use: `arm` when nothing more is to be received; it clears the descriptor. The caller then looks
/// once more and calls `signal` if something is there: what came before arming rings no bell.
/// Thread safety: arm and signal from the rank's thread.
/// Errors: the constructor throws `rmem::Error` (system).

#include "rmem/base/helper_thread.hpp"
#include "rmem/ring.hpp"
#include "rmem/ring/segment.hpp"

namespace billboard {

class RMEM_API WakeFd {
public:
    WakeFd(rmem::Ring& ring, unsigned rank);

    int get() const noexcept { return fd_.get(); }
    void arm() noexcept;
    void signal() noexcept;

private:
    void run(std::uint32_t seen) noexcept;

    rmem::Ring& ring_;
    unsigned rank_;
    rmem::Descriptor fd_;
    rmem::HelperThread thread_;
};

}  // namespace billboard
