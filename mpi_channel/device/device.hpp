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
/// Progress: only in calls; no call waits. progress() takes what has come, no matter what it is
/// for, so that two ranks that send to each other never wait for each other; it also finds out who
/// has died.
/// Memory: unexpected messages of one sender take at most kCredit bytes, and one line for each that
/// asks to be sent.
/// Errors: Status. Requests end with `gone` when the other rank has died, left, or sent what no
/// device sends. std::bad_alloc.
/// Trust: packets are others' bytes. Thread safety: one thread at a time.
/// Transport: see mpi_channel/transport.hpp for what it has and what it promises.

#include "mpi_channel/device/matching.hpp"
#include "mpi_channel/device/packets.hpp"
#include "mpi_channel/device/parts.hpp"
#include "mpi_channel/device/peer_memory.hpp"
#include "mpi_channel/device/pool.hpp"
#include "mpi_channel/device/remote_packets.hpp"
#include "mpi_channel/settings.hpp"
#include "mpi_channel/transport.hpp"
#include "rmem/link/memory.hpp"

#include <boost/container/small_vector.hpp>

#include <array>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace mpi_channel {

/// Of one sender's messages, short and eager, that a receiver has not received yet; kCostBytes are
/// added for each.
inline constexpr std::size_t kCredit = std::size_t{1} << 20;
inline constexpr std::size_t kCostBytes = 64;
/// A message up to here leaves without a question, if there is credit.
inline constexpr std::size_t kEagerMost = 64 * 1024;
inline constexpr unsigned kMostTaken = 32;  ///< packets in one progress()
inline constexpr std::size_t kScratchBytes = 16 * 1024;
/// Number of bytes of a message that are read from its sender's memory before others get their
/// turn; the size of one piece of an access.
inline constexpr std::size_t kGetSlice = std::size_t{1} << 20;
/// Of an access whose bytes go over the ring: how many bytes of a piece that is read a target
/// keeps, and how many pieces of each rank.
inline constexpr std::size_t kRemotePiece = 64 * 1024;
inline constexpr unsigned kRemoteWindow = 16;

enum class Status : std::uint8_t {
    ok,
    cut,        ///< the message was longer than the receive
    gone,       ///< the other rank
    cancelled,  ///< by cancel()
};

struct SendOrder {
    unsigned to = 0;
    std::uint64_t tag = 0;
    bool untagged = false;
    std::optional<std::uint32_t> data;  ///< a word for the receiver's completion
    Parts parts;
    bool copy = false;         ///< the bytes are the caller's again at once
    bool after_match = false;  ///< over when its receive has been found, not before
    bool silent = false;       ///< no completion, unless it fails
    bool untold = false;       ///< no completion at all
    std::uint32_t mark = 0;    ///< the caller's: it comes back with the completion, as `context`
    void* context = nullptr;
};

struct ReceiveOrder {
    Source from = kAnySource;
    std::uint64_t tag = 0;
    std::uint64_t ignore = 0;
    bool untagged = false;
    Parts parts;
    std::size_t least = 0;  ///< of several messages: mpi_channel/device/matching.hpp
    std::uint32_t mark = 0;
    void* context = nullptr;
};

struct Completion {
    enum class Of : std::uint8_t { send, receive };
    Of of = Of::send;
    Status status = Status::ok;
    bool untagged = false;
    std::uint32_t mark = 0;
    void* context = nullptr;
    // Of a receive
    Envelope envelope;  ///< the message's own length in `size`
    std::optional<std::uint32_t> data;
    std::size_t at = 0;  ///< where in the parts it begins
    std::size_t bytes = 0;
    bool last = true;  ///< the parts are the caller's again
    bool of_several = false;
    std::byte* buffer = nullptr;  ///< the first byte of the first part
};

class Completions {
public:
    virtual void completed(const Completion& completion) = 0;

protected:
    ~Completions() = default;
};

