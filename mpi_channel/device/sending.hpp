// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Everything that leaves for each rank: sends, each by its protocol, and packets of the other
/// parts. Part of Device (mpi_channel/device/device.hpp).
///
/// A send or packet that finds no room waits in its rank's queue. Packets that wait for one rank
/// leave as a bundle: where ranks share a processor, a sender finds no room until its receiver has
/// had its turn, and a turn then carries as many packets as fit into one of the longest.
///
/// Progress: in each call that sends, and in pump_all(); no call waits.
/// Thread safety: one thread at a time. Errors: a send ends with `gone`; std::bad_alloc.
/// Trust: on_ok_to_send() and on_done_get() take the receiver's packets, and return false for a
/// number that is no send of its.
/// Invariants, checked where the transport is simulated and in debug builds
///   (S1) A rank whose queue is not empty is in `waiting_`, once.
///   (S2) Nothing waits for a rank that is unreachable, and no send to it is under way.
///   (S3) What leaves for one rank leaves in the order in which it was given; bulk follows its
///        packet.

#include "billboard/bbp.h"
#include "mpi_channel/device/bundles.hpp"
#include "mpi_channel/device/credit.hpp"
#include "mpi_channel/device/leaving.hpp"
#include "mpi_channel/device/packets.hpp"
#include "mpi_channel/device/pool.hpp"
#include "mpi_channel/device/reach.hpp"
#include "mpi_channel/device/remote_packets.hpp"
#include "mpi_channel/device/requests.hpp"
#include "rmem/link/memory.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace mpi_channel {

static_assert(cost_of(kEagerMost) <= kCredit);  // else one would never be sent

/// It is told when nothing can be sent to a rank any more.
class SendingListener {
public:
    virtual void on_unreachable(unsigned rank) = 0;

protected:
    ~SendingListener() = default;
};

template <class T>
class Sending {
public:
    using Bytes = std::span<const std::byte>;

    Sending(T& transport, Completions& completions, Reach& reach)
        : transport_(transport),
          completions_(completions),
          reach_(reach),
          ranks_(transport.ranks()),
          scratch_(std::max(kMaxRemoteBytes, transport.packet_most())) {}
    Sending(const Sending&) = delete;
    Sending& operator=(const Sending&) = delete;

    void set_listener(SendingListener& listener) noexcept { listener_ = &listener; }

    // ---- Messages
    void send(const SendOrder& order);
    [[nodiscard]] bool on_ok_to_send(unsigned from, const Packet& packet);
    [[nodiscard]] bool on_done_get(unsigned from, const Packet& packet);

    // ---- Packets of the other parts, in the order of what is sent to that rank
    void post(unsigned to, const Packet& packet) { post(to, packet, nullptr); }
    void post(unsigned to, RemoteToSend remote);
    /// Of these, answers that have not left yet.
    [[nodiscard]] unsigned answers(unsigned to) const noexcept { return ranks_[to].answers; }
    [[nodiscard]] int post_to_group(std::span<const int> to, std::uint32_t group,
                                    std::uint64_t number, Bytes bytes);

    // ---- Credit
    [[nodiscard]] bool refund(unsigned from, std::size_t bytes) noexcept {
        return ranks_[from].credit.refund(bytes);
    }
    [[nodiscard]] bool hold(unsigned from, std::size_t cost) noexcept {
        return ranks_[from].credit.hold(cost);
    }
    void give_back(unsigned to, std::size_t cost);
    [[nodiscard]] std::size_t credit_left(unsigned to) const noexcept {
        return ranks_[to].credit.left();
    }
    [[nodiscard]] std::size_t held(unsigned from) const noexcept {
        return ranks_[from].credit.held();
    }

    // ---- Progress
    /// True if the queue of a rank has become empty.
    [[nodiscard]] bool pump_all();
    [[nodiscard]] bool has_backlog() const noexcept { return !waiting_.empty(); }
    [[nodiscard]] std::size_t backlog(unsigned to) const noexcept {
        return ranks_[to].queue.size();
    }

