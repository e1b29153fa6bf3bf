// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A node's card as a fork()ed child has inherited it: its properties can be read, everything else
/// throws.
///
/// Contract: rmem/link/card.hpp. Thread safety: any thread.
/// Errors: Error(invalid_argument) from all that would touch the bank, the link or the interrupts.

#include "rmem/base/at_fork.hpp"
#include "rmem/link/card.hpp"

namespace rmem {

class InheritedCard final : public Card {
public:
    explicit InheritedCard(const Card& parents) : parents_(parents) {}

    const RingConfig& config() const override { return parents_.config(); }
    Member member() const override { return parents_.member(); }
    bool is_alive(unsigned rank) const override { return parents_.is_alive(rank); }
    const Ring* ring() const override { return parents_.ring(); }
    std::uint64_t counter(LinkCounter id) const override { return parents_.counter(id); }
    const Histogram& propagation() const override { return parents_.propagation(); }
    std::int64_t bound_ns() const override { return parents_.bound_ns(); }
    void on_bound_violation(std::function<void(const BoundViolation&)>) override { refuse(); }

    std::byte* bank() const override { return parents_.bank(); }
    bool room(std::size_t) override { refuse(); }
    void write(std::size_t, const void*, std::size_t) override { refuse(); }
    void write_part(std::size_t, std::uint32_t, WordPart) override { refuse(); }
    void commit() override { refuse(); }
    void send(unsigned, const SentInterrupt&) override { refuse(); }
    bool flush(Deadline) override { refuse(); }
    void poll() override { refuse(); }
    void give_way() override { refuse(); }
    void before_load(std::size_t) override { refuse(); }
    void keep_applying() override { refuse(); }

    void begin_wait(std::optional<std::size_t>) override { refuse(); }
    Step wait(Deadline) override { refuse(); }
    void end_wait() override { refuse(); }
    void has_seen(std::size_t, std::uint32_t, std::int64_t) override { refuse(); }

    void set_write_me_last(bool) override { refuse(); }
    void set_data_filter(bool) override { refuse(); }
    CardInterrupts& interrupts() override { refuse(); }

private:
    [[noreturn]] static void refuse() { throw Error(Errc::invalid_argument, kForkedChild); }

    const Card& parents_;
};

}  // namespace rmem
