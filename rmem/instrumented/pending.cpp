// SPDX-License-Identifier: Apache-2.0
#include "rmem/instrumented/pending.hpp"

namespace rmem::instrumented {

constinit thread_local rmem_pending_store pending{};

namespace {

rmem_pending_store* pending_of_thread() {
    return &pending;
}

/// Ends a thread that has stored.
struct ThreadEnd {
    bool is_known = false;
    ~ThreadEnd() {
        if (is_known) rmem_instrumented_thread_ends(&pending);
    }
};
thread_local ThreadEnd thread_end;

[[gnu::constructor]] void begin_program() {
    rmem_instrumentation_begins(&hooks);
}

}  // namespace

constinit rmem_instrumentation hooks{0, 0, pending_of_thread};

void publish_pending() noexcept {
    const std::uintptr_t address = pending.address;
    const std::size_t bytes = pending.bytes;
    pending.bytes = 0;
    rmem_publish_store(address, bytes);
}

void begin_thread() noexcept {
    thread_end.is_known = true;
    rmem_instrumented_thread_begins(&pending);
}

}  // namespace rmem::instrumented
