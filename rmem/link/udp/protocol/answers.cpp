// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/protocol/answers.hpp"

#include "rmem/base/check.hpp"
#include "rmem/link/udp/protocol/snapshot.hpp"

#include <utility>

namespace rmem::udp {

/// What others need first to believe the rest of the datagram.
DatagramWriter& Answers::begin_greeting(std::int64_t now) {
    DatagramWriter& writer = own_.exchange->begin_other(now);
    own_.exchange->belief().add_greetings(writer, own_.greeting_flags(), now);
    return writer;
}

void Answers::send_welcome(const Owed& owed, std::int64_t now) {
    if (!is_donor()) return;
    ++own_.counters.welcomes_sent;
    const NodeIncarnation joiner = own_.named(owed.node);
    NodeSet view = own_.view;
    view.erase(owed.node);
    const auto begin = [&] {
        begin_greeting(now).begin_welcome(joiner, owed.cookie, own_.ring_incarnation, view);
    };
    begin();
    view.for_each([&](unsigned member) {
        const MemberIncarnation entry{static_cast<std::uint16_t>(member),
                                      own_.incarnation_of(member)};
        if (own_.exchange->other().add_incarnation(entry)) return;
        own_.exchange->send_other(now);
        begin();
        own_.exchange->other().add_incarnation(entry);
    });
    // A second one goes where long datagrams do not, too.
    const bool is_first = !std::exchange(own_.others[owed.node].was_shown, true);
    is_first ? own_.exchange->send_other_at_length(now) : own_.exchange->send_other(now);
}

/// That incarnation of the node is over here.
void Answers::refuse(unsigned node, std::uint64_t cookie, std::int64_t now) {
    begin_greeting(now).add_admit({own_.named(node), cookie, 0, own_.ring_incarnation});
    own_.exchange->send_other(now);
}

/// At once, if none has just left: where many join at a time they leave together.
void Answers::owe_admit(unsigned node, std::uint64_t cookie, std::int64_t now) {
    std::erase_if(owed_admits_, [&](const Owed& owed) { return owed.node == node; });
    owed_admits_.push_back({node, cookie});
    RMEM_CHECK(owed_admits_.size() <= own_.others.size());
    if (now >= admit_next_ns_ && !holds_) send(now);
}

void Answers::owe_welcome(unsigned node, std::uint64_t cookie, std::int64_t now) {
    if (!holds_) return send_welcome({node, cookie}, now);
    std::erase_if(owed_welcomes_, [&](const Owed& owed) { return owed.node == node; });
    owed_welcomes_.push_back({node, cookie});
}

void Answers::send(std::int64_t now) {
    for (const Owed& owed : std::exchange(owed_welcomes_, {})) send_welcome(owed, now);
    if (owed_admits_.empty()) return;
    admit_next_ns_ = now + kAdmitNs;
    DatagramWriter* writer = &begin_greeting(now);
    for (const Owed& owed : std::exchange(owed_admits_, {})) {
        const CoreOwn::Other& other = own_.others[owed.node];
        const Admit admit{own_.named(owed.node), owed.cookie, other.admitted_from,
                          own_.ring_incarnation};
        if (writer->add_admit(admit)) continue;
        own_.exchange->send_other(now);
        writer = &own_.exchange->begin_other(now);
        writer->add_admit(admit);
    }
    own_.exchange->send_other(now);
}

void Answers::give_parts(const Header& header, const SnapshotRequest& request, std::int64_t now) {
    if (!own_.is_member || request.request_id().to != own_.my_incarnation()) return;
    if (!own_.is_connected(header.origin, header.incarnation)) return;
    // A node that comes after a death gets nothing more of that node: the bank must have all that
    // any survivor has.
    if (!own_.exchange->ended().all_completed(now)) return;
    own_.exchange->close_ended(now);
    // What is begun leaves first: the own position then covers what the bank holds. A request that
    // is not answered is made again.
    if (!own_.edge.hand_over_all(now)) return;
    own_.exchange->commit(now);
    ++own_.counters.requests_answered;
    for (unsigned node = 0; node < own_.others.size(); ++node) {
        own_.others[node].served =
            own_.others[node].served || !own_.view.contains(node);  // all hear it
    }
    DonorView view;
    view.bank = own_.edge.bank();
    view.is_blank = [this](const Place& place) {
        return own_.edge.is_blank(place.index, place.words);
    };
    if (holds_) {
        given_.resize(view.bank.size() / kWordBytes / kPartWords + 1);
        view.given = &given_;
    }
    for (unsigned node = 0; node < own_.others.size(); ++node) {
        if (node != own_.me() && !own_.exchange->takes(node)) continue;
        view.origins.insert(node);
        view.positions[node] =
            node == own_.me() ? own_.exchange->out().newest() : own_.exchange->published(node);
    }
    view.incarnation_sum = own_.incarnation_sum_of(view.origins);
    answer(
        NodeIncarnation::of(header.origin, header.incarnation), request, view,
        [&]() -> DatagramWriter& { return own_.exchange->begin_other(now); },
        [&] { own_.exchange->send_other(now); });
}

}  // namespace rmem::udp
