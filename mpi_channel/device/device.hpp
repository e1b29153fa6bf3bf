// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The MPI device: messages with tags between ranks, by packets over a transport
/// (docs/design/mpi-channel.md has the protocols).
///
///     Device<Channel> device(channel, completions);
///     device.receive({.from = 1, .tag = 7, .parts = {…}, .context = this});
///     device.send({.to = 1, .tag = 7, .parts = {…}, .context = this});
///     while (…not complete…) device.progress();
///
/// A request is over when its completion has been told: once, by Completions::completed(), from
/// within any call; it calls no device. Until then its bytes are the device's. A send is over when
/// its bytes have left the caller's memory (`after_match`: when their receive has been found). What
/// is sent to one rank, tagged or not, is received in the order in which it was sent.
///
/// Long messages may be read by their receiver from the sender's memory (use()); and memory that is
/// registered (serve()) may be read and written by others (access()): what has been asked of one
/// rank is done there in its order, but what goes from memory to memory.
///
/// Parts, each of which owns its state; a part knows those above it
///   Reach           mpi_channel/device/reach.hpp           whose memory may be read
///   Sending         mpi_channel/device/sending.hpp         queues, credit, sends under way
///   IncomingBulk    mpi_channel/device/incoming_bulk.hpp   bulk that is on its way here
///   Receiving       mpi_channel/device/receiving.hpp       receives, unexpected messages
///   Accesses        mpi_channel/device/access.hpp          accesses to others' memory
///   Serving         mpi_channel/device/serving.hpp         accesses of others to this rank's
/// The device itself gives each packet to its part, and finds out which rank has died.
///
/// Progress: only in calls; no call waits. progress() takes all that has arrived, for any request,
/// so that two ranks that send to each other never wait for each other; it also finds out which
/// ranks have died.
/// Memory: unexpected messages of one sender take at most kCredit bytes, and one line for each that
/// asks to be sent.
/// Errors: Status. Requests end with `gone` when the other rank has died, left, or sent what no
/// device sends. std::bad_alloc.
/// Trust: packets are others' bytes. Thread safety: one thread at a time.
/// Transport: see mpi_channel/transport.hpp for what it has and what it promises.

#include "billboard/bbp.h"
#include "mpi_channel/device/access.hpp"
#include "mpi_channel/device/incoming_bulk.hpp"
#include "mpi_channel/device/packets.hpp"
#include "mpi_channel/device/peer_memory.hpp"
#include "mpi_channel/device/reach.hpp"
#include "mpi_channel/device/receiving.hpp"
#include "mpi_channel/device/remote_packets.hpp"
#include "mpi_channel/device/requests.hpp"
#include "mpi_channel/device/sending.hpp"
#include "mpi_channel/device/serving.hpp"
#include "mpi_channel/transport.hpp"
#include "rmem/link/far_memory.hpp"

#include <new>
#include <span>
#include <stdexcept>
#include <vector>

namespace mpi_channel {

inline constexpr unsigned kMaxTaken = 32;        ///< packets in one progress()
inline constexpr unsigned kPollsPerLook = 1024;  ///< empty ones between looks for the dead

/// A device, whatever its transport.
class DeviceInterface {
public:
    virtual ~DeviceInterface() = default;

    /// Before anything is sent: messages of `least` to `most` bytes are read from their sender's
    /// memory, where it is within reach; so are accesses of `least` bytes or more.
    virtual void use(PeerMemory& peers, std::size_t least, std::size_t most) noexcept = 0;
    /// Before anything is sent: messages of more than kEagerMost are read through the fabric, where
    /// ranks are within its reach, and not within that of each other's memory.
    virtual void use_far(rmem::FarMemory& far) noexcept = 0;
    /// Before anything is sent: the regions that others may access, and the listener that hears of
    /// accesses, here and there.
    virtual void serve(const Regions& regions, RemoteEvents& events) noexcept = 0;

    virtual void send(const SendOrder& order) = 0;
    virtual void receive(const ReceiveOrder& order) = 0;
    /// The places have as many bytes as the parts. A write with `copy` takes its bytes at once.
    virtual void access(const RemoteOrder& order) = 0;
    /// Of the first receive with this context that waits: it ends as `cancelled`. False: none
    /// waits.
    virtual bool cancel(void* context) = 0;

