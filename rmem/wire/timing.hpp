// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How fast a modelled ring is: named profiles of real hardware, as numbers only.
///
/// Thread safety: values; nothing is shared.
/// Consistency:   of what parse_timing() gives: slot >= header, pitch >= slot. All else it refuses.
/// Units:         picoseconds inside (82 bits at 150 Mbit/s are 546 667 ps: rounded once for a
///                packet, never summed over bits), nanoseconds where a caller sees time.
/// Errors:        parse_timing() throws Error(Errc::bad_profile); its sentence names the profile or
///                option, what was found and the valid ones.
/// Source:        SCRAMNet+ SC150e and SCRAMNet GT200 hardware references, figures of RFM 5565 that
///                vendors publish; timing.cpp and timing_source() tell the source of each number,
///                and which are derived.

#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace rmem {

enum class PacketMode : std::uint8_t {
    fixed = 0,    ///< one word in each packet
    variable = 1  ///< PLUS: sequential words that keep up share a packet
};

enum class FifoPolicy : std::uint8_t {
    hold_off = 0,  ///< a full TX FIFO stalls the writer: nothing is lost
    lose = 1       ///< a write that finds the TX FIFO full is lost, and counted
};

/// One ring's timing; a default one is `none`. No padding and no pointers, so that it can lie in a
/// shared segment's header and be hashed byte by byte.
struct TimingProfile {
    static constexpr std::size_t kNameSize = 32;

    char name[kNameSize] = "none";    ///< the named profile it was made from, zero-terminated
    std::uint64_t bits_per_s = 0;     ///< line rate
    std::uint64_t node_delay_ps = 0;  ///< a passing packet's least stay in a node
    std::uint64_t insertion_ps = 0;   ///< from a write to the earliest first bit on the wire
    std::uint64_t pitch_ps = 0;       ///< one transmitter's one-word packets, start to start
    std::uint64_t cable_ps = 0;       ///< one segment, node to node
    std::uint64_t promised_ns = 0;    ///< `bound=`: overrides the derived bound; 0: derived
    std::uint32_t header_bits = 0;    ///< of each packet
    std::uint32_t bits_per_byte = 0;  ///< data with its parity or line code
    std::uint32_t packet_bytes = 4;   ///< most data bytes in a packet
    std::uint32_t fifo_words = 0;     ///< TX FIFO depth; 0: no limit
    std::uint16_t max_age = 256;      ///< a packet that has met more nodes is removed
    /// A write of less than a word sends the word, with the rest as the writer's own memory has it;
    /// otherwise a packet says which bytes are its own.
    std::uint8_t whole_words = 0;
    std::uint8_t unused = 0;
    PacketMode packets = PacketMode::fixed;
    FifoPolicy overflow = FifoPolicy::hold_off;
    std::uint8_t retransmits = 0;  ///< PLATINUM: a damaged packet is sent again
    std::uint8_t instant = 1;      ///< `none`: a write is everywhere at once

    friend bool operator==(const TimingProfile&, const TimingProfile&) = default;
};
static_assert(std::is_trivially_copyable_v<TimingProfile>);
static_assert(sizeof(TimingProfile) == TimingProfile::kNameSize + 6 * 8 + 6 * 4);

/// Reads "name[,option]...": `scramnet-burst,fifo=lose,cable=5m`. A name with a slash, or one that
/// ends in `.toml`, is a file (rmem/wire/timing_file.hpp); `custom` is a card of which options say
/// all.
/// Options: fifo=hold|lose, packet=<bytes> (256|1024 of the plus profiles), cable=<metres>m,
/// bound=<n>ns|us|ms, and of a card of one's own: line=<bit/s>, delay=, insertion=,
/// pitch=<n>ps|ns|us|ms, header=<bits>, byte=<bits>, depth=<words>, packets=fixed|variable,
/// resend=yes|no.
RMEM_API TimingProfile parse_timing(std::string_view spec);

/// Whether a spec begins with a file's name; without reading it.
[[nodiscard]] RMEM_API bool names_timing_file(std::string_view spec) noexcept;

/// Where a named profile's numbers are from, in a sentence or two; empty: there is no such profile.
RMEM_API std::string_view timing_source(std::string_view name) noexcept;

/// The spec that parse_timing() reads back as the same profile.
RMEM_API std::string to_string(const TimingProfile& profile);

/// The valid names, in the order in which they are documented.
RMEM_API std::vector<std::string> timing_profile_names();

/// Time on the wire, first to last bit, of one packet with `words` words.
RMEM_API std::uint64_t packet_ps(const TimingProfile& profile, std::uint32_t words) noexcept;

/// The idle time that a node leaves before its next own packet: pitch minus slot.
RMEM_API std::uint64_t gap_ps(const TimingProfile& profile) noexcept;

/// How long one write of `words` words takes a link for itself, with its gaps, rounded up.
RMEM_API std::int64_t busy_ns(const TimingProfile& profile, std::uint32_t words) noexcept;

/// The way round for a packet that meets no other one, without its own length, rounded up.
RMEM_API std::int64_t round_ns(const TimingProfile& profile, std::uint32_t nodes) noexcept;

/// The longest stay of a passing packet in a node: the delay plus one own packet.
RMEM_API std::uint64_t max_node_delay_ps(const TimingProfile& profile) noexcept;

/// The promised most propagation of one write of `words` words on a ring of `nodes`, rounded up:
///
///     insertion + nodes * packets * (packet + gap) + nodes * (max node delay + cable)
///
/// The middle term is the FIFO drain: every node may take its turn before each packet of the
/// write. It assumes that the write found its own TX FIFO empty; a writer that found k packets
/// there waits k * nodes turns more. 0 when the profile promises nothing (`none`).
RMEM_API std::int64_t bound_ns(const TimingProfile& profile, std::uint32_t nodes,
                               std::uint32_t words = 1) noexcept;

/// The same on every host that agrees on the profile; no byte order in it.
RMEM_API std::uint64_t hash_of(const TimingProfile& profile) noexcept;

}  // namespace rmem