/// What groups of ranks tell each other (mpi_channel/collectives.hpp), past matching.
class GroupTraffic {
public:
    using Bytes = std::span<const std::byte>;
    /// False: no rank sends that.
    virtual bool on_group_message(unsigned from, std::uint32_t group, std::uint64_t number,
                                  Bytes bytes) = 0;
    virtual void on_group_flow(unsigned from, std::uint32_t group, std::uint64_t taken) = 0;

protected:
    ~GroupTraffic() = default;
};

/// A read or write of another rank's memory: of `places`, one behind the other, as many bytes as
/// the parts have.
struct RemoteOrder {
    bool writes = false;
    unsigned to = 0;
    Parts parts;
    boost::container::small_vector<RemotePlace, 1> places;
    std::optional<std::uint32_t> data;  ///< a word for the target
    bool copy = false;                  ///< the bytes are the caller's again at once
    std::uint32_t mark = 0;             ///< the caller's, as of SendOrder
    void* context = nullptr;
};

/// A read or write of this rank's that is over: the bytes lie where they belong.
struct RemoteCompletion {
    bool writes = false;
    RemoteStatus status = RemoteStatus::ok;
    std::uint32_t mark = 0;
    void* context = nullptr;
};

/// One that another rank has made here.
struct RemoteTouch {
    bool writes = false;
    unsigned from = 0;
    std::size_t size = 0;  ///< of its last place
    std::optional<std::uint32_t> data;
    void* owner = nullptr;  ///< of the region
};

class RemoteEvents {
public:
    virtual void over(const RemoteCompletion& completion) = 0;
    virtual void touched(const RemoteTouch& touch) = 0;

protected:
    ~RemoteEvents() = default;
};

struct DeviceCounters {
    std::uint64_t short_sent = 0, eager_sent = 0, rendezvous_sent = 0;
    std::uint64_t unexpected = 0;     ///< messages that came before their receive
    std::uint64_t out_of_credit = 0;  ///< of rendezvous_sent: shorter than kEagerMost
    std::uint64_t gets_sent = 0;      ///< of rendezvous_sent: read by the receiver
    std::uint64_t gets_received = 0;  ///< messages read from their sender's memory
    std::uint64_t gets_refused = 0;   ///< of rendezvous_sent: offered, and not read
    std::uint64_t accesses = 0;       ///< to others' memory
    std::uint64_t served = 0;         ///< pieces of others' accesses
    std::uint64_t denied = 0;         ///< of these, because of their key or bounds
    std::uint64_t broken = 0;         ///< ranks given up for what they sent
};

/// An unexpected message: what has come of it is in private memory.
struct Unexpected : Message {
    std::uint32_t number = 0;
    bool untagged = false;
    std::optional<std::uint32_t> data;
    std::uint32_t send = 0;  ///< rendezvous: the sender's number
    bool is_rendezvous = false;
    std::optional<std::uint64_t> address;  ///< rendezvous: in the sender's memory
    std::vector<std::byte> bytes;
    std::size_t come = 0;
    void* delivery = nullptr;  ///< its receive was found while it was on its way
    bool is_hopeless = false;  ///< the rest of it will never come
};

/// A device, whatever its transport.
class DeviceInterface {
public:
    virtual ~DeviceInterface() = default;

    /// Before anything is sent: messages of `least` to `most` bytes are read from their sender's
    /// memory, where it is within reach; so are accesses of `least` bytes or more.
    virtual void use(PeerMemory& peers, std::size_t least, std::size_t most) noexcept = 0;
    /// Before anything is sent: what others may access, and who hears of accesses, here and there.
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
    virtual Unexpected* peek(const Wanted& wanted, bool untagged) = 0;
    virtual Unexpected* claim(const Wanted& wanted, bool untagged) = 0;
    /// A message claimed: into the order's parts, whatever else that asks for.
    virtual void receive_claimed(Unexpected& message, const ReceiveOrder& order) = 0;
    /// The same, to nowhere, and nobody is told.
    virtual void discard(Unexpected& message) = 0;

