// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The pending store of a thread, as the hooks of a program keep it
/// (rmem/stores/instrumentation.h).
///
/// This folder is linked into programs that rmem-cc compiles; all others never see it. A compiler
/// that is asked for the thread sanitizer calls a hook before each access of memory; these are the
/// hooks, with another purpose.
/// Thread safety: each thread has its own.

#include "rmem/stores/instrumentation.h"

#include <cstddef>
#include <cstdint>

namespace rmem::instrumented {

extern rmem_instrumentation hooks;
extern constinit thread_local rmem_pending_store pending;

/// Publishes it, out of line: hooks that find nothing need no stack.
[[gnu::noinline]] void publish_pending() noexcept;
/// The first store of a thread.
[[gnu::noinline, gnu::cold]] void begin_thread() noexcept;

[[gnu::always_inline]] inline bool is_in_range(std::uintptr_t address) noexcept {
    return address - hooks.begin < hooks.bytes;
}

/// Before whatever the program does next.
[[gnu::always_inline]] inline void publish() noexcept {
    if (pending.bytes != 0) [[unlikely]]
        publish_pending();
}

/// Before a load, which may be part of the copy that the pending store is.
[[gnu::always_inline]] inline void pass() noexcept {
    if (pending.bytes == 0) [[likely]]
        return;
    if (pending.is_passed != 0) return publish_pending();
    pending.is_passed = 1;
}

/// Before a store.
[[gnu::always_inline]] inline void expect_store(const void* place, std::size_t bytes) noexcept {
    publish();
    const auto address = reinterpret_cast<std::uintptr_t>(place);
    if (!is_in_range(address)) [[likely]]
        return;
    if (pending.stores == 0) [[unlikely]]
        begin_thread();
    pending.address = address;
    pending.stores = pending.stores + 1;
    pending.is_passed = 0;
    pending.bytes = bytes;
}

/// After a store that this library has made for the program.
[[gnu::always_inline]] inline void has_stored(const void* place, std::size_t bytes) noexcept {
    const auto address = reinterpret_cast<std::uintptr_t>(place);
    if (is_in_range(address)) [[unlikely]]
        rmem_publish_store(address, bytes);
}

}  // namespace rmem::instrumented
