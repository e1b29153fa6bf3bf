// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the compilers call in place of an atomic operation, of one width.
/// Thread safety: the operation's own.

#include "rmem/instrumented/pending.hpp"

#define HOOK extern "C" [[gnu::visibility("default")]]

using rmem::instrumented::has_stored;
using rmem::instrumented::publish;

#define FETCH(bits, T, name, builtin)                                      \
    HOOK T __tsan_atomic##bits##_##name(volatile T* place, T value, int) { \
        publish();                                                         \
        const T before = builtin(place, value, __ATOMIC_SEQ_CST);          \
        has_stored(const_cast<const T*>(place), sizeof(T));                \
        return before;                                                     \
    }

#define EXCHANGE_IF(bits, T, name, is_weak)                                                 \
    HOOK int __tsan_atomic##bits##_compare_exchange_##name(volatile T* place, T* expected,  \
                                                           T value, int, int) {             \
        publish();                                                                          \
        if (!__atomic_compare_exchange_n(place, expected, value, is_weak, __ATOMIC_SEQ_CST, \
                                         __ATOMIC_SEQ_CST))                                 \
            return 0;                                                                       \
        has_stored(const_cast<const T*>(place), sizeof(T));                                 \
        return 1;                                                                           \
    }

#define ATOMICS(bits, T)                                                                           \
    HOOK T __tsan_atomic##bits##_load(const volatile T* place, int) {                              \
        publish();                                                                                 \
        return __atomic_load_n(place, __ATOMIC_SEQ_CST);                                           \
    }                                                                                              \
    HOOK void __tsan_atomic##bits##_store(volatile T* place, T value, int) {                       \
        publish();                                                                                 \
        __atomic_store_n(place, value, __ATOMIC_SEQ_CST);                                          \
        has_stored(const_cast<const T*>(place), sizeof(T));                                        \
    }                                                                                              \
    FETCH(bits, T, exchange, __atomic_exchange_n)                                                  \
    FETCH(bits, T, fetch_add, __atomic_fetch_add)                                                  \
    FETCH(bits, T, fetch_sub, __atomic_fetch_sub)                                                  \
    FETCH(bits, T, fetch_and, __atomic_fetch_and)                                                  \
    FETCH(bits, T, fetch_or, __atomic_fetch_or)                                                    \
    FETCH(bits, T, fetch_xor, __atomic_fetch_xor)                                                  \
    FETCH(bits, T, fetch_nand, __atomic_fetch_nand)                                                \
    EXCHANGE_IF(bits, T, strong, false)                                                            \
    EXCHANGE_IF(bits, T, weak, true)                                                               \
    HOOK T __tsan_atomic##bits##_compare_exchange_val(volatile T* place, T expected, T value, int, \
                                                      int) {                                       \
        __tsan_atomic##bits##_compare_exchange_strong(place, &expected, value, 0, 0);              \
        return expected;                                                                           \
    }
