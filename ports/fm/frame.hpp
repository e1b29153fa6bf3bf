// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What Fast Messages write on the billboard, byte by byte, in messages of class fm. Integers as
/// the host has them.
///
///   hello     kind, version, window:16, 0:32, program:64, modules:64     before anything else,
///             once for each incarnation
///   four      kind, slot:8, ack:16, module:32, offset:32, words 4 × 32   FM_send_4; 28 bytes: half
///             a line with its flag
///   buffer    the same header, 0 to 128 bytes                            FM_send
///   returned  kind, count:8, ack:16, slots count × 8                     what had no place at the
///             receiver; with none, an ack
///   packet    kind | first | last, stream:8, handler:16, limit:16, number:16, payload    2.x; 16
///             bytes of it in 24
///   credit    kind, 0:8, limit:16                                        2.x
///
/// All of it is untrusted: the reader of a frame checks its size first, then each field.

#include "billboard/boards/layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ports::fm {

enum class Kind : std::uint8_t {
    hello = 1,
    four = 3,
    buffer = 4,
    returned = 5,
    credit = 6,
    packet = 8,  ///< and the two bits below
};
inline constexpr std::uint8_t kFirstPacket = 1, kLastPacket = 2;
inline constexpr std::uint8_t kVersion = 2;

inline constexpr std::size_t kFm1Payload = 128;
inline constexpr std::size_t kFm1Header = 12;
inline constexpr std::size_t kFm1Frame = kFm1Header + kFm1Payload;
inline constexpr std::size_t kReturnedHeader = 4;
inline constexpr std::size_t kReturnedSlots = billboard::kInlineBytes - kReturnedHeader;
inline constexpr std::size_t kFm2Header = 8;
/// Counts of 16 bits start just below their wrap, so that every run crosses it.
inline constexpr std::uint16_t kFirstCount = 0xffe0;

template <class T>
[[nodiscard]] T read_as(const std::byte* from) noexcept {
    T value;
    std::memcpy(&value, from, sizeof value);
    return value;
}

struct Hello {
    Kind kind = Kind::hello;
    std::uint8_t version = kVersion;
    std::uint16_t window = 0;  ///< slots of the sender's reject queue
    std::uint32_t unused = 0;
    std::uint64_t program = 0;  ///< which binary it runs
    std::uint64_t modules = 0;  ///< and with which libraries
};
static_assert(sizeof(Hello) == 24 && sizeof(Hello) <= billboard::kHeadBytes);

struct Fm1Header {
    Kind kind = Kind::four;
    std::uint8_t slot = 0;
    std::uint16_t ack =
        0;  ///< frames of the receiver that the sender has decided on, accepted or returned
    std::uint32_t module = 0;
    std::uint32_t offset = 0;  ///< of the handler
};
static_assert(sizeof(Fm1Header) == kFm1Header &&
              kFm1Header + 4 * sizeof(int) <= billboard::kHeadBytes);

struct ReturnedHeader {
    Kind kind = Kind::returned;
    std::uint8_t count = 0;
    std::uint16_t ack = 0;
};
static_assert(sizeof(ReturnedHeader) == kReturnedHeader);

struct Fm2Header {
    std::uint8_t kind = 0;
    std::uint8_t stream = 0;
    std::uint16_t handler = 0;
    std::uint16_t limit =
        0;  ///< packets, counted as they were sent, that the receiver of this may send
    std::uint16_t number = 0;  ///< of this packet, between the two nodes
};
static_assert(sizeof(Fm2Header) == kFm2Header && kFm2Header + 16 <= billboard::kHeadBytes);

struct Credit {
    Kind kind = Kind::credit;
    std::uint8_t unused = 0;
    std::uint16_t limit = 0;
};

}  // namespace ports::fm
