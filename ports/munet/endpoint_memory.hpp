// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The memory of an endpoint, which its program and the node's daemon share, word by word, and who
/// writes which.
///
///   daemon words    writer daemon    descriptors taken; wake word; whether it sleeps; for each
///                   slot of the program:
///                                    the answer, the share, the lines returned
///   program words   writer program   lines consumed; whether it sleeps
///   descriptors     writer program   the Send Descriptor area: a circle of kDescriptors entries of
///                   three lines
///   send buffer     writer program   the Host Send Buffer: what mu_send_DMA sends
///   receive buffer  writer daemon    the Host Receive Buffer: a circle of lines, records one after
///                   the other
///
/// Terms
///   slot      the program's name for a destination, 0..255; the daemon keeps what it stands for
///   place     the number of a sender among those that an endpoint admits
///   line      64 bytes, the unit of records and of credit
///   record    a message, or a part of one, in the receive buffer: two words and then its bytes,
///             from a line's start on
///   mark      in a descriptor: 1 and 2 in turn, from lap to lap, so that nothing is ever cleared
///             by its reader
///
/// Both a descriptor and a record have their control word written last, with all that tells what it
/// is; 48 bytes fit beside the two words, so a short message is one line each way. A record's
/// control word is not zero, and of the two lines behind the last record's place it is: so a reader
/// finds the end there, and the line of the next short record is the daemon's before it is needed.
///
/// Trust: what the other side writes is read once, bounded, then used. Where both sides read the
/// same number, each keeps its own.
/// Units: bytes, unless named lines.

#include "rmem/base/relaxed.hpp"
#include "rmem/ring/config.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>

namespace ports::munet {

inline constexpr std::size_t kLine = rmem::kLineBytes;
inline constexpr std::size_t kHeader = 16;  ///< of a descriptor, and of a record
inline constexpr std::size_t kNear = kLine - kHeader;
inline constexpr std::size_t kInline = 128;   ///< documented: MU_INLINE_BYTES
inline constexpr unsigned kDescriptors = 64;  ///< fixed, as in the paper
inline constexpr unsigned kSlots = 256;
inline constexpr unsigned kEndpoints = 256;  ///< of a node: one byte
inline constexpr unsigned kMaxSenders = 128;
inline constexpr unsigned kDefaultSenders = 16;
inline constexpr std::size_t kMinShare =
    4;  ///< lines: one full descriptor's record, and a line to spare
inline constexpr std::size_t kAhead = 2;  ///< lines behind the last record that hold a zero
inline constexpr std::size_t kMaxBuffer = std::size_t{1} << 30;

enum class Kind : std::uint8_t {
    whole = 1,   ///< a message
    first = 2,   ///< of several parts; its bytes begin with the 8-byte total
    more = 3,    ///< and not the last
    last = 4,    ///< part
    moved = 5,   ///< descriptor: the message is in the send buffer; its bytes are the 8-byte offset
    open = 6,    ///< descriptor: asks for a place at the address in its bytes
    credit = 7,  ///< descriptor: nothing but credit
    none = 8     ///< record: what was to be there will not come
};

/// Number of lines of a receive buffer that a message or part of `bytes` bytes takes.
[[nodiscard]] constexpr std::uint32_t lines_of(std::size_t bytes) noexcept {
    return static_cast<std::uint32_t>((kHeader + bytes + kLine - 1) / kLine);
}

/// What a sender may have in a receive buffer, in lines; how much of it the receiver may keep to
/// itself before it says that it is free; and so, how much a single message may take.
[[nodiscard]] constexpr std::uint32_t high_water(std::uint32_t share) noexcept {
    return share / 4;
}
[[nodiscard]] constexpr std::uint32_t most_lines(std::uint32_t share) noexcept {
    return share - high_water(share);
}
[[nodiscard]] constexpr std::size_t most_bytes(std::uint32_t share) noexcept {
    return most_lines(share) * kLine - kHeader;
}

/// The control word: mark, kind, slot (of a descriptor) or place (of a record), length.
struct Control {
    std::uint8_t mark = 0;
    Kind kind = Kind::whole;
    std::uint8_t index = 0;
    std::uint32_t length = 0;

    [[nodiscard]] constexpr std::uint64_t word() const noexcept {
        return mark | std::uint64_t{static_cast<std::uint8_t>(kind)} << 8 |
               std::uint64_t{index} << 16 | std::uint64_t{length} << 32;
    }
    [[nodiscard]] static constexpr Control of(std::uint64_t word) noexcept {
        return {static_cast<std::uint8_t>(word), static_cast<Kind>(word >> 8 & 0xff),
                static_cast<std::uint8_t>(word >> 16), static_cast<std::uint32_t>(word >> 32)};
    }
};
inline constexpr std::uint8_t kRecordMark = 1;

/// A descriptor's second word: lines of the sender at `place` that the program has consumed, all in
/// all.
struct Credit {
    bool is_there = false;
    std::uint8_t place = 0;
    std::uint32_t lines = 0;

    [[nodiscard]] constexpr std::uint64_t word() const noexcept {
        return is_there ? lines | std::uint64_t{place} << 32 | std::uint64_t{1} << 40 : 0;
    }
    [[nodiscard]] static constexpr Credit of(std::uint64_t word) noexcept {
        return {(word >> 40 & 1) != 0, static_cast<std::uint8_t>(word >> 32),
                static_cast<std::uint32_t>(word)};
    }
};

struct Address {
    std::uint16_t node = 0;
    std::uint8_t endpoint = 0;
    bool operator==(const Address&) const = default;
};

/// A record's second word: who sent it, and which of that place's holders that is.
struct Origin {
    Address from;
    std::uint16_t generation = 0;

