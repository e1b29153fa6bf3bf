// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node: one card in the ring, as its programs see it.
///
///     auto node = rmem::Node::open();                      // from RMEM_RING, RMEM_NODE, …
///     node.write_word(0x100, 42);                          // appears at 0x100 of every other bank
///     std::uint32_t altitude = node.load(0x200);           // a load from the own bank
///
/// Contract
///   Reads are loads from the own bank. `write` stores into the own bank and hands the write to the
///   link. Every other node sees one node's writes in program order; writes of different nodes may
///   arrive in different orders at different nodes, and two writers of one byte may leave banks
///   that differ: that is the hardware. Inside one write there is no order: a flag is a write of
///   its own.
///   A write of part of a word stores these bytes everywhere, so the bytes of a word may be several
///   nodes'. Under a profile of cards that send whole words (SCRAMNet's: words=whole) the rest of
///   the word goes along as the own bank has it: then they belong to one writer.
///   `write` never blocks forever: a full outbound queue is `WriteResult::again`, nothing written.
///   On link udp the others may have dropped the node (it was away for too long, or in the part of
///   a ring that did not stand), or its daemon may have ended: then a write is
///   `WriteResult::dropped`, nothing written, `flush` is false and `is_member`, too, for good. The
///   bank is a later incarnation's: make a new Node, and rely on its bank. Each write wakes the
///   ranks that sleep for it. On link udp it leaves at once; of a program that writes one after the
///   other it leaves when a datagram is full, when its writer waits, flushes, polls or loads, or
///   soon after (rmem/link/udp/pacing.hpp). A write of nothing does nothing.
/// Progress
///   Waiting calls run the engine; when nobody has called for some milliseconds a helper thread
///   does, and for each write once `bank()` was called, since raw loads make no progress. With a
///   processor for each program and helper that is at once; else as soon as the helper gets one,
///   which real-time priority makes the time of a wake-up: it is asked for, and given where
///   RLIMIT_RTPRIO or CAP_SYS_NICE says so.
/// The bound
///   On replicated links each write's propagation is measured. On `direct` one of kStampEvery
///   one-word writes of a rank is, and only for readers that are in wait_change for that word
///   already (rmem/ring/write_stamps.hpp); lateness there is by the host.
/// Beside messages
///   A process that has called bbp_init, or uses a port, may open() its node, and the other way
///   round: both are one rank, and its writes and messages keep one order. set_write_me_last and
///   set_data_filter are the node's alone. A ring that open() makes has a place for messages if the
///   program is linked with the billboard. One thread at a time is in a call of the node or of the
///   messages. So on ring and udp a process has either a node or a port with a progress thread
///   (GAMMA, Directed Point): opening the second one is Error(invalid_argument).
/// Polling
///   load, read, poll and deadlines that have passed, called again and again without success, give
///   the processor to another rank where there are more ranks than processors
///   (rmem/ring/waiting/waiting.hpp).
/// In a simulated process (rmem/sim/world.hpp)
///   `open` gives its world's ring, and accesses take virtual time; raw loads from `bank()` take
///   none, so a program that waits by them alone never ends. Callbacks are the world's calls, at
///   the time of the arrival: they may load and read, but not write, wait or flush. There is no
///   descriptor and no `ring()`. A process that may be killed gives the node to sim::Process::keep.
/// In a fork()ed child
///   What a node is can be asked (id, rank, config, size, is_alive, ring, counters); every other
///   call throws Error(invalid_argument), and nothing of the parent's node is touched. The address
///   that bank() gave before is the child's not to use. The child may join with a rank of its own.
/// Thread safety: one thread at a time, but `load`, `read`, `snapshot`, `poll` and what `bank()`
///   points at: any.
/// Errors: `rmem::Error` from constructors, and (invalid_argument) for ranges outside the user's
///   memory and for words that are not at a multiple of the word.