    [[nodiscard]] bool is_unreachable(unsigned rank) const noexcept {
        return ranks_[rank].unreachable;
    }
    /// Its sends end; messages of that rank may still arrive.
    void cut_off(unsigned rank);

    [[nodiscard]] const SendingCounters& counters() const noexcept { return counters_; }

private:
    static constexpr bool kChecks = rmem::is_simulated<T>;

    struct Rank {
        std::deque<Leaving> queue;
        Credit<kChecks> credit;
        unsigned answers = 0;  ///< in the queue
        bool unreachable = false;
    };

    static Packet packet_of(const SendOrder& order, PacketType type);
    [[nodiscard]] bool send_at_once(const SendOrder& order, std::size_t size);
    [[nodiscard]] int put_packet(unsigned to, Packet& packet, Bytes message);
    [[nodiscard]] int send_for_group(unsigned to, Packet& packet, Bytes bytes);
    void post(unsigned to, const Packet& packet, Send* bulk_of);
    void enqueue(unsigned to, Leaving leaving);
    bool pump(unsigned to);
    int leave(unsigned to, Leaving& leaving);
    void begin(unsigned to, Leaving& leaving);
    [[nodiscard]] int leave_bulk(unsigned to, const Parts& parts, std::size_t at,
                                 std::size_t& left);
    [[nodiscard]] int leave_remote(unsigned to, Leaving& leaving);
    [[nodiscard]] bool may_be_bundled(unsigned to, Leaving& leaving);
    [[nodiscard]] int leave_bundle(unsigned to, std::size_t* count);
    void end_bundled(Leaving& leaving);
    void offer_far(unsigned to, Send& send);
    void withdraw_far(Send& send) noexcept;
    void end_send(Send& send, Status status);
    void complete(const SendOrder& order, Status status);
    /// Behind its packet's header: of those three alone.
    std::size_t message_bytes(const Leaving& leaving) const noexcept {
        const PacketType type = leaving.packet.header.type;
        if (type == PacketType::request_read) return leaving.packet.name;
        const bool has = type == PacketType::short_message || type == PacketType::group_message;
        return has ? leaving.send->size : 0;
    }
    Parts message_of(const Leaving& leaving) {
        if (leaving.packet.header.type != PacketType::request_read)
            return leaving.send->order.parts;
        return {{name_.data(), leaving.packet.name}};
    }

    T& transport_;
    Completions& completions_;
    Reach& reach_;
    SendingListener* listener_ = nullptr;
    std::vector<Rank> ranks_;
    std::vector<unsigned> waiting_;  ///< ranks with a queue
    Pool<Send> sends_;
    std::vector<std::byte> scratch_;  ///< for a packet that is put together
    std::vector<std::byte> name_;     ///< on the fabric
    SendingCounters counters_;
};

// ---- Messages

template <class T>
Packet Sending<T>::packet_of(const SendOrder& order, PacketType type) {
    Packet packet;
    packet.header.type = type;
    packet.header.untagged = order.untagged;
    packet.header.has_data = order.data.has_value();
    packet.header.data = order.data.value_or(0);
    packet.header.tag = order.tag;
    return packet;
}

template <class T>
void Sending<T>::send(const SendOrder& order) {
    RMEM_CHECK_IF(kChecks, order.to < ranks_.size());
    const std::size_t size = size_of(order.parts);
    const Rank& rank = ranks_[order.to];
    if (rank.unreachable) return complete(order, Status::gone);
    if (rank.queue.empty() && !order.after_match && send_at_once(order, size)) return;
    Send& send = sends_.take();
    send.order = order;
    send.size = size;
    if (order.copy) {
        send.copy.resize(size);
        copy_out(order.parts, send.copy.data());
        send.order.parts = {{send.copy.data(), size}};
    }
    Leaving leaving;
    leaving.send = &send;
    enqueue(order.to, std::move(leaving));
}

