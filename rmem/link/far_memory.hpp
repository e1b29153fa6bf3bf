// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The memory of ranks on other nodes, read through a network that does so by itself: the way of
/// long messages past the ring.
///
///     place = far.offer(message)         at the sender, whose name and place go by the ring
///     far.meet(from, name)               at the receiver, and
///     far.read(from, place, room, 7)
///     while (auto ended = far.progress()) …   at both, until neither has anything under way
///     far.withdraw(*place)               at the sender, when the receiver has told it
///
/// The senders of long messages use FarMemory and know no network; tests give one of their own
/// (rmem/link/fabric/fabric_memory.hpp is the real one).
///
/// Trust: places and names are others' words. What is read goes into no more room than the caller
/// gives; a read that has not ended may write into that room, one that has does not.
/// Progress: a sender makes progress, too, or its bytes cannot be read.
/// Thread safety: one thread at a time. Errors: results; std::bad_alloc.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace rmem {

class FarMemory {
public:
    /// Where bytes lie, as a reader asks for them.
    struct Place {
        std::uint64_t address = 0;
        std::uint64_t key = 0;
    };
    /// A read that is over.
    struct Ended {
        std::uint32_t number = 0;  ///< the caller's
        bool is_read = false;      ///< else what is in its room is worth nothing
    };

    virtual ~FarMemory() = default;

    // ---- The sender's side
    /// Whether a message of `size` bytes may be offered to that rank, as far as is known.
    [[nodiscard]] virtual bool reaches(unsigned rank, std::size_t size) = 0;
    /// What readers know this rank by; empty: they cannot read here.
    [[nodiscard]] virtual std::span<const std::byte> name() = 0;
    /// The bytes stay until withdraw(). Nothing: they cannot be read.
    [[nodiscard]] virtual std::optional<Place> offer(std::span<const std::byte> bytes) = 0;
    virtual void withdraw(const Place& place) noexcept = 0;
    /// That rank has not read what it was offered.
    virtual void found_no_reader(unsigned rank) = 0;

    // ---- The receiver's side
    /// Whether that rank, which has this name, can be read from. A later name counts.
    [[nodiscard]] virtual bool meet(unsigned rank, std::span<const std::byte> name) = 0;
    /// Begins to read as many bytes as there is room for. It ends in progress(), whatever happens.
    virtual void read(unsigned rank, const Place& place, std::span<std::byte> to,
                      std::uint32_t number) = 0;
    /// That rank is dead: when this returns, no read from it writes anything any more.
    virtual void drop(unsigned rank) noexcept = 0;

    // ---- Both
    [[nodiscard]] virtual std::optional<Ended> progress() = 0;
    /// Whether progress() is needed: something is being read, or offered.
    [[nodiscard]] virtual bool is_busy() const noexcept = 0;
};

/// Messages of fewer bytes go over the ring: announcing one and telling that it has been read take
/// longer there than it.
inline constexpr std::size_t kFarLeast = 64 * 1024;

}  // namespace rmem