#include "rmem/base/clock.hpp"
#include "rmem/base/histogram.hpp"
#include "rmem/ring/bound_violation.hpp"
#include "rmem/ring/config.hpp"
#include "rmem/ring/counters.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/stores/mode.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <type_traits>
#include <utility>

namespace rmem {

class Ring;

enum class WriteResult {
    ok,
    again,  ///< no room now: try again
    /// The node is no member any more in the incarnation in which this Node was opened: make a new
    /// one.
    dropped,
};

/// One of several writes that leave together.
struct GroupedWrite {
    std::size_t offset = 0;
    const void* from = nullptr;
    std::size_t bytes = 0;
};
inline constexpr std::size_t kMaxGrouped = 64;
inline constexpr unsigned kSnapshotLooks = 1000;

/// What publish() takes of the memory for a value of `bytes` bytes: a word with the number of the
/// publication, the value in whole words, and the number again. 0 is no number.
constexpr std::size_t published_bytes(std::size_t bytes) noexcept {
    return (bytes + 3) / 4 * 4 + 8;
}

class RMEM_API Node {
public:
    /// Joins the ring that the environment names, once; in a simulated process, its world's.
    /// Waits until all nodes have come, as RMEM_AWAIT says (all if it does not), at most
    /// RMEM_JOIN_TIMEOUT: Error(timed_out). Of the others each that has come waits as well, so none
    /// leaves, and takes along what it wrote, before all have it.
    static Node open();
    static Node open(bool awaits_others);
    Node(const RingConfig& config, Member member);
    /// Joins on a mapping that this process has already (several nodes as threads).
    Node(std::shared_ptr<Ring> ring, Member member);
    Node(Node&&) noexcept;
    ~Node();

    unsigned id() const noexcept;
    unsigned rank() const noexcept;
    const RingConfig& config() const noexcept;
    /// Whether a live process is that rank. On replicated links what a dead one wrote comes first.
    bool is_alive(unsigned rank) const noexcept;
    /// Waits until all nodes of the job have come, each with a program; one that has left since has
    /// come, too. False: the deadline has passed, or this node is no member any more.
    [[nodiscard]] bool await(Deadline deadline);
    /// Whether the ring has other nodes, and nobody is there now: what is flushed, no one else has.
    bool is_alone() const noexcept;
    /// Whether what this Node writes is heard. Only on link udp it ends, and does not come back.
    bool is_member() const noexcept;
    /// Throws Error(unknown_link) in a simulated process, whose ring is no shared memory.
    const Ring& ring() const;