/// The usual case, for which nothing is noted down. False: it must wait, or ask first.
template <class T>
bool Sending<T>::send_at_once(const SendOrder& order, std::size_t size) {
    Rank& rank = ranks_[order.to];
    if (kHeaderBytes + size > transport_.packet_most() || !rank.credit.covers(cost_of(size)))
        return false;
    Packet packet = packet_of(order, PacketType::short_message);
    Bytes message;
    if (order.parts.count() == 1) {
        message = {static_cast<const std::byte*>(order.parts[0].iov_base), size};
    } else {
        copy_out(order.parts, scratch_.data());
        message = Bytes(scratch_).first(size);
    }
    const int result = put_packet(order.to, packet, message);
    if (result == BBP_EAGAIN) return false;
    if (result == BBP_OK) {
        rank.credit.spend(cost_of(size));
        ++counters_.short_sent;
    } else {
        cut_off(order.to);
    }
    complete(order, result == BBP_OK ? Status::ok : Status::gone);
    return true;
}

/// Credit that is owed goes with every packet.
template <class T>
int Sending<T>::put_packet(unsigned to, Packet& packet, Bytes message) {
    Rank& rank = ranks_[to];
    packet.header.credit = static_cast<std::uint32_t>(rank.credit.owed());
    std::array<std::byte, kMaxPacketBytes> header;
    const std::size_t bytes = write(packet, header.data());
    const int result = transport_.send_control_block(Bytes(header).first(bytes), message, to);
    if (result == BBP_OK) rank.credit.repaid();
    return result;
}

/// The protocol of a send is chosen when it is its turn: until then it may have got credit.
template <class T>
void Sending<T>::begin(unsigned to, Leaving& leaving) {
    Send& send = *leaving.send;
    Rank& rank = ranks_[to];
    send.offered = send.order.parts.count() == 1 && send.size <= reach_.most() &&
                   reach_.may_be_read(to, send.size);
    if (!send.offered && send.size > kEagerMost) offer_far(to, send);
    const bool is_small = send.size <= kEagerMost && !send.order.after_match && !send.offered;
    leaving.has_packet = true;
    if (!is_small || !rank.credit.covers(cost_of(send.size))) {
        leaving.packet = packet_of(
            send.order, send.offered ? PacketType::request_get : PacketType::request_send);
        if (send.offered)
            leaving.packet.address = reinterpret_cast<std::uintptr_t>(send.order.parts[0].iov_base);
        if (send.far) {
            leaving.packet.header.type = PacketType::request_read;
            leaving.packet.address = send.far->address;
            leaving.packet.key = send.far->key;
            leaving.packet.name = name_.size();
        }
        leaving.packet.size = send.size;
        leaving.packet.send = send.number;
        leaving.asks = true;
        ++counters_.rendezvous_sent;
        if (is_small) ++counters_.out_of_credit;
        return;
    }
    rank.credit.spend(cost_of(send.size));
    if (kHeaderBytes + send.size <= transport_.packet_most()) {
        leaving.packet = packet_of(send.order, PacketType::short_message);
        ++counters_.short_sent;
    } else {
        leaving.packet = packet_of(send.order, PacketType::long_message);
        leaving.packet.size = send.size;
        leaving.left = send.size;
        ++counters_.eager_sent;
    }
}

/// Where the packet has room for the name.
template <class T>
void Sending<T>::offer_far(unsigned to, Send& send) {
    rmem::FarMemory* const far = reach_.far();
    if (far == nullptr || send.order.parts.count() != 1 || !far->reaches(to, send.size)) return;
    const Bytes name = far->name();
    if (name.empty() || kMaxPacketBytes + name.size() > transport_.packet_most()) return;
    name_.assign(name.begin(), name.end());
    send.far = far->offer({static_cast<const std::byte*>(send.order.parts[0].iov_base), send.size});
}

