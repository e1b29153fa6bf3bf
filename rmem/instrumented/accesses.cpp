// SPDX-License-Identifier: Apache-2.0
// The hooks before loads and stores, and at the ends of functions. Their names are the compilers':
// GCC 12, -fsanitize=thread; Clang 14, -fsanitize=kernel-address.

#include "rmem/instrumented/pending.hpp"

#define HOOK extern "C" [[gnu::visibility("default")]]

using rmem::instrumented::expect_store;
using rmem::instrumented::pass;
using rmem::instrumented::publish;

#define ACCESSES(size)                                             \
    HOOK void __tsan_read##size(const void*) {                     \
        pass();                                                    \
    }                                                              \
    HOOK void __tsan_write##size(void* place) {                    \
        expect_store(place, size);                                 \
    }                                                              \
    HOOK void __tsan_read_write##size(void* place) {               \
        expect_store(place, size);                                 \
    }                                                              \
    HOOK void __tsan_volatile_read##size(const void*) {            \
        pass();                                                    \
    }                                                              \
    HOOK void __tsan_volatile_write##size(void* place) {           \
        expect_store(place, size);                                 \
    }                                                              \
    HOOK void __tsan_unaligned_read##size(const void*) {           \
        pass();                                                    \
    }                                                              \
    HOOK void __tsan_unaligned_write##size(void* place) {          \
        expect_store(place, size);                                 \
    }                                                              \
    HOOK void __tsan_unaligned_read_write##size(void* place) {     \
        expect_store(place, size);                                 \
    }                                                              \
    HOOK void __tsan_unaligned_volatile_read##size(const void*) {  \
        pass();                                                    \
    }                                                              \
    HOOK void __tsan_unaligned_volatile_write##size(void* place) { \
        expect_store(place, size);                                 \
    }                                                              \
    HOOK void __asan_load##size(const void*) {                     \
        pass();                                                    \
    }                                                              \
    HOOK void __asan_store##size(void* place) {                    \
        expect_store(place, size);                                 \
    }

ACCESSES(1)
ACCESSES(2)
ACCESSES(4)
ACCESSES(8)
ACCESSES(16)

HOOK void __tsan_read_range(const void*, std::size_t) {
    pass();
}
HOOK void __tsan_write_range(void* place, std::size_t bytes) {
    if (bytes != 0) expect_store(place, bytes);
}
HOOK void __asan_loadN(const void*, std::size_t) {
    pass();
}
HOOK void __asan_storeN(void* place, std::size_t bytes) {
    if (bytes != 0) expect_store(place, bytes);
}
HOOK void __asan_handle_no_return() {
    publish();
}
HOOK void __tsan_vptr_update(void* place, void*) {
    expect_store(place, sizeof(void*));
}
HOOK void __tsan_vptr_read(const void*) {
    pass();
}
HOOK void __tsan_init() {}
HOOK void __tsan_func_entry(const void*) {
    publish();
}
HOOK void __tsan_func_exit() {
    publish();
}
HOOK void __tsan_ignore_thread_begin() {}
HOOK void __tsan_ignore_thread_end() {}