    // ---- Messages that have come
    /// The one that a receive would get; null: none.
    [[nodiscard]] virtual Unexpected* peek(const Wanted& wanted, bool untagged) = 0;
    [[nodiscard]] virtual Unexpected* claim(const Wanted& wanted, bool untagged) = 0;
    /// A message claimed: into the order's parts, whatever else that asks for.
    virtual void receive_claimed(Unexpected& message, const ReceiveOrder& order) = 0;
    /// The same, and the bytes are dropped, without a completion.
    virtual void discard(Unexpected& message) = 0;

    /// Takes at most `packets` packets. False if nothing has come, left or ended.
    virtual bool progress(unsigned packets = kMaxTaken) = 0;
    /// Whether something is still to leave, or to be read: a rank that ends makes progress until
    /// not, and one that sleeps would make none.
    [[nodiscard]] virtual bool has_backlog() const noexcept = 0;
    [[nodiscard]] virtual std::size_t backlog(unsigned to) const noexcept = 0;
    [[nodiscard]] virtual bool is_gone(unsigned rank) const noexcept = 0;
    /// Between two that have nothing on its way, what one may still send and what the other holds
    /// of it is kCredit.
    [[nodiscard]] virtual std::size_t credit(unsigned to) const noexcept = 0;
    [[nodiscard]] virtual std::size_t held(unsigned from) const noexcept = 0;

    // ---- Groups
    /// The listener for messages of groups; null: they are dropped.
    virtual void set_group_traffic(GroupTraffic* traffic) noexcept = 0;
    /// To several ranks by one multicast: BBP_OK, BBP_EAGAIN: to nobody yet, BBP_EPEER: to those
    /// that live. To one rank by a packet, and never too early. At most packet_most() with its
    /// header.
    [[nodiscard]] virtual int post_to_group(std::span<const int> to, std::uint32_t group,
                                            std::uint64_t number,
                                            std::span<const std::byte> bytes) = 0;
    virtual void tell_group_flow(unsigned to, std::uint32_t group, std::uint64_t taken) = 0;
    /// The transport's, of these ranks in rising order, if it has any: BBP_OK, BBP_EAGAIN: not all
    /// have come yet, BBP_EPEER.
    [[nodiscard]] virtual int barrier(std::span<const int> members, unsigned id) = 0;
    [[nodiscard]] virtual bool has_barriers() const noexcept = 0;

    [[nodiscard]] virtual unsigned rank() const noexcept = 0;
    [[nodiscard]] virtual unsigned ranks() const noexcept = 0;
    [[nodiscard]] virtual std::size_t packet_most() const noexcept = 0;
    [[nodiscard]] virtual DeviceCounters counters() const noexcept = 0;
    [[nodiscard]] virtual TransportCounters transport_counters() const noexcept = 0;
};

template <class T>
class Device final : public DeviceInterface {
public:
    Device(T& transport, Completions& completions);
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    void use(PeerMemory& peers, std::size_t least, std::size_t most) noexcept override {
        reach_.use(peers, least, most);
    }
    void use_far(rmem::FarMemory& far) noexcept override { reach_.use_far(far); }
    void serve(const Regions& regions, RemoteEvents& events) noexcept override {
        is_serving_ = true;
        accesses_.tell(events);
        serving_.serve(regions, events);
    }
    void send(const SendOrder& order) override { sending_.send(order); }
    void receive(const ReceiveOrder& order) override { receiving_.receive(order); }
    void access(const RemoteOrder& order) override { accesses_.access(order); }
    bool cancel(void* context) override { return receiving_.cancel(context); }
    [[nodiscard]] Unexpected* peek(const Wanted& wanted, bool untagged) override {
        return receiving_.peek(wanted, untagged);
    }
    [[nodiscard]] Unexpected* claim(const Wanted& wanted, bool untagged) override {
        return receiving_.claim(wanted, untagged);
    }
    void receive_claimed(Unexpected& message, const ReceiveOrder& order) override {
        receiving_.receive_claimed(message, order);
    }
    void discard(Unexpected& message) override { receiving_.discard(message); }
    bool progress(unsigned packets = kMaxTaken) override;
    [[nodiscard]] bool has_backlog() const noexcept override {
        return sending_.has_backlog() || receiving_.has_reads() || accesses_.has_backlog() ||
               reach_.is_far_busy() || transport_.has_backlog();
    }
    [[nodiscard]] std::size_t backlog(unsigned to) const noexcept override {
        return sending_.backlog(to) + accesses_.backlog(to);
    }
    [[nodiscard]] bool is_gone(unsigned rank) const noexcept override {
        return receiving_.is_gone(rank);
    }
    [[nodiscard]] std::size_t credit(unsigned to) const noexcept override {
        return sending_.credit_left(to);
    }
    [[nodiscard]] std::size_t held(unsigned from) const noexcept override {
        return sending_.held(from);
    }
    void set_group_traffic(GroupTraffic* traffic) noexcept override { groups_ = traffic; }
    [[nodiscard]] int post_to_group(std::span<const int> to, std::uint32_t group,
                                    std::uint64_t number,
                                    std::span<const std::byte> bytes) override {
        return sending_.post_to_group(to, group, number, bytes);
    }
    void tell_group_flow(unsigned to, std::uint32_t group, std::uint64_t taken) override;
    [[nodiscard]] int barrier(std::span<const int> members, unsigned id) override {
        return transport_.barrier(members, id);
    }
    [[nodiscard]] bool has_barriers() const noexcept override { return T::kHasBarriers; }
    [[nodiscard]] unsigned rank() const noexcept override { return transport_.rank(); }
    [[nodiscard]] unsigned ranks() const noexcept override { return transport_.ranks(); }
    [[nodiscard]] std::size_t packet_most() const noexcept override {
        return transport_.packet_most();
    }
    [[nodiscard]] DeviceCounters counters() const noexcept override;
    [[nodiscard]] TransportCounters transport_counters() const noexcept override {
        return transport_.counters();
    }

private:
    using Bytes = std::span<const std::byte>;

