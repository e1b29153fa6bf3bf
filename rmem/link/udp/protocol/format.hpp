// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The wire format of the udp link (docs/design/udp-link.md): its limits, and what stands where.
/// rmem/link/udp/protocol/datagram.hpp reads datagrams, rmem/link/udp/protocol/datagram_writer.hpp
/// writes them.
///
/// Each kind of entry has its size, read() and write() in one place. They trust their caller that
/// kBytes are there; values that no node would send are for the reader to refuse.
/// Units: times in nanoseconds of the named clock; sizes in bytes unless they are words.

#include "rmem/base/hash.hpp"
#include "rmem/base/little_endian.hpp"
#include "rmem/base/node_set.hpp"
#include "rmem/base/word_block.hpp"
#include "rmem/ring/config.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace rmem::udp {

// ---- Limits

inline constexpr std::uint32_t kMagic = 0x55454d52;  ///< "RMEU"
inline constexpr std::uint8_t kVersion = 5;
inline constexpr std::size_t kHeaderBytes = 56;
inline constexpr std::size_t kOriginAt = 6;        ///< of the header: whose datagram it is
inline constexpr std::size_t kIncarnationAt = 16;  ///< and of which incarnation
inline constexpr std::size_t kTagBytes = 16;       ///< of either kind of tag
inline constexpr std::size_t kEnvelopeBytes = kHeaderBytes + kTagBytes;
inline constexpr std::size_t kSectionHeadBytes = 4;

/// Bytes of a datagram. Each node says up to which size datagrams reach it, and nobody sends longer
/// ones than all that are to take them.
inline constexpr std::size_t kDefaultPayload =
    1472;  ///< Ethernet's 1500 less IPv4 (20) and UDP (8)
/// Two of the longest fit a GSO batch: while one is taken the other is filled.
inline constexpr std::size_t kMaxPayload = 32'752;
inline constexpr std::size_t kLeastPayload = 1232;  ///< IPv6's least MTU of 1280 less 40 and 8

/// Bytes that a host takes of a receive buffer for a datagram at most: its descriptor, and the
/// memory that the card or the loop-back interface puts it in, which is at least a page with some
/// cards, a power of two up to four pages, and whole pages beyond.
constexpr std::size_t bytes_charged(std::size_t payload) noexcept {
    // What the host's kernel keeps beside a datagram's bytes (x86-64).
    constexpr std::size_t kDescriptor = 256;
    constexpr std::size_t kBeside = 384;  // in the same piece of memory: headers, list of parts
    constexpr std::size_t kPage = 4096;
    const std::size_t bytes = payload + kBeside;
    if (bytes > 4 * kPage) return kDescriptor + (bytes + kPage - 1) / kPage * kPage;
    return kDescriptor + std::max(kPage, std::bit_ceil(bytes));
}

/// In front of a batch's records at most: forwarded, it needs more than as its writer sent it.
inline constexpr std::size_t kMaxBatchHeadBytes = 28;

/// Of a batch's body: forwarded, it fits the longest datagram.
inline constexpr std::size_t kMaxBodyBytes = kMaxPayload - kEnvelopeBytes - kSectionHeadBytes - 12;

/// Word indices of a place have 40 bits: banks up to 4 TiB.
inline constexpr unsigned kPlaceIndexBits = 40;
inline constexpr std::uint64_t kPlaceIndices = std::uint64_t{1} << kPlaceIndexBits;

// ---- What stands where

enum class TagKind : std::uint8_t { none, aes_256_gcm, chacha20_poly1305, kCount };

inline constexpr std::size_t kVersionAt = 4;   ///< in the header, behind the magic
inline constexpr std::size_t kLengthAt = 52;   ///< bytes of the sections
inline constexpr std::size_t kPayloadAt = 54;  ///< Header::payload

struct Header {
    TagKind tag_kind = TagKind::none;
    std::uint16_t origin = 0;
    std::uint64_t ring = 0;         ///< hash of name and configuration
    std::uint64_t incarnation = 0;  ///< the origin's
    std::uint64_t salt = 0;         ///< of that incarnation
    std::uint64_t number = 0;       ///< of this datagram in that incarnation
    std::int64_t sent_ns = 0;       ///< origin's clock
    std::uint32_t newest = 0;       ///< low bits of the sequence of its newest batch; 0: none yet
    std::uint16_t payload = kDefaultPayload;  ///< the longest datagram that reaches it

