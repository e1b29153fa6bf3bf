// SPDX-License-Identifier: Apache-2.0
#include "rmem/instrumented/pending.hpp"

// The C library's: a program in C is linked without the C++ library.
extern "C" int __cxa_thread_atexit_impl(void (*)(void*), void*, void*);
extern "C" void* __dso_handle;

namespace rmem::instrumented {

constinit thread_local rmem_pending_store pending{};

namespace {

rmem_pending_store* pending_of_thread() {
    return &pending;
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
    __cxa_thread_atexit_impl([](void*) { rmem_instrumented_thread_ends(&pending); }, nullptr,
                             &__dso_handle);
    rmem_instrumented_thread_begins(&pending);
}

}  // namespace rmem::instrumented