    bool take_one();
    void take_packet(unsigned from, Bytes bytes);
    void on_packet(unsigned from, Bytes bytes);
    [[nodiscard]] bool on_group(unsigned from, const Packet& packet, Bytes bytes);
    [[nodiscard]] bool on_bundle(unsigned from, Bytes bytes);
    [[nodiscard]] bool on_remote(unsigned from, const Packet& packet, Bytes bytes);
    void look_for_the_dead();
    void lose(unsigned rank);
    void break_off(unsigned rank);

    T& transport_;
    Reach reach_;
    Sending<T> sending_;
    IncomingBulk<T> bulk_;
    Receiving<T> receiving_;
    Accesses<T> accesses_;
    Serving<T> serving_;
    GroupTraffic* groups_ = nullptr;
    bool is_serving_ = false;
    std::vector<std::uint8_t> is_broken_;  ///< by rank: it has sent what no device sends
    std::uint64_t broken_ = 0;
    unsigned empty_polls_ = 0;
    unsigned next_look_ = 0;
};

template <class T>
Device<T>::Device(T& transport, Completions& completions)
    : transport_(transport),
      reach_(transport.ranks()),
      sending_(transport, completions, reach_),
      bulk_(transport),
      receiving_(transport, completions, reach_, sending_, bulk_),
      accesses_(transport, reach_, sending_, bulk_),
      serving_(transport, reach_, sending_, bulk_),
      is_broken_(transport.ranks()) {
    static_assert(Transport<T>);
    sending_.set_listener(accesses_);
}

template <class T>
bool Device<T>::progress(unsigned packets) {
    bool any = false;
    for (; packets > 0 && take_one(); --packets) any = true;
    any |= sending_.pump_all();
    any |= receiving_.read_some();
    any |= receiving_.end_far_reads();
    if (any) {
        empty_polls_ = 0;
    } else if (++empty_polls_ % kPollsPerLook == 0) {
        look_for_the_dead();
    }
    return any;
}

template <class T>
void Device<T>::tell_group_flow(unsigned to, std::uint32_t group, std::uint64_t taken) {
    if (sending_.is_unreachable(to)) return;
    Packet packet;
    packet.header.type = PacketType::group_flow;
    packet.header.data = group;
    packet.header.tag = taken;
    sending_.post(to, packet);
}

template <class T>
DeviceCounters Device<T>::counters() const noexcept {
    DeviceCounters all;
    static_cast<SendingCounters&>(all) = sending_.counters();
    static_cast<ReceivingCounters&>(all) = receiving_.counters();
    all.accesses = accesses_.count();
    all.served = serving_.served();
    all.denied = serving_.denied();
    all.broken = broken_;
    return all;
}

// ---- What arrives

template <class T>
bool Device<T>::take_one() {
    Bytes bytes;
    unsigned from = 0;
    const int result = transport_.recv_any_control(&bytes, &from);
    if (result == BBP_OK) {
        if (is_broken_[from] == 0) take_packet(from, bytes);
        return true;
    }
    if (result == kBulk) {
        bulk_.take(from);
        return true;
    }
    if (result == BBP_ESIZE) break_off(from);
    return result == BBP_ESIZE;
}

/// Without memory for its packets, a sender cannot be heard any more.
template <class T>
void Device<T>::take_packet(unsigned from, Bytes bytes) {
    try {
        on_packet(from, bytes);
    } catch (const std::bad_alloc&) {
        break_off(from);
    } catch (const std::length_error&) {
        break_off(from);
    }
}

template <class T>
void Device<T>::on_packet(unsigned from, Bytes bytes) {
    const auto packet = read(bytes);
    if (!packet || !sending_.refund(from, packet->header.credit)) return break_off(from);
    bool is_sound = true;
    switch (packet->header.type) {
        case PacketType::short_message:
            is_sound = receiving_.on_message(from, *packet, bytes.last(packet->size));
            break;
        case PacketType::long_message: is_sound = receiving_.on_message(from, *packet, {}); break;
        case PacketType::request_send:
        case PacketType::request_get:
        case PacketType::request_read:
            receiving_.on_request(from, *packet, bytes.last(packet->name));
            break;
        case PacketType::ok_to_send: is_sound = sending_.on_ok_to_send(from, *packet); break;
        case PacketType::data: is_sound = receiving_.on_data(from, *packet); break;
        case PacketType::flow: break;
        case PacketType::bundle: is_sound = on_bundle(from, bytes.last(packet->size)); break;
        case PacketType::group_message:
        case PacketType::group_flow: is_sound = on_group(from, *packet, bytes); break;
        case PacketType::done_get: is_sound = sending_.on_done_get(from, *packet); break;
        case PacketType::remote:
            is_sound = on_remote(from, *packet, bytes.last(packet->size));
            break;
    }
    if (!is_sound) break_off(from);
}

template <class T>
bool Device<T>::on_group(unsigned from, const Packet& packet, Bytes bytes) {
    if (groups_ == nullptr) return true;
    const PacketHeader& header = packet.header;
    if (header.type == PacketType::group_message)
        return groups_->on_group_message(from, header.data, header.tag, bytes.last(packet.size));
    groups_->on_group_flow(from, header.data, header.tag);
    return true;
}

/// A packet that announces bulk is the last: the rest of the bundle would be taken for bulk.
template <class T>
bool Device<T>::on_bundle(unsigned from, Bytes bytes) {
    return for_each_bundled(bytes, [&](Bytes packet) {
        if (is_broken_[from] != 0) return true;
        const auto what = read(packet);
        if (!what || what->header.type == PacketType::bundle || bulk_.is_due(from)) return false;
        on_packet(from, packet);
        return true;
    });
}

template <class T>
bool Device<T>::on_remote(unsigned from, const Packet& packet, Bytes bytes) {
    const auto remote = read_remote(bytes);
    if (!remote || !is_serving_) return false;
    if (remote->is_answer()) return accesses_.on_answer(from, *remote, bytes);
    const auto data = packet.header.has_data ? std::optional(packet.header.data) : std::nullopt;
    return serving_.on_request(from, *remote, data, bytes);
}

// ---- Deaths

/// Of one rank at a time: its earlier messages come first.
template <class T>
void Device<T>::look_for_the_dead() {
    next_look_ = (next_look_ + 1) % transport_.ranks();
    if (is_gone(next_look_) || next_look_ == transport_.rank()) return;
    const int next = transport_.ask_for(next_look_);
    if (next == BBP_EPEER || (sending_.is_unreachable(next_look_) && next == BBP_EAGAIN))
        lose(next_look_);
}

template <class T>
void Device<T>::lose(unsigned rank) {
    sending_.cut_off(rank);
    bulk_.drop(rank);
    receiving_.lose(rank);
}

/// It sends what no device sends: everything else that arrives of it is dropped.
template <class T>
void Device<T>::break_off(unsigned rank) {
    if (is_broken_[rank] != 0) return;
    is_broken_[rank] = 1;
    ++broken_;
    if (!is_gone(rank)) lose(rank);
    bulk_.drop_for_ever(rank);
}

}  // namespace mpi_channel
