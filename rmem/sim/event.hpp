// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The events of a simulation, one after the other, for traces and checks.
///
/// Thread safety: values; an Observer is called on the simulation's thread.
/// Reproducible:  equal worlds give equal events in equal order, on every compiler.
/// Units:         nanoseconds of virtual time; offsets and sizes in bytes.

#include "rmem/base/hash.hpp"
#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rmem::sim {

enum class EventKind : std::uint8_t {
    stored = 0,  ///< a process stored into its card: the write begins
    sent,        ///< its first bit went on the wire (of each packet that carries some of it)
    arrived,     ///< it is in `node`'s bank
    returned,    ///< it has come round, and the source removed it
    lost,        ///< `node` is the last one that can have it
    stray,       ///< it passed `node` again, because its source was bypassed; dropped there
    repeated,    ///< it reached `node` a second time, and was dropped there
    late,        ///< it reached `node` later than the bound: counted there
    delayed,     ///< a fault holds the write back
    started,     ///< a process began; `value` is how often the rank was started
    ended,       ///< its program returned
    killed,
    stopped,
    continued,
    node_failed,
    node_joined,  ///< a failed node is in the ring again, with a live node's bank
    cable_cut,    ///< from `node` to its successor; `value` is the ring
    cable_mended
};

inline constexpr std::uint32_t kNoRank = UINT32_MAX;

struct Event {
    std::int64_t time_ns = 0;
    EventKind kind = EventKind::stored;
    std::uint16_t node = 0;           ///< where
    std::uint16_t origin = 0;         ///< of a write: the node it comes from
    std::uint32_t rank = kNoRank;     ///< of a stored write and of what happens to processes
    std::uint32_t bytes = 0;          ///< of a write
    std::uint32_t value = 0;          ///< of a write: its first word
    std::uint64_t number = 0;         ///< of a write: the origin's own count, from 1
    std::uint64_t offset = 0;         ///< of a write
    std::int64_t stored_ns = 0;       ///< of a write: when it began
    std::span<const std::byte> data;  ///< of a write, only while the observer is called
};

class RMEM_API Observer {
public:
    Observer() = default;
    virtual ~Observer() = default;
    Observer(const Observer&) = delete;
    Observer& operator=(const Observer&) = delete;

    virtual void on_event(const Event& event) = 0;
};

RMEM_API const char* name_of(EventKind kind) noexcept;

/// A hash of all events: equal for equal runs. 64 bits, not meant against forgery.
class RMEM_API TraceHash final : public Observer {
public:
    void on_event(const Event& event) override;
    std::uint64_t value() const noexcept { return hash_; }

private:
    std::uint64_t hash_ = Fnv1a::kStart;
};

/// Passes each event to several observers, in order.
class RMEM_API Observers final : public Observer {
public:
    explicit Observers(std::vector<Observer*> all) : all_(std::move(all)) {}
    void on_event(const Event& event) override {
        for (Observer* one : all_) one->on_event(event);
    }

private:
    std::vector<Observer*> all_;
};

/// One line of a trace: time, event, node, and the known facts of the write. `trace_header` names
/// the columns.
RMEM_API std::string trace_line(const Event& event);
RMEM_API std::string trace_header();

}  // namespace rmem::sim