template <class T>
void Sending<T>::withdraw_far(Send& send) noexcept {
    if (send.far) reach_.far()->withdraw(*send.far);
    send.far.reset();
}

template <class T>
bool Sending<T>::on_ok_to_send(unsigned from, const Packet& packet) {
    Send* send = sends_.find(packet.send);
    if (send == nullptr || send->order.to != from || !send->asked) return false;
    send->asked = false;
    if (send->offered) {
        reach_.found_no_reader(from);
        ++counters_.gets_refused;
    } else if (send->far) {
        reach_.far()->found_no_reader(from);
        withdraw_far(*send);
        ++counters_.gets_refused;
    }
    Packet answer;
    answer.header.type = PacketType::data;
    answer.receive = packet.receive;
    post(from, answer, send);
    return true;
}

template <class T>
bool Sending<T>::on_done_get(unsigned from, const Packet& packet) {
    Send* send = sends_.find(packet.send);
    if (send == nullptr || send->order.to != from || !send->asked) return false;
    if (!send->offered && !send->far) return false;
    ++counters_.gets_sent;
    if (send->far) ++counters_.far_sent;
    end_send(*send, Status::ok);
    return true;
}

template <class T>
void Sending<T>::end_send(Send& send, Status status) {
    withdraw_far(send);
    complete(send.order, status);
    sends_.give(send);
}

template <class T>
void Sending<T>::complete(const SendOrder& order, Status status) {
    if (order.untold || (order.silent && status == Status::ok)) return;
    Completion completion;
    completion.of = Completion::Of::send;
    completion.status = status;
    completion.untagged = order.untagged;
    completion.mark = order.mark;
    completion.context = order.context;
    completions_.completed(completion);
}

// ---- Queues

template <class T>
void Sending<T>::enqueue(unsigned to, Leaving leaving) {
    Rank& rank = ranks_[to];
    RMEM_CHECK_IF(kChecks, !rank.unreachable);
    const bool was_empty = rank.queue.empty();
    rank.queue.push_back(std::move(leaving));
    if (!was_empty) return;
    RMEM_CHECK_IF(kChecks, std::find(waiting_.begin(), waiting_.end(), to) == waiting_.end());
    waiting_.push_back(to);
    if (pump(to)) waiting_.erase(std::find(waiting_.begin(), waiting_.end(), to));
}

template <class T>
void Sending<T>::post(unsigned to, const Packet& packet, Send* bulk_of) {
    Leaving leaving;
    leaving.packet = packet;
    leaving.has_packet = true;
    leaving.send = bulk_of;
    leaving.left = bulk_of == nullptr ? 0 : bulk_of->size;
    enqueue(to, std::move(leaving));
}

template <class T>
void Sending<T>::post(unsigned to, RemoteToSend remote) {
    remote.packet.is_long =
        kHeaderBytes + kMaxRemoteBytes + remote.bytes > transport_.packet_most();
    if (remote.packet.is_answer()) ++ranks_[to].answers;
    Leaving leaving;
    leaving.packet.header.type = PacketType::remote;
    leaving.packet.header.has_data = remote.data.has_value();
    leaving.packet.header.data = remote.data.value_or(0);
    leaving.has_packet = true;
    leaving.left = remote.packet.is_long ? remote.bytes : 0;
    leaving.remote = std::make_unique<RemoteToSend>(std::move(remote));
    enqueue(to, std::move(leaving));
}

template <class T>
bool Sending<T>::pump_all() {
    bool any = false;
    for (std::size_t i = waiting_.size(); i-- > 0;) {
        const unsigned to = waiting_[i];
        if (!pump(to)) continue;
        waiting_.erase(std::find(waiting_.begin(), waiting_.end(), to));
        any = true;
    }
    return any;
}

