// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/host_card.hpp"

#include "rmem/ring/delivery_board.hpp"
#include "rmem/ring/node_slot.hpp"

namespace rmem {

std::uint64_t HostCard::counter(LinkCounter id) const {
    return member_.slot().link.get(id) + member_.ring().node(member_.node()).link.get(id);
}

const Histogram& HostCard::propagation() const {
    return member_.ring().node(member_.node()).propagation;
}

InterruptHelper& HostInterrupts::helper() {
    board_.attend();
    if (helper_) return *helper_;
    // relaxed is enough: the change that is noted orders it
    ring_.rank(rank_).needs_delivery.store(1, std::memory_order_relaxed);
    ring_.delivery().note_change();
    helper_ = std::make_unique<InterruptHelper>(ring_, rank_, board_, source_);
    return *helper_;
}

}  // namespace rmem
