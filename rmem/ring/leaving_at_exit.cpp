// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/leaving_at_exit.hpp"

#include "rmem/ring/ring.hpp"

#include <cstdlib>
#include <mutex>
#include <vector>

namespace rmem {

namespace {

/// Leaked on purpose: other threads go on while the process ends.
struct OpenRings {
    std::mutex mutex;
    std::vector<Ring*> rings;

    static OpenRings& get() {
        static OpenRings* open = [] {
            std::atexit([] { get().leave(); });
            return new OpenRings;
        }();
        return *open;
    }
    void leave() noexcept {
        // In a forked child it may be locked by a thread that only its parent has.
        const std::unique_lock lock(mutex, std::try_to_lock);
        if (!lock) return;
        for (Ring* ring : rings) ring->leave();
    }
};

}  // namespace

void leave_at_exit(Ring& ring) {
    OpenRings& open = OpenRings::get();
    const std::lock_guard lock(open.mutex);
    open.rings.push_back(&ring);
}

void forget_at_exit(Ring& ring) noexcept {
    OpenRings& open = OpenRings::get();
    const std::lock_guard lock(open.mutex);
    std::erase(open.rings, &ring);
}

}  // namespace rmem
