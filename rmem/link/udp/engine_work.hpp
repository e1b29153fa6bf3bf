// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a node's engine does, in the hands of one thread at a time; rmem/link/udp/engine.hpp says
/// whose.
///
/// It is made of parts, each of which owns its state, and knows only those above it:
///   carrier_care.hpp     why the carrier does not reach others
///   rest.hpp             how threads wait, and a host that is crowded
///   arrivals.hpp         what others wrote, into the own bank
///   protocol/core.hpp    the protocol
///   outbox.hpp           what programs wrote, into the node's stream; which they are
///   engine_board.hpp     what is shown
///   departures.hpp       what leaves
/// Here is what the core asks of its edge, and in which order a run does what.
///
/// Thread safety: one thread at a time, but for what says otherwise. Progress: nothing waits.
/// Errors: the constructor throws `Error`. Units: nanoseconds of the monotonic clock.

#include "rmem/base/relaxed.hpp"
#include "rmem/link/carrier/carrier.hpp"
#include "rmem/link/udp/arrivals.hpp"
#include "rmem/link/udp/carrier_care.hpp"
#include "rmem/link/udp/datagram_faults.hpp"
#include "rmem/link/udp/departures.hpp"
#include "rmem/link/udp/engine_board.hpp"
#include "rmem/link/udp/engine_settings.hpp"
#include "rmem/link/udp/oddities.hpp"
#include "rmem/link/udp/outbox.hpp"
#include "rmem/link/udp/pacing.hpp"
#include "rmem/link/udp/protocol/core.hpp"
#include "rmem/link/udp/rest.hpp"
#include "rmem/link/udp/roster.hpp"
#include "rmem/link/udp/tap.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/touched_part.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

namespace rmem::udp {

class RMEM_API EngineWork final : private CoreEdge {
public:
    static constexpr std::int64_t kKeepNs =
        10'000'000;  ///< at least, between looks at who of this host is alive

    /// Begins to join. The ring outlives it, and so does `rest`.
    EngineWork(Ring& ring, EngineSettings settings, EngineKind kind,
               std::optional<unsigned> own_rank, Rest& rest);
    /// Leaves the ring in good order: no node waits for this one.
    ~EngineWork() override;

    /// Takes what has come, and does what is due; `what`: is taken of the logs.
    void run(Outbox::Take what, std::int64_t now);
    /// What the logs have leaves (rmem/link/udp/departures.hpp).
    void take(Outbox::Take what, Leaving leaving, std::int64_t now);
    /// All members are asked to say what they have; and the rest leaves.
    void ask_for_acks(std::int64_t now);
    /// The bank is given to nobody any more, if it was not for some time.
    void end_serving(std::int64_t now) noexcept {
        if (now >= serves_until_ns_) serves_.set(false);
    }
    bool has_room(std::size_t bytes) const noexcept { return outbox_.has_room(bytes); }
    Departures& departures() noexcept { return departures_; }
    [[nodiscard]] std::vector<BoundViolation> take_violations() {
        return arrivals_.take_violations();
    }

    // ---- When it has something to do
    std::int64_t due_ns() const noexcept;
    /// For a thread that stands by: what is not late by Rest::kTailNs without harm.
    std::int64_t until_exact(std::int64_t now) noexcept;
    /// How long a rank naps that something has woken that it does not wait for.
    [[nodiscard]] std::int64_t nap_ns(std::int64_t now);
    /// How long what comes is left in a crowd; 0: there is none. Found out, and as it was.
    std::int64_t find_turn();
    std::int64_t turn_ns() const noexcept { return crowd_.turn_ns(); }
    bool has_clients() const noexcept { return outbox_.has_clients(); }
    /// Of what nobody rings the bell for, nothing is here.
    [[nodiscard]] bool may_rest() {
        return !outbox_.has_news(Outbox::Take::of_clients) && carrier_->may_sleep();
    }

    // ---- For any thread
    bool is_member() const noexcept;
    /// Another node is given the bank, which must not be ahead of the stream by more than a write:
    /// the rank has each taken.
    bool is_serving() const noexcept { return serves_.get(); }
    /// Whether something that has come is held back, for a timing profile or by a fault, and due
    /// before a helper would stand in for a program that waits for the carrier's handle.
    bool defers() const noexcept { return deferred_until_ns_.get() - now_ns() < Rest::kTailNs; }
    /// The node whose writes have come last.
    unsigned heard_from() const noexcept { return heard_from_.get(); }
    const Carrier& carrier() const noexcept { return *carrier_; }
    /// Of the helper thread, on the board.
    void show_real_time(bool has) noexcept { shown_.show_real_time(has); }

private:
    // The core's edge
    void apply(unsigned origin, const Batch& batch, std::int64_t now) override;
    std::uint64_t behind(unsigned origin) const override { return arrivals_.behind(origin); }
    void store(std::uint64_t index, std::uint32_t value) override;
    bool hand_over_all(std::int64_t now) override;
    std::span<const std::byte> bank() override;
    void clear_bank() override;
    bool is_blank(std::uint64_t index, std::size_t words) override;
    void has_joined(std::int64_t now) override;
    void was_dropped(std::int64_t now) override;
    void member_came(unsigned node, std::int64_t now) override;
    void member_left(unsigned node, std::int64_t now) override;
    void on_odd(Odd odd, const Header& header, std::string_view text) override;

    void take_news(std::int64_t now);
    [[nodiscard]] bool receive(std::int64_t& now);
    void do_what_is_due(std::int64_t now);
    void apply_due(std::int64_t now);
    void keep(std::int64_t now);
    void keep_roster(std::int64_t now);
    void keep_carrier(std::int64_t now);
    void tell_programs() noexcept;
    void wake_programs() noexcept;
    void advance_epoch(bool member) noexcept;
    std::int64_t exact_due_ns() const noexcept;
    std::int64_t keep_due_ns() const noexcept;
    unsigned nodes_here() const noexcept;
    std::atomic<std::uint32_t>* words() const noexcept;

    Ring& ring_;
    const unsigned node_;
    const std::optional<unsigned> own_rank_;
    Hint<std::int64_t> deferred_until_ns_ = kNever;
    NodeBoard& board_;
    const std::unique_ptr<Carrier> carrier_;
    CarrierCare care_;
    Rest& rest_;
    Crowd crowd_;
    DatagramFaults faults_;
    Authenticator authenticator_;
    InterruptBoard interrupts_;
    Roster roster_;
    Tap tap_;
    Arrivals arrivals_;
    TouchedPart touched_;
    std::uint64_t touched_in_ = 0;  ///< the incarnation in which that was found out
    Oddities oddities_;

    Core core_;
    Outbox outbox_;
    EngineBoard shown_;
    Departures departures_;
    std::int64_t next_keep_ns_ = 0;
    bool has_news_to_keep_ = false;                 ///< something came or was written since
    Outbox::Take takes_ = Outbox::Take::committed;  ///< this run, of the logs
    Hint<bool> serves_{false};
    std::int64_t serves_until_ns_ = 0;
    /// Nothing is due before, if nothing comes and nothing is written.
    std::int64_t idle_until_ns_ = 0;
    std::int64_t ran_ns_ = 0;
    Hint<unsigned> heard_from_{0};
    /// Of the datagram that is read, among those that the carrier gave.
    std::size_t place_ = SIZE_MAX;
    std::atomic<bool> is_member_{false};
};

}  // namespace rmem::udp
