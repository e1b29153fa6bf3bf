// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Numbers in packets, as they lie in memory, one behind the other. The reader has checked that
/// they are there.
/// Thread safety: as of plain memory.

#include <cstddef>
#include <cstring>
#include <span>

namespace mpi_channel {

template <class T>
void put(std::byte*& to, T value) noexcept {
    std::memcpy(to, &value, sizeof value);
    to += sizeof value;
}

template <class T>
T get(std::span<const std::byte>& from) noexcept {
    T value{};
    std::memcpy(&value, from.data(), sizeof value);
    from = from.subspan(sizeof value);
    return value;
}

}  // namespace mpi_channel
