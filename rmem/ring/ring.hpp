// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring on this host: the segment that holds its banks, and its members.
///
/// Segment   header | attention words, write stamps, sleepers | rank slots | node slots | node
///           board | heads of the logs | logs | tap | interrupt areas | banks | twins | guests'
///           slots, with the heads of their logs | guests' logs. On link ring each bank has its
///           node's interrupt area behind it. On link udp the segment is one node's, with one bank
///           and one interrupt area, a board on which its engine shows itself
///           (rmem/ring/node_board.hpp), and a tap where it shows writes (rmem/link/udp/tap.hpp).
///           Twins (rmem/ring/bank.hpp) and what is behind them have no memory before it is used.
///           All places follow from the configuration (`SegmentLayout`); nothing is trusted that
///           the segment says about itself before the header's hash agrees with that computation.
/// Lifetime  The first to come makes the segment, the last to leave removes it. Presence and ranks
///           are byte locks (rmem/ring/segment.hpp), so a killed process leaves both by dying. A
///           segment that only the dead have left behind is replaced by the next ring of that name.
///           One that was told to stay waits for the next members with the user's memory in it,
///           until `rmem clean` removes it: the first of them to come gives all banks what the
///           newest has, and lets all the rest begin again.
///           A program that ends by exit() has left, too, whatever it has not closed.
/// Seats     a process sits at its rank's, or at a guest's behind the ranks. A guest
///           (Member::kGuest) reads, writes and is interrupted as any program of its node, and is
///           unknown to the billboard: a card's further programs, and tools that write. A node's
///           first guest is its keeper (rmem/link/ring/keeper.hpp), who writes nothing.
/// Engine    on link udp one process runs the node's engine, a rank or a daemon: the one that holds
///           the engine's byte.
/// Thread safety: a Ring may be shared by threads; a Membership belongs to one.
/// Errors: `rmem::Error` while opening and joining; nothing later.

#include "rmem/base/clock.hpp"
#include "rmem/ring/config.hpp"
#include "rmem/ring/counters.hpp"
#include "rmem/ring/mapping.hpp"

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

