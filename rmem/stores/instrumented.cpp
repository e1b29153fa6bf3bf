// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/instrumented.hpp"

#include "rmem/ring/segment.hpp"
#include "rmem/stores/instrumentation.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

namespace rmem::stores {

namespace {

constexpr std::size_t kMaxViews = 64;

std::array<std::atomic<InstrumentedStores*>, kMaxViews> hooked_views{};

InstrumentedStores* hooked_view_at(std::uintptr_t address) noexcept {
    for (const auto& one : hooked_views) {
        // (1) - this acquire-load synchronizes-with the release-store (2)
        InstrumentedStores* const view = one.load(std::memory_order_acquire);
        if (view != nullptr && view->covers(address)) return view;
    }
    return nullptr;
}

/// The hooks of the program, and of each library that is linked as it is, while it is loaded.
std::array<std::atomic<rmem_instrumentation*>, 8> hooked{};

/// What the program has told. Leaked on purpose: its threads end after this library's objects.
struct Program {
    std::mutex mutex;
    std::vector<rmem_pending_store*> pending;

    static Program& get() {
        static auto* const made = new Program;
        return *made;
    }
};

/// Tells the hooks where views are. The program's mutex is held.
void tell_range() noexcept {
    std::uintptr_t begin = std::numeric_limits<std::uintptr_t>::max(), end = 0;
    for (const auto& one : hooked_views) {
        // relaxed is enough: the mutex orders it
        const InstrumentedStores* const view = one.load(std::memory_order_relaxed);
        if (view == nullptr) continue;
        begin = std::min(begin, reinterpret_cast<std::uintptr_t>(view->memory()));
        end = std::max(end, reinterpret_cast<std::uintptr_t>(view->memory()) + view->bytes());
    }
    for (const auto& one : hooked) {
        // relaxed is enough: the mutex orders it
        rmem_instrumentation* const hooks = one.load(std::memory_order_relaxed);
        if (hooks == nullptr) continue;
        hooks->bytes = 0;  // meanwhile nothing is in it
        hooks->begin = begin;
        hooks->bytes = end > begin ? end - begin : 0;
    }
}

/// Publishes what threads have stored that have had no hook since the last look.
class StaleStores {
public:
    void look() {
        Program& program = Program::get();
        const std::lock_guard lock(program.mutex);
        for (rmem_pending_store* const one : program.pending) {
            const Seen now{one->stores, one->address, one->bytes};
            Seen& before = seen_[one];
            if (now.bytes != 0 && now.stores == before.stores && !before.is_published) {
                rmem_publish_store(now.address, now.bytes);
                before.is_published = true;
            } else if (now.stores != before.stores) {
                before = now;
            }
        }
    }

private:
    struct Seen {
        std::uintptr_t stores = 0, address = 0, bytes = 0;
        bool is_published = false;
    };
    std::map<const rmem_pending_store*, Seen> seen_;
};

}  // namespace

InstrumentedStores::InstrumentedStores(const Ring& ring, unsigned node, StoreTaker& taker)
    : bytes_(ring.config().user_bytes),
      mapping_(ring.segment().map_again(ring.bank(node), bytes_, Mapping::Access::load_and_store)),
      taker_(taker),
      helper_("rmem-stores", [this] {
          StaleStores stale;
          while (helper_.pause(kStaleNs)) stale.look();
      }) {
    const std::lock_guard lock(Program::get().mutex);
    if (!is_instrumented()) {
        throw Error(Errc::invalid_argument,
                    "this program has no hooks at its stores; compile and link it with rmem-cc or "
                    "rmem-c++, or set RMEM_STORES=exact or scan");
    }
    const auto free = std::find_if(hooked_views.begin(), hooked_views.end(), [](const auto& one) {
        // relaxed is enough: the mutex orders it
        return one.load(std::memory_order_relaxed) == nullptr;
    });
    if (free == hooked_views.end()) {
        throw Error(Errc::invalid_argument,
                    "this process captures the stores of 64 nodes already, and of no more");
    }
    // (2) - this release-store synchronizes-with the acquire-load (1)
    free->store(this, std::memory_order_release);
    tell_range();
}

InstrumentedStores::~InstrumentedStores() {
    const std::lock_guard lock(Program::get().mutex);
    for (auto& one : hooked_views) {
        InstrumentedStores* mine = this;
        // relaxed is enough: the program stores no more
        one.compare_exchange_strong(mine, nullptr, std::memory_order_relaxed);
    }
    tell_range();
}

void InstrumentedStores::stored(std::uintptr_t address, std::size_t bytes) noexcept {
    const std::size_t offset = address - reinterpret_cast<std::uintptr_t>(memory());
    taker_.take(offset, memory() + offset, std::min(bytes, bytes_ - offset));
}

void InstrumentedStores::publish_own() noexcept {
    for (const auto& one : hooked) {
        // (3) - this acquire-load synchronizes-with the release-exchange (4)
        const rmem_instrumentation* const hooks = one.load(std::memory_order_acquire);
        if (hooks == nullptr) continue;
        rmem_pending_store* const pending = hooks->pending_of_thread();
        const std::uintptr_t bytes = pending->bytes;
        pending->bytes = 0;
        if (bytes != 0) rmem_publish_store(pending->address, bytes);
    }
}

bool is_instrumented() noexcept {
    return std::any_of(hooked.begin(), hooked.end(), [](const auto& one) {
        // relaxed is enough: whether there are any
        return one.load(std::memory_order_relaxed) != nullptr;
    });
}

}  // namespace rmem::stores

// ---- For the hooks

using rmem::stores::Program;

extern "C" {

void rmem_instrumentation_begins(rmem_instrumentation* hooks) {
    const std::lock_guard lock(Program::get().mutex);
    for (auto& one : rmem::stores::hooked) {
        rmem_instrumentation* none = nullptr;
        // (4) - this release-exchange synchronizes-with the acquire-load (3)
        if (one.compare_exchange_strong(none, hooks, std::memory_order_release))
            return rmem::stores::tell_range();
    }
    std::fputs("rmem: 8 libraries that rmem-cc has linked are loaded already, the most\n", stderr);
    std::abort();
}

void rmem_instrumentation_ends(rmem_instrumentation* hooks) {
    const std::lock_guard lock(Program::get().mutex);
    for (auto& one : rmem::stores::hooked) {
        rmem_instrumentation* ended = hooks;
        // relaxed is enough: the library that ends stores no more
        one.compare_exchange_strong(ended, nullptr, std::memory_order_relaxed);
    }
}

void rmem_instrumented_thread_begins(rmem_pending_store* pending) {
    const std::lock_guard lock(Program::get().mutex);
    Program::get().pending.push_back(pending);
}

void rmem_instrumented_thread_ends(rmem_pending_store* pending) {
    {
        const std::lock_guard lock(Program::get().mutex);
        std::erase(Program::get().pending, pending);
    }
    if (pending->bytes != 0) rmem_publish_store(pending->address, pending->bytes);
    pending->bytes = 0;
}

void rmem_publish_store(uintptr_t address, size_t bytes) {
    if (auto* const view = rmem::stores::hooked_view_at(address)) view->stored(address, bytes);
}

}  // extern "C"
