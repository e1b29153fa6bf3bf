// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a ring is made of, and who in it this process is; the defaults and limits of both.
///
/// `RingConfig` is the same for all members of a ring; a joiner's must hash to the ring's. `Member`
/// is this process's place. Both can be read from the environment, which `rmem run` sets.
///
/// Units: sizes in bytes, times in nanoseconds. Errors: `rmem::Error` from the parsing functions.

#include "rmem/base/limits.hpp"
#include "rmem/base/link_kind.hpp"
#include "rmem/base/quantity.hpp"
#include "rmem/error.hpp"
#include "rmem/version.h"
#include "rmem/wire/timing.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace rmem {

inline constexpr unsigned kMaxGuests = 512;  ///< on one host
inline constexpr unsigned kMaxSeats = kMaxRanks + kMaxGuests;
inline constexpr unsigned kMaxGuestRows = 65;  ///< a node's keeper, and 64 programs
inline constexpr std::size_t kMaxNameBytes = 63;
inline constexpr std::size_t kMaxUserBytes = std::size_t{1} << 32;
inline constexpr std::size_t kDefaultUserBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxSystemBytes = std::size_t{1} << 34;
inline constexpr std::int64_t kDefaultJoinTimeoutNs = 30'000'000'000;
inline constexpr unsigned kInterruptQueueEntries = 1024;
inline constexpr unsigned kInterruptNumbers = 40;  ///< of interrupts that are sent
inline constexpr std::size_t kRegisterBytes = 2 * kWordBytes;
inline constexpr std::size_t kLogBytes = std::size_t{1} << 20;        ///< per rank, on link ring
inline constexpr std::size_t kClientLogBytes = std::size_t{1} << 17;  ///< on link udp; a guest's
inline constexpr std::size_t kTapBytes = std::size_t{1} << 20;        ///< per node, on link udp
inline constexpr std::size_t kRosterBytes = kMaxRanks * kWordBytes;   ///< on link udp

/// RMEM_VERSION of the library that the program runs with.
[[nodiscard]] RMEM_API int version() noexcept;

/// The configuration that all members of a ring share.
struct RingConfig {
    std::string name = "default";
    unsigned nodes = 1;
    unsigned ranks = 1;
    LinkKind link = LinkKind::direct;
    std::size_t user_bytes =
        kDefaultUserBytes;          ///< RMEM_SIZE: card programs' memory, from offset 0
    TimingProfile timing{};         ///< RMEM_TIMING; `ring` keeps it
    std::int64_t bound_ns = 0;      ///< RMEM_BOUND; 0: derived from the timing profile
    std::size_t system_bytes = 0;   ///< system regions above the user's memory
    std::uint64_t system_hash = 0;  ///< hash of their layout; 0: none
    std::string unix_group;         ///< RMEM_UNIX_GROUP: share with a group (mode 0660)

    /// Whether the other nodes are elsewhere: a segment then holds one node's bank.
    bool is_remote() const noexcept { return rmem::is_remote(link); }
    /// Where nodes send interrupts from: for each node and number a register, written as one: to
    /// whom, and a value (rmem/ring/interrupts.hpp).
    std::size_t registers_offset() const noexcept {
        constexpr std::size_t kAlign = kRegisterBytes;
        return (user_bytes + system_bytes + kAlign - 1) / kAlign * kAlign;
    }
    std::size_t register_offset(unsigned node, unsigned number) const noexcept {
        return registers_offset() +
               (std::size_t{node} * kInterruptNumbers + number) * kRegisterBytes;
    }
    /// Where a word per rank says who is there, on links whose nodes are elsewhere.
    std::size_t roster_offset() const noexcept { return register_offset(nodes, 0); }
    std::size_t bank_bytes() const noexcept {
        return roster_offset() + (is_remote() ? kRosterBytes : 0);
    }
    /// The ranks' seats, and after them in rows the guests' (rmem/ring/ring.hpp): a row has one of
    /// each node that is on this host, and the first is the keepers'.
    unsigned guests_in_row() const noexcept { return is_remote() ? 1 : nodes; }
    unsigned guest_rows() const noexcept {
        return std::min(kMaxGuestRows, kMaxGuests / guests_in_row());
    }
    unsigned seats() const noexcept { return ranks + guest_rows() * guests_in_row(); }
    unsigned guest_seat(unsigned row, unsigned node) const noexcept {
        return ranks + row * guests_in_row() + (is_remote() ? 0 : node);
    }
    unsigned keeper_of(unsigned node) const noexcept { return guest_seat(0, node); }
    bool is_keeper(unsigned seat) const noexcept {
        return seat >= ranks && seat < ranks + guests_in_row();
    }
    unsigned banks() const noexcept { return link == LinkKind::direct || is_remote() ? 1 : nodes; }
    /// The segment that a node of it uses on this host: by name, with `@<node>` where nodes are
    /// elsewhere.
    RMEM_API std::string segment_name(unsigned node) const;

    /// Throws `Error` naming the first value that is not valid.
    RMEM_API void check() const;

    /// The value that joiners compare: it covers everything that decides places and behaviour.
    RMEM_API std::uint64_t hash() const noexcept;
};

/// This process's place in a ring.
struct Member {
    static constexpr unsigned kGuest = ~0U;  ///< RMEM_RANK=guest: no rank of the ring

    unsigned rank = 0;
    unsigned node = 0;
};

/// The settings of the environment, those of launchers included. Unset ones are empty. Joining a
/// ring that is there takes them from it: rmem/ring/joining.hpp.
struct Environment {
    std::optional<std::string> ring, unix_group, timing, faults, check;
    std::optional<unsigned> node, nodes, rank, ranks;
    std::optional<LinkKind> link;
    std::optional<std::size_t> size;
    std::optional<std::int64_t> bound_ns, join_timeout_ns;
    bool several_hosts = false;  ///< a launcher has ranks on other hosts, too

    /// Reads RMEM_*, and where RMEM_RANK is not set, the rank and count that a launcher gave:
    /// PMI_RANK/PMI_SIZE (Hydra and others), OMPI_COMM_WORLD_RANK/_SIZE, PMIX_RANK,
    /// SLURM_PROCID/_NTASKS. Throws for a misspelt RMEM_ variable, too.
    RMEM_API static Environment read();

    /// RMEM_RING, checked, or the user's default.
    RMEM_API std::string ring_name() const;
    /// Nodes default to one per rank, ranks to one per node, and the link of several hosts to udp.
    /// Throws for a setting that would have no effect on the link, too.
    RMEM_API RingConfig ring_config() const;
    RMEM_API Member member(const RingConfig& config) const;
};

/// RMEM_TIMING.
RMEM_API TimingProfile timing_setting(const std::string& text);

/// Throws when RMEM_TIMING, RMEM_FAULTS or RMEM_CHECK asks for what the link cannot do.
RMEM_API void refuse_idle_settings(const Environment& environment, const RingConfig& config);

}  // namespace rmem