    /// All but the magic, the version and the sections' length, which are the reader's and
    /// writer's.
    static Header read(const std::byte* from) noexcept {
        return {static_cast<TagKind>(from[5]),
                load<std::uint16_t>(from + 6),
                load<std::uint64_t>(from + 8),
                load<std::uint64_t>(from + 16),
                load<std::uint64_t>(from + 24),
                load<std::uint64_t>(from + 32),
                load_time(from + 40),
                load<std::uint32_t>(from + 48),
                load<std::uint16_t>(from + kPayloadAt)};
    }
    void write(std::byte* to) const noexcept {
        to[5] = static_cast<std::byte>(tag_kind);
        store(to + kOriginAt, origin);
        store(to + 8, ring);
        store(to + kIncarnationAt, incarnation);
        store(to + 24, salt);
        store(to + kPayloadAt, payload);
        restamp(to, number, sent_ns, newest);
    }
    /// Of one that was written: what is known when it leaves.
    static void restamp(std::byte* to, std::uint64_t number, std::int64_t sent_ns,
                        std::uint32_t newest) noexcept {
        store(to + 32, number);
        store_time(to + 40, sent_ns);
        store(to + 48, newest);
    }
};

/// Which node, and a check which incarnation of it is meant: the low bits of its number. An
/// acknowledgement that was on its way while a node was restarted must not count for the new
/// incarnation.
struct NodeIncarnation {
    std::uint16_t node = 0;
    std::uint16_t incarnation = 0;

    static constexpr std::size_t kBytes = 4;
    static constexpr NodeIncarnation of(std::uint16_t node, std::uint64_t incarnation) noexcept {
        return {node, static_cast<std::uint16_t>(incarnation)};
    }
    static NodeIncarnation read(const std::byte* from) noexcept {
        return {load<std::uint16_t>(from), load<std::uint16_t>(from + 2)};
    }
    void write(std::byte* to) const noexcept {
        store(to, node);
        store(to + 2, incarnation);
    }
    friend bool operator==(const NodeIncarnation&, const NodeIncarnation&) = default;
};

/// The sequence next to `near` that has these low bits.
constexpr std::uint64_t widened(std::uint32_t low, std::uint64_t near) noexcept {
    const auto ahead = static_cast<std::int32_t>(low - static_cast<std::uint32_t>(near));
    return near + static_cast<std::uint64_t>(std::int64_t{ahead});
}

/// Words of the bank.
struct Place {
    static constexpr std::uint8_t kInterrupt = 1;  ///< flag: the write carries the interrupt mark
    static constexpr unsigned kPartShift = 4;  ///< above it: which bytes of its one word, 0: all

    static constexpr std::uint8_t flags_of(WordPart part) noexcept {
        return part == kWholeWord ? 0 : static_cast<std::uint8_t>(part << kPartShift);
    }
    constexpr WordPart part() const noexcept {
        const auto part = static_cast<WordPart>(flags >> kPartShift & kWholeWord);
        return part == 0 ? kWholeWord : part;
    }

    std::uint64_t index = 0;  ///< of the first word; below kPlaceIndices
    std::uint16_t words = 0;
    std::uint8_t flags = 0;

    /// To be asked before anything is stored.
    constexpr bool is_inside(std::uint64_t bank_bytes) const noexcept {
        return words <= bank_bytes / kWordBytes && index <= bank_bytes / kWordBytes - words;
    }

    static constexpr std::size_t kBytes = 8;
    static Place read(const std::byte* from) noexcept {
        const auto packed = load<std::uint64_t>(from);
        return {packed & (kPlaceIndices - 1), static_cast<std::uint16_t>(packed >> kPlaceIndexBits),
                static_cast<std::uint8_t>(packed >> (kPlaceIndexBits + 16))};
    }
    void write(std::byte* to) const noexcept {
        store(to, (index & (kPlaceIndices - 1)) | std::uint64_t{words} << kPlaceIndexBits |
                      std::uint64_t{flags} << (kPlaceIndexBits + 16));
    }
    friend bool operator==(const Place&, const Place&) = default;
};

