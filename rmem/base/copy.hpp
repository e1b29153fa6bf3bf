// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Copying a few bytes without a call: at this size a library call costs as much as the copy. And
/// asking for a line before it is needed, or handing it on.
/// Thread safety and alignment: as memcpy. Reads and writes exactly `bytes` bytes.

#include <cstddef>
#include <cstring>

namespace rmem {

inline constexpr std::size_t kShortBytes = 64;

/// What a register holds: an array of these bytes would go through the stack.
template <std::size_t Bytes>
struct Block {
    using Type [[gnu::vector_size(Bytes)]] = unsigned char;
};

/// Two overlapping blocks cover any size from `Bytes` to twice that.
template <std::size_t Bytes>
[[gnu::always_inline]] inline void copy_ends(void* to, const void* from,
                                             std::size_t bytes) noexcept {
    typename Block<Bytes>::Type head, tail;
    std::memcpy(&head, from, Bytes);
    std::memcpy(&tail, static_cast<const char*>(from) + bytes - Bytes, Bytes);
    std::memcpy(to, &head, Bytes);
    std::memcpy(static_cast<char*>(to) + bytes - Bytes, &tail, Bytes);
}

/// The same of 32 bytes, in registers of 16.
template <>
[[gnu::always_inline]] inline void copy_ends<32>(void* to, const void* from,
                                                 std::size_t bytes) noexcept {
    typename Block<16>::Type part[4];
    const auto* in = static_cast<const char*>(from);
    auto* out = static_cast<char*>(to);
    std::memcpy(&part[0], in, 16);
    std::memcpy(&part[1], in + 16, 16);
    std::memcpy(&part[2], in + bytes - 32, 16);
    std::memcpy(&part[3], in + bytes - 16, 16);
    std::memcpy(out, &part[0], 16);
    std::memcpy(out + 16, &part[1], 16);
    std::memcpy(out + bytes - 32, &part[2], 16);
    std::memcpy(out + bytes - 16, &part[3], 16);
}

/// Always inline: a call is part of what a short message costs.
[[gnu::always_inline]] inline void copy_short(void* to, const void* from,
                                              std::size_t bytes) noexcept {
    if (bytes >= 8) {
        if (bytes <= 16) return copy_ends<8>(to, from, bytes);
        if (bytes <= 32) return copy_ends<16>(to, from, bytes);
        return copy_ends<32>(to, from, bytes);
    }
    if (bytes >= 4) return copy_ends<4>(to, from, bytes);
    if (bytes >= 2) return copy_ends<2>(to, from, bytes);
    if (bytes == 1) std::memcpy(to, from, 1);
}

/// For bytes that were just written by stores of words: wider loads would wait until these have
/// left for the cache.
inline void copy_words(void* to, const void* from, std::size_t bytes) noexcept {
    auto* out = static_cast<char*>(to);
    auto* in = static_cast<const char*>(from);
    for (; bytes >= 8; bytes -= 8, in += 8, out += 8) std::memcpy(out, in, 8);
    copy_short(out, in, bytes);
}

inline void copy_bytes(void* to, const void* from, std::size_t bytes) noexcept {
    if (bytes <= kShortBytes) return copy_short(to, from, bytes);
    std::memcpy(to, from, bytes);
}

/// Asks for a line that will be written soon, from the processor that has read it last. Only a
/// hint.
inline void take_line(const std::byte* at) noexcept {
#if defined(__x86_64__)
    asm volatile("prefetchw %0" ::"m"(*at));  // the builtin would only read it here
#else
    __builtin_prefetch(at, 1);
#endif
}

/// Sends a line that was just written on its way to its reader: to the cache that all
/// processors share. Only a hint, and none where a processor does not know it.
inline void hand_line(const std::byte* at) noexcept {
#if defined(__x86_64__)
    asm volatile("cldemote %0" ::"m"(*at));
#else
    static_cast<void>(at);
#endif
}

}  // namespace rmem
