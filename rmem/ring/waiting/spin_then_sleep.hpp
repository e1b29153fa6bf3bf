// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A mutex whose holder is soon ready: to sleep and be woken takes longer.
///
/// An engine holds it in a system call that sends, and a datagram may come back before that has
/// returned, as the helper of the node to which it went may have taken the processor meanwhile. On
/// that processor nobody spins: the holder does not run there until it sleeps.
///
/// Thread safety: any thread. Progress: a waiting thread spins for kSpinNs, then sleeps.

#include "rmem/base/clock.hpp"
#include "rmem/base/relaxed.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <sched.h>

#include <cstdint>
#include <mutex>

namespace rmem {

class SpinThenSleep {
public:
    void lock() {
        if (!mutex_.try_lock() && !spin()) mutex_.lock();
        processor_.set(::sched_getcpu());
    }
    void unlock() { mutex_.unlock(); }

private:
    static constexpr std::int64_t kSpinNs = 30'000;
    static constexpr unsigned kTriesALook = 16;

    [[nodiscard]] bool spin() {
        for (const std::int64_t begin = now_ns(); now_ns() - begin < kSpinNs;) {
            if (processor_.get() == ::sched_getcpu()) return false;
            for (unsigned i = 0; i < kTriesALook; ++i) {
                if (mutex_.try_lock()) return true;
                cpu_relax();
            }
        }
        return false;
    }

    std::mutex mutex_;
    Hint<int> processor_{-1};  ///< on which its last holder took it
};

}  // namespace rmem