    /// Takes at most `packets` packets. False if nothing has come, left or ended.
    virtual bool progress(unsigned packets = kMostTaken) = 0;
    /// Whether something is still to leave, or to be read: who ends goes on until not, and who
    /// sleeps would not see it go on.
    virtual bool has_backlog() const noexcept = 0;
    virtual std::size_t backlog(unsigned to) const noexcept = 0;
    virtual bool is_gone(unsigned rank) const noexcept = 0;
    /// Between two that have nothing on its way, what one may still send and what the other holds
    /// of it is kCredit.
    virtual std::size_t credit(unsigned to) const noexcept = 0;
    virtual std::size_t held(unsigned from) const noexcept = 0;

    // ---- Groups
    /// Who is told of what comes for groups; null: nobody, it is dropped.
    virtual void set_group_traffic(GroupTraffic* traffic) noexcept = 0;
    /// To several ranks by one multicast: BBP_OK, BBP_EAGAIN: to nobody yet, BBP_EPEER: to those
    /// that live. To one rank by a packet, and never too early. At most packet_most() with its
    /// header.
    virtual int post_to_group(std::span<const int> to, std::uint32_t group, std::uint64_t number,
                              std::span<const std::byte> bytes) = 0;
    virtual void tell_group_flow(unsigned to, std::uint32_t group, std::uint64_t taken) = 0;
    /// The transport's, of these ranks in rising order, if it has any: BBP_OK, BBP_EAGAIN: not all
    /// have come yet, BBP_EPEER.
    virtual int barrier(std::span<const int> members, unsigned id) = 0;
    virtual bool has_barriers() const noexcept = 0;

    virtual unsigned rank() const noexcept = 0;
    virtual unsigned ranks() const noexcept = 0;
    virtual std::size_t packet_most() const noexcept = 0;
    virtual const DeviceCounters& counters() const noexcept = 0;
    virtual TransportCounters transport_counters() const noexcept = 0;
};

template <class T>
class Device final : public DeviceInterface {
public:
    Device(T& transport, Completions& completions);
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    void use(PeerMemory& peers, std::size_t least, std::size_t most) noexcept override;
    void serve(const Regions& regions, RemoteEvents& events) noexcept override;
    void send(const SendOrder& order) override;
    void receive(const ReceiveOrder& order) override;
    void access(const RemoteOrder& order) override;
    bool cancel(void* context) override;
    Unexpected* peek(const Wanted& wanted, bool untagged) override;
    Unexpected* claim(const Wanted& wanted, bool untagged) override;
    void receive_claimed(Unexpected& message, const ReceiveOrder& order) override;
    void discard(Unexpected& message) override;
    bool progress(unsigned packets = kMostTaken) override;
    bool has_backlog() const noexcept override {
        return !waiting_.empty() || !reads_.empty() || accesses_waiting_ != 0 ||
               transport_.has_backlog();
    }
    std::size_t backlog(unsigned to) const noexcept override {
        return others_[to].backlog.size() + others_[to].accesses.size();
    }
    bool is_gone(unsigned rank) const noexcept override { return others_[rank].gone; }
    std::size_t credit(unsigned to) const noexcept override { return others_[to].credit; }
    std::size_t held(unsigned from) const noexcept override { return others_[from].held; }
    void set_group_traffic(GroupTraffic* traffic) noexcept override { groups_ = traffic; }
    int post_to_group(std::span<const int> to, std::uint32_t group, std::uint64_t number,
                      std::span<const std::byte> bytes) override;
    void tell_group_flow(unsigned to, std::uint32_t group, std::uint64_t taken) override;
    int barrier(std::span<const int> members, unsigned id) override {
        return transport_.barrier(members, id);
    }
    bool has_barriers() const noexcept override { return T::kHasBarriers; }
    unsigned rank() const noexcept override { return transport_.rank(); }
    unsigned ranks() const noexcept override { return transport_.ranks(); }
    std::size_t packet_most() const noexcept override { return transport_.packet_most(); }
    const DeviceCounters& counters() const noexcept override { return counters_; }
    TransportCounters transport_counters() const noexcept override { return transport_.counters(); }

private:
    using Bytes = std::span<const std::byte>;

