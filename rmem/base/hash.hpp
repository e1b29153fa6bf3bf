// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Hashes for values that processes and hosts compare, so they are the same in all builds: FNV-1a
/// with 64 bits, and a quick step for words. No protection against intended collisions.
///
///     Fnv1a().add(name).add_word(size).value()

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace rmem {

class Fnv1a {
public:
    static constexpr std::uint64_t kStart = 0xcbf29ce484222325;

    constexpr explicit Fnv1a(std::uint64_t start = kStart) noexcept : value_(start) {}

    /// One step of the hash. (With more than a byte it is quicker, and mixes less.)
    constexpr Fnv1a& mix(std::uint64_t value) noexcept {
        value_ = (value_ ^ value) * 0x100000001b3;
        return *this;
    }
    /// Its eight bytes, the lowest first.
    constexpr Fnv1a& add_word(std::uint64_t value) noexcept {
        for (int i = 0; i < 8; ++i, value >>= 8) mix(value & 0xff);
        return *this;
    }
    constexpr Fnv1a& add(std::string_view text) noexcept {
        for (const char c : text) mix(static_cast<unsigned char>(c));
        return *this;
    }
    constexpr Fnv1a& add(std::span<const std::byte> bytes) noexcept {
        for (const std::byte b : bytes) mix(std::to_integer<std::uint64_t>(b));
        return *this;
    }
    constexpr std::uint64_t value() const noexcept { return value_; }

private:
    std::uint64_t value_;
};

/// A multiplication by 2^64 over the golden ratio (Knuth): the high bits mix, the low ones do not.
constexpr std::uint64_t golden_mix(std::uint64_t hash, std::uint64_t value) noexcept {
    return (hash ^ value) * 0x9e3779b97f4a7c15;
}

}  // namespace rmem
