// SPDX-License-Identifier: Apache-2.0
// What the compilers call in place of atomic operations: the operation itself, always sequentially
// consistent, and the word on its way.

#include "rmem/instrumented/atomics.hpp"

ATOMICS(8, std::uint8_t)
ATOMICS(16, std::uint16_t)
ATOMICS(32, std::uint32_t)
ATOMICS(64, std::uint64_t)

HOOK void __tsan_atomic_thread_fence(int) {
    publish();
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}
HOOK void __tsan_atomic_signal_fence(int) {
    publish();
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
}
