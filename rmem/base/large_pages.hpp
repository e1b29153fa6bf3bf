// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Private memory of some megabytes in large pages, where the host has some: a page fault costs as
/// much as to parse a few lines.
/// Thread safety: a function of its arguments. Errors: none; the pages are then small.

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

namespace rmem {

/// To be called before the memory is touched.
inline void prefer_large_pages(const void* begin, std::size_t bytes) noexcept {
    constexpr std::size_t kPage = std::size_t{2} << 20;
    const auto first = (reinterpret_cast<std::uintptr_t>(begin) + kPage - 1) / kPage * kPage;
    const auto end = (reinterpret_cast<std::uintptr_t>(begin) + bytes) / kPage * kPage;
    if (end > first)
        static_cast<void>(::madvise(reinterpret_cast<void*>(first), end - first, MADV_HUGEPAGE));
}

}  // namespace rmem
