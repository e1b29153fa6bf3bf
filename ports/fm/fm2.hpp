// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Fast Messages 2.x: streams of packets, credits, handlers that are suspended.
///
/// A message is gathered into packets, in place in the data partition where it is longer than a
/// slot of the billboard holds. A packet carries the number of its stream, so that messages of one
/// node may interleave: a handler may send while a message is open. The handler of a message of one
/// packet is called directly; that of a longer one runs on a fiber, from its first packet on.
///
/// Credit: a receiver's buffer has room for kBufferPackets, and each node may have sent that many
/// packets that it has been told a limit for. Limits are counts, which only grow, and ride on
/// packets. Half of the buffer is divided among all nodes at the start; the rest by
/// FM_reallocate_credit.
///
/// Invariants
///   (S1) The packets that all nodes may still send, and those in the buffer, are kBufferPackets at
///        most: what FM 1.0's calls take in for 2.x always has a place.
///   (S2) What a handler sends, or a caller that must not wait, has its credit and its places in
///        the outbox when the message begins, so it never waits.
///   (S3) Packets leave in the order in which they were filled: nothing passes what is in the
///        outbox.
///   (S4) Nothing is resumed from inside a handler.
/// Thread safety, progress: as ports/fm/network.hpp. Errors: errno values, 0 for success.

#include "ports/fm/fm2.h"
#include "ports/fm/network.hpp"
#include "rmem/base/copy.hpp"
#include "rmem/base/fiber.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <memory>
#include <span>
#include <vector>

/// Which of the two it is, its user must know; the pointer is checked.
struct FM_stream {};

namespace ports::fm {

using Handlers = std::vector<FM_handler*>;

class Fm2 final : public Layer {
public:
    static constexpr unsigned kBufferPackets = 256;
    static constexpr std::size_t kPacketBytes = 4096;  ///< at most, with the header
    static constexpr std::size_t kPacketsPerPartition = 16;
    static constexpr unsigned kStreams = 16;  ///< of one node, open at once
    static constexpr unsigned kOutbox =
        32;  ///< packets of handlers that the network had no room for

    using Held = billboard::ProcessEndpoint::Held;

    Fm2(Network& network, const Handlers& handlers);

    /// The expected case of a message to be sent: a short one, of the program, while no other is
    /// open and nothing is kept, to a node that has been greeted. Null, or false: see begin(),
    /// write() and end().
    [[nodiscard, gnu::always_inline]] FM_stream* try_begin(unsigned node, std::uint64_t length,
                                                           std::uint64_t handler) {
        Outgoing& s = outgoing_.front();
        if (open_ != 0 || network_.handlers != 0 || outbox_used_ != 0 || s.own == nullptr ||
            length > billboard::kHeadBytes - kFm2Header || !network_.is_greeted(node)) [[unlikely]]
            return nullptr;
        open(s, node, length, handler);
        s.at = s.own.get();
        s.is_short = true;
        return &s;
    }
    [[nodiscard, gnu::always_inline]] bool try_write(FM_stream* stream, const void* from,
                                                     std::size_t bytes) {
        Outgoing& s = outgoing_.front();
        if (stream != &s || !s.is_short || bytes > s.left || from == nullptr) [[unlikely]]
            return false;
        rmem::copy_short(s.at + s.filled, from, bytes);
        s.filled += bytes;
        s.left -= bytes;
        return true;
    }
    [[nodiscard, gnu::always_inline]] bool try_end(FM_stream* stream) {
        Outgoing& s = outgoing_.front();
        if (stream != &s || !s.is_short || outbox_used_ != 0) [[unlikely]]
            return false;
        Peer& p = peers_[s.node];
        // In two pieces, since header and payload were only just written, by stores of their own.
        const std::uint64_t head = header(s, true);
        if (credit(p) == 0 ||
            !network_.post_short(s.node, {reinterpret_cast<const std::byte*>(&head), sizeof head},
                                 {s.at + kFm2Header, s.filled - kFm2Header})) [[unlikely]]
            return false;
        ++p.sent;
        p.told = p.granted;
        s.is_short = s.is_open = false;
        --open_;
        return true;
    }

