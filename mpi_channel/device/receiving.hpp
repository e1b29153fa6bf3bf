// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Receives that wait, messages that have come before them, and the way of each message into its
/// receive. Part of Device (mpi_channel/device/device.hpp).
///
/// A message that is whole in its packet goes to its receive at once. Of any other one, a Delivery
/// notes the receive while the bytes are on their way: as bulk, by get, a slice at a time, or
/// through the fabric.
///
/// Progress: on each packet and piece of bulk, in read_some() and end_far_reads(); no call waits.
/// Thread safety: one thread at a time. Errors: a receive ends with `cut`, `gone` or `cancelled`;
/// std::bad_alloc.
/// Trust: on_message() and on_data() take the sender's packets, and return false for what no device
/// sends.
/// Invariants, checked where the transport is simulated and in debug builds
///   (R1) A receive is posted, or messages are on their way to it, or it is over and given back.
///   (R2) Of each rank at most one message arrives as bulk: for a delivery or for a message that is
///        kept, never both.
///   (R3) An unexpected message is whole, on its way, a request, or hopeless.

#include "mpi_channel/device/credit.hpp"
#include "mpi_channel/device/deliveries.hpp"
#include "mpi_channel/device/incoming_bulk.hpp"
#include "mpi_channel/device/matching.hpp"
#include "mpi_channel/device/packets.hpp"
#include "mpi_channel/device/pool.hpp"
#include "mpi_channel/device/reach.hpp"
#include "mpi_channel/device/requests.hpp"
#include "mpi_channel/device/sending.hpp"
#include "rmem/link/memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace mpi_channel {

/// Number of bytes of a message that are read from its sender's memory before others get their
/// turn; the size of one piece of an access.
inline constexpr std::size_t kGetSlice = std::size_t{1} << 20;

template <class T>
class Receiving final : private BulkSink {
public:
    using Bytes = std::span<const std::byte>;

    Receiving(T& transport, Completions& completions, Reach& reach, Sending<T>& sending,
              IncomingBulk<T>& bulk)
        : transport_(transport),
          completions_(completions),
          reach_(reach),
          sending_(sending),
          bulk_(bulk),
          tagged_(transport.ranks()),
          untagged_(transport.ranks()),
          ranks_(transport.ranks()) {}

    // ---- Receives
    void receive(const ReceiveOrder& order);
    bool cancel(void* context);
    [[nodiscard]] Unexpected* peek(const Wanted& wanted, bool untagged) {
        return static_cast<Unexpected*>(matcher(untagged).peek(wanted));
    }
    [[nodiscard]] Unexpected* claim(const Wanted& wanted, bool untagged) {
        return static_cast<Unexpected*>(matcher(untagged).claim(wanted));
    }
    void receive_claimed(Unexpected& message, const ReceiveOrder& order);
    void discard(Unexpected& message);

    // ---- Packets
    [[nodiscard]] bool on_message(unsigned from, const Packet& packet, Bytes bytes);
    /// `name`: of a sender that offers to be read through the fabric.
    void on_request(unsigned from, const Packet& packet, Bytes name);
    [[nodiscard]] bool on_data(unsigned from, const Packet& packet);

    // ---- Gets
    /// A slice of the message that has waited longest. False: none waits.
    [[nodiscard]] bool read_some();
    [[nodiscard]] bool has_reads() const noexcept { return !reads_.empty(); }
    /// Messages whose bytes have come through the fabric, or will not. False: none.
    [[nodiscard]] bool end_far_reads();

    /// Of a rank that is gone, of which no bulk arrives any more.
    void lose(unsigned rank);
    [[nodiscard]] bool is_gone(unsigned rank) const noexcept { return ranks_[rank].gone; }

    [[nodiscard]] const ReceivingCounters& counters() const noexcept { return counters_; }

private:
    static constexpr bool kChecks = rmem::is_simulated<T>;
    using DeviceMatcher = MatcherOf<kChecks>;

