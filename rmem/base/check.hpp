// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Invariants, executed: RMEM_CHECK(condition) ends the process with the condition's text and place
/// when it does not hold.
///
/// A check fails only if this code is wrong. A mistake of another process, host, file or caller
/// breaks no invariant: it is refused with an error, in every build.
///
///   RMEM_CHECK(condition)             runs in debug, sanitized and fuzz builds, and in every build
///                                     once the process has made a simulated world: the hunts
///   RMEM_CHECK_IF(always, condition)  where a nanosecond counts: runs where the constant `always`
///                                     says so, in debug, sanitized and fuzz builds; elsewhere it
///                                     is no code
///
/// Thread safety: any thread.

#include "rmem/error.hpp"

#include <atomic>

namespace rmem {

#ifdef RMEM_CHECKED
inline constexpr bool kChecked = true;
#else
inline constexpr bool kChecked = false;
#endif

/// From now on checks run in this process.
RMEM_API void check_from_now_on() noexcept;

/// The end of the process.
[[noreturn]] RMEM_API void invariant_is_broken(const char* condition, const char* file,
                                               int line) noexcept;

namespace checks {
RMEM_API extern std::atomic<bool> are_on;
}

[[nodiscard, gnu::always_inline]] inline bool is_checking() noexcept {
    // relaxed is enough: a world is made before what is checked in it
    return kChecked || checks::are_on.load(std::memory_order_relaxed);
}

}  // namespace rmem

#define RMEM_CHECK(condition)                                            \
    do {                                                                 \
        if (::rmem::is_checking() && !(condition)) [[unlikely]]          \
            ::rmem::invariant_is_broken(#condition, __FILE__, __LINE__); \
    } while (false)

#define RMEM_CHECK_IF(always, condition)                                     \
    do {                                                                     \
        if constexpr (::rmem::kChecked || (always)) {                        \
            if (!(condition)) [[unlikely]]                                   \
                ::rmem::invariant_is_broken(#condition, __FILE__, __LINE__); \
        }                                                                    \
    } while (false)