    /// Null, and why.
    [[nodiscard]] FM_stream* begin(Held& held, unsigned node, std::uint64_t length,
                                   std::uint64_t handler, int& error, bool may_wait = true);
    [[nodiscard]] int write(Held& held, FM_stream* stream, const void* from, std::size_t bytes);
    [[nodiscard]] int end(Held& held, FM_stream* stream);
    /// Bytes of the packets processed.
    std::size_t extract(std::size_t most);
    /// How many bytes were missing; < 0: not the stream of the handler that runs.
    [[nodiscard, gnu::always_inline]] int receive(FM_stream* stream, void* to, std::size_t bytes) {
        if (stream == nullptr || stream != running_) [[unlikely]]
            return -1;
        std::span<const std::byte>& rest = running_->rest;
        if (bytes > rest.size()) [[unlikely]]
            return receive_slowly(to, bytes);
        rmem::copy_bytes(to, rest.data(), bytes);
        rest = rest.subspan(bytes);
        return 0;
    }
    void reallocate();

    /// Of a message that fits one packet.
    [[nodiscard]] std::size_t packet_payload() const noexcept { return packet_bytes_ - kFm2Header; }
    /// Packets that the network had no room for.
    [[nodiscard]] unsigned kept() const noexcept { return outbox_used_; }
    /// Packets that could not leave by the deadline.
    [[nodiscard]] unsigned settle(Deadline deadline);

    void take_in(unsigned from, std::span<const std::byte> frame) override;
    unsigned forget(unsigned node, bool all) override;
    void meet(unsigned node, const Hello& hello) override;

private:
    friend struct PlantedBug;  ///< a test's, which a check finds
    /// A message that is being sent.
    struct alignas(rmem::kLineBytes) Outgoing : FM_stream {
        bool is_open = false, is_first = true, is_lost = false;
        bool is_composed = false;  ///< `at` is in the data partition
        bool is_short = false;     ///< as try_begin() says; nothing of it was sent, or lost
        unsigned node = 0;
        std::uint16_t handler = 0;
        std::uint64_t left = 0;  ///< bytes that may still be written
        std::size_t filled = 0;
        unsigned reserved = 0;     ///< packets, of a message that never waits
        bool never_waits = false;  ///< a handler's, or of a caller that must not wait
        std::byte* at = nullptr;   ///< the packet; null: none is begun
        std::unique_ptr<std::byte[]> own;
    };
    /// A message whose handler has begun.
    struct Incoming : FM_stream {
        std::span<const std::byte> rest;  ///< of the present packet
        bool is_last = false;             ///< no more will come
        bool is_discarding = false;       ///< no handler, or it has returned
        int result = FM_CONTINUE;
        std::unique_ptr<rmem::sim::Fiber> fiber;  ///< null: called directly
    };
    struct Peer {
        std::uint16_t sent = kFirstCount, limit = kFirstCount;  ///< packets to it
        unsigned reserved = 0;                                  ///< of these, by handlers
        std::uint16_t come = kFirstCount, done = kFirstCount;   ///< packets from it; and processed
        std::uint16_t granted = kFirstCount, told = kFirstCount;
        bool is_due = false;
        std::array<std::unique_ptr<Incoming>, kStreams> streams;
    };
    struct Packet {
        std::uint16_t node = 0;
        std::uint16_t size = 0;
        std::unique_ptr<std::byte[]> bytes;
    };

    class Running;