    struct Rank {
        // Its bulk is for one of these
        Delivery* delivery = nullptr;
        Unexpected* kept = nullptr;
        bool gone = false;
    };

    std::span<std::byte> room(unsigned from) override;
    void arrived(unsigned from, std::size_t bytes) override;
    void is_whole(unsigned from) override;

    DeviceMatcher& matcher(bool untagged) noexcept { return untagged ? untagged_ : tagged_; }
    bool is_hopeless(Source from) const noexcept;
    Completion completion_of(const WaitingReceive& receive, Status status) const;
    void end_receive(WaitingReceive& receive, Status status);
    void end_receives_from(Source from);
    Delivery& deliver(WaitingReceive& receive, const Placement& placement, const Envelope& envelope,
                      std::optional<std::uint32_t> data);
    void hand_over(Unexpected& message, WaitingReceive& receive, const Placement& placement);
    void accept(unsigned from, std::uint32_t send, const Offer& offer, Delivery& delivery);
    void read_far(unsigned from, const rmem::FarMemory::Place& place, Delivery& delivery);
    void end_read(Delivery& delivery);
    void ask_for_bytes(unsigned from, std::uint32_t send, Delivery& delivery);
    void end_kept(Unexpected& message, Delivery& delivery);
    void end_delivery(Delivery& delivery, Status status);
    void complete(WaitingReceive& receive, const Placement& placement, const Envelope& envelope,
                  std::optional<std::uint32_t> data, Status status);
    Unexpected& keep(unsigned from, const Packet& packet, const Offer& offer = {});
    void take_whole(WaitingReceive& receive, const Placement& placement, const Envelope& envelope,
                    std::optional<std::uint32_t> data, Bytes bytes);
    void begin_bulk(unsigned from, Delivery* delivery, Unexpected* kept, std::size_t size);
    [[nodiscard]] bool read_slice(Delivery& delivery, std::size_t size);
    /// The word for the receiver's completion.
    [[nodiscard]] static std::optional<std::uint32_t> data_in(const Packet& packet) noexcept {
        return packet.header.has_data ? std::optional(packet.header.data) : std::nullopt;
    }
    [[nodiscard]] Offer offer_in(unsigned from, const Packet& packet, Bytes name);

    T& transport_;
    Completions& completions_;
    Reach& reach_;
    Sending<T>& sending_;
    IncomingBulk<T>& bulk_;
    DeviceMatcher tagged_, untagged_;
    std::vector<Rank> ranks_;
    unsigned gone_ = 0;  ///< ranks
    Pool<WaitingReceive> receives_;
    Pool<Delivery> deliveries_;
    Pool<Unexpected> messages_;
    std::deque<std::uint32_t> reads_;  ///< deliveries from others' memory, by number
    ReceivingCounters counters_;
};

// ---- Receives

template <class T>
void Receiving<T>::receive(const ReceiveOrder& order) {
    WaitingReceive& receive = receives_.take(order);
    Placement placement;
    while (Unexpected* message =
               static_cast<Unexpected*>(matcher(order.untagged).post(receive, placement))) {
        const bool is_last = placement.last;
        hand_over(*message, receive, placement);  // the receive may be gone afterwards
        if (is_last) return;
    }
    if (is_hopeless(order.from) && matcher(order.untagged).cancel(receive)) {
        end_receive(receive, Status::gone);
    }
}

/// Whether nobody is left who could send it. Oneself does not count: a rank that waits here does
/// not send.
template <class T>
bool Receiving<T>::is_hopeless(Source from) const noexcept {
    if (from != kAnySource) return ranks_[from].gone;
    return ranks_.size() > 1 && gone_ + 1 == ranks_.size();
}

template <class T>
bool Receiving<T>::cancel(void* context) {
    WaitingReceive* found = nullptr;
    receives_.for_each([&](WaitingReceive& receive) {
        if (receive.posted && receive.order.context == context &&
            (found == nullptr || receive.turn < found->turn)) {
            found = &receive;
        }
    });
    if (found == nullptr) return false;
    matcher(found->order.untagged).cancel(*found);
    end_receive(*found, Status::cancelled);
    return true;
}

