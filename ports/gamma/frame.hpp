// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What travels: a frame is one message of the billboard, in class gamma.
///
///   word 0   kind : 4 | flags : 4 | destination port : 8 | destination's parallel PID : 8 | source
///            port : 8
///   word 1   number of the frame in its stream
///   message in one frame (no flag `parts`): payload from byte 8
///   message in parts: word 2 its size, word 3 the payload's offset in it, payload from byte 16
///   lost: word 1 is the number that the next frame of the stream has
///   barrier: destination port 255, source port is the round, word 1 counts the barriers of the
///   sender hello: word 1 the first number of all streams to the receiver; word 2 version | nodes
///          asked for << 8 (0: the sender is no GAMMA process) |
///          parallel PID asked for << 16 | kAsksPid; word 3 barriers begun; then (port, number) of
///          each broadcast stream to the receiver's group that does not begin with that first
///          number
///
/// A stream is what one process sends to one port of one other process (or, broadcast, of one
/// group). Its frames are numbered, so that a lost one is noticed.
/// Words are in the host's order, as all of the billboard's are. Every field is checked by its
/// reader.

#include "billboard/boards/layout.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ports::gamma {

enum class Kind : unsigned { message = 1, lost = 2, barrier = 3, hello = 4 };

enum Flag : unsigned {
    kParts = 1,      ///< one of several frames of a message
    kBroadcast = 2,  ///< of the stream to a whole group
    kAnswer = 4,     ///< a hello that asks for none
    kFailed = 8      ///< a barrier that a member did not come to
};

inline constexpr unsigned kPorts = 256;
inline constexpr unsigned kLastPort = 254;
inline constexpr unsigned kBarrierPort = 255;
inline constexpr unsigned kMaxGroups = 256;
inline constexpr std::size_t kFramePayload = 1500;
inline constexpr std::size_t kHeaderBytes = 8;
inline constexpr std::size_t kPartsHeaderBytes = 16;
inline constexpr std::size_t kHelloBytes = 16;  ///< without its pairs
inline constexpr std::size_t kFrameBytes = kPartsHeaderBytes + kFramePayload;
/// As much payload as goes with the header into the half line that carries the billboard's flag
/// word.
inline constexpr std::size_t kHeadPayload = billboard::kHeadBytes - kHeaderBytes;
inline constexpr std::size_t kMaxMessageBytes = 0xffffffff;
inline constexpr unsigned kVersion = 1;
inline constexpr std::uint32_t kAsksPid = 0x1000000;

/// Word 0 of a frame.
struct Header {
    Kind kind;
    unsigned flags, port, par_pid, source_port;

    [[nodiscard]] constexpr std::uint32_t word() const noexcept {
        return static_cast<unsigned>(kind) | flags << 4 | port << 8 | par_pid << 16 |
               source_port << 24;
    }
    [[nodiscard]] static constexpr Header of(std::uint32_t word) noexcept {
        return {static_cast<Kind>(word & 0xf), word >> 4 & 0xf, word >> 8 & 0xff, word >> 16 & 0xff,
                word >> 24};
    }
};

/// Words 0 and 1 as they are written and read: at once.
[[nodiscard]] constexpr std::uint64_t both_words(std::uint32_t header,
                                                 std::uint32_t number) noexcept {
    return header | std::uint64_t{number} << 32;
}

[[nodiscard]] inline std::uint32_t word_at(const std::byte* frame, std::size_t offset) noexcept {
    std::uint32_t word;
    std::memcpy(&word, frame + offset, sizeof word);
    return word;
}
inline void put_word(std::byte* frame, std::size_t offset, std::uint32_t word) noexcept {
    std::memcpy(frame + offset, &word, sizeof word);
}

}  // namespace ports::gamma
