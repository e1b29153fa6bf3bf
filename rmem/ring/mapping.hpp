// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Shared memory, mapped between two pages that no program may touch.
///
/// A program that stores past either end is ended by the signal that an overrun deserves, and
/// changes nothing of what happens to be mapped next: another node's memory, a segment's header.
/// The page before the first byte, and the one behind the page of the last, are this object's as
/// long as it is there.
/// Thread safety: distinct objects are independent.
/// Errors: std::system_error, of the kernel's.

#include "rmem/error.hpp"

#include <cstddef>
#include <utility>

namespace rmem {

class RMEM_API Mapping {
public:
    enum class Access { load, load_and_store };

    Mapping() = default;
    /// `bytes` of the file `fd` from `offset` on, which is the beginning of a page.
    Mapping(int fd, std::size_t offset, std::size_t bytes, Access access);
    Mapping(Mapping&& other) noexcept
        : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
    Mapping& operator=(Mapping&& other) noexcept {
        std::swap(data_, other.data_);
        std::swap(bytes_, other.bytes_);
        return *this;
    }
    ~Mapping();

    [[nodiscard]] std::byte* data() const noexcept { return data_; }
    [[nodiscard]] std::size_t size() const noexcept { return bytes_; }

private:
    std::byte* data_ = nullptr;  ///< null: nothing is mapped
    std::size_t bytes_ = 0;
};

}  // namespace rmem
