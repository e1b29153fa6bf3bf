// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where a node's daemon shows what happens at its endpoints: /dev/shm/rmem-munet.<name>, which any
/// user may read and only the daemon writes, so that it can be read while daemon and programs hang.
///
/// Thread safety: one writer; any readers.
/// Errors: the constructor throws rmem::Error.

#include "ports/munet/counters.hpp"
#include "ports/munet/driver.hpp"
#include "ports/munet/endpoint_memory.hpp"
#include "rmem/ring/segment.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace ports::munet {

inline constexpr std::uint64_t kBoardMagic = 0x314f424d554e4d52;  // "RMNUMBO1"

/// X(identifier, unit, meaning)
#define MUNET_NODE_COUNTERS(X)                                               \
    X(created, "endpoints", "endpoints created since the daemon began")      \
    X(destroyed, "endpoints", "and destroyed")                               \
    X(over_limit, "requests", "requests over a user's limit")                \
    X(bad_requests, "requests", "packets that no library sends to a daemon") \
    X(bells, "events", "times a program woke the daemon")                    \
    X(bad_frames, "frames", "frames of other nodes that no relay sends")     \
    X(rejoined, "events", "times the ring had dropped this node")            \
    X(backlog, "frames", "frames that wait for a link, now")

RMEM_DEFINE_COUNTERS(NodeCounter, kNodeCounterNames, MUNET_NODE_COUNTERS, rmem::kCountersPerBlock);

/// Those that only grow.
inline constexpr std::span kNodeSumNames =
    std::span(kNodeCounterNames).first(static_cast<std::size_t>(NodeCounter::backlog));
static_assert(kNodeSumNames.size() + 1 == kNodeCounterNames.size());

struct BoardMemory {
    std::atomic<std::uint64_t> magic;
    std::atomic<std::uint32_t> pid, active;
    rmem::Counters node;                               ///< NodeCounter
    std::array<rmem::Counters, kEndpoints> endpoints;  ///< Counter
};

class RMEM_API CounterBoard {
public:
    /// Makes it, in place of one that was left over; an empty name: in private memory.
    explicit CounterBoard(const std::string& name);
    ~CounterBoard();
    CounterBoard(const CounterBoard&) = delete;
    CounterBoard& operator=(const CounterBoard&) = delete;

    /// It can be observed from now on: the daemon is there.
    void begin() noexcept;
    std::span<rmem::Counters> blocks() noexcept { return memory_->endpoints; }
    void show(const DriverCounts& driver, const Relay& relay, unsigned rejoined) noexcept;
    const BoardMemory& memory() const noexcept { return *memory_; }

    /// A copy of another's, as it is now; null where there is none. Trust: numbers for people,
    /// nothing else.
    [[nodiscard]] static std::shared_ptr<const BoardMemory> observe(const std::string& name);
    [[nodiscard]] static std::string object_name(const std::string& name) { return kPrefix + name; }

    /// The names of those that this user may remove, of daemons that are alive or have left them.
    [[nodiscard]] static std::vector<std::string> list();
    /// Removes one that its daemon has left (in a dry run: would), false if there is none; throws
    /// where a daemon has it.
    static bool remove(const std::string& name, bool dry_run = false);

private:
    static constexpr const char* kPrefix = "/rmem-munet.";

    std::string object_;
    rmem::Descriptor fd_;  ///< locked while its writer is alive
    BoardMemory* memory_;
};

}  // namespace ports::munet
