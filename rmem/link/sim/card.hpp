// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node's card in a simulated world: rmem::Node on the `sim` link.
///
/// Contract: rmem/link/card.hpp; what accesses cost: rmem/link/sim/memory.hpp. Beyond that
///   - a write that is refused room costs a call, so that a program that tries again and again lets
///     time pass;
///   - the card goes on while its process is stopped or busy, as hardware does;
///   - callbacks are run by the world when their write arrives, in virtual time; a stopped
///     process's when it goes on. They may load and read, which takes no time then, and not write,
///     wait or flush; their exceptions leave World::run;
///   - there is no descriptor for interrupts: `fd` throws Error(unknown_link).
/// Thread safety: the simulation's. In a killed process it does nothing.
/// Errors: as rmem/link/sim/ring.hpp's Membership.

#include "rmem/link/card.hpp"
#include "rmem/link/sim/memory.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>

namespace rmem::sim {

class SimCard final : public Card, private CardInterrupts {
public:
    explicit SimCard(Process& process);
    ~SimCard() override;

    const RingConfig& config() const override { return world_.ring(); }
    rmem::Member member() const override { return {process_.rank(), process_.node()}; }
    bool is_alive(unsigned rank) const override { return memory_.is_alive(rank); }
    const rmem::Ring* ring() const override { return nullptr; }
    std::uint64_t counter(LinkCounter id) const override;
    const Histogram& propagation() const override;
    std::int64_t bound_ns() const override { return world_.bound_ns(); }
    void on_bound_violation(std::function<void(const BoundViolation&)> callback) override;

    std::byte* bank() const override { return memory_.own(0); }
    bool room(std::size_t bytes) override;
    void write(std::size_t offset, const void* from, std::size_t bytes) override;
    void write_part(std::size_t offset, std::uint32_t value, WordPart part) override;
    void commit() override {}
    bool flush(Deadline deadline) override { return memory_.flush(deadline); }
    void poll() override;
    void give_way() override {}
    void before_load(std::size_t words) override;
    void keep_applying() override {}

    void begin_wait(std::optional<std::size_t> offset) override;
    Step wait(Deadline deadline) override;
    void end_wait() override { memory_.end_wait(); }
    void has_seen(std::size_t, std::uint32_t, std::int64_t) override {}  // the world measures

    void set_write_me_last(bool on) override { me_last_ = on; }
    void set_data_filter(bool on) override { filter_ = on; }
    CardInterrupts& interrupts() override { return *this; }

private:
    void watch(std::size_t offset, std::size_t bytes, Trigger trigger) override;
    void unwatch(std::size_t offset, std::size_t bytes) override;
    void mark(std::size_t offset, std::size_t bytes) override;
    void unmark(std::size_t offset, std::size_t bytes) override;
    void accept(std::uint64_t numbers) override;
    std::optional<Interrupt> take() override;
    int fd() override;
    void on_interrupt(std::function<void(const Interrupt&)> callback) override;

    bool is_running() const noexcept { return current_process() == &process_; }
    void forget_the_dead();
    NodeInterrupts& marks();
    void store(std::size_t offset, const std::byte* from, std::size_t bytes);
    void store_changed(std::size_t offset, const std::byte* from, std::size_t bytes);

    World& world_;
    Process& process_;
    Membership member_;
    SimMemory memory_;
    std::optional<std::size_t> awaited_;  ///< the word that is waited for
    bool me_last_ = false;
    bool filter_ = false;
};

}  // namespace rmem::sim
