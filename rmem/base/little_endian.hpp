// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Numbers in the byte order of the wire, at any alignment. On a little-endian host each is one
/// move.

#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rmem {

static_assert(std::endian::native == std::endian::little ||
              std::endian::native == std::endian::big);

/// The number in the other byte order.
template <std::unsigned_integral T>
constexpr T reversed(T value) noexcept {
    T result = 0;
    for (std::size_t i = 0; i < sizeof value; ++i) {
        result = static_cast<T>(result << 8U | (value >> (8 * i) & 0xffU));
    }
    return result;
}

template <std::unsigned_integral T>
T load(const std::byte* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof value);
    if constexpr (std::endian::native == std::endian::big && sizeof value > 1) {
        value = reversed(value);
    }
    return value;
}

template <std::unsigned_integral T>
void store(std::byte* to, T value) noexcept {
    if constexpr (std::endian::native == std::endian::big && sizeof value > 1) {
        value = reversed(value);
    }
    std::memcpy(to, &value, sizeof value);
}

inline std::int64_t load_time(const std::byte* from) noexcept {
    return static_cast<std::int64_t>(load<std::uint64_t>(from));
}
inline void store_time(std::byte* to, std::int64_t ns) noexcept {
    store(to, static_cast<std::uint64_t>(ns));
}

}  // namespace rmem
