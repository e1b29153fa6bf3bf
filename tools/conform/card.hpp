// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A reflective memory card, as the litmus tests use it: what all of them have, and options.
///
/// An adapter puts a card's own interface behind it and adds nothing: no order, no retry but the
/// waiting for room, no cache: a fault that it hid could not be found.
///
/// Thread safety: one thread.
/// Units: bytes from the memory's begin, nanoseconds.
/// Errors: `rmem::Error` where the card refuses a call; then the run ends.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>

namespace tools::conform {

/// What a card may have, or promise.
enum class Feature {
    interrupts,     ///< a node sends another one a value
    losses_told,    ///< an interrupt says how many were lost before it
    write_me_last,  ///< the own bank can be made to show an own write when all others have it
    late_join,      ///< who comes late finds what was written before
    single_bytes,   ///< a byte is sent alone, and not with its word
    comes_again,    ///< the node's program can end, and another one begin
};

/// To send an interrupt to: every node but the own one.
inline constexpr unsigned kAllNodes = ~0U;
/// Of a card that tells that interrupts were lost, and not how many: more than any run sends.
inline constexpr std::uint64_t kUncounted = std::uint64_t{1} << 32;

struct CardInterrupt {
    std::uint32_t value;
    std::uint64_t missed;  ///< lost before this one, as the card tells it
};

class Card {
public:
    virtual ~Card() = default;

    /// For the report.
    virtual std::string name() const = 0;
    /// By which others send it interrupts.
    virtual unsigned node() const = 0;
    virtual std::size_t size() const = 0;
    virtual bool offers(Feature feature) const = 0;

    /// What the card's interrupts take of the memory, where they are words that are written: it
    /// lies behind all else that a run needs, and is given at its begin.
    virtual std::size_t interrupt_bytes(unsigned members) const {
        static_cast<void>(members);
        return 0;
    }
    virtual void take_place(std::size_t at, unsigned member, unsigned members) {
        static_cast<void>(at), static_cast<void>(member), static_cast<void>(members);
    }

    /// They wait for room.
    virtual void write_word(std::size_t offset, std::uint32_t value) = 0;
    virtual void write(std::size_t offset, const void* from, std::size_t bytes) = 0;
    virtual void write_byte(std::size_t offset, std::uint8_t value) = 0;
    virtual std::uint32_t load(std::size_t offset) = 0;
    virtual void read(std::size_t offset, void* to, std::size_t bytes) = 0;

    // ---- Called where the feature is offered

    virtual void set_write_me_last(bool on) = 0;
    /// To a node, or to kAllNodes.
    virtual void send_interrupt(unsigned node, std::uint32_t value) = 0;
    /// The card's program ends: until enter() nobody here has it open. Each does nothing twice.
    virtual void leave() = 0;
    virtual void enter() = 0;
    /// The oldest that waits; none: nothing has come within the time.
    virtual std::optional<CardInterrupt> next_interrupt(std::int64_t timeout_ns) = 0;
};

inline std::uint32_t narrowed(std::size_t value) noexcept {
    return static_cast<std::uint32_t>(value);  // a card's memory ends below
}

/// How a program reads its bank.
enum class Reading { by_call, by_pointer };

/// As a program reads by a pointer: a plain load of each word. A barrier keeps the order of two,
/// which not all processors do by themselves.
inline std::uint32_t load_plainly(const volatile void* memory, std::size_t offset) {
    const auto* bytes = static_cast<const volatile std::byte*>(memory) + offset;
    const std::uint32_t value = *reinterpret_cast<const volatile std::uint32_t*>(bytes);
    __sync_synchronize();
    return value;
}
inline void read_plainly(const volatile void* memory, std::size_t offset, void* to,
                         std::size_t bytes) {
    for (std::size_t at = 0; at < bytes; at += sizeof(std::uint32_t)) {
        const std::uint32_t word = load_plainly(memory, offset + at);
        std::memcpy(static_cast<std::byte*>(to) + at, &word, sizeof word);
    }
}

}  // namespace tools::conform
