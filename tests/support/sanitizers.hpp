// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Which sanitizer this build has: some tests cannot mean anything under one, others do less.

namespace rmem::test {

#if defined(__has_feature)
inline constexpr bool kThreadSanitizer = __has_feature(thread_sanitizer);
inline constexpr bool kSanitized = kThreadSanitizer || __has_feature(address_sanitizer);
#elif defined(__SANITIZE_THREAD__)
inline constexpr bool kThreadSanitizer = true, kSanitized = true;
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool kThreadSanitizer = false, kSanitized = true;
#else
inline constexpr bool kThreadSanitizer = false, kSanitized = false;
#endif

}  // namespace rmem::test
