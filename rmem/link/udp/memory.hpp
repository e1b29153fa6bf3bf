// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The `udp` link as one program sees it: its node's bank, kept by the node's engine.
///
/// Contract: rmem/link/memory.hpp. A write goes into the own bank and into the rank's log, from
/// where the node's engine takes it (rmem/link/udp/outbox.hpp). The first program of a node runs
/// the engine itself (rmem/link/udp/engine.hpp): its writes leave in its own calls, when
/// rmem/link/udp/pacing.hpp says so. Where another process runs it, the daemon `rmem node` or an
/// earlier program, the program is a client, and its commits wake that process.
///
/// Room     room(bytes) grants a group of writes. No room: the log is full of what the engine could
///          not send, since the slowest member has not acknowledged what is under way. A group
///          that may be larger than the log is granted when the log is empty, and may wait in
///          between: it leaves as fast as the others take it.
/// Epoch    All that a program knows of others holds for one incarnation of its node. When the node
///          was dropped, or the process ended that runs its engine, all others are dead to the
///          program (is_alive), and of a client nobody hears what it writes, until it opens again.
/// Threads  one thread, and the helper inside; `load` and `data` from any.
/// Leaving  the destructor waits up to kLeaveNs until the others have the own writes; in a job of
///          `rmem run` who runs the engine waits before for programs that are still to come. In a
///          process forked since it only forgets: rank, engine and log are the parent's.
/// Errors   the constructor throws Error: what Engine throws; rank_taken, also by another host;
///          timed_out.

#include "rmem/link/bank_writer.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/link/udp/engine_helper.hpp"
#include "rmem/link/udp/neighbours.hpp"
#include "rmem/link/udp/pacing.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

namespace rmem {

struct UdpOptions {
    std::int64_t join_timeout_ns = kDefaultJoinTimeoutNs;
    bool helper = true;  ///< off: only for tests that want to be the only ones to move anything

    /// What the environment says.
    RMEM_API static UdpOptions from(const Environment& environment);
};

/// The node's incarnation has ended while a program was about to begin: worth trying again.
class IncarnationOver : public Error {
public:
    using Error::Error;
};

class RMEM_API UdpMemory : public BankWriter<UdpMemory> {
public:
    using Options = UdpOptions;
    using Ring = rmem::Ring;
    using Membership = rmem::Membership;
    static constexpr bool kFar = true;
    static constexpr std::size_t kMaxPostWords = kLinePostWords;
    static constexpr unsigned kSpinPollsHere =
        500;  ///< each asks the host for datagrams: about 0.3 ms

    /// With the options that the environment names.
    explicit UdpMemory(Membership& member);
    UdpMemory(Membership& member, const UdpOptions& options);
    ~UdpMemory();
    UdpMemory(const UdpMemory&) = delete;
    UdpMemory& operator=(const UdpMemory&) = delete;

    // ---- The Memory concept, besides BankWriter's part
    [[nodiscard]] bool room(std::size_t bytes);
    using BankWriter::post;
    std::uint64_t come_round() const noexcept {
        // (4) - this acquire-load synchronizes-with the release-store outbox.cpp (6)
        return board_.completed[rank_].load(std::memory_order_acquire);
    }
    /// As write() or write_part() with room and commit(). False: nothing was written.
    [[nodiscard]] bool write_at_once(std::size_t offset, std::uint32_t value, WordPart part);
    /// What was written leaves.
    void commit();
    /// What was written leaves with the next commit or wait; of one that computes, by the helper.
    void commit_on_wait();
    bool in_flight() const noexcept { return false; }
    bool is_alive(unsigned rank) const noexcept;
    /// A program that polls is one that waits.
    bool is_crowded() noexcept {
        look_once();
        return BankWriter::is_crowded();
    }
    void give_way() noexcept {
        look_once();
        BankWriter::give_way();
    }
    void progress();
    /// The same, but not for an answer: that the message came was the last that was asked.
    void progress_to_post();
    Step wait(Deadline deadline);
    void end_wait() noexcept {
        BankWriter::end_wait();
        if (helper_) helper_->take_back();
    }

    /// Whether the node's incarnation that this program opened in goes on. A later incarnation's
    /// bank is left as its members know it.
    [[nodiscard]] bool is_heard() const noexcept { return node_epoch() == epoch_; }
    /// Whether the bank is still that incarnation's: it stays when nothing runs the node any more.
    [[nodiscard]] bool has_bank() const noexcept { return is_heard() || is_left_alone(); }
    /// Whether that has ended, or nothing runs the node: what others write then is not for it.
    [[nodiscard]] bool is_over() const noexcept;
    /// Throws IncarnationOver when it has.
    void check_epoch() const;

    // ---- The card's options
    /// True when every live node has the own writes; false when the deadline passed, or the node's
    /// incarnation is over.
    bool flush(Deadline deadline);
    /// The engine runs all the time, for programs that read the bank by plain loads.
    void keep_applying(bool on);

    InterruptBoard& interrupts() noexcept { return interrupts_; }
    /// Of the program that runs the engine; null: others bring interrupts and messages.
    InterruptSource* interrupt_source() noexcept { return helper_.get(); }
    std::int64_t bound_ns() const noexcept { return bound_ns_; }
    /// Of a client's node its engine's process hears of it, and the counters.
    void on_bound_violation(std::function<void(const BoundViolation&)> callback);

private:
    friend class BankWriter<UdpMemory>;

    std::uint32_t node_epoch() const noexcept {
        // (1) - this acquire-load synchronizes-with the release-add
        // rmem/link/udp/engine_work.cpp (4)
        return board_.membership_epoch.load(std::memory_order_acquire);
    }

    // What BankWriter needs
    void send(std::size_t offset, const void* from, std::size_t words, std::uint32_t flags);
    std::uint32_t mark_of(std::size_t offset, std::size_t bytes) const noexcept;

    bool is_left_alone() const noexcept;
    void start_engine(Deadline deadline);
    void await_engine(Deadline deadline);
    void take_rank(Membership& member, Deadline deadline);
    void await_roster(Deadline deadline) const;
    void await_late_ones() noexcept;
    void look_once() noexcept {
        if (!company_.has_looked()) [[unlikely]]
            company_.look(waiter_, rmem::now_ns());
    }
    void announce_membership_change() noexcept;
    void put(LogRecord& record, const std::byte* words);
    void append(const LogRecord& record, const void* words);
    void commit_log() noexcept;
    void leave(udp::Leaving leaving);
    void leave_and_ask();
    void leave_all_words();
    template <class Done>
    [[nodiscard]] bool await(Deadline deadline, Done&& is_done);
    [[nodiscard]] bool fits(std::uint64_t units) noexcept;
    [[nodiscard]] std::int64_t time_of_write() noexcept;

    const Membership& member_;
    udp::NodeBoard& board_;
    InterruptBoard interrupts_;
    std::int64_t bound_ns_ = 0;
    std::uint32_t epoch_ = 0;  ///< of the node, NodeBoard::membership_epoch
    udp::HostCompany company_;
    udp::Pacing pacing_;
    std::optional<Bell> bell_;  ///< of a client: the engine's
    ByteLock engine_lock_;
    std::unique_ptr<udp::Engine> engine_;
    std::unique_ptr<udp::EngineHelper> helper_;  // last: it uses the engine
};

static_assert(Memory<UdpMemory>);

}  // namespace rmem