template <class T>
Completion Receiving<T>::completion_of(const WaitingReceive& receive, Status status) const {
    Completion completion;
    completion.of = Completion::Of::receive;
    completion.status = status;
    completion.untagged = receive.order.untagged;
    completion.mark = receive.order.mark;
    completion.context = receive.order.context;
    completion.of_several = receive.order.least != 0;
    if (!receive.order.parts.empty()) {
        completion.buffer = static_cast<std::byte*>(receive.order.parts[0].iov_base);
    }
    return completion;
}

/// One that was posted, and is no longer. Messages on their way to it go on, and the last of them
/// ends it.
template <class T>
void Receiving<T>::end_receive(WaitingReceive& receive, Status status) {
    RMEM_CHECK_IF(kChecks, !receive.posted);
    receive.over = true;
    if (receive.on_their_way != 0) return;
    Completion completion = completion_of(receive, status);
    completion.envelope.source = receive.order.from;
    completion.envelope.tag = receive.order.tag;
    completions_.completed(completion);
    receives_.give(receive);
}

template <class T>
void Receiving<T>::receive_claimed(Unexpected& message, const ReceiveOrder& order) {
    WaitingReceive& receive = receives_.take(order);
    const Placement placement = DeviceMatcher::place(receive, message.envelope.size);
    hand_over(message, receive, placement);
}

/// Its bytes are dropped, without a completion.
template <class T>
void Receiving<T>::discard(Unexpected& message) {
    WaitingReceive& receive = receives_.take();
    receive.is_silent = true;
    Placement placement;
    placement.last = true;
    hand_over(message, receive, placement);
}

/// Of one message. The receive is given back if it is over.
template <class T>
void Receiving<T>::complete(WaitingReceive& receive, const Placement& placement,
                            const Envelope& envelope, std::optional<std::uint32_t> data,
                            Status status) {
    Completion completion =
        completion_of(receive, status == Status::ok && placement.cut ? Status::cut : status);
    completion.envelope = envelope;
    completion.data = data;
    completion.at = placement.at;
    completion.bytes = status == Status::ok ? placement.bytes : 0;
    completion.last = receive.on_their_way == 0 && receive.over;
    const bool is_silent = receive.is_silent;
    if (completion.last) receives_.give(receive);
    if (!is_silent) completions_.completed(completion);
}

// ---- Deliveries

template <class T>
Delivery& Receiving<T>::deliver(WaitingReceive& receive, const Placement& placement,
                                const Envelope& envelope, std::optional<std::uint32_t> data) {
    Delivery& delivery = deliveries_.take();
    delivery.receive = &receive;
    delivery.placement = placement;
    delivery.envelope = envelope;
    delivery.data = data;
    ++receive.on_their_way;
    receive.over |= placement.last;
    return delivery;
}

/// An unexpected message has found its receive.
template <class T>
void Receiving<T>::hand_over(Unexpected& message, WaitingReceive& receive,
                             const Placement& placement) {
    Delivery& delivery = deliver(receive, placement, message.envelope, message.data);
    const unsigned from = message.envelope.source;
    if (message.is_hopeless) {
        messages_.give(message);
        end_delivery(delivery, Status::gone);
    } else if (message.is_rendezvous) {
        accept(from, message.send, message.offer, delivery);
        messages_.give(message);
    } else if (message.arrived < message.envelope.size) {
        RMEM_CHECK_IF(kChecks, ranks_[from].kept == &message);
        message.delivery = &delivery;  // when all of it is here
    } else {
        end_kept(message, delivery);
    }
}

