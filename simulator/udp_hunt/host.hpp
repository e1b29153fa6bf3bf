// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A simulated host with a node of the udp link: a core, a bank, a socket that holds a limited
/// number of datagrams, and a clock that is nobody else's.
///
/// Times are the world's unless they say otherwise. Thread safety: none.

#include "rmem/base/time.hpp"
#include "rmem/link/udp/protocol/core.hpp"
#include "simulator/udp_hunt/scenario.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace simulator::udp {

inline constexpr std::size_t kBankWords = 2560;

/// A host's events for the run.
struct HostEvents {
    std::function<void(unsigned node, std::span<const std::byte>)> sent;
    /// False: the batch is not to be stored (a planted bug).
    std::function<bool(unsigned node, unsigned origin, const rmem::udp::Batch&)> applied;
    std::function<void(unsigned node, const char* what, unsigned other)> changed;
};

class Host final : private rmem::udp::CoreEdge {
public:
    static constexpr std::int64_t kSilenceNs = 100'000'000;

    Host(unsigned node, const Scenario& scenario, const rmem::udp::Authenticator& authenticator,
         const HostEvents& events);

    bool is_up() const noexcept { return core_ != nullptr; }
    rmem::udp::Core& core() noexcept { return *core_; }
    const rmem::udp::Core& core() const noexcept { return *core_; }
    std::span<std::uint32_t> words() noexcept { return bank_; }
    std::span<const std::uint32_t> words() const noexcept { return bank_; }

    /// A new incarnation, with whatever the bank was.
    void start(std::int64_t now);
    void stop(std::int64_t now);
    /// It tells the others that it goes, and goes.
    void leave(std::int64_t now);
    /// It does nothing until then; or reads nothing.
    void stall(std::int64_t until_ns) { stalled_until_ns_ = until_ns; }
    void starve(std::int64_t until_ns) { starved_until_ns_ = until_ns; }
    /// It does nothing for `span_ns`; its clock may stop, too.
    void pause(std::int64_t now, std::int64_t span_ns, bool with_clock) {
        stall(now + span_ns);
        if (with_clock) clock_.offset_ns -= span_ns;
    }
    bool is_stalled(std::int64_t now) const noexcept { return now < stalled_until_ns_; }
    void wake() { stalled_until_ns_ = starved_until_ns_ = 0; }

    /// Into the socket; false when that is full.
    bool receive(std::vector<std::byte> datagram);
    /// When act() has something to do.
    std::int64_t due_ns() const noexcept;
    /// Reads what is there, and does what is due.
    void act(std::int64_t now);

    /// Writes from the bank; false when there is no room.
    bool write(std::uint64_t index, std::size_t words, std::int64_t now);
    void commit(std::int64_t now);

    /// Sums over the incarnations that are over.
    const rmem::udp::ExchangeCounters& former() const noexcept { return former_; }

private:
    void send_outgoing();
    void apply(unsigned origin, const rmem::udp::Batch& batch, std::int64_t now) override;
    void store(std::uint64_t index, std::uint32_t value) override { bank_.at(index) = value; }
    std::span<const std::byte> bank() override { return std::as_bytes(std::span(bank_)); }
    void clear_bank() override { std::fill(bank_.begin(), bank_.end(), 0); }
    void has_joined(std::int64_t) override { events_.changed(node_, "joined", node_); }
    void was_dropped(std::int64_t) override { events_.changed(node_, "dropped", node_); }
    void member_came(unsigned node, std::int64_t) override { events_.changed(node_, "came", node); }
    void member_left(unsigned node, std::int64_t) override { events_.changed(node_, "left", node); }

    std::size_t socket_room() const noexcept;
    rmem::udp::CoreConfig config(std::int64_t now) const;
    std::int64_t local(std::int64_t now) const noexcept;
    std::int64_t world(std::int64_t local_ns) const noexcept;

    const unsigned node_;
    const Scenario& scenario_;
    const rmem::udp::Authenticator& authenticator_;
    const HostEvents& events_;
    HostClock clock_;
    std::vector<std::uint32_t> bank_;
    std::deque<std::vector<std::byte>> socket_;
    std::size_t socket_charged_ = 0;
    std::unique_ptr<rmem::udp::Core> core_;
    std::int64_t stalled_until_ns_ = 0, starved_until_ns_ = 0;
    rmem::udp::ExchangeCounters former_;
};

}  // namespace simulator::udp