    [[nodiscard]] Outgoing* find(FM_stream* stream);
    void begin_packet(Outgoing& s);
    [[nodiscard]] int flush(Held& held, Outgoing& s, bool is_last);
    [[nodiscard]] int post(Outgoing& s, std::size_t size, Deadline deadline);
    [[nodiscard]] int post_or_wait(Held& held, Outgoing& s, std::size_t size);
    [[gnu::always_inline]] void open(Outgoing& s, unsigned node, std::uint64_t length,
                                     std::uint64_t handler) {
        s.is_open = s.is_first = true;
        s.is_lost = s.never_waits = false;
        s.node = node;
        s.handler = static_cast<std::uint16_t>(handler);
        s.left = length;
        s.at = nullptr;
        s.filled = kFm2Header;
        s.reserved = 0;
        ++open_;
        sender_ = __builtin_thread_pointer();
    }
    [[nodiscard, gnu::always_inline]] std::uint64_t header(const Outgoing& s, bool is_last) {
        Peer& p = peers_[s.node];
        const std::uint8_t kind = static_cast<std::uint8_t>(static_cast<unsigned>(Kind::packet) |
                                                            (s.is_first ? kFirstPacket : 0U) |
                                                            (is_last ? kLastPacket : 0U));
        const auto stream = static_cast<std::uint8_t>(&s - outgoing_.data());
        return std::uint64_t{kind} | std::uint64_t{stream} << 8 | std::uint64_t{s.handler} << 16 |
               std::uint64_t{grant(p)} << 32 | std::uint64_t{p.sent} << 48;
    }
    void stamp(Outgoing& s, bool is_last);
    void keep(Outgoing& s, std::size_t size);
    bool drain();
    void close(Outgoing& s);

    [[nodiscard]] unsigned credit(const Peer& p) const {
        return static_cast<std::uint16_t>(p.limit - p.sent) - p.reserved;
    }
    void hear_of_limit(Peer& p, std::uint16_t limit);
    /// What the node may be told now.
    [[nodiscard, gnu::always_inline]] std::uint16_t grant(Peer& p) {
        const auto more =
            static_cast<std::int16_t>(static_cast<std::uint16_t>(p.done + share_) - p.granted);
        if (more > 0) {
            const unsigned free = kBufferPackets - outstanding_;
            const unsigned extra = std::min(static_cast<unsigned>(more), free);
            p.granted = static_cast<std::uint16_t>(p.granted + extra);
            outstanding_ += extra;
            RMEM_CHECK_IF(false, outstanding_ <= kBufferPackets);  // (S1)
        }
        return p.granted;
    }
    void tell_due();
    [[nodiscard]] bool is_credit_accounted_for() const;

    void take_over(std::size_t most, std::size_t& bytes);
    [[gnu::always_inline]] bool take_one(std::size_t& bytes);
    bool await_one(Deadline deadline, std::size_t& bytes);
    [[gnu::always_inline]] void take(unsigned from, std::span<const std::byte> frame,
                                     std::size_t& bytes);
    [[nodiscard, gnu::always_inline]] bool admit(unsigned from, std::span<const std::byte> frame);
    void process(unsigned from, std::span<const std::byte> frame);
    [[gnu::always_inline]] void run(unsigned from, const Fm2Header& head,
                                    std::span<const std::byte> payload);
    [[gnu::always_inline]] void run_whole(unsigned from, const Fm2Header& head,
                                          std::span<const std::byte> payload);
    void start(unsigned from, const Fm2Header& head, std::span<const std::byte> payload);
    void go_on(Incoming& message);
    [[nodiscard]] int receive_slowly(void* to, std::size_t bytes);
    void end_cut();
    [[nodiscard, gnu::always_inline]] FM_handler* handler_of(unsigned from, std::uint16_t id);
    [[gnu::cold]] void say_invalid(unsigned from, std::uint16_t id);

    Network& network_;
    const Handlers& handlers_;
    std::size_t packet_bytes_;
    std::uint16_t first_share_, share_;
    unsigned outstanding_;  ///< packets that may still come or be in the buffer
    std::vector<Peer> peers_;
    std::array<Outgoing, kStreams> outgoing_;
    unsigned open_ = 0;
    void* sender_ = nullptr;  ///< the thread that has begun one, while one is open
    std::array<Packet, kOutbox> outbox_;
    unsigned outbox_first_ = 0, outbox_used_ = 0, outbox_reserved_ = 0;
    std::deque<Packet> buffer_;                   ///< kBufferPackets at most, by (S1)
    std::vector<std::unique_ptr<Incoming>> cut_;  ///< whose senders are gone
    std::vector<std::uint16_t> due_;              ///< nodes that are to be told a limit
    Incoming* running_ = nullptr;
    bool quit_ = false;
    alignas(16) std::byte small_[billboard::kTakenBytes];
};

}  // namespace ports::fm
