// SPDX-License-Identifier: Apache-2.0
#include "billboard/endpoint.hpp"

#include "billboard/core/endpoint_core.hpp"
#include "billboard/core/node_guard.hpp"
#include "rmem/link/ring/memory.hpp"
#include "rmem/link/seat.hpp"
#include "rmem/link/sim/memory.hpp"
#include "rmem/link/udp/far_memory.hpp"
#include "rmem/link/udp/memory.hpp"
#include "rmem/ring/joining.hpp"

#include <fmt/format.h>

namespace billboard {

BILLBOARD_ENDPOINT_OF(extern template, , rmem::RingMemory, LineBoard);
BILLBOARD_ENDPOINT_OF(extern template, , rmem::RingMemory, PaperBoard);
BILLBOARD_ENDPOINT_OF(extern template, , rmem::UdpMemory, LineBoard);
BILLBOARD_ENDPOINT_OF(extern template, , rmem::UdpMemory, PaperBoard);
BILLBOARD_ENDPOINT_OF(extern template, , rmem::sim::SimMemory, LineBoard);
BILLBOARD_ENDPOINT_OF(extern template, , rmem::sim::SimMemory, PieceBoard);
BILLBOARD_ENDPOINT_OF(extern template, , rmem::sim::SimMemory, PaperBoard);

namespace {

template <class EndpointOf>
std::unique_ptr<Endpoint> make_one(auto&&... arguments) {
    if constexpr (EndpointOf::kMayLoseNode)
        return std::make_unique<NodeGuard<EndpointOf>>(arguments...);
    return std::make_unique<EndpointOf>(arguments...);
}

template <class M>
std::unique_ptr<Endpoint> make(const std::shared_ptr<rmem::Seat<M>>& seat, const Settings& settings,
                               Deadline deadline, const typename M::Options& options) {
    if (settings.board.layout == Layout::paper)
        return make_one<EndpointCore<M, PaperBoard>>(seat, settings, deadline, options);
    if constexpr (rmem::is_simulated<M>) {
        if (settings.board.layout == Layout::pieces)
            return make_one<EndpointCore<M, PieceBoard>>(seat, settings, deadline, options);
    }
    return make_one<EndpointCore<M, LineBoard>>(seat, settings, deadline, options);
}

/// `is_the_process`: its messages, beside its node.
template <class M>
std::unique_ptr<Endpoint> make_here(const std::shared_ptr<rmem::Ring>& ring, rmem::Member member,
                                    const Settings& settings, Deadline deadline,
                                    const typename M::Options& options, bool is_the_process) {
    return make<M>(is_the_process
                       ? rmem::take_seat<M>(ring, member, options, rmem::SeatUse::messages)
                       : std::make_shared<rmem::Seat<M>>(ring, member, options),
                   settings, deadline, options);
}

/// The billboard's place in a ring that this process makes.
[[maybe_unused]] const bool has_regions = [] {
    rmem::set_system_regions(
        [](const rmem::Environment& environment) { return ring_config(environment); });
    return true;
}();

void check_region(const rmem::RingConfig& config, const Settings& settings) {
    if (config.system_hash == Geometry(config, settings.board).hash()) return;
    throw rmem::Error(rmem::Errc::version_mismatch,
                      fmt::format("ring '{}' has no billboard of this layout; make it with "
                                  "`rmem run`, or with the same RMEM_LAYOUT and RMEM_PARTITION",
                                  config.name));
}

/// Where many nodes start at a time on hosts that have little time for each, the others may have
/// dropped this one before its program has begun: that is no reason to fail.
std::unique_ptr<Endpoint> open_remote(const std::shared_ptr<rmem::Ring>& ring, rmem::Member member,
                                      const Settings& settings, Deadline deadline,
                                      bool is_the_process) {
    for (;;) {
        try {
            // Nobody is told of those that go over the ring after all: they are counted.
            auto far = rmem::far_memory_of(*ring, member.node, [](const std::string&) {});
            auto endpoint = make_here<rmem::UdpMemory>(
                ring, member, settings, deadline, rmem::UdpOptions::from(rmem::Environment::read()),
                is_the_process);
            endpoint->use_far(std::move(far));
            return endpoint;
        } catch (const rmem::IncarnationOver&) {
            // The process's node keeps the incarnation that has ended.
            if (deadline.passed(rmem::now_ns()) || rmem::find_seat(*ring, member.rank)) throw;
        }
    }
}

/// In a simulated process the ring is its world's.
std::unique_ptr<Endpoint> open_simulated(rmem::sim::Process& process, const Settings& settings) {
    check_region(process.world().ring(), settings);
    const std::int64_t patience =
        rmem::Environment::read().join_timeout_ns.value_or(rmem::kDefaultJoinTimeoutNs);
    return make<rmem::sim::SimMemory>(
        std::make_shared<rmem::Seat<rmem::sim::SimMemory>>(
            std::make_shared<rmem::sim::Ring>(process.world()),
            rmem::Member{process.rank(), process.node()}, rmem::sim::SimMemory::Options{}),
        settings, Deadline::after(process.now_ns(), patience), {});
}

std::unique_ptr<Endpoint> open_any(const std::shared_ptr<rmem::Ring>& ring, rmem::Member member,
                                   const Settings& settings, Deadline deadline,
                                   bool is_the_process) {
    const rmem::RingConfig& config = ring->config();
    check_region(config, settings);
    if (member.rank == rmem::Member::kGuest) {
        throw rmem::Error(rmem::Errc::bad_rank,
                          fmt::format("RMEM_RANK: a guest of ring '{}' has its memory, and no "
                                      "messages; give a rank from 0 to {}",
                                      config.name, config.ranks - 1));
    }
    switch (config.link) {
        case rmem::LinkKind::direct:
            rmem::refuse_idle_settings(rmem::Environment::read(), config);
            return make_here<rmem::DirectMemory>(ring, member, settings, deadline, {},
                                                 is_the_process);
        case rmem::LinkKind::ring:
            return make_here<rmem::RingMemory>(
                ring, member, settings, deadline,
                rmem::RingOptions::from(rmem::Environment::read(), config), is_the_process);
        case rmem::LinkKind::udp:
        case rmem::LinkKind::fabric:
            return open_remote(ring, member, settings, deadline, is_the_process);
        case rmem::LinkKind::sim:
            throw rmem::Error(rmem::Errc::unknown_link,
                              "RMEM_LINK: link sim has no processes of its own, its programs are "
                              "functions in one process (`rmem sim`, billboard/simulation.hpp); "
                              "give direct, ring, udp or fabric");
        default: break;
    }
    throw rmem::Error(
        rmem::Errc::unknown_link,
        fmt::format("RMEM_LINK: the billboard of this program does not run on link '{}'; "
                    "give direct, ring, udp or fabric",
                    rmem::name_of(config.link)));
}

}  // namespace

std::unique_ptr<Endpoint> Endpoint::open() {
    return open(Settings::read());
}

std::unique_ptr<Endpoint> Endpoint::open(const Settings& settings) {
    if (rmem::sim::Process* process = rmem::sim::current_process())
        return open_simulated(*process, settings);
    const rmem::Environment environment = rmem::Environment::read();
    const Deadline deadline =
        Deadline::in(environment.join_timeout_ns.value_or(rmem::kDefaultJoinTimeoutNs));
    Settings own = settings;
    rmem::Joined joined = rmem::join_ring(
        environment, deadline, [&](const rmem::Environment& all, const rmem::RingConfig* there) {
            own = there != nullptr ? completed(settings, *there) : settings;
            return ring_config(all, own);
        });
    return open_any(joined.ring, joined.member, own, deadline, true);
}

std::unique_ptr<Endpoint> Endpoint::open(std::shared_ptr<rmem::Ring> ring, rmem::Member member,
                                         const Settings& settings, Deadline deadline) {
    return open_any(ring, member, settings, deadline, false);
}

}  // namespace billboard