    /// A send that has not left at once.
    struct Send {
        std::uint32_t number = 0;
        SendOrder order;
        std::size_t size = 0;
        std::vector<std::byte> copy;
        bool asked = false;    ///< it has asked, and is not answered yet
        bool offered = false;  ///< to be read where it lies
    };
    struct WaitingReceive : Receive {
        WaitingReceive() = default;
        explicit WaitingReceive(const ReceiveOrder& its_order) noexcept : order(its_order) {
            wanted = {order.from, order.tag, order.ignore};
            capacity = size_of(order.parts);
            least = order.least;
        }
        std::uint32_t number = 0;
        ReceiveOrder order;
        unsigned on_their_way = 0;  ///< messages
        bool over = false;          ///< takes no more
        bool is_silent = false;
    };
    /// A message on its way into a receive.
    struct Delivery {
        std::uint32_t number = 0;
        WaitingReceive* receive = nullptr;
        Placement placement;
        Envelope envelope;
        std::optional<std::uint32_t> data;
        std::size_t come = 0;
        std::size_t cost = 0;       ///< of its credit
        bool is_awaited = false;    ///< OK_TO_SEND has left, DATA not come
        std::uint64_t address = 0;  ///< of one that is read from the sender's memory
        std::uint32_t send = 0;     ///< the sender's number of that
    };
    /// What of an access has not been asked for yet.
    struct Range {
        std::size_t place = 0;   ///< which one
        std::size_t at = 0;      ///< in that
        std::size_t before = 0;  ///< bytes of the places before it
        std::size_t size = 0;
        bool by_get = false;   ///< from memory to memory
        bool is_last = false;  ///< with it the access is whole
    };
    struct Access {
        std::uint32_t number = 0;
        RemoteOrder order;
        std::vector<std::byte> copy;
        std::deque<Range> left;
        unsigned asked = 0;  ///< pieces that are not answered yet
        RemoteStatus status = RemoteStatus::ok;
    };
    struct Piece {
        Access* access = nullptr;
        Range range;
        RemoteKind kind = RemoteKind::read;
    };
    /// A REMOTE packet that is to leave, and the bytes that go with it: of an access, or copied.
    struct Remote {
        RemotePacket packet;
        Access* access = nullptr;
        std::size_t at = 0;  ///< in the parts
        std::size_t bytes = 0;
        std::vector<std::byte> copy;
    };
    /// A REMOTE packet whose bytes come as bulk.
    struct RemoteBulk {
        RemotePacket packet;
        std::optional<std::uint32_t> data;
        std::size_t come = 0;
        RemoteStatus status = RemoteStatus::ok;
    };
    /// What is to leave, in the order of its rank: a packet, bulk of a send, or both.
    struct Leaving {
        Packet packet;
        bool has_packet = false;  ///< it has not left yet
        Send* send = nullptr;     ///< without a packet: it is still to choose its protocol
        bool asks = false;        ///< the send is not over when this has left
        std::size_t left = 0;     ///< bytes of the bulk
        std::unique_ptr<Remote> remote;
    };
    struct Other {
        std::deque<Leaving> backlog;
        std::size_t credit = kCredit;
        std::size_t held = 0;  ///< of ours by its messages: received or not, and not yet given back
        std::size_t owed = 0;  ///< the received ones of these
        bool unreachable = false;
        bool gone = false;
        bool broken = false;
        bool unreadable = false;       ///< its memory
        bool cannot_read = false;      ///< ours
        std::deque<Access*> accesses;  ///< of which something is left to be asked
        std::deque<Piece> asked;       ///< of it, in the order in which it answers
        unsigned answers = 0;          ///< to it, that wait to leave
        // Its bulk that is on its way
        Delivery* delivery = nullptr;
        Unexpected* kept = nullptr;
        std::optional<RemoteBulk> remote;
        std::size_t bulk_left = 0;
    };

