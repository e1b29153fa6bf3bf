// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/agreement.hpp"

namespace rmem::udp {

namespace {

/// Then it has noticed that there are two parts of the ring.
bool has_ended_any_of(const CoreOwn& own, const NodeSet& nodes) noexcept {
    bool has = false;
    nodes.for_each(
        [&](unsigned node) { has = has || (node < own.others.size() && own.others[node].ended); });
    return has;
}

/// Members that are with this one, itself among them, as their last statuses say.
unsigned supporters(const CoreOwn& own) noexcept {
    unsigned count = 1;
    own.view.for_each([&](unsigned node) {
        if (node != own.me() && own.others[node].view.contains(own.me())) ++count;
    });
    return count;
}

/// The same of another member. What one says that is not heard here, it has to know.
unsigned supporters_of(const CoreOwn& own, unsigned node, const NodeSet& view) noexcept {
    unsigned count = 1;
    view.for_each([&](unsigned other) {
        if (other == node || other >= own.others.size()) return;
        const bool is_heard = other == own.me() || own.exchange->takes(other);
        const NodeSet& its = other == own.me() ? own.view : own.others[other].view;
        if (!is_heard || its.contains(node)) ++count;
    });
    return count;
}

/// docs/design/udp-link.md: Disagreement.
bool stands_against(const CoreOwn& own, unsigned node, const Status& status, bool ended_it,
                    bool has_returned) noexcept {
    const bool it_returned = status.state == Status::State::returned;
    if (it_returned != has_returned) return it_returned;
    const unsigned mine = supporters(own), its = supporters_of(own, node, status.view);
    if (mine != its) return mine > its;
    const bool has_me = status.view.contains(own.me());
    if (has_me && ended_it) return true;
    if (!has_me && !ended_it && !has_ended_any_of(own, status.view)) return false;
    const unsigned my_lowest = own.view.lowest(), its_lowest = status.view.lowest();
    return my_lowest != its_lowest ? my_lowest < its_lowest : own.me() < node;
}

}  // namespace

Judgement judge(CoreOwn& own, const Header& header, const Status& status,
                const Lately& lately) noexcept {
    const unsigned node = header.origin;
    CoreOwn::Other& other = own.others[node];
    const bool has_me = status.view.contains(own.me());
    const bool is_known = own.has_met(node, header.incarnation);
    const bool ended_it = is_known && !own.exchange->takes(node);
    if (is_known) other.view = status.view;
    if (is_known && has_me && !ended_it) other.had_me = true;
    // Whose view has not had this node yet may just not have heard of it.
    const bool has_heard = (is_known && other.had_me) || !lately.is_new;
    if (!ended_it && (has_me || !has_heard)) return Judgement::both_stay;
    return stands_against(own, node, status, ended_it, lately.has_returned)
               ? Judgement::the_other_goes
               : Judgement::this_one_goes;
}

}  // namespace rmem::udp
