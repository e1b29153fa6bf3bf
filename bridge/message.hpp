// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the two ends of a bridge say to each other: frames (rmem/base/frames.hpp), with
/// kinds and fields of their own. docs/design/bridge.md has the terms.
///
/// An end opens with the regions that it would send; the other accepts or refuses each, by its
/// place in that list. Then come frames of writes one way and acknowledgements the other.
/// Thread safety: values and functions.
/// Trust: what is read is another's; lengths and counts are checked here, places by their user.
/// Units: bytes, words of 4 bytes, nanoseconds of the sender's CLOCK_MONOTONIC.

#include "rmem/base/frames.hpp"
#include "rmem/base/limits.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace bridge {

using rmem::kWordBytes;

inline constexpr std::uint32_t kMagic = 0x47524252;  ///< "RBRG"
inline constexpr std::uint16_t kVersion = 1;

inline constexpr std::size_t kMaxRegions = 32;  ///< of an end, each way
inline constexpr std::size_t kMaxHops = 8;
inline constexpr std::size_t kMaxRingNameBytes = 63;
inline constexpr std::size_t kMaxFrameBytes = std::size_t{32} << 10;  ///< of words
/// With the slots' marks that are written beside them, a write group (rmem/link/memory.hpp).
inline constexpr std::size_t kMaxPieces = 32;
inline constexpr std::size_t kFrameHeaderBytes = 20;
inline constexpr std::size_t kPieceHeaderBytes = 12;
/// No message is longer.
inline constexpr std::size_t kMaxBodyBytes =
    kFrameHeaderBytes + kMaxFrameBytes + kMaxPieces * kPieceHeaderBytes;

/// The fields of each, in their order. A field without a type has 64 bits.
enum class Kind : std::uint16_t {
    open = 1,  ///< magic (32), version (16), regions (16); of each bytes, name's bytes (16), name
    accept,    ///< region (16)
    refuse,    ///< region (16), reason (16), sentence to the end
    path,      ///< region (16), hops (16), each
    frame,     ///< number, flags (32), stored; pieces: region (16), flags (16), word (32),
               ///< words (32), these
    status,    ///< number of the last frame taken, sent, echoed or 0, held
    failed,    ///< sentence to the end
};

enum class Reason : std::uint16_t { unknown_region = 1, circle = 2 };

using Path = std::vector<std::uint64_t>;  ///< of hops, the first that was passed first

/// What an end would send.
struct Offer {
    std::string name;
    std::uint64_t bytes = 0;
};

struct Piece {
    static constexpr std::uint16_t kInterrupt = 1;

    std::uint16_t region = 0;
    std::uint16_t flags = 0;
    std::uint32_t word = 0;  ///< of the region
    std::span<const std::byte> words;
};

struct FrameHead {
    static constexpr std::uint32_t kCopy = 1;

    std::uint64_t number = 0;  ///< counts a line's, from 1
    std::uint32_t flags = 0;
    std::int64_t stored_ns = 0;
};

struct Status {
    std::uint64_t taken = 0;
    std::int64_t sent_ns = 0;
    std::int64_t echoed_ns = 0;  ///< send time of the other's last status; 0: there was none
    std::int64_t held_ns = 0;    ///< since it came
};

using MessageWriter = rmem::FrameWriter;

[[nodiscard]] inline Kind kind_of(const rmem::Frame& message) {
    return static_cast<Kind>(message.kind);
}

void write_open(std::vector<std::byte>& to, std::span<const Offer> offers);
/// What an opening message says. Of another version nothing but the version is known.
struct Opening {
    std::uint16_t version = 0;
    std::vector<Offer> offers;
};
/// Returns nothing, here and below, if no end writes such bytes.
[[nodiscard]] std::optional<Opening> read_open(std::span<const std::byte> body);

void write_refuse(std::vector<std::byte>& to, std::uint16_t region, Reason reason,
                  std::string_view sentence);
void write_path(std::vector<std::byte>& to, std::uint16_t region, const Path& path);
[[nodiscard]] std::optional<Path> read_path(rmem::FieldReader& fields);
void write_status(std::vector<std::byte>& to, const Status& status);
[[nodiscard]] std::optional<Status> read_status(std::span<const std::byte> body);

/// A frame of pieces that are encoded already.
void write_frame(std::vector<std::byte>& to, const FrameHead& head,
                 std::span<const std::byte> pieces);
void append_piece(std::vector<std::byte>& pieces, const Piece& piece);
/// The pieces refer to the body.
struct FrameMessage {
    FrameHead head;
    std::vector<Piece> pieces;
};
[[nodiscard]] bool read_frame(std::span<const std::byte> body, FrameMessage& frame);

}  // namespace bridge
