// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/host_card.hpp"

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
    if (!helper_) helper_ = std::make_unique<InterruptHelper>(ring_, rank_, board_);
    return *helper_;
}

}  // namespace rmem