    using DeviceMatcher = MatcherOf<rmem::is_simulated<T>>;
    DeviceMatcher& matcher(bool untagged) noexcept { return untagged ? untagged_ : tagged_; }

    // -- Sending
    bool send_at_once(const SendOrder& order, std::size_t size);
    int put_packet(unsigned to, Packet& packet, Bytes message);
    void enqueue(unsigned to, Leaving leaving);
    void enqueue_packet(unsigned to, const Packet& packet, Send* bulk_of);
    bool pump(unsigned to);
    int leave(unsigned to, Leaving& leaving);
    int send_for_group(unsigned to, Packet& packet, Bytes bytes);
    std::size_t bundled_bytes(unsigned to, Leaving& leaving);
    int leave_bundle(unsigned to, std::size_t* count);
    void end_bundled(Leaving& leaving);
    bool on_bundle(unsigned from, Bytes bytes);
    /// Behind its packet's header: of those two alone.
    static std::size_t message_bytes(const Leaving& leaving) noexcept {
        const PacketType type = leaving.packet.header.type;
        const bool has = type == PacketType::short_message || type == PacketType::group_message;
        return has ? leaving.send->size : 0;
    }
    void begin(unsigned to, Leaving& leaving);
    int leave_bulk(unsigned to, const Parts& parts, std::size_t at, std::size_t& left);
    void end_send(Send& send, Status status);
    void tell_sent(const SendOrder& order, Status status);
    Packet packet_of(const SendOrder& order, PacketType type) const;

    // -- Receiving
    bool is_hopeless(Source from) const noexcept;
    Completion completion_of(const WaitingReceive& receive, Status status) const;
    void end_receive(WaitingReceive& receive, Status status);
    void end_receives_from(Source from);
    Delivery& deliver(WaitingReceive& receive, const Placement& placement, const Envelope& envelope,
                      std::optional<std::uint32_t> data);
    void hand_over(Unexpected& message, WaitingReceive& receive, const Placement& placement);
    void accept(unsigned from, std::uint32_t send, std::optional<std::uint64_t> address,
                Delivery& delivery);
    void ask_for_bytes(unsigned from, std::uint32_t send, Delivery& delivery);
    void end_kept(Unexpected& message, Delivery& delivery);
    void end_delivery(Delivery& delivery, Status status);
    void tell_received(WaitingReceive& receive, const Placement& placement,
                       const Envelope& envelope, std::optional<std::uint32_t> data, Status status);
    void give_back(unsigned to, std::size_t bytes);

    // -- What comes
    bool take_one();
    void take_packet(unsigned from, Bytes bytes);
    void on_packet(unsigned from, Bytes bytes);
    bool on_group(unsigned from, const Packet& packet, Bytes bytes);
    bool on_message(unsigned from, const Packet& packet, Bytes bytes);
    Unexpected& keep(unsigned from, const Packet& packet);
    void on_request(unsigned from, const Packet& packet);
    bool on_ok_to_send(unsigned from, const Packet& packet);
    bool on_data(unsigned from, const Packet& packet);
    void take_whole(WaitingReceive& receive, const Placement& placement, const Envelope& envelope,
                    std::optional<std::uint32_t> data, Bytes bytes);
    void begin_bulk(unsigned from, Delivery* delivery, Unexpected* kept, std::size_t size);
    void on_bulk(unsigned from);
    std::span<std::byte> room_for_bulk(unsigned from);
    void end_bulk(unsigned from);
    static std::size_t cost_of(std::size_t size) noexcept { return size + kCostBytes; }

