// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Fast Messages as what carries MPI's messages, as a program of theirs would use them: by their C
/// header alone, so that their own credit, packets and counters carry the traffic. As MPI-FM was: a
/// message is written in pieces (Lead and header, then the payload) to a handler, which receives
/// them. Each fits a packet, so that a message needs one credit. They have no broadcast.
///
/// Invariants: a process has one at a time, which its handler works for; a message that was taken
/// is as long as its Lead says, or has no bytes.
/// No call waits but the destructor: until what was sent last has been taken over, as long as its
/// receivers live.
/// Order: what one rank sends to another is received in that order, once and whole.
/// Thread safety: one thread at a time. Errors: codes of billboard/bbp.h; opening throws
/// `rmem::Error`.

#include "rmem/ring/config.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

namespace mpi_channel {

/// The first word of each message.
struct Lead {
    enum class Kind : std::uint8_t { packet = 1, bulk = 2 };

    Kind kind = Kind::packet;
    std::uint8_t from = 0;
    std::uint16_t size = 0;  ///< of what follows

    static constexpr std::size_t kBytes = 4;
    static constexpr std::size_t kMaxSize = 0xffff;
    static_assert(rmem::kMaxRanks <= 256, "`from` holds a rank");

    void write(std::byte* to) const noexcept {
        const std::uint32_t word =
            static_cast<std::uint32_t>(kind) | std::uint32_t{from} << 8 | std::uint32_t{size} << 16;
        std::memcpy(to, &word, kBytes);
    }
    static Lead read(const std::byte* from) noexcept {
        std::uint32_t word = 0;
        std::memcpy(&word, from, kBytes);
        return {static_cast<Kind>(word & 0xff), static_cast<std::uint8_t>(word >> 8 & 0xff),
                static_cast<std::uint16_t>(word >> 16)};
    }
};

class FmPort {
public:
    using Bytes = std::span<const std::byte>;

    struct Message {
        unsigned from = 0;
        Bytes bytes;  ///< beginning with its Lead, if its sender is one of us
    };

    FmPort();
    ~FmPort();
    FmPort(const FmPort&) = delete;
    FmPort& operator=(const FmPort&) = delete;

    /// The longest message, with its Lead.
    [[nodiscard]] std::size_t most() const noexcept { return in_.size(); }
    /// A message in two parts. BBP_EAGAIN: nothing of it has been sent.
    [[nodiscard]] static int send(Bytes head, Bytes body, unsigned to);
    /// The next message that has arrived; its bytes stay until the next call.
    [[nodiscard]] std::optional<Message> receive();
    /// Whether something that was sent waits for calls of this rank to leave.
    [[nodiscard]] static bool has_backlog() noexcept;
    /// Messages that came, as Fast Messages have counted them.
    [[nodiscard]] static std::uint64_t handlers_entered() noexcept;

private:
    void take(void* stream, unsigned sender);

    std::vector<std::byte> in_;
    Message come_;
    bool has_come_ = false;
};

}  // namespace mpi_channel
