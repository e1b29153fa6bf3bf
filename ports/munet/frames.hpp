// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What daemons send each other: the 2-byte tag of the paper (type, endpoint number), and what else
/// they need to know.
///
/// A frame is a billboard message of class munet: this head of 16 bytes, then at most a chunk of a
/// message. Frames from one node to another arrive in order, so that what is said of a pairing that
/// has ended never meets its successor.

#include "ports/munet/endpoint_memory.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

namespace ports::munet {

enum class FrameType : std::uint8_t {
    whole = 1,  ///< as Kind: a message, or a part
    first = 2,
    more = 3,
    last = 4,
    long_first = 5,  ///< the first chunk of a message of `length` bytes
    long_more = 6,
    open = 7,    ///< asks for a place; `lines` is the user's id
    answer = 8,  ///< `flags`: Answer; `length`: the share; `credit_index`: the place
    credit = 9,
    gone = 10,  ///< from an endpoint that is gone, to one that has a place with it
    left = 11   ///< gives a place back
};

struct FrameHead {
    FrameType type = FrameType::whole;
    std::uint8_t endpoint = 0;     ///< whom it is for
    std::uint8_t source = 0;       ///< endpoint of the sending node
    std::uint8_t index = 0;        ///< place at the destination; answer, credit, gone: slot
    std::uint16_t generation = 0;  ///< of the pairing, as the asking node numbers them
    std::uint8_t credit_index = 0;
    std::uint8_t flags = 0;
    std::uint32_t length = 0;  ///< of the bytes that follow, or of the whole message
    std::uint32_t lines = 0;   ///< credit: consumed, all in all

    static constexpr std::uint8_t kHasCredit = 1;  ///< on messages: for the slot credit_index
};
static_assert(sizeof(FrameHead) == 16);

inline constexpr std::size_t kChunk = 4096;  ///< of a long message, in one frame, at most

/// False when there is too little of it.
[[nodiscard]] inline bool read_head(std::span<const std::byte> frame, FrameHead* head) noexcept {
    if (frame.size() < sizeof *head) return false;
    std::memcpy(head, frame.data(), sizeof *head);
    return true;
}

}  // namespace ports::munet
