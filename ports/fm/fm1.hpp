// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Fast Messages 1.0: frames, the reject queue, the host receive queue.
///
/// A frame is written into a free slot of the reject queue and posted from there. The slot is held
/// until its receiver has decided: accepted, or returned because there is no room. A returned frame
/// is still in its slot, since on reflective memory a frame never leaves its sender's memory; what
/// travels back is the slot's number. It is sent again later.
///
///   slot   free → sent → free        (accepted)
///                 sent → returned → sent …
///
/// Decisions: a receiver decides on a node's frames in the order in which they come, and tells so
/// by a count, which covers all frames up to it, so several acknowledgements are one number that
/// rides on any frame. The numbers of returned slots go ahead of the count that covers them. No
/// receiver ever has to keep a frame that it cannot place, so each takes in all that comes, and two
/// full ones never wait for each other.
///
/// Invariants
///   (F1) A slot that is not free is in exactly one list: sent, of its receiver, or returned.
///   (F2) To a node that is owed returned slots nothing is posted before them.
///   (F3) An entry of the receive queue is not used again before its handler has returned.
/// Thread safety, progress: as ports/fm/network.hpp. Errors: errno values, 0 for success.

#include "ports/fm/network.hpp"
#include "rmem/base/copy.hpp"

#include <array>
#include <bitset>
#include <memory>
#include <span>

namespace ports::fm {

class Fm1 final : public Layer {
public:
    static constexpr unsigned kMaxSlots = 256;
    static constexpr unsigned kDefaultSlots = 128;
    static constexpr unsigned kDefaultQueue = 256;
    static constexpr unsigned kMaxQueue = 65536;

    struct Limits {
        unsigned slots = kDefaultSlots;
        unsigned queue = kDefaultQueue;
        /// Frames on their way to one node, at most: a static window, in which nothing is ever
        /// returned if the receiver's queue holds one of each sender. For measurements.
        unsigned to_one = kMaxSlots;
    };

    Fm1(Network& network, Limits limits);
    /// Memory of a receive queue of `frames` frames.
    static constexpr std::size_t queue_bytes(unsigned frames) noexcept {
        return frames * sizeof(Entry);
    }

    /// The expected case: a short message, a free slot, a node that may be sent to, room in the
    /// network. False: see send(). The slot is written when the frame has gone.
    [[nodiscard, gnu::always_inline]] bool try_send(unsigned node, Kind kind, const void* handler,
                                                    const void* payload, std::size_t size) {
        if (free_ == kNone || node >= peers_.size() || size > billboard::kHeadBytes - kFm1Header)
            [[unlikely]]
            return false;
        Peer& p = peers_[node];
        const auto place = network_.modules().find(handler);
        if (!p.is_open || p.sent == limits_.to_one || !place.is_known()) [[unlikely]]
            return false;
        RMEM_CHECK_IF(false, p.owed == 0);  // (F2)
        const Header head = header(kind, p.decided, place);
        const auto* const bytes = static_cast<const std::byte*>(payload);
        if (!network_.post_short(node, head, {bytes, size})) [[unlikely]]
            return false;
        write(slots_[free_], head, payload, size);
        is_sent(p, node);
        return true;
    }
    [[nodiscard]] int send(billboard::ProcessEndpoint::Held& held, unsigned node, Kind kind,
                           const void* handler, const void* payload, std::size_t size);

    /// How many messages were processed.
    int extract();
    /// Until nothing that was sent is undecided, or `deadline`; what comes is dropped meanwhile.
    /// How many frames are.
    unsigned settle(Deadline deadline);

    /// Messages that wait for their handler.
    [[nodiscard]] unsigned waiting() const noexcept { return tail_ - next_; }

    void take_in(unsigned from, std::span<const std::byte> frame) override;
    unsigned forget(unsigned node, bool all) override;
    void meet(unsigned node, const Hello& hello) override;

private:
    friend struct PlantedBug;  ///< a test's, which a check finds
    using Index = std::uint16_t;
    static constexpr Index kNone = 0xffff;
    enum class State : std::uint8_t { free, sent, returned };

    // A short frame and what is kept of it share a line.
    struct alignas(rmem::kLineBytes) Slot {
        std::uint8_t size = 0;
        State state = State::free;
        Index next = kNone;
        Index node = 0;
        alignas(8) std::byte frame[kFm1Frame];
    };
    struct List {
        Index first = kNone, last = kNone;
    };
    struct alignas(rmem::kLineBytes) Peer {
        // What is sent to it
        List frames;  ///< sent, in order
        std::uint16_t sent = 0;
        std::uint16_t acked = kFirstCount;
        bool is_open = false;  ///< greeted, and owed no returned slots
        // What comes from it
        bool is_due = false;  ///< in due_
        std::uint16_t decided = kFirstCount;
        std::uint16_t told = kFirstCount;
        std::uint16_t ack_every = kAckEvery;
        std::uint16_t waited = 0;         ///< calls of tidy since a decision was not told
        std::uint16_t owed = 0;           ///< bits of `returned`
        std::bitset<kMaxSlots> returned;  ///< slots that it has not been told of
    };
    /// A message that waits for its handler.
    struct alignas(rmem::kLineBytes) Entry {
        std::uint32_t size;
        std::uint16_t from;
        bool done;
        alignas(16) std::byte frame[kFm1Frame];
    };
    static_assert(kFm1Frame >= billboard::kInlineBytes);  // entries are received into
    static constexpr std::uint16_t kAckEvery =
        16;  ///< decisions, before they are told in a frame of their own
    static constexpr std::uint16_t kAckAfter =
        16 / Network::kPollsPerChore;           ///< calls of tidy, likewise
    static constexpr unsigned kTidyEvery = 64;  ///< calls of extract that found something