namespace rmem {

inline constexpr std::uint64_t kSegmentMagic = 0x31474e49524d4d52;  // "RMMRING1", little-endian
inline constexpr std::uint32_t kSegmentVersion = 17;
inline constexpr std::uint32_t kEndianMark = 0x01020304;

enum class SegmentState : std::uint32_t { empty = 0, making = 1, ready = 2 };

/// The part of the configuration that is stored, so that tools can open a ring by its name.
struct ConfigRecord {
    std::uint32_t nodes, ranks;
    LinkKind link;
    std::uint32_t own_node;  ///< whose segment it is, on link udp
    std::uint64_t user_bytes, system_bytes, system_hash;
    std::int64_t bound_ns;
    TimingProfile timing;
};
static_assert(std::is_trivially_copyable_v<ConfigRecord>);

struct SegmentHeader {
    std::uint64_t magic;
    std::uint32_t endian_mark;
    std::uint32_t version;
    std::atomic<std::uint32_t> state;  ///< SegmentState
    std::uint32_t creator_pid;
    std::uint64_t creator_start_time;  ///< clock ticks since boot, as in /proc/<pid>/stat
    std::uint64_t config_hash;
    std::uint64_t segment_bytes;
    std::int64_t made_ns;  ///< CLOCK_MONOTONIC: from when injected faults count
    ConfigRecord config;
    std::atomic<std::uint32_t> stays;      ///< not 0: it is kept when the last has left
    std::uint64_t time_namespace;          ///< of its maker, whose clock all who take part share
    std::atomic<std::uint64_t> map_hash;   ///< 0: it has no map (rmem/ring/map_text.hpp)
    std::atomic<std::uint64_t> map_bytes;  ///< of its text; 0: that has no room
    std::atomic<std::uint32_t> owners;     ///< OwnerMode (rmem/ring/owners.hpp)
};

enum class RankState : std::uint32_t {
    absent = 0,
    joined = 1,
    left = 2,
    elsewhere = 3,  ///< joined on another host
    lost = 4        ///< died on another host, or that host is out of reach
};

/// Processors that may be used, a bit each; numbers from 256 on are folded.
using ProcessorSet = std::array<std::uint64_t, 4>;

/// What a rank's bell is rung for (rmem/ring/waiting/rank_bell.hpp).
enum class BellUse : unsigned { interrupts, posts, count_ };

/// Where it is.
struct BellPlace {
    std::atomic<std::uint64_t> inode;       ///< of the pipe; 0: there is none
    std::atomic<std::uint32_t> descriptor;  ///< its number in the rank's process
    std::atomic<std::uint32_t> rung;        ///< since the rank cleared it: 1
};

/// What somebody who stores writes into banks says of it (rmem/ring/bank.hpp).
struct alignas(kLineBytes) Applier {
    std::atomic<std::uint64_t> count;    ///< odd: it is storing
    std::atomic<std::uint64_t> place;    ///< of this write
    std::atomic<std::uint64_t> log_end;  ///< of a rank, before it
    alignas(kLineBytes) std::array<std::atomic<std::uint64_t>, 64> places;  ///< of its last writes
};

/// The state that a rank shows on this host. Written by the rank's process, except `wake` and
/// `engine`.
struct alignas(kLineBytes) RankSlot {
    std::atomic<std::uint32_t> state;        ///< RankState
    std::atomic<std::uint32_t> incarnation;  ///< counts the processes that have been this rank
    std::atomic<std::uint32_t> node;
    std::atomic<std::uint32_t> pid;
    std::atomic<std::uint64_t> start_time;
    std::atomic<std::uint64_t> process;  ///< own_process() (rmem/base/process.hpp)
    /// The processors it may run on when it joins, as in a ProcessorSet.
    std::array<std::atomic<std::uint64_t>, 4> processors;
    alignas(kLineBytes) std::atomic<std::uint32_t> wake;  ///< futex word; each waker adds one
    std::atomic<std::uint32_t> engine;  ///< rmem/ring/waiting/sleeping_engines.hpp
    /// Not 0: each write is to pass this rank's engine (rmem/link/ring/delivery.hpp).
    std::atomic<std::uint32_t> wants_each_write;
    /// Not 0: its program does not run its engine, and sees writes when others bring them: it loads
    /// plainly, or waits for an interrupt's descriptor.
    std::atomic<std::uint32_t> needs_delivery;
    std::array<BellPlace, static_cast<std::size_t>(BellUse::count_)> bells;
    Counters link;      ///< LinkCounter
    Counters protocol;  ///< billboard/core/counters.hpp
    /// Of the ports, in the order of their billboard::Class; then of a bridge.
    std::array<PortCounters, kPortBlocks> ports;
    /// Up to where of its log the twin that it keeps has what was sent; later records are perhaps
    /// not in it (rmem/ring/unsent.hpp).
    std::atomic<std::uint64_t> in_twin;
    Applier writer;          ///< of the own writes…
    Applier engine_applier;  ///< …and of what its engine applies, on link ring
};

/// Whether its process has, though a child that shares its memory (vfork(2), clone(2)) keeps its
/// lock.
[[nodiscard]] bool has_ended(const RankSlot& slot) noexcept;

/// Counters of a node's bank (rmem/ring/node_slot.hpp).
struct NodeSlot;

class LogArea;         // rmem/ring/write_log.hpp
struct SleeperCounts;  // rmem/ring/waiting/word_sleepers.hpp
struct DeliveryBoard;  // rmem/ring/delivery_board.hpp

class ByteLock;  // rmem/ring/segment.hpp
class Segment;
struct Trust;  // rmem/base/ownership.hpp

/// Where things lie in the segment of a configuration.
struct SegmentLayout {
    std::size_t attention = 0, stamps = 0, sleepers = 0, ranks = 0, nodes = 0, board = 0,
                log_headers = 0, logs = 0, tap = 0, interrupts = 0, banks = 0, twins = 0, map = 0,
                owners = 0, guests = 0, guest_logs = 0;
    std::size_t interrupt_stride = 0, log_stride = 0, bank_stride = 0, twin_stride = 0;
    /// What has memory behind it from the start; twins have it while they are kept, a map when it
    /// has come.
    std::size_t reserved = 0;
    std::size_t total = 0;

