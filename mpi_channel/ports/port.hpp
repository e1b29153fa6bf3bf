// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One of the papers' other systems as what carries MPI's messages: what PortTransport asks of it.
///
/// Each back end uses its system as a program of it would, by its C header alone, so what it
/// promises is what that system does: its credits, frames and pools, its counters.
///
/// All ranks of the ring open the same kind of port. No call waits but two: opening GAMMA, which
/// waits for all ranks to do so, and the destructor, until what was sent last has been taken over,
/// as long as its receivers live, at most kSettleNs.
/// Order: what one rank sends to another, by send() and broadcast(), is received in that order,
/// once and whole.
/// Thread safety: one thread at a time. Errors: codes of billboard/bbp.h; opening throws
/// `rmem::Error`.

#include "billboard/process/process_endpoint.hpp"
#include "mpi_channel/settings.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>

namespace mpi_channel {

/// The first word of each message: its kind and its sender, for systems that do not tell.
struct Lead {
    enum class Kind : std::uint8_t { packet = 1, bulk = 2 };

    Kind kind = Kind::packet;
    std::uint8_t from = 0;
    std::uint16_t size = 0;  ///< of what follows

    static constexpr std::size_t kBytes = 4;
    static constexpr std::size_t kMostSize = 0xffff;
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

class Port {
public:
    using Bytes = std::span<const std::byte>;

    struct Message {
        unsigned from = 0;
        Bytes bytes;  ///< beginning with its Lead, if its sender is one of us
    };
    /// The system's own counter of messages that came, which tells that they came by it.
    struct Tally {
        const char* system = "";
        const char* counter = "";
        std::uint64_t count = 0;
    };

    static constexpr std::int64_t kSettleNs = 5'000'000'000;

    virtual ~Port() = default;

    /// The longest message, with its Lead.
    [[nodiscard]] virtual std::size_t most() const noexcept = 0;
    /// A message in two parts. BBP_EAGAIN: nothing of it has been sent.
    [[nodiscard]] virtual int send(Bytes head, Bytes body, unsigned to) = 0;
    /// To all others by one call of the system; BBP_EAGAIN: to nobody; BBP_EPEER: to those that
    /// live.
    [[nodiscard]] virtual int broadcast(Bytes head, Bytes body) = 0;
    [[nodiscard]] virtual bool can_broadcast() const noexcept = 0;
    /// The next message that has arrived; its bytes stay until the next call.
    [[nodiscard]] virtual std::optional<Message> receive() = 0;
    /// Whether something that was sent waits for calls of this rank to leave.
    [[nodiscard]] virtual bool has_backlog() const noexcept = 0;
    /// A descriptor that is readable when something may have come, or that of the ring.
    [[nodiscard]] virtual int wait_descriptor() = 0;
    [[nodiscard]] virtual Tally tally() const = 0;

protected:
    Port() = default;
    Port(const Port&) = delete;
    Port& operator=(const Port&) = delete;
};

/// Of kind fm, gamma or dp.
[[nodiscard]] std::unique_ptr<Port> open_port(TransportKind kind,
                                              billboard::ProcessEndpoint& process);

}  // namespace mpi_channel