template <class T>
void Receiving<T>::end_kept(Unexpected& message, Delivery& delivery) {
    copy_in(delivery.receive->order.parts, delivery.placement.at,
            Bytes(message.bytes).first(delivery.placement.bytes));
    sending_.give_back(message.envelope.source, cost_of(message.envelope.size));
    messages_.give(message);
    end_delivery(delivery, Status::ok);
}

template <class T>
void Receiving<T>::accept(unsigned from, std::uint32_t send, const Offer& offer,
                          Delivery& delivery) {
    delivery.send = send;
    if (offer.by == Offer::By::host && reach_.may_read(from)) {
        delivery.address = offer.place.address;
        reads_.push_back(delivery.number);
    } else if (offer.by == Offer::By::fabric) {
        read_far(from, offer.place, delivery);
    } else {
        ask_for_bytes(from, send, delivery);
    }
}

template <class T>
void Receiving<T>::ask_for_bytes(unsigned from, std::uint32_t send, Delivery& delivery) {
    if (sending_.is_unreachable(from)) return end_delivery(delivery, Status::gone);
    Packet packet;
    packet.header.type = PacketType::ok_to_send;
    packet.send = send;
    packet.receive = delivery.number;
    delivery.is_awaited = true;
    sending_.post(from, packet);
}

template <class T>
void Receiving<T>::end_delivery(Delivery& delivery, Status status) {
    const Delivery over = delivery;
    deliveries_.give(delivery);
    RMEM_CHECK_IF(kChecks, over.receive->on_their_way != 0);
    --over.receive->on_their_way;
    complete(*over.receive, over.placement, over.envelope, over.data, status);
}

// ---- Packets

/// A short message, or the beginning of an eager one.
template <class T>
bool Receiving<T>::on_message(unsigned from, const Packet& packet, Bytes bytes) {
    const bool is_long = packet.header.type == PacketType::long_message;
    if (packet.size > (is_long ? kEagerMost : transport_.packet_most())) return false;
    if (!sending_.hold(from, cost_of(packet.size))) return false;
    const Envelope envelope{from, packet.header.tag, packet.size};
    const auto data = data_in(packet);
    Delivery* delivery = nullptr;
    Unexpected* kept = nullptr;
    if (const auto match = matcher(packet.header.untagged).arrive(envelope)) {
        auto& receive = static_cast<WaitingReceive&>(*match->receive);
        if (bytes.size() == packet.size) {
            take_whole(receive, match->placement, envelope, data, bytes);
            return true;
        }
        delivery = &deliver(receive, match->placement, envelope, data);
        delivery->cost = cost_of(packet.size);
    } else {
        kept = &keep(from, packet);
    }
    if (bytes.size() < packet.size) {
        begin_bulk(from, delivery, kept, packet.size);
    } else {
        std::copy(bytes.begin(), bytes.end(), kept->bytes.begin());
        kept->arrived = bytes.size();
    }
    return true;
}

/// The usual case, for which no delivery is noted down.
template <class T>
void Receiving<T>::take_whole(WaitingReceive& receive, const Placement& placement,
                              const Envelope& envelope, std::optional<std::uint32_t> data,
                              Bytes bytes) {
    receive.over |= placement.last;
    copy_in(receive.order.parts, placement.at, bytes.first(placement.bytes));
    sending_.give_back(envelope.source, cost_of(envelope.size));
    complete(receive, placement, envelope, data, Status::ok);
}

template <class T>
Unexpected& Receiving<T>::keep(unsigned from, const Packet& packet, const Offer& offer) {
    Unexpected& message = messages_.take();
    message.envelope = {from, packet.header.tag, packet.size};
    message.untagged = packet.header.untagged;
    message.data = data_in(packet);
    message.is_rendezvous = packet.header.type == PacketType::request_send ||
                            packet.header.type == PacketType::request_get ||
                            packet.header.type == PacketType::request_read;
    message.send = packet.send;
    message.offer = offer;
    if (!message.is_rendezvous) message.bytes.resize(packet.size);
    matcher(message.untagged).keep(message);
    ++counters_.unexpected;
    return message;
}

