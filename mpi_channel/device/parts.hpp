// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Memory in several parts, one behind the other, as MPI's types and libfabric's calls have it.
///
/// Copied with each request, and nearly always one part: so a class of its own, which copies what
/// it has and no more.
/// Thread safety: as of plain memory. Errors: std::length_error beyond kPartsMost.

#include "rmem/base/copy.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <initializer_list>
#include <span>
#include <stdexcept>

namespace mpi_channel {

inline constexpr std::size_t kPartsMost = 8;

class Parts {
public:
    Parts() noexcept {}
    Parts(const iovec* first, std::size_t count) { assign(first, count); }
    Parts(std::initializer_list<iovec> parts) : Parts(parts.begin(), parts.size()) {}
    Parts(const Parts& other) noexcept { copy(other.parts_.data(), other.count_); }
    Parts& operator=(const Parts& other) noexcept {
        copy(other.parts_.data(), other.count_);
        return *this;
    }

    [[nodiscard]] std::size_t count() const noexcept { return count_; }
    [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
    iovec& operator[](std::size_t i) noexcept { return parts_[i]; }
    const iovec& operator[](std::size_t i) const noexcept { return parts_[i]; }
    void push_back(const iovec& part) {
        if (count_ == kPartsMost) throw_too_many();
        parts_[count_++] = part;
    }
    const iovec* begin() const noexcept { return parts_.data(); }
    const iovec* end() const noexcept { return parts_.data() + count_; }

private:
    void assign(const iovec* first, std::size_t count) {
        if (count > kPartsMost) throw_too_many();
        copy(first, count);
    }
    void copy(const iovec* first, std::size_t count) noexcept {
        count_ = count;
        if (count == 1) [[likely]] {
            parts_[0] = *first;
        } else {
            std::copy_n(first, count, parts_.begin());
        }
    }

    [[noreturn]] static void throw_too_many() {
        throw std::length_error("a message has more than 8 parts; give 8 at most");
    }

    std::size_t count_ = 0;
    std::array<iovec, kPartsMost> parts_;  ///< the first `count_`
};

[[nodiscard]] inline std::size_t size_of(const Parts& parts) noexcept {
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
    if (parts.count() == 1 && at + bytes.size() <= parts[0].iov_len) [[likely]] {
        rmem::copy_bytes(static_cast<std::byte*>(parts[0].iov_base) + at, bytes.data(),
                         bytes.size());
        return;
    }
    for_each_stretch(parts, at, bytes.size(), [&](std::byte* to, std::size_t count) {
        rmem::copy_bytes(to, bytes.data(), count);
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