/// True when nothing of the queue is left.
template <class T>
bool Sending<T>::pump(unsigned to) {
    std::deque<Leaving>& queue = ranks_[to].queue;
    while (!queue.empty()) {
        std::size_t bundled = 0;
        int result = BBP_OK;
        if (queue.size() > 1) result = leave_bundle(to, &bundled);
        if (result == BBP_OK && bundled == 0) result = leave(to, queue.front());
        if (result == BBP_EAGAIN) return false;
        if (result != BBP_OK) {
            cut_off(to);
            return true;
        }
        for (; bundled > 1; --bundled) {
            end_bundled(queue.front());
            queue.pop_front();
        }
        if (bundled == 1) end_bundled(queue.front());
        queue.pop_front();
    }
    return true;
}

template <class T>
int Sending<T>::leave(unsigned to, Leaving& leaving) {
    if (leaving.remote != nullptr) return leave_remote(to, leaving);
    if (!leaving.has_packet && leaving.left == 0 && leaving.send != nullptr) begin(to, leaving);
    if (leaving.has_packet) {
        Bytes message;
        if (const std::size_t bytes = message_bytes(leaving); bytes != 0) {
            copy_out(message_of(leaving), scratch_.data());
            message = Bytes(scratch_).first(bytes);
        }
        if (const int result = put_packet(to, leaving.packet, message); result != BBP_OK)
            return result;
        leaving.has_packet = false;
        if (leaving.asks) leaving.send->asked = true;
    }
    if (leaving.left != 0) {
        if (const int result = leave_bulk(to, leaving.send->order.parts,
                                          leaving.send->size - leaving.left, leaving.left);
            result != BBP_OK)
            return result;
    }
    if (leaving.send != nullptr && !leaving.asks) end_send(*leaving.send, Status::ok);
    return BBP_OK;
}

template <class T>
int Sending<T>::leave_bulk(unsigned to, const Parts& parts, std::size_t at, std::size_t& left) {
    int result = BBP_OK;
    for_each_stretch(parts, at, left, [&](const std::byte* from, std::size_t count) {
        std::size_t sent = 0;
        result = transport_.send_channel({from, count}, to, &sent);
        left -= sent;
        if (result == BBP_OK && sent < count) result = BBP_EAGAIN;
        return result == BBP_OK;
    });
    return result;
}

template <class T>
int Sending<T>::leave_remote(unsigned to, Leaving& leaving) {
    RemoteToSend& remote = *leaving.remote;
    const Parts copied{{remote.copy.data(), remote.copy.size()}};
    const Parts& parts = remote.parts != nullptr ? *remote.parts : copied;
    if (leaving.has_packet) {
        std::byte* next = scratch_.data() + write(remote.packet, scratch_.data());
        if (!remote.packet.is_long) {
            for_each_stretch(parts, remote.at, remote.bytes,
                             [&](const std::byte* from, std::size_t count) {
                                 std::memcpy(next, from, count);
                                 next += count;
                                 return true;
                             });
        }
        const Bytes message(scratch_.data(), next);
        if (const int result = put_packet(to, leaving.packet, message); result != BBP_OK)
            return result;
        leaving.has_packet = false;
    }
    if (leaving.left != 0) {
        const std::size_t at = remote.at + remote.bytes - leaving.left;
        if (const int result = leave_bulk(to, parts, at, leaving.left); result != BBP_OK)
            return result;
    }
    if (remote.packet.is_answer()) --ranks_[to].answers;
    return BBP_OK;
}

template <class T>
void Sending<T>::cut_off(unsigned to) {
    Rank& rank = ranks_[to];
    rank.unreachable = true;
    rank.queue.clear();
    rank.answers = 0;
    sends_.for_each([&](Send& send) {
        if (send.order.to == to) end_send(send, Status::gone);
    });
    if (listener_ != nullptr) listener_->on_unreachable(to);
}

// ---- Bundles

