// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The Directed Message: header and container, as they lie in one billboard message of class dp.
///
///   header     nid:16 | dpid:16 | length:24 | kind:8      destination and length of the container,
///              as in the paper
///   plain      header, container
///   listed     header (dpid: number of entries), entries nid:16 | dpid:16, container: several
///              endpoints by one multicast
///   reliable   header, label, container                   the Go-Back-N layer's data
///   ack        header, label                              its answer
///   label      source dpid:16 | generation:16 | sequence:32
///
/// The nid of a multicast to one DPID of several nodes is kAllNids. A message may be longer than
/// header and container: what is behind them means nothing. All of it was written by another
/// process: `parse` bounds each field before it is used.
///
/// Units: bytes, in the order of the host, which is the ring's. Thread safety: functions without
/// state.
/// Source: C.-L. Wang et al., "Directed Point", 4.2; the kinds and the label are a reconstruction.

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace ports::dp {

inline constexpr unsigned kMaxDpid = 0xffff;
inline constexpr unsigned kAllNids = 0xffff;
inline constexpr std::size_t kHeaderBytes = 8;
inline constexpr std::size_t kEntryBytes = 4;
inline constexpr std::size_t kLabelBytes = 8;
inline constexpr std::size_t kMaxTargets = 256;  ///< of one endpoint, so of one list

enum class Kind : std::uint8_t { plain = 0xd1, listed = 0xd2, reliable = 0xd3, ack = 0xd4 };

struct Header {
    unsigned nid;
    unsigned dpid;
    std::size_t length;
    Kind kind;

    [[nodiscard]] constexpr std::uint64_t word() const noexcept {
        return to(nid, dpid, kind) | static_cast<std::uint64_t>(length) << 32;
    }
    /// All of it but the length, which comes with each message.
    [[nodiscard]] static constexpr std::uint64_t to(unsigned nid, unsigned dpid,
                                                    Kind kind) noexcept {
        return nid | static_cast<std::uint64_t>(dpid) << 16 |
               static_cast<std::uint64_t>(kind) << 56;
    }
    [[nodiscard]] static constexpr std::uint64_t without_length(std::uint64_t word) noexcept {
        return word & ~(std::uint64_t{0xffffff} << 32);
    }
    [[nodiscard]] static constexpr Header from(std::uint64_t word) noexcept {
        return {static_cast<unsigned>(word & 0xffff), static_cast<unsigned>(word >> 16 & 0xffff),
                static_cast<std::size_t>(word >> 32 & 0xffffff), static_cast<Kind>(word >> 56)};
    }
};

/// What the Go-Back-N layer adds. In an ack, `source` is the DPID that answers and `sequence` the
/// one awaited next.
struct Label {
    std::uint16_t source;
    std::uint16_t generation;
    std::uint32_t sequence;

    [[nodiscard]] std::uint64_t word() const noexcept {
        return source | static_cast<std::uint64_t>(generation) << 16 |
               static_cast<std::uint64_t>(sequence) << 32;
    }
    [[nodiscard]] static Label from(std::uint64_t word) noexcept {
        return {static_cast<std::uint16_t>(word), static_cast<std::uint16_t>(word >> 16),
                static_cast<std::uint32_t>(word >> 32)};
    }
};

/// A list's entry.
struct Entry {
    unsigned nid, dpid;
    [[nodiscard]] static Entry at(const std::byte* entries, std::size_t i) noexcept {
        std::uint32_t word;
        std::memcpy(&word, entries + i * kEntryBytes, sizeof word);
        return {word & 0xffff, word >> 16};
    }
    [[nodiscard]] std::uint32_t word() const noexcept { return nid | dpid << 16; }
};

/// A message as it was found.
struct Frame {
    Header header;
    Label label;               ///< of reliable and ack
    const std::byte* entries;  ///< of listed: header.dpid of them
    const std::byte* container;
};

[[nodiscard]] inline std::uint64_t load_word(const std::byte* from) noexcept {
    std::uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return word;
}

/// Up to 8 bytes as a word, without a store that a wider load would have to wait for.
[[nodiscard]] inline std::uint64_t word_of(const void* bytes, std::size_t length) noexcept {
    const auto* from = static_cast<const unsigned char*>(bytes);
    if (length == 8) return load_word(reinterpret_cast<const std::byte*>(from));
    if (length >= 4) {
        std::uint32_t low = 0, high = 0;
        std::memcpy(&low, from, 4);
        std::memcpy(&high, from + length - 4, 4);
        return low | static_cast<std::uint64_t>(high) << (length - 4) * 8;
    }
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < length; ++i) word |= std::uint64_t{from[i]} << i * 8;
    return word;
}

/// Returns false if it is no frame, or holds less than its header says.
[[nodiscard]] inline bool parse(const std::byte* bytes, std::size_t size, Frame& frame) noexcept {
    if (size < kHeaderBytes) return false;
    frame.header = Header::from(load_word(bytes));
    std::size_t before = kHeaderBytes;
    switch (frame.header.kind) {
        case Kind::plain: break;
        case Kind::listed:
            if (frame.header.dpid > kMaxTargets) return false;
            frame.entries = bytes + before;
            before += (frame.header.dpid * kEntryBytes + 7) / 8 * 8;
            break;
        case Kind::reliable:
        case Kind::ack: before += kLabelBytes; break;
        default: return false;
    }
    if (size < before || frame.header.length > size - before) return false;
    if (frame.header.kind == Kind::reliable || frame.header.kind == Kind::ack) {
        frame.label = Label::from(load_word(bytes + kHeaderBytes));
    }
    frame.container = bytes + before;
    return true;
}

}  // namespace ports::dp