/// A number for the incarnations of some nodes: of one, to be added to that of others.
constexpr std::uint64_t sum_of_incarnations(unsigned node, std::uint64_t incarnation) noexcept {
    std::uint64_t sum = golden_mix(incarnation, std::uint64_t{node} << 56);
    sum = (sum ^ sum >> 32) * 0xd6e8feb86659fd93;
    return sum ^ sum >> 32;
}

enum class SectionType : std::uint8_t {
    batch = 1,         ///< writes of the datagram's origin: Batch
    forwarded,         ///< a batch of another node, whose incarnation has ended
    acks,              ///< Ack, a list
    nak,               ///< Missing, a list
    echo,              ///< Echo, a list
    status,            ///< Status
    join,              ///< Join
    welcome,           ///< Welcome
    admit,             ///< Admit
    snapshot_request,  ///< places
    vector,            ///< Vector
    chunk,             ///< Chunk
    /// Nothing: makes a datagram as long as others (rmem/link/udp/socket.hpp says what for).
    padding,
    greeting,  ///< Greeting, a list
    about      ///< text: the origin's ring and settings, for people
};

/// Of a node's stream all up to this is here.
struct Ack {
    NodeIncarnation origin;
    std::uint32_t up_to = 0;  ///< low bits; see widened()

    static constexpr SectionType kType = SectionType::acks;
    static constexpr std::size_t kBytes = 8;
    static Ack read(const std::byte* from) noexcept {
        return {NodeIncarnation::read(from), load<std::uint32_t>(from + 4)};
    }
    void write(std::byte* to) const noexcept {
        origin.write(to);
        store(to + 4, up_to);
    }
};

/// Batches of a node's stream that its sender lacks.
struct Nak {
    NodeIncarnation origin;
    std::uint32_t first = 0;  ///< low bits
    std::uint32_t count = 0;  ///< at least 1

    static constexpr SectionType kType = SectionType::nak;
    static constexpr std::size_t kBytes = 12;
    static Nak read(const std::byte* from) noexcept {
        return {NodeIncarnation::read(from), load<std::uint32_t>(from + 4),
                load<std::uint32_t>(from + 8)};
    }
    void write(std::byte* to) const noexcept {
        origin.write(to);
        store(to + 4, first);
        store(to + 8, count);
    }
};

/// The newest datagram heard of a node: its own send time, and how long ago it came.
struct Echo {
    NodeIncarnation node;
    std::int64_t sent_ns = 0;  ///< that node's clock
    std::int64_t held_ns = 0;  ///< between its arrival and this datagram's send time

    static constexpr SectionType kType = SectionType::echo;
    static constexpr std::size_t kBytes = 20;
    static Echo read(const std::byte* from) noexcept {
        return {NodeIncarnation::read(from), load_time(from + 4), load_time(from + 12)};
    }
    void write(std::byte* to) const noexcept {
        node.write(to);
        store_time(to + 4, sent_ns);
        store_time(to + 12, held_ns);
    }
};

/// How a node sees the ring.
struct Status {
    /// returned: a member that did not run for longer than half of the time-out of a death.
    enum class State : std::uint16_t { joining = 1, member = 2, leaving = 3, returned = 4 };

    std::uint64_t ring_incarnation = 0;  ///< 0: in none yet
    std::uint32_t socket_room = 0;       ///< bytes that its socket holds, by bytes_charged()
    State state = State::joining;        ///< another value says nothing
    std::uint16_t ranks = 0;             ///< programs attached to the node
    NodeSet view;                        ///< the members, as it sees them

    bool is_member() const noexcept { return state == State::member || state == State::returned; }

    static constexpr SectionType kType = SectionType::status;
    static constexpr std::size_t kBytes = 16 + NodeSet::kBytes;
    static Status read(const std::byte* from) noexcept {
        return {load<std::uint64_t>(from), load<std::uint32_t>(from + 8),
                static_cast<State>(load<std::uint16_t>(from + 12)), load<std::uint16_t>(from + 14),
                NodeSet::read(from + 16)};
    }
    void write(std::byte* to) const noexcept {
        store(to, ring_incarnation);
        store(to + 8, socket_room);
        store(to + 12, static_cast<std::uint16_t>(state));
        store(to + 14, ranks);
        view.write(to + 16);
    }
};

