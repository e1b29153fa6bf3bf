// SPDX-License-Identifier: Apache-2.0
#pragma once

/// One endpoint: its edges, its token buffer pool, and the socket pair whose one end is its
/// descriptor.
///
/// The own end of the pair tells what others do with the descriptor, which may have duplicates and
/// heirs: what they write comes in there, and what is put in there they read. To signal the
/// descriptor, the oldest unread message itself is put in (it is *offered*): read(2) takes it,
/// poll(2) sees it, dp_read takes it back out.
///
/// Invariants: at most one message is offered, and it is the oldest unread one; so each is read
/// once and in order, whichever way.
/// Thread safety: used only while the process endpoint is held. Errors: the constructor throws
/// std::system_error.

#include "billboard/process/process_endpoint.hpp"
#include "ports/dp/counters.hpp"
#include "ports/dp/frame.hpp"
#include "ports/dp/go_back_n.hpp"
#include "ports/dp/outgoing.hpp"
#include "ports/dp/token_pool.hpp"

#include <sys/types.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

namespace ports::dp {

class Service;

struct Target {
    unsigned nid, dpid;
    std::unique_ptr<GoBackNSender> sender;  ///< null: raw
    bool is_dead = false;                   ///< as a message to it was told; never acknowledged
};

class Endpoint {
public:
    /// Number of messages left behind by one dp_read that are offered at once, for a program that
    /// polls between two reads; then the engine's look decides again whether somebody does.
    static constexpr unsigned kOffersByReader = 16;

    Endpoint(Service& service, std::uint64_t id, unsigned dpid, std::size_t pool_bytes);
    ~Endpoint();
    Endpoint(const Endpoint&) = delete;
    Endpoint& operator=(const Endpoint&) = delete;

    Service& service() const noexcept { return service_; }
    billboard::ProcessEndpoint& process() const noexcept { return process_; }
    std::uint64_t id() const noexcept { return id_; }
    unsigned dpid() const noexcept { return dpid_; }
    int own_end() const noexcept { return own_; }
    ino_t inode() const noexcept { return inode_; }
    /// The end that dp_open returns, which is its owner's to close.
    int descriptor() const noexcept { return descriptor_; }

    // ---- The descriptor
    [[nodiscard]] bool is_offered() const noexcept { return offered_; }
    /// Puts the oldest unread message in.
    RMEM_API void offer() noexcept;
    /// Takes it back out. Returns false if a reader has taken it, out of the pool, too.
    [[nodiscard]] bool take_back(int descriptor) noexcept;
    /// Whether a reader has taken what was offered.
    [[nodiscard]] bool was_read() noexcept;
    [[nodiscard]] bool is_closed() const noexcept;  ///< by all who had it

    // ---- Edges
    std::vector<Target> targets;
    /// Changed edges whose messages are not all acknowledged yet.
    std::vector<Target> leaving;
    std::map<std::uint32_t, GoBackNReceiver> receivers;  ///< by nid | dpid << 16 of the source
    bool is_reliable = false;
    int target_error = 0;      ///< errno of a target that cannot be
    int raw_dest = -1;         ///< the rank, if a raw message to one target is all there is to send
    std::uint64_t raw_to = 0;  ///< its header without the length
    void set_raw() noexcept;

    /// All have closed the descriptor: a thread that is still in a call is told so.
    void end() noexcept {
        has_ended = true;
        takes_directly = false;
        raw_dest = -1;
    }

    std::unique_ptr<TokenPool> pool;
    Counts counts{};
    /// Here, and in the process's block.
    void count(Counter counter) noexcept {
        ++counts[static_cast<std::size_t>(counter)];
        process_counters_.add(counter);
    }
    Ring ring;  ///< the service's, at hand
    bool takes_directly =
        false;  ///< it is, dp_read may wait, as far as is known, and it has not ended
    std::uint64_t plain_to_it = 0;  ///< header of a plain message to it, without the length
    unsigned readers = 0;           ///< threads that wait in dp_read
    unsigned offers_by_reader = 0;
    bool is_left_behind = false;  ///< something unread waits to be offered by the next look
    bool is_nonblocking = false;  ///< as it was when last looked at
    bool has_ended = false;
    // Of the service, with its `lifecycle_mutex_`:
    bool is_ending = false;  ///< a thread does that
    bool is_served = false;  ///< by the engine

private:
    void was_taken() noexcept;

    Service& service_;
    billboard::ProcessEndpoint& process_;
    rmem::PortCounters& process_counters_;
    std::uint64_t id_;
    unsigned dpid_;
    int descriptor_ = -1, own_ = -1;
    ino_t inode_ = 0;
    bool offered_ = false;
};

}  // namespace ports::dp