    [[nodiscard]] constexpr std::uint64_t word() const noexcept {
        return from.node | std::uint64_t{from.endpoint} << 16 | std::uint64_t{generation} << 32;
    }
    [[nodiscard]] static constexpr Origin of(std::uint64_t word) noexcept {
        return {{static_cast<std::uint16_t>(word), static_cast<std::uint8_t>(word >> 16)},
                static_cast<std::uint16_t>(word >> 32)};
    }
};

/// What the daemon answers a Kind::open with, in a slot's word: the code, and above it how many
/// answers the slot has had.
enum class Answer : std::uint8_t {
    none = 0,
    granted = 1,
    no_endpoint = 2,
    no_place = 3,
    no_node = 4,
    gone = 5  ///< it was there, and is gone
};
[[nodiscard]] constexpr Answer answer_in(std::uint32_t word) noexcept {
    return static_cast<Answer>(word & 0xff);
}
[[nodiscard]] constexpr std::uint32_t next_answer(std::uint32_t word, Answer code) noexcept {
    return ((word & ~0xffU) + 0x100) | static_cast<std::uint32_t>(code);
}

struct alignas(kLine) DescriptorEntry {
    std::atomic<std::uint64_t> control;
    std::uint64_t credit;
    std::array<std::byte, 3 * kLine - kHeader> data;
};
static_assert(sizeof(DescriptorEntry) == 3 * kLine && kInline <= 3 * kLine - kHeader);

struct RecordHead {
    std::atomic<std::uint64_t> control;
    std::uint64_t origin;
};
static_assert(sizeof(RecordHead) == kHeader);

struct DaemonWords {
    alignas(kLine) std::atomic<std::uint64_t> taken;  ///< descriptors that are free again
    alignas(kLine) std::atomic<std::uint32_t> sleeps;
    rmem::Hint<std::uint32_t> pollers;  ///< processes that poll here, this daemon among them
    alignas(kLine) std::atomic<std::uint32_t> wakes;  ///< a futex
    alignas(kLine) std::array<std::atomic<std::uint32_t>, kSlots> answer;
    alignas(kLine) std::array<std::atomic<std::uint32_t>, kSlots> share;     ///< lines
    alignas(kLine) std::array<std::atomic<std::uint32_t>, kSlots> returned;  ///< lines, ever more
};

struct ProgramWords {
    alignas(kLine) std::atomic<std::uint64_t> consumed;  ///< lines of the receive buffer, ever more
    alignas(kLine) std::atomic<std::uint32_t> sleeps;
};

/// Where things lie. Both sides compute it from three numbers.
struct Geometry {
    std::uint32_t send_bytes = 0;  ///< a multiple of the line
    std::uint32_t receive_lines = 0;
    std::uint32_t senders = kDefaultSenders;

    static constexpr std::size_t daemon_words() noexcept { return 0; }
    static constexpr std::size_t program_words() noexcept { return sizeof(DaemonWords); }
    static constexpr std::size_t descriptors() noexcept {
        return program_words() + sizeof(ProgramWords);
    }
    static constexpr std::size_t send_buffer() noexcept {
        return descriptors() + kDescriptors * sizeof(DescriptorEntry);
    }
    constexpr std::size_t receive_buffer() const noexcept { return send_buffer() + send_bytes; }
    constexpr std::size_t bytes() const noexcept {
        return receive_buffer() + receive_lines * kLine;
    }
    /// Lines of the receive buffer for each sender.
    [[nodiscard]] constexpr std::uint32_t share() const noexcept {
        return (receive_lines - static_cast<std::uint32_t>(kAhead)) / senders;
    }
    [[nodiscard]] static constexpr std::size_t least_receive_bytes(unsigned senders) noexcept {
        return (kAhead + kMinShare * senders) * kLine;
    }
    [[nodiscard]] constexpr bool is_possible() const noexcept {
        return senders > 0 && senders <= kMaxSenders && send_bytes % kLine == 0 &&
               send_bytes <= kMaxBuffer && receive_lines <= kMaxBuffer / kLine &&
               receive_lines * kLine >= least_receive_bytes(senders);
    }
};

/// The memory with names. Does not own it.
class EndpointMemory {
public:
    EndpointMemory() = default;
    /// `memory` is of g.bytes(), on a line's boundary, and zero when the daemon first has it.
    EndpointMemory(std::span<std::byte> memory, const Geometry& g) noexcept
        : daemon_(reinterpret_cast<DaemonWords*>(memory.data() + Geometry::daemon_words())),
          program_(reinterpret_cast<ProgramWords*>(memory.data() + Geometry::program_words())),
          descriptors_(reinterpret_cast<DescriptorEntry*>(memory.data() + Geometry::descriptors())),
          send_(memory.data() + Geometry::send_buffer()),
          receive_(memory.data() + g.receive_buffer()) {}

    DaemonWords& daemon() const noexcept { return *daemon_; }
    ProgramWords& program() const noexcept { return *program_; }
    DescriptorEntry* descriptors() const noexcept { return descriptors_; }
    std::byte* send_buffer() const noexcept { return send_; }
    std::byte* line(std::size_t index) const noexcept { return receive_ + index * kLine; }
    RecordHead& record(std::size_t index) const noexcept {
        return *reinterpret_cast<RecordHead*>(line(index));
    }

private:
    DaemonWords* daemon_ = nullptr;
    ProgramWords* program_ = nullptr;
    DescriptorEntry* descriptors_ = nullptr;
    std::byte* send_ = nullptr;
    std::byte* receive_ = nullptr;
};

}  // namespace ports::munet
