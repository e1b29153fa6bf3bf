// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The `sim` link: a process's card in a simulated world.
///
/// Contract: rmem/link/memory.hpp. Every access costs virtual time, as the host profile says: a
/// word loaded `load_ns`, a word stored `store_ns`, `progress` (once per call that waits or sends)
/// `call_ns`; and lets the rest of the world catch up with the process before it sees the memory.
///
/// Room     the transmit FIFO (hold-off): no room while a group would not fit, unless the FIFO is
///          empty. A process that stores into a full FIFO anyway is stalled until there is room.
/// Waiting  `wait` returns once without waiting, to see what a poll looks at, and then parks the
///          process until a word that it looked at has changed (rmem/sim/watch.hpp).
/// Threads  the simulation's. In a killed process it does nothing.

#include "rmem/link/memory.hpp"
#include "rmem/link/sim/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace rmem::sim {

class RMEM_API SimMemory {
public:
    struct Options {};
    using Simulated = World;
    using Ring = sim::Ring;
    using Membership = sim::Membership;
    static constexpr bool kReplicated = true;
    static constexpr bool kFar = false;
    static constexpr bool kHasDescriptors = false;
    static constexpr std::size_t kMaxPostWords = kLinePostWords;

    explicit SimMemory(Process& process);
    explicit SimMemory(Membership& member, const Options& = {}) : SimMemory(member.process()) {}

    std::uint32_t load(std::size_t offset) const {
        pay(world_.config_.host.load_ns);
        std::uint32_t value;
        std::memcpy(&value, bank_ + offset, sizeof value);
        if (process_.watch_.is_on()) process_.watch_.loaded(offset, value, process_.clock_ns_);
        return value;
    }
    const std::byte* data(std::size_t offset, std::size_t bytes) const;
    std::byte* own(std::size_t offset) const noexcept { return bank_ + offset; }

    [[nodiscard]] bool room(std::size_t bytes);
    void write(std::size_t offset, const void* from, std::size_t bytes);
    void publish(std::size_t offset, std::size_t bytes) { write(offset, bank_ + offset, bytes); }
    void post_word(std::size_t offset, std::uint32_t value) { write(offset, &value, sizeof value); }
    /// A card promises no order inside a write.
    void post(std::size_t offset, const std::uint32_t* words, std::size_t count) {
        if (count > 1) write(offset + kWordBytes, words + 1, (count - 1) * kWordBytes);
        post_word(offset, *words);
    }
    void write_lazy(std::size_t offset, std::uint32_t value) { post_word(offset, value); }
    static void commit() noexcept {}
    static void notify(unsigned) noexcept {}
    static void expect_write(std::size_t, std::size_t) noexcept {}
    static void expect_read(std::size_t, std::size_t) noexcept {}
    static void stamp(std::size_t, std::uint32_t) noexcept {}
    static void seen(std::size_t, std::uint32_t, std::int64_t) noexcept {}
    bool is_alive(unsigned rank) const noexcept { return world_.is_alive(rank); }
    void progress() { pay(world_.config_.host.call_ns); }
    static constexpr bool in_flight() noexcept { return false; }  // only descriptors ask
    static constexpr unsigned brief_polls() noexcept { return 0; }
    static constexpr bool is_crowded() noexcept { return false; }
    static void give_way() noexcept {}

    void begin_wait() noexcept { process_.watch_.end(); }
    Step wait(Deadline deadline);
    void end_wait() noexcept { process_.watch_.end(); }
    std::int64_t now_ns() const noexcept { return process_.clock_ns_; }

    /// True when all own writes have come round (or were lost) before the deadline.
    [[nodiscard]] bool flush(Deadline deadline);

private:
    void pay(std::int64_t ns) const {
        process_.clock_ns_ += ns;
        if (++process_.accesses_ >= process_.fault_at_access_) [[unlikely]]
            world_.run_access_actions(process_);
        if (process_.clock_ns_ >= world_.horizon_ns_) [[unlikely]]
            world_.settle(process_);
    }
    void park(std::int64_t until_ns);
    bool has_awaited_interrupt() const noexcept;

    World& world_;
    Process& process_;
    std::byte* const bank_;
};

}  // namespace rmem::sim