template <class T>
Offer Receiving<T>::offer_in(unsigned from, const Packet& packet, Bytes name) {
    const rmem::FarMemory::Place place{packet.address, packet.key};
    if (packet.header.type == PacketType::request_get) return {Offer::By::host, place};
    const bool is_met = packet.header.type == PacketType::request_read && reach_.far() != nullptr &&
                        reach_.far()->meet(from, name);
    return is_met ? Offer{Offer::By::fabric, place} : Offer{};
}

template <class T>
void Receiving<T>::on_request(unsigned from, const Packet& packet, Bytes name) {
    const Envelope envelope{from, packet.header.tag, packet.size};
    const Offer offer = offer_in(from, packet, name);
    if (const auto match = matcher(packet.header.untagged).arrive(envelope)) {
        accept(from, packet.send, offer,
               deliver(static_cast<WaitingReceive&>(*match->receive), match->placement, envelope,
                       data_in(packet)));
    } else {
        keep(from, packet, offer);
    }
}

template <class T>
bool Receiving<T>::on_data(unsigned from, const Packet& packet) {
    Delivery* delivery = deliveries_.find(packet.receive);
    if (delivery == nullptr || delivery->envelope.source != from || !delivery->is_awaited)
        return false;
    delivery->is_awaited = false;
    if (delivery->envelope.size == 0) {
        end_delivery(*delivery, Status::ok);
    } else {
        begin_bulk(from, delivery, nullptr, delivery->envelope.size);
    }
    return true;
}

// ---- Bulk

template <class T>
void Receiving<T>::begin_bulk(unsigned from, Delivery* delivery, Unexpected* kept,
                              std::size_t size) {
    RMEM_CHECK_IF(kChecks, (delivery == nullptr) != (kept == nullptr));
    ranks_[from].delivery = delivery;
    ranks_[from].kept = kept;
    bulk_.begin(from, size, this);
}

/// Bytes that are cut go nowhere.
template <class T>
std::span<std::byte> Receiving<T>::room(unsigned from) {
    const Rank& rank = ranks_[from];
    if (rank.kept != nullptr) return std::span(rank.kept->bytes).subspan(rank.kept->arrived);
    const Delivery& delivery = *rank.delivery;
    const std::size_t wanted = delivery.placement.bytes;
    std::span<std::byte> room;
    if (delivery.arrived < wanted) {
        for_each_stretch(delivery.receive->order.parts, delivery.placement.at + delivery.arrived,
                         wanted - delivery.arrived, [&](std::byte* to, std::size_t count) {
                             room = {to, count};
                             return false;
                         });
    }
    return room;
}

template <class T>
void Receiving<T>::arrived(unsigned from, std::size_t bytes) {
    const Rank& rank = ranks_[from];
    (rank.kept != nullptr ? rank.kept->arrived : rank.delivery->arrived) += bytes;
}

template <class T>
void Receiving<T>::is_whole(unsigned from) {
    Delivery* const delivery = std::exchange(ranks_[from].delivery, nullptr);
    Unexpected* const kept = std::exchange(ranks_[from].kept, nullptr);
    if (delivery != nullptr) {
        if (delivery->cost != 0) sending_.give_back(from, delivery->cost);
        end_delivery(*delivery, Status::ok);
    } else if (kept->delivery != nullptr) {
        end_kept(*kept, *static_cast<Delivery*>(kept->delivery));
    }
}

// ---- Gets

template <class T>
bool Receiving<T>::read_some() {
    if (reads_.empty()) return false;
    Delivery* const delivery = deliveries_.find(reads_.front());
    if (delivery == nullptr) {  // its sender has died
        reads_.pop_front();
        return true;
    }
    const unsigned from = delivery->envelope.source;
    const std::size_t left = delivery->placement.bytes - delivery->arrived;
    const std::size_t size = std::min(left, kGetSlice);
    if (!read_slice(*delivery, size)) {
        reach_.found_unreadable(from);
        delivery->arrived = 0;
        reads_.pop_front();
        ask_for_bytes(from, delivery->send, *delivery);
        return true;
    }
    delivery->arrived += size;
    if (size < left) return true;
    reads_.pop_front();
    end_read(*delivery);
    return true;
}