    RMEM_API explicit SegmentLayout(const RingConfig& config);
};

namespace udp {
struct NodeBoard;
}

class RMEM_API Ring {
public:
    /// Joins the ring, making it when it is not there (or only left behind by the dead).
    /// A configuration without system regions joins a ring that has some, and leaves them alone.
    /// `node`: whose segment, on link udp. `to_make`: what it is made with, where it is not there;
    /// null: as it is joined.
    static std::shared_ptr<Ring> open(const RingConfig& config, Deadline deadline,
                                      unsigned node = 0, const RingConfig* to_make = nullptr);
    /// Joins the ring of that name, with whatever configuration it has, if it is there and alive;
    /// of one over several hosts (first if `is_remote`) any segment that is here. Null when there
    /// is none.
    static std::shared_ptr<Ring> find(const std::string& name, bool is_remote, Deadline deadline);
    /// Joins an existing ring with whatever configuration it has. Of a ring over several hosts the
    /// name may say the node (`name@3`); it must where this host has several of it. Another user's,
    /// where RMEM_UNIX_GROUP names the group that it is shared with.
    static std::shared_ptr<Ring> attach(const std::string& name);
    /// Looks at a ring, even a dead one, without keeping it alive or removing it.
    static std::shared_ptr<Ring> observe(const std::string& name,
                                         Mapping::Access access = Mapping::Access::load_and_store);

    ~Ring();
    /// This process leaves; the last member removes the segment. The mapping stays.
    void leave() noexcept;
    Ring(const Ring&) = delete;
    Ring& operator=(const Ring&) = delete;

    const RingConfig& config() const noexcept { return config_; }
    /// Throws as open() does when the ring has another configuration than this.
    void expect(const RingConfig& wanted) const;
    const SegmentHeader& header() const noexcept;
    const Segment& segment() const noexcept;

    /// Whose segment it is, on link udp.
    unsigned own_node() const noexcept { return header().config.own_node; }
    /// Its name on this host, for tools.
    std::string segment_name() const { return config_.segment_name(own_node()); }

    /// The bank of a node (on `direct` all nodes share one; on `udp` it is the own one).
    std::byte* bank(unsigned node) const noexcept {
        const unsigned index = config_.banks() == 1 ? 0 : node;
        return base_ + layout_.banks + index * layout_.bank_stride;
    }
    /// Of that bank, where a bank can have one (rmem/ring/twin.hpp).
    std::byte* twin(unsigned node) const noexcept {
        const unsigned index = config_.banks() == 1 ? 0 : node;
        return base_ + layout_.twins + index * layout_.twin_stride;
    }
    RankSlot& rank(unsigned r) const noexcept;  ///< of a seat below seats()
    unsigned seats() const noexcept;            ///< those ever taken are below it; it only grows
    NodeSlot& node(unsigned n) const noexcept;
    std::byte* interrupt_area(unsigned node) const noexcept;
    LogArea log(unsigned rank) const noexcept;
    udp::NodeBoard& board() const noexcept;                          ///< on link udp
    std::byte* tap() const noexcept { return base_ + layout_.tap; }  ///< on link udp: kTapBytes

    /// One word per rank, non-zero while the rank sleeps or wants to be told
    /// (rmem/ring/waiting/waiting.hpp). Dense, so that a sender to many looks at few lines.
    std::atomic<std::uint32_t>* attention() const noexcept;

    /// Ranks that sleep until a word changes (rmem/ring/waiting/word_sleepers.hpp).
    std::atomic<std::uint64_t>* sleeper_entries() const noexcept;  ///< one of each seat
    SleeperCounts& sleeper_counts() const noexcept;
    /// What writers on link ring look at.
    DeliveryBoard& delivery() const noexcept;

    /// When sampled writes on `direct` were made (rmem/ring/write_stamps.hpp).
    std::atomic<std::uint64_t>* stamps() const noexcept;

