// SPDX-License-Identifier: Apache-2.0
#pragma once

/// An endpoint as its program sees it: what the paper's user-level library does.
///
/// Sends fill descriptors, receives empty the receive buffer; what the daemon has to say is looked
/// at only when there is no way on without it (the paper's local copies of head and tail): how far
/// it is with the descriptors when they seem full, which lines were returned when the share seems
/// used up.
///
/// Credit is returned in the next message to a sender once an eighth of its share has been
/// consumed, and by a descriptor of its own from a quarter on (the high-water mark). So what is
/// kept back never stops a message of three quarters.
///
/// Contract: that of munet.h; results are lengths and negative errnos, the sentence is the caller's
/// to make.
/// Thread safety: one thread at a time. Progress: by Surroundings::pause, which also says when to
/// give up.

#include "ports/munet/endpoint_memory.hpp"
#include "rmem/base/clock.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace ports::munet {

/// What a program's endpoint needs of the world.
class RMEM_API Surroundings {
public:
    /// The daemon sleeps, and there is something for it.
    virtual void ring() noexcept = 0;
    /// A wait begins; then, between looks, lets time pass: 0, or a negative errno to end the wait.
    virtual void begin_wait() noexcept = 0;
    [[nodiscard]] virtual int pause(rmem::Deadline deadline) = 0;
    virtual void end_wait() noexcept = 0;

protected:
    ~Surroundings() = default;
};

class RMEM_API Program {
public:
    /// The memory of a new endpoint; both outlive it.
    Program(std::span<std::byte> memory, const Geometry& geometry, Address own,
            Surroundings& surroundings);

    Address own() const noexcept { return own_; }

    [[nodiscard]] int send(Address to, const void* data, std::size_t bytes,
                           rmem::Deadline deadline);
    [[nodiscard]] int send_dma(Address to, const void* data, std::size_t bytes,
                               rmem::Deadline deadline);
    [[nodiscard]] int recv(void* buffer, std::size_t room, Address* from);
    [[nodiscard]] int probe(Address* from);
    /// Until recv() or probe() has something.
    [[nodiscard]] int wait(rmem::Deadline deadline);
    /// The longest message that `to` takes, or a negative errno.
    [[nodiscard]] std::int64_t most(Address to, rmem::Deadline deadline);

private:
    static constexpr unsigned kNoPlace = kMaxSenders;
    static constexpr std::int64_t kAnswerNs = 10'000'000'000;

    /// A destination.
    struct Peer {
        Address to;
        enum class State : std::uint8_t { free, asked, open };
        State state = State::free;
        std::uint32_t answer = 0;  ///< the word that granted it; asked: the one before
        std::uint32_t share = 0, sent = 0, returned = 0;
        unsigned place = kNoPlace;  ///< of the same endpoint among our senders
    };
    /// A sender.
    struct alignas(kLine) Source {
        std::uint64_t origin = 0;  ///< its word; 0: nobody yet
        std::uint32_t consumed = 0, told = 0;
        unsigned slot = kSlots;  ///< of the same endpoint among our destinations
        /// A message that comes in parts.
        std::vector<std::byte> parts;
        std::uint64_t total = 0;
        bool is_whole = false;
    };

    [[nodiscard]] Peer* find(Address to);
    [[nodiscard]] int open(Address to, rmem::Deadline deadline, Peer** peer);
    void ask(Peer& peer, Address to);
    [[nodiscard]] int post(Peer& peer, Kind kind, const void* prefix, std::size_t prefix_bytes,
                           const void* data, std::size_t bytes, rmem::Deadline deadline);
    [[nodiscard]] int send_parts(Peer& peer, const std::byte* data, std::size_t bytes,
                                 rmem::Deadline deadline);
    [[nodiscard]] int await_room(Peer& peer, std::uint32_t lines, rmem::Deadline deadline);
    [[nodiscard]] int await_descriptor(rmem::Deadline deadline);
    [[nodiscard]] int await_send_buffer(std::size_t bytes, std::size_t* offset,
                                        rmem::Deadline deadline);
    template <class Done>
    [[nodiscard]] int await(rmem::Deadline deadline, Done&& done);

    [[nodiscard]] bool has_descriptor() noexcept;
    void write(Control control, Credit credit, const void* prefix, std::size_t prefix_bytes,
               const void* data, std::size_t bytes) noexcept;
    [[nodiscard]] Credit credit_for(const Peer& peer) noexcept;
    [[nodiscard]] bool is_gone(Peer& peer) noexcept;
    void forget(Peer& peer) noexcept;

    [[nodiscard]] std::uint64_t next_word() const noexcept;
    void consume(Source& source, std::uint32_t lines);
    void return_credit();
    [[nodiscard]] Source& source_of(Control control, std::uint64_t origin);
    void take_part(Source& source, Control control, std::uint32_t at);
    [[nodiscard]] int next(std::size_t room, bool takes, void* buffer, Address* from);
    void copy_out(void* to, std::uint32_t at, std::size_t skip, std::size_t bytes) const noexcept;

    const Geometry geometry_;
    const Address own_;
    EndpointMemory memory_;
    Surroundings& surroundings_;

    // The descriptors
    DescriptorEntry* next_;
    unsigned next_index_ = 0;
    std::uint8_t mark_ = 1;
    std::uint64_t posted_ = 0, taken_ = 0;  ///< taken: as last looked up

    // The send buffer: pieces in the order of their descriptors
    struct Piece {
        std::uint64_t descriptor;
        std::size_t begin, end;
    };
    std::array<Piece, kDescriptors> pieces_{};
    unsigned first_piece_ = 0, piece_count_ = 0;

    // The receive buffer
    std::uint32_t at_ = 0;  ///< line of the next record
    std::uint64_t consumed_ = 0;
    unsigned whole_ = kNoPlace;  ///< whose message in parts is whole and has not been received
    unsigned owed_ = 0;          ///< sources over their high-water mark that could not be told yet

    Peer* latest_ = nullptr;
    std::array<Peer, kSlots> peers_{};
    std::unordered_map<std::uint32_t, unsigned> slots_;
    std::vector<Source> sources_;
};

}  // namespace ports::munet