/// The datagram's origin wants to become a member.
struct Join {
    std::uint64_t cookie = 0;  ///< random; an answer repeats it
    NodeSet admitted_by;  ///< these need not say again that they count the joiner as a receiver

    static constexpr SectionType kType = SectionType::join;
    static constexpr std::size_t kBytes = 8 + NodeSet::kBytes;
    static Join read(const std::byte* from) noexcept {
        return {load<std::uint64_t>(from), NodeSet::read(from + 8)};
    }
    void write(std::byte* to) const noexcept {
        store(to, cookie);
        admitted_by.write(to + 8);
    }
};

/// A member and its incarnation, as a welcome names them.
struct MemberIncarnation {
    std::uint16_t node = 0;
    std::uint64_t incarnation = 0;

    static constexpr std::size_t kBytes = 12;
    static MemberIncarnation read(const std::byte* from) noexcept {
        return {load<std::uint16_t>(from), load<std::uint64_t>(from + 4)};
    }
    friend bool operator==(const MemberIncarnation&, const MemberIncarnation&) = default;
    void write(std::byte* to) const noexcept {
        store(to, node);
        store(to + 2, std::uint16_t{0});
        store(to + 4, incarnation);
    }
};

/// From which batch of the datagram's origin on the joiner counts as a receiver; 0: that
/// incarnation of it is over.
struct Admit {
    NodeIncarnation joiner;
    std::uint64_t cookie = 0;
    std::uint64_t first = 0;  ///< sequence, at least 1
    std::uint64_t ring_incarnation =
        0;  ///< of the ring that the origin is a member of; 0: of none yet

    static constexpr SectionType kType = SectionType::admit;
    static constexpr std::size_t kBytes = 28;
    static Admit read(const std::byte* from) noexcept {
        return {NodeIncarnation::read(from), load<std::uint64_t>(from + 4),
                load<std::uint64_t>(from + 12), load<std::uint64_t>(from + 20)};
    }
    void write(std::byte* to) const noexcept {
        joiner.write(to);
        store(to + 4, cookie);
        store(to + 12, first);
        store(to + 20, ring_incarnation);
    }
};

/// What makes one incarnation believe another (docs/design/udp-link.md: Greeting). A nonce is never
/// 0.
struct Greeting {
    static constexpr std::uint16_t kIsMember = 1;  ///< flag: the origin is a member

    std::uint16_t to = 0;  ///< node, whatever its incarnation
    std::uint16_t flags = 0;
    std::uint64_t nonce = 0;     ///< the origin's, for the incarnation of `to` that is to repeat it
    std::uint64_t answer = 0;    ///< the nonce of `to` for the origin; 0: asks, answers none
    std::uint64_t believed = 0;  ///< the incarnation of `to` that the origin believes; 0: none
    std::uint64_t first_incarnation = 0;  ///< of the origin's process

    static constexpr SectionType kType = SectionType::greeting;
    static constexpr std::size_t kBytes = 36;
    static Greeting read(const std::byte* from) noexcept {
        return {load<std::uint16_t>(from),      load<std::uint16_t>(from + 2),
                load<std::uint64_t>(from + 4),  load<std::uint64_t>(from + 12),
                load<std::uint64_t>(from + 20), load<std::uint64_t>(from + 28)};
    }
    void write(std::byte* to_bytes) const noexcept {
        store(to_bytes, to);
        store(to_bytes + 2, flags);
        store(to_bytes + 4, nonce);
        store(to_bytes + 12, answer);
        store(to_bytes + 20, believed);
        store(to_bytes + 28, first_incarnation);
    }
};

/// Bytes of the text of an about section at most.
inline constexpr std::size_t kMaxAboutBytes = 400;

/// What ties a snapshot request and its answer: the node that is to read the section, and the
/// joiner's number of the request. A request that is repeated has a new number, so all with one
/// number is of one instant.
struct RequestId {
    NodeIncarnation to;
    std::uint32_t number = 0;

    static constexpr std::size_t kBytes = 8;
    static RequestId read(const std::byte* from) noexcept {
        return {NodeIncarnation::read(from), load<std::uint32_t>(from + 4)};
    }
    void write(std::byte* to_bytes) const noexcept {
        to.write(to_bytes);
        store(to_bytes + 4, number);
    }
    friend bool operator==(const RequestId&, const RequestId&) = default;
};

}  // namespace rmem::udp