    /// Whether a live process holds the rank. One system call, or two where it does.
    bool is_alive(unsigned rank) const noexcept;
    /// Whether a node takes part: a program of it runs, or who keeps it does; elsewhere, as the own
    /// engine has heard. On this host a system call for each of the node's seats that was taken, up
    /// to the first that is.
    bool is_present(unsigned node) const noexcept;
    /// With whom it is shared (RMEM_UNIX_GROUP); nothing: with nobody.
    std::optional<gid_t> group() const;
    /// False once its name stands for nothing, or for another ring.
    bool is_linked() const;
    /// Whether anybody takes part.
    bool has_members() const noexcept;
    /// Whether it is kept when the last has left.
    bool stays() const noexcept;
    void set_stays(bool stays) noexcept;
    /// Makes the caller the one who runs the node's engine, until the lock is released; nothing
    /// when another does.
    [[nodiscard]] std::optional<ByteLock> try_lock_engine() const;
    /// Of a rank that was found dead: until the lock is released no process becomes that rank;
    /// nothing when one has.
    [[nodiscard]] std::optional<ByteLock> try_lock_rank(unsigned rank) const;
    /// Makes the caller the one whose job the ranks are, until the lock is released; nothing when
    /// another launcher is.
    [[nodiscard]] std::optional<ByteLock> try_lock_launcher() const;
    /// The launcher says so while programs of its job are still to come to the ring; then a node
    /// with what it has written waits for them, before it leaves (link udp).
    [[nodiscard]] std::optional<ByteLock> try_lock_expecting() const;
    [[nodiscard]] bool is_expecting() const noexcept;
    /// Makes the caller the one who keeps the node's twin (rmem/ring/twin.hpp), until the lock is
    /// released; nothing when another does.
    [[nodiscard]] std::optional<ByteLock> try_lock_twin(unsigned node) const;
    /// Whether a live process runs the node's engine. One system call.
    bool has_engine() const noexcept;
    /// Whether the rank is of this host, joined and alive, as its slot says (no system call: a
    /// killed one is until somebody notices).
    bool is_joined(unsigned rank) const noexcept;
    /// Whether it sleeps in a wait (rmem/ring/waiting/waiting.hpp), and needs no processor.
    bool is_asleep(unsigned rank) const noexcept;
    unsigned joined_ranks() const noexcept;
    unsigned awake_ranks() const noexcept;  ///< joined, and not asleep
    /// The processors that the joined ranks may run on, all together: each may be bound to its own.
    ProcessorSet shared_processors() const noexcept;

private:
    friend class Membership;
    struct Hold;
    Ring(RingConfig config, Segment segment, std::optional<ByteLock> presence);
    bool only_the_dying_remain() const noexcept;
    void begin_anew() noexcept;
    void open_row(unsigned row);  ///< of guests: their seats count from now on
    void reserve_log(unsigned guest);
    static std::shared_ptr<Ring> make(const RingConfig& config, unsigned node);
    static std::shared_ptr<Ring> join(const RingConfig* expected, const std::string& name,
                                      const Trust& trust, Deadline deadline);
    /// Takes part, with the life-cycle lock held.
    static std::shared_ptr<Ring> enter(RingConfig config, Segment segment);

    RingConfig config_;
    SegmentLayout layout_;
    std::unique_ptr<Hold> hold_;
    std::byte* base_;  ///< where the segment is mapped
};

/// A process's hold on one rank of a ring, from construction to destruction (or death).
class RMEM_API Membership {
public:
    /// Throws rank_taken when the rank, or each guest's seat of the node, is a live process's;
    /// bad_rank when the ring has no such rank.
    Membership(std::shared_ptr<Ring> ring, Member member)
        : Membership(std::move(ring), member, false) {}
    /// The keeper's of that node, on a link of this host.
    static Membership of_keeper(std::shared_ptr<Ring> ring, unsigned node) {
        return {std::move(ring), {Member::kGuest, node}, true};
    }
    ~Membership();
    Membership(const Membership&) = delete;
    Membership& operator=(const Membership&) = delete;

    Ring& ring() const noexcept { return *ring_; }
    const std::shared_ptr<Ring>& shared_ring() const noexcept { return ring_; }
    unsigned rank() const noexcept { return member_.rank; }  ///< or a guest's seat
    unsigned node() const noexcept { return member_.node; }
    /// Others remember a former incarnation of this rank that was not on this host: this one comes
    /// after it.
    void follow(std::uint32_t former) noexcept;
    /// 1 for the first process that has been this rank, 2 for the next…
    std::uint32_t incarnation() const noexcept { return incarnation_; }
    RankSlot& slot() const noexcept { return ring_->rank(member_.rank); }
    /// False in a process forked since: the rank is its parent's, and must be left alone.
    bool held() const noexcept;

private:
    Membership(std::shared_ptr<Ring> ring, Member member, bool is_keeper);
    void sit_as_guest(unsigned row, unsigned end);
    void sit(ByteLock lock);

    std::shared_ptr<Ring> ring_;
    Member member_;
    std::unique_ptr<ByteLock> lock_;
    std::uint32_t incarnation_ = 0;
};

}  // namespace rmem
