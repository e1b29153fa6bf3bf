// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Orders to a device, and what it tells of them.
///
/// An order is copied when a call takes it; its parts stay the device's until its completion.
/// Thread safety: as of plain memory. Completions, events and group traffic are called from within
/// any call of the device, and call no device.

#include "mpi_channel/device/matching.hpp"
#include "mpi_channel/device/parts.hpp"
#include "mpi_channel/device/regions.hpp"
#include "rmem/link/far_memory.hpp"

#include <boost/container/small_vector.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace mpi_channel {

/// A message up to here leaves without a question, if there is credit.
inline constexpr std::size_t kEagerMost = 64 * 1024;

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
    std::optional<std::uint32_t> data{};  ///< a word for the receiver's completion
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

/// Messages among groups of ranks (mpi_channel/collectives.hpp), past matching.
class GroupTraffic {
public:
    using Bytes = std::span<const std::byte>;
    /// False: no rank sends that.
    [[nodiscard]] virtual bool on_group_message(unsigned from, std::uint32_t group,
                                                std::uint64_t number, Bytes bytes) = 0;
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

struct SendingCounters {
    std::uint64_t short_sent = 0, eager_sent = 0, rendezvous_sent = 0;
    std::uint64_t out_of_credit = 0;  ///< of rendezvous_sent: shorter than kEagerMost
    std::uint64_t gets_sent = 0;      ///< of rendezvous_sent: read by the receiver
    std::uint64_t far_sent = 0;       ///< of gets_sent: through the fabric
    std::uint64_t gets_refused = 0;   ///< of rendezvous_sent: offered, and not read
};

struct ReceivingCounters {
    std::uint64_t unexpected = 0;     ///< messages that came before their receive
    std::uint64_t gets_received = 0;  ///< messages read from their sender's memory
};

struct DeviceCounters : SendingCounters, ReceivingCounters {
    std::uint64_t accesses = 0;  ///< to others' memory
    std::uint64_t served = 0;    ///< pieces of others' accesses
    std::uint64_t denied = 0;    ///< of these, because of their key or bounds
    std::uint64_t broken = 0;    ///< ranks given up for what they sent
};

/// How the receiver may fetch a message from its sender's memory.
struct Offer {
    enum class By : std::uint8_t { nothing, host, fabric };
    By by = By::nothing;
    rmem::FarMemory::Place place;  ///< on the same host without a key
};

/// An unexpected message: what has come of it is in private memory.
struct Unexpected : Message {
    std::uint32_t number = 0;
    bool untagged = false;
    std::optional<std::uint32_t> data;
    std::uint32_t send = 0;  ///< rendezvous: the sender's number
    bool is_rendezvous = false;
    Offer offer;  ///< rendezvous: of the sender's memory
    std::vector<std::byte> bytes;
    std::size_t arrived = 0;
    void* delivery = nullptr;  ///< its receive was found while it was on its way
    bool is_hopeless = false;  ///< the rest of it will never come
};

}  // namespace mpi_channel