/// Whether one that is next to leave may leave in a bundle: no bulk, and no access.
template <class T>
bool Sending<T>::may_be_bundled(unsigned to, Leaving& leaving) {
    if (leaving.remote != nullptr) return false;
    if (!leaving.has_packet && leaving.left == 0 && leaving.send != nullptr) begin(to, leaving);
    return leaving.has_packet && leaving.left == 0;
}

/// As many as fit, in their order; BBP_EAGAIN: none has left. `*count`: how many have.
template <class T>
int Sending<T>::leave_bundle(unsigned to, std::size_t* count) {
    auto& queue = ranks_[to].queue;
    const std::size_t room = transport_.packet_most() - kHeaderBytes;
    BundleWriter bundle({scratch_.data(), room});
    *count = 0;
    while (bundle.count() < queue.size()) {
        Leaving& leaving = queue[bundle.count()];
        if (!may_be_bundled(to, leaving) || !bundle.has_room(message_bytes(leaving))) break;
        leaving.packet.header.credit = 0;  // the bundle's own header has it
        const Parts message = leaving.send != nullptr ? message_of(leaving) : Parts();
        bundle.add(leaving.packet, &message, message_bytes(leaving));
    }
    if (bundle.count() < 2) return BBP_OK;
    Packet header;
    header.header.type = PacketType::bundle;
    const int result = put_packet(to, header, bundle.bytes());
    if (result == BBP_OK) *count = bundle.count();
    return result;
}

/// The first of the queue has left in a bundle.
template <class T>
void Sending<T>::end_bundled(Leaving& leaving) {
    if (leaving.send == nullptr) return;
    if (leaving.asks) {
        leaving.send->asked = true;
    } else {
        end_send(*leaving.send, Status::ok);
    }
}

// ---- Groups, credit

/// Behind what waits to be sent to any of them: a group's messages keep their order, and bulk is
/// not broken.
template <class T>
int Sending<T>::post_to_group(std::span<const int> to, std::uint32_t group, std::uint64_t number,
                              Bytes bytes) {
    Packet packet;
    packet.header.type = PacketType::group_message;
    packet.header.data = group;
    packet.header.tag = number;
    if (to.size() == 1) return send_for_group(static_cast<unsigned>(to[0]), packet, bytes);
    const auto has_queue = [&](int rank) {
        return !ranks_[static_cast<unsigned>(rank)].queue.empty();
    };
    if (std::any_of(to.begin(), to.end(), has_queue)) return BBP_EAGAIN;
    std::array<std::byte, kMaxPacketBytes> header;
    const std::size_t size = write(packet, header.data());
    return transport_.mcast_control(Bytes(header).first(size), bytes, to);
}

/// To one rank alone it waits in the queue, as other messages; several get it by one post, or not
/// yet.
template <class T>
int Sending<T>::send_for_group(unsigned to, Packet& packet, Bytes bytes) {
    const Rank& rank = ranks_[to];
    if (rank.unreachable) return BBP_EPEER;
    if (rank.queue.empty()) {
        const int result = put_packet(to, packet, bytes);
        if (result != BBP_EAGAIN) return result;
    }
    Send& send = sends_.take();
    send.order.to = to;
    send.order.untold = true;
    send.size = bytes.size();
    send.copy.assign(bytes.begin(), bytes.end());
    send.order.parts = {{send.copy.data(), send.copy.size()}};
    Leaving leaving;
    leaving.packet = packet;
    leaving.has_packet = true;
    leaving.send = &send;
    enqueue(to, std::move(leaving));
    return BBP_OK;
}

/// The cost of a message may be spent again. The sender learns it with the next packet, or by a
/// packet of its own when much is owed.
template <class T>
void Sending<T>::give_back(unsigned to, std::size_t cost) {
    Rank& rank = ranks_[to];
    rank.credit.owe(cost);
    if (rank.credit.owed() < kCredit / 2 || !rank.queue.empty() || rank.unreachable) return;
    post(to, Packet());
}

}  // namespace mpi_channel