template <class T>
void Receiving<T>::end_read(Delivery& delivery) {
    const unsigned from = delivery.envelope.source;
    ++counters_.gets_received;
    Packet packet;
    packet.header.type = PacketType::done_get;
    packet.send = delivery.send;
    if (!sending_.is_unreachable(from)) sending_.post(from, packet);
    end_delivery(delivery, Status::ok);
}

template <class T>
bool Receiving<T>::read_slice(Delivery& delivery, std::size_t size) {
    const unsigned from = delivery.envelope.source;
    std::uint64_t address = delivery.address + delivery.arrived;
    bool is_read = true;
    for_each_stretch(delivery.receive->order.parts, delivery.placement.at + delivery.arrived, size,
                     [&](std::byte* to, std::size_t count) {
                         is_read = reach_.read(from, address, {to, count});
                         address += count;
                         return is_read;
                     });
    return is_read;
}

/// As many reads as the receive has parts.
template <class T>
void Receiving<T>::read_far(unsigned from, const rmem::FarMemory::Place& place,
                            Delivery& delivery) {
    if (delivery.placement.bytes == 0) return end_read(delivery);
    rmem::FarMemory::Place next = place;
    for_each_stretch(delivery.receive->order.parts, delivery.placement.at, delivery.placement.bytes,
                     [&](std::byte* to, std::size_t count) {
                         ++delivery.far_reads;
                         reach_.far()->read(from, next, {to, count}, delivery.number);
                         next.address += count;
                         return true;
                     });
}

/// Nothing is asked for over the ring while a read may still write.
template <class T>
bool Receiving<T>::end_far_reads() {
    if (!reach_.is_far_busy()) return false;
    bool any = false;
    while (const auto ended = reach_.far()->progress()) {
        any = true;
        Delivery* const delivery = deliveries_.find(ended->number);
        if (delivery == nullptr) continue;  // its sender has died
        delivery->is_unread |= !ended->is_read;
        if (--delivery->far_reads != 0) continue;
        if (delivery->is_unread) {
            ask_for_bytes(delivery->envelope.source, delivery->send, *delivery);
        } else {
            end_read(*delivery);
        }
    }
    return any;
}

// ---- Deaths

template <class T>
void Receiving<T>::lose(unsigned rank) {
    ranks_[rank].gone = true;
    ++gone_;
    if (reach_.far() != nullptr) reach_.far()->drop(rank);
    if (ranks_[rank].kept != nullptr) ranks_[rank].kept->is_hopeless = true;
    ranks_[rank].delivery = nullptr;
    ranks_[rank].kept = nullptr;
    end_receives_from(rank);
    if (is_hopeless(kAnySource)) end_receives_from(kAnySource);
    // A message that was on its way, or only asked to be sent, will not arrive.
    messages_.for_each([&](Unexpected& message) {
        if (message.envelope.source != rank) return;
        if (!message.is_rendezvous && !message.is_hopeless) return;
        // One that was claimed is its claimer's until it is received or discarded.
        if (!message.unexpected && message.delivery == nullptr) return;
        if (message.unexpected) matcher(message.untagged).claim(message);
        messages_.give(message);
    });
    deliveries_.for_each([&](Delivery& delivery) {
        if (delivery.envelope.source == rank) end_delivery(delivery, Status::gone);
    });
}

template <class T>
void Receiving<T>::end_receives_from(Source from) {
    for (DeviceMatcher* matcher : {&tagged_, &untagged_}) {
        while (Receive* receive = matcher->take_hopeless(from)) {
            end_receive(static_cast<WaitingReceive&>(*receive), Status::gone);
        }
    }
}

}  // namespace mpi_channel