    // -- Memory to memory
    bool may_be_read(unsigned to, std::size_t size);
    bool may_read(unsigned from);
    bool read_some();
    bool read_slice(Delivery& delivery, std::size_t size);
    bool on_done_get(unsigned from, const Packet& packet);

    // -- Access
    void divide(Access& access);
    bool is_within_reach(const RemoteOrder& order, std::size_t size);
    void ask(unsigned to);
    Range next_piece(Access& access);
    void ask_for(unsigned to, Access& access, const Range& range);
    void enqueue_remote(unsigned to, Remote remote, std::optional<std::uint32_t> data,
                        std::size_t bytes);
    int leave_remote(unsigned to, Leaving& leaving);
    bool on_remote(unsigned from, const Packet& packet, Bytes bytes);
    bool on_write(unsigned from, const RemotePacket& packet, std::optional<std::uint32_t> data,
                  Bytes bytes);
    bool on_write_get(unsigned from, const RemotePacket& packet, std::optional<std::uint32_t> data);
    bool on_read(unsigned from, const RemotePacket& packet);
    Regions::Found find(const RemotePacket& packet) const;
    void tell_touched(unsigned from, const RemotePacket& packet, std::optional<std::uint32_t> data);
    void end_write(unsigned from, const RemotePacket& packet, std::optional<std::uint32_t> data,
                   RemoteStatus status);
    void refuse_or_done(unsigned to, RemoteStatus status);
    void answer(unsigned to, const RemotePacket& packet, Bytes bytes = {});
    bool on_answer(unsigned from, const RemotePacket& packet, Bytes bytes);
    RemoteStatus take_granted(unsigned from, const Piece& piece, std::uint64_t address);
    void end_piece(unsigned from, RemoteStatus status);
    void ask_again(unsigned to, const Piece& piece);
    void end_access(Access& access);
    void begin_remote_bulk(unsigned from, const RemotePacket& packet,
                           std::optional<std::uint32_t> data, std::size_t size);
    std::span<std::byte> room_for_remote(unsigned from);
    void end_remote_bulk(unsigned from);
    void stop_access(unsigned to);

    // -- Deaths
    void look_for_the_dead();
    void stop_sending(unsigned to);
    void lose(unsigned rank);
    void break_off(unsigned rank);

    T& transport_;
    Completions& completions_;
    GroupTraffic* groups_ = nullptr;
    DeviceMatcher tagged_, untagged_;
    std::vector<Other> others_;
    std::vector<unsigned> waiting_;  ///< ranks with a backlog
    Pool<Send> sends_;
    Pool<WaitingReceive> receives_;
    Pool<Delivery> deliveries_;
    Pool<Unexpected> messages_;
    Pool<Access> accesses_;
    std::deque<std::uint32_t> reads_;  ///< deliveries from others' memory, by number
    PeerMemory* peers_ = nullptr;
    std::size_t get_least_ = kNoGets, get_most_ = kNoGets;
    const Regions* regions_ = nullptr;
    RemoteEvents* events_ = nullptr;
    unsigned accesses_waiting_ = 0;  ///< of which something is left to be asked
    std::vector<std::byte> scratch_;
    unsigned gone_ = 0;  ///< ranks
    unsigned empty_polls_ = 0;
    unsigned next_look_ = 0;
    DeviceCounters counters_;
};

template <class T>
Device<T>::Device(T& transport, Completions& completions)
    : transport_(transport),
      completions_(completions),
      tagged_(transport.ranks()),
      untagged_(transport.ranks()),
      others_(transport.ranks()),
      scratch_(std::max(kScratchBytes, transport.packet_most())) {
    static_assert(Transport<T>);
}

}  // namespace mpi_channel

#include "mpi_channel/device/access.hpp"
#include "mpi_channel/device/bundles.hpp"
#include "mpi_channel/device/getting.hpp"
#include "mpi_channel/device/progress.hpp"
#include "mpi_channel/device/receiving.hpp"
#include "mpi_channel/device/sending.hpp"
#include "mpi_channel/device/serving.hpp"
