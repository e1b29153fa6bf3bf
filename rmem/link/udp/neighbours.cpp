// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/neighbours.hpp"

#include "rmem/ring/node_board.hpp"
#include "rmem/ring/segment.hpp"

#include <exception>
#include <utility>

namespace rmem::udp {

namespace {

/// Of which the board shows the number.
std::uint64_t incarnation_on(const NodeBoard& board) noexcept {
    // relaxed is enough: an old one is no neighbour yet, and is looked for again with the next
    return board.incarnation.load(std::memory_order_relaxed);
}

/// A daemon needs a processor as a rank does.
unsigned daemons_of(const Ring& ring) {
    // relaxed is enough: an old one costs one processor too many or too few
    const auto kind = static_cast<EngineKind>(ring.board().kind.load(std::memory_order_relaxed));
    return kind == EngineKind::daemon && ring.has_engine() ? 1 : 0;
}

/// The ring's other nodes on this host, by the names of their segments. What is known of them stays
/// mapped: to map one takes 0.2 ms.
HostCompany::Rings rings_here(const Ring& ring, HostCompany::Rings known) {
    HostCompany::Rings rings;
    for (const std::string& name : Segment::list_of(ring.config().name)) {
        if (name == ring.segment_name()) continue;
        try {
            std::shared_ptr<const Ring>& other = known[name];
            if (!other || !other->is_linked()) other = Ring::observe(name, Mapping::Access::load);
            rings.emplace(name, std::move(other));
        } catch (const Error&) {  // it has just gone, or is just being made
            continue;
        }
    }
    return rings;
}

Company company_of(const Ring& ring, const HostCompany::Rings& rings) {
    Company company;
    company.daemons = daemons_of(ring);
    for (const auto& [name, other] : rings) {
        for (unsigned r = 0; r < other->seats(); ++r) {
            if (other->is_joined(r)) company.ranks.push_back({other, r});
        }
        company.daemons += daemons_of(*other);
        const ProcessorSet theirs = other->shared_processors();
        for (std::size_t i = 0; i < theirs.size(); ++i) company.processors[i] |= theirs[i];
    }
    return company;
}

constexpr unsigned kFewNodes = 8;
constexpr std::int64_t kCompanyNs = 5'000'000;  // for each node: between looks at who is here

}  // namespace

void HostCompany::look(Waiter& waiter, std::int64_t now) noexcept {
    const unsigned nodes = ring_.config().nodes;
    // Of many that start at a time each would look at each.
    if (next_ns_ == 0 && nodes > kFewNodes) next_ns_ = now + kCompanyNs * nodes;
    std::uint64_t members = 0;
    for (const auto& part : ring_.board().members) {
        // relaxed is enough: what is missed is seen at the next look
        members = members * 31 + part.load(std::memory_order_relaxed);
    }
    if (members == members_seen_ || now < next_ns_) return;
    members_seen_ = members;
    next_ns_ = now + kCompanyNs * nodes;
    has_looked_ = true;
    try {
        rings_ = rings_here(ring_, std::move(rings_));
        waiter.set_company(company_of(ring_, rings_));
    } catch (const std::exception&) {  // no memory: as it was
    }
}

Neighbours::Neighbours(const Ring& ring) : ring_(ring), neighbours_(ring.config().nodes) {}

void Neighbours::look_for(unsigned node, Neighbour& neighbour) const noexcept {
    neighbour.ring.reset();
    try {
        auto ring = Ring::observe(ring_.config().segment_name(node), Mapping::Access::load);
        if (incarnation_on(ring->board()) == neighbour.incarnation)
            neighbour.ring = std::move(ring);
    } catch (const std::exception&) {  // it is not on this host, or may not be looked at
    }
}

int Neighbours::processor_of(unsigned node) noexcept {
    if (node >= neighbours_.size()) return -1;
    Neighbour& neighbour = neighbours_[node];
    // relaxed is enough: an old one is asked for again
    const std::uint64_t met = ring_.board().nodes[node].incarnation.load(std::memory_order_relaxed);
    if (neighbour.incarnation != met) neighbour = {met, 0, nullptr};
    if (neighbour.asked < kAskedToLook && ++neighbour.asked == kAskedToLook)
        look_for(node, neighbour);
    if (!neighbour.ring) return -1;
    const NodeBoard& board = neighbour.ring->board();
    return static_cast<int>(board.processor.get()) - 1;
}

}  // namespace rmem::udp
