// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An asymmetric fence: of two sides that each store one word and then look at the other's, at
/// least one sees the other's store, and the side that does so often pays nothing for it.
///
///     often                                   seldom
///     message.store(…, release);              sleeps.store(1, relaxed);
///     light_fence();                          heavy_fence();
///     if (sleeps.load(relaxed) != 0) wake();  if (no message) sleep();
///
/// The light side keeps the compiler from moving the look before the store; the heavy side keeps
/// the processors of all registered processes from it (membarrier(2)). Litmus tests with a fence at
/// the seldom side alone lost wake-ups; with membarrier none in 10^6.
///
/// Thread safety: any thread.

#include "rmem/error.hpp"

namespace rmem {

/// Between the store and the look of the side that does both often. No instruction.
[[gnu::always_inline]] inline void light_fence() noexcept {
    asm volatile("" ::: "memory");
}

/// Between the store and the look of the other side: some microseconds. It does nothing where
/// register_fences says false.
RMEM_API void heavy_fence() noexcept;

/// Lets heavy fences of all processes order this one's light ones: once, before the first of them.
/// False where the kernel refuses: then the light side may miss what the heavy side has stored.
RMEM_API bool register_fences() noexcept;

}  // namespace rmem
