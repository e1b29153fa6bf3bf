// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Memory in several parts, one behind the other, as MPI's types and libfabric's calls have it.
/// Thread safety: as of plain memory.

#include <sys/uio.h>
#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>

namespace mpi_channel {

using Parts = boost::container::small_vector<iovec, 2>;

inline std::size_t size_of(const Parts& parts) noexcept {
    std::size_t size = 0;
    for (const iovec& part : parts) size += part.iov_len;
    return size;
}

/// Calls `use` with each stretch of memory of `bytes` bytes from `at` on, until one answers false.
template <class Use>
void for_each_stretch(const Parts& parts, std::size_t at, std::size_t bytes, Use&& use) {
    for (const iovec& part : parts) {
        if (at >= part.iov_len) {
            at -= part.iov_len;
            continue;
        }
        const std::size_t here = std::min(part.iov_len - at, bytes);
        if (here == 0 || !use(static_cast<std::byte*>(part.iov_base) + at, here)) return;
        bytes -= here;
        at = 0;
    }
}

/// Bytes into the parts, from `at` on.
inline void copy_in(const Parts& parts, std::size_t at, std::span<const std::byte> bytes) {
    for_each_stretch(parts, at, bytes.size(), [&](std::byte* to, std::size_t count) {
        std::memcpy(to, bytes.data(), count);
        bytes = bytes.subspan(count);
        return true;
    });
}

/// All of the parts.
inline void copy_out(const Parts& parts, std::byte* to) {
    for (const iovec& part : parts) {
        if (part.iov_len != 0) std::memcpy(to, part.iov_base, part.iov_len);
        to += part.iov_len;
    }
}

}  // namespace mpi_channel
