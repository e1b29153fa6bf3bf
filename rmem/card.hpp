// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a Node does differently on each link.
///
/// Offsets and sizes are whole words inside the user's memory: Node has checked and completed them.
/// Thread safety: `poll` and `interrupts` from any thread, the rest from the node's own.

#include "rmem/bound_violation.hpp"
#include "rmem/interrupts.hpp"
#include "rmem/ring.hpp"
#include "rmem/waiting.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace rmem {

class Card {
public:
    /// The card for the ring's link. Throws Error(unknown_link) for one that needs another runtime.
    static std::unique_ptr<Card> make(Membership& member);

    Card() = default;
    virtual ~Card() = default;
    Card(const Card&) = delete;
    Card& operator=(const Card&) = delete;

    /// Whether writes of so many bytes in all can be taken now.
    virtual bool room(std::size_t bytes) = 0;
    virtual void write(std::size_t offset, const void* from, std::size_t bytes) = 0;
    /// Wakes who may wait for what was written.
    virtual void commit() = 0;
    virtual bool flush(Deadline deadline) = 0;
    virtual void poll() = 0;
    /// For readers that do not call.
    virtual void keep_applying() = 0;

    virtual void begin_wait() = 0;
    virtual Step wait(Deadline deadline) = 0;
    virtual void end_wait() = 0;
    /// A word was awaited since then, and has just been seen with this value.
    virtual void has_seen(std::size_t offset, std::uint32_t value,
                          std::int64_t waited_since_ns) = 0;

    virtual void set_write_me_last(bool on) = 0;
    virtual void set_data_filter(bool on) = 0;
    virtual InterruptBoard& interrupts() = 0;
    virtual std::int64_t bound_ns() const = 0;
    virtual void on_bound_violation(std::function<void(const BoundViolation&)> callback) = 0;
};

}  // namespace rmem