    // ---- Memory
    std::size_t size() const noexcept;       ///< bytes of the user's memory
    const std::byte* bank();                 ///< for raw loads from now on
    std::uint32_t load(std::size_t offset);  ///< one word, acquire; applies what is due first
    void read(std::size_t offset, void* to, std::size_t bytes);  ///< the same, each word of it
    [[nodiscard]] WriteResult write(std::size_t offset, const void* from, std::size_t bytes);
    [[nodiscard]] WriteResult write_word(std::size_t offset, std::uint32_t value);
    /// Some bytes of a word, as one write: a bit of `part` for each, the lowest for the first.
    [[nodiscard]] WriteResult write_part(std::size_t offset, std::uint32_t value, WordPart part);
    /// Several writes, in that order and with one commit: there is room for all of them, or none is
    /// made. At most kMaxGrouped.
    [[nodiscard]] WriteResult write_group(std::span<const GroupedWrite> writes);
    /// Publishes a value, of any size, for readers that never see it in part: three writes, of the
    /// number, the value and the number (published_bytes), with one commit. A block has one writer
    /// at a time; another process may go on for one that has died. No room: nothing is published.
    [[nodiscard]] WriteResult publish(std::size_t offset, const void* from, std::size_t bytes);
    template <class T>
    requires std::is_trivially_copyable_v<T>
    [[nodiscard]] WriteResult publish(std::size_t offset, const T& value) {
        return publish(offset, &value, sizeof value);
    }
    /// The value that was published there last, whole, as far as it has arrived. False: nothing
    /// was, or after kSnapshotLooks its writer is still in the middle, or died there. Then what is
    /// at `to` is nothing.
    [[nodiscard]] bool snapshot(std::size_t offset, void* to, std::size_t bytes);
    template <class T>
    requires std::is_trivially_copyable_v<T>
    [[nodiscard]] std::optional<T> snapshot(std::size_t offset) {
        std::optional<T> value(std::in_place);
        if (!snapshot(offset, &*value, sizeof(T))) value.reset();
        return value;
    }
    /// True when every live node has applied all own writes; false when the deadline passed.
    [[nodiscard]] bool flush(Deadline deadline);
    void poll();  ///< applies what is due
    /// The memory, for plain stores that travel (rmem/stores/mode.hpp): on `direct` the bank
    /// itself, where stores wake and interrupt nobody; elsewhere a view of it, whose stores are
    /// captured. Asked for again it is the same, and of the same mode. From then on any thread may
    /// store, and make the calls of this node. Throws Error(invalid_argument) where the mode is not
    /// to be had.
    std::byte* stores(StoresMode mode);
    /// Where stores are found by comparing (StoresMode::scan, after stores()), these whole words
    /// leave after all else that is found with them: a program stores its data, and then one of
    /// them. Elsewhere the order is the program's anyway.
    void set_sync_words(std::size_t offset, std::size_t bytes);
    /// Waits until the word differs from `old` (or the deadline); returns what it holds then.
    std::uint32_t wait_change(std::size_t offset, std::uint32_t old, Deadline deadline);

    // ---- Card options
    /// The own bank shows an own write only when it has come round the ring. No-op on `direct`.
    void set_write_me_last(bool on);
    /// Words that a write does not change are not sent (interrupt-marked ones always are).
    void set_data_filter(bool on);

    // ---- Interrupts (rmem/ring/interrupts.hpp)
    void watch(std::size_t offset, std::size_t bytes, Trigger trigger = Trigger::any_write);
    void unwatch(std::size_t offset, std::size_t bytes);
    void mark(std::size_t offset, std::size_t bytes);
    void unmark(std::size_t offset, std::size_t bytes);
    /// Sends an interrupt to a node, or to kAllNodes but this one; oneself gets none. It arrives
    /// after what was written before.
    [[nodiscard]] WriteResult send_interrupt(unsigned to, unsigned number, std::uint32_t value);
    /// The numbers (below kInterruptNumbers) of sent interrupts that raise here, a bit for each;
    /// replaces the last.
    void accept_interrupts(std::uint64_t numbers);
    std::optional<Interrupt> next_interrupt(Deadline deadline);
    /// For poll and epoll: readable while interrupts wait, and where this process runs the node's
    /// engine on link udp, when a datagram has come. Take them with next_interrupt(Deadline::now())
    /// until there is none; do not read or close the descriptor.
    /// Throws Error(unknown_link) in a simulated process.
    int interrupt_fd();
    /// Called on a helper thread (simulated: by the world) for each interrupt; next_interrupt then
    /// finds none. An empty one ends that.
    void on_interrupt(std::function<void(const Interrupt&)> callback);

    // ---- The bound
    std::int64_t bound_ns() const noexcept;  ///< 0: nothing is promised
    const Histogram& propagation() const noexcept;
    /// Called by the thread that applied or saw the late write: inside a call of this node, or on
    /// the helper's; simulated: by the world.
    void on_bound_violation(std::function<void(const BoundViolation&)> callback);

    /// Counters of this rank's sends and of its node's bank.
    std::uint64_t counter(LinkCounter id) const noexcept;

    class Impl;  ///< what it keeps, for the library's other calls (rmem/node_impl.hpp)

private:
    explicit Node(std::unique_ptr<Impl> impl);

    std::unique_ptr<Impl> impl_;
};

}  // namespace rmem