    /// Fm1Header of a frame from the first free slot, by two stores as it is read at once.
    using Header = std::array<std::byte, kFm1Header>;
    [[nodiscard, gnu::always_inline]] Header header(Kind kind, std::uint16_t ack,
                                                    Modules::Place place) const {
        Header head;
        const std::uint64_t first = static_cast<std::uint64_t>(kind) | std::uint64_t{free_} << 8 |
                                    std::uint64_t{ack} << 16 | std::uint64_t{place.module} << 32;
        std::memcpy(head.data(), &first, sizeof first);
        std::memcpy(head.data() + sizeof first, &place.offset, sizeof place.offset);
        return head;
    }
    static void write(Slot& slot, const Header& head, const void* payload, std::size_t size) {
        std::memcpy(slot.frame, head.data(), kFm1Header);
        rmem::copy_bytes(slot.frame + kFm1Header, payload, size);
        slot.size = static_cast<std::uint8_t>(kFm1Header + size);
    }
    /// The free slot that was written is now on its way.
    [[gnu::always_inline]] void is_sent(Peer& p, unsigned node) {
        const Index index = free_;
        Slot& slot = slots_[index];
        RMEM_CHECK_IF(false, slot.state == State::free);
        free_ = slot.next;
        slot.node = static_cast<Index>(node);
        enlist(p, index);
    }
    [[gnu::always_inline]] void enlist(Peer& p, Index index) {
        slots_[index].state = State::sent;
        append(p.frames, index);
        ++p.sent;
        p.told = p.decided;
    }
    void append(List& list, Index index) {
        slots_[index].next = kNone;
        (list.first == kNone ? list.first : slots_[list.last].next) = index;
        list.last = index;
    }
    [[nodiscard]] Index take_first(List& list) {
        const Index index = list.first;
        list.first = slots_[index].next;
        return index;
    }
    void set_free(Index index) {
        RMEM_CHECK_IF(false, slots_[index].state != State::free);
        slots_[index].state = State::free;
        slots_[index].next = free_;
        free_ = index;
    }

    [[nodiscard]] bool is_each_slot_in_one_list() const;
    [[nodiscard]] int check(unsigned node, const void* handler, const void* payload,
                            std::size_t size) const;
    [[nodiscard]] int open(unsigned node, Deadline deadline);
    [[nodiscard]] int pay_back(unsigned node, Deadline deadline);
    [[nodiscard]] int post_free(unsigned node, Kind kind, const void* handler, const void* payload,
                                std::size_t size, Deadline deadline);

    bool take_over();
    [[nodiscard, gnu::always_inline]] bool take_one();
    bool await_one(Deadline deadline);
    void take_other(const Entry& landing, unsigned from, std::span<const std::byte> frame);
    [[gnu::always_inline]] void take_data(Entry& landing, unsigned from, std::size_t size);
    [[nodiscard, gnu::always_inline]] bool decide(Entry& landing, unsigned from, std::size_t size);
    bool refuse(unsigned from, unsigned slot);
    void hear_of_returned(unsigned from, std::span<const std::byte> frame);
    [[gnu::always_inline]] void hear_of_ack(unsigned from, std::uint16_t ack);
    [[gnu::always_inline]] int run_waiting();
    [[gnu::always_inline]] void run(Entry& entry);
    [[gnu::cold]] void say_invalid(unsigned from, const Fm1Header& head);
    void tidy();
    void resend();
    void tell_due();
    bool tell(unsigned node);

    [[nodiscard]] bool has_place() const noexcept { return tail_ - head_ < limits_.queue; }
    /// Where the next frame comes to: its place in the queue, if there is one.
    [[nodiscard]] Entry& landing() noexcept { return has_place() ? entry(tail_) : spare_; }
    [[nodiscard]] Entry& entry(std::uint32_t count) { return queue_[count & mask_]; }

    Network& network_;
    Limits limits_;
    std::unique_ptr<Slot[]> slots_;
    Index free_ = 0;
    List returned_;
    std::vector<Peer> peers_;
    std::uint32_t
        mask_;  ///< a power of two of entries, of which only limits_.queue are used at once
    std::unique_ptr<Entry[]> queue_;
    /// Oldest in use, next to run, next to fill; all begin again when none is in use, so that few
    /// entries are touched.
    std::uint32_t head_ = 0, next_ = 0, tail_ = 0;
    Entry spare_{};           ///< the landing place of what finds none
    std::vector<Index> due_;  ///< nodes that decisions may have to be told
    bool drops_ = false;      ///< at the end
    bool is_urgent_ = false;  ///< enough is due, or something was returned
    unsigned busy_calls_ = 0;
};

}  // namespace ports::fm
