// SPDX-License-Identifier: Apache-2.0
#include "simulator/mpi_hunt/traffic.hpp"

#include "billboard/endpoint.hpp"
#include "rmem/base/random.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

namespace simulator::mpi {

using mpi_channel::kAnySource;
using mpi_channel::kEagerMost;
using mpi_channel::kHeaderBytes;
using mpi_channel::Parts;
using mpi_channel::Unexpected;

namespace {

constexpr std::uint64_t kTags = 3, kAllBits = ~std::uint64_t{0};

/// In two parts, for a cut at random.
Parts parts_of(std::vector<std::byte>& bytes, std::size_t cut) {
    return {{bytes.data(), cut}, {bytes.data() + cut, bytes.size() - cut}};
}

}  // namespace

/// A rank's incarnation, as its functions see it.
struct Traffic::Incarnation final : mpi_channel::Completions {
    Incarnation(rmem::sim::Process& its_process, Model& its_model, const DoMischief& mischief,
                const Scenario& scenario)
        : process(its_process),
          rank(its_process.rank()),
          random(scenario.seed * 1009 + rank * 31),
          model(its_model),
          endpoint(billboard::Endpoint::open()),
          tap(*endpoint, model, mischief),
          device(tap, *this) {}

    void completed(const Completion& completion) override {
        look_for_losses();
        model.completed(rank, completion);
    }
    /// The model learns first which ranks the device has given up since.
    void look_for_losses() {
        for (unsigned r = 0; r < Model::kRanks; ++r) {
            if (device.is_gone(r) && !model.has_lost(rank, r)) model.loses(rank, r);
        }
    }
    unsigned somebody() { return static_cast<unsigned>(random.below(Model::kRanks)); }

    rmem::sim::Process& process;
    const unsigned rank;
    rmem::Random random;
    Model& model;
    std::unique_ptr<billboard::Endpoint> endpoint;
    Tap tap;
    mpi_channel::Device<Tap> device;
    Unexpected* claimed = nullptr;
    Sent* claimed_sent = nullptr;
};

Traffic::Traffic(const Scenario& scenario, Model& model, Findings& findings, DoMischief mischief)
    : scenario_(scenario), model_(model), findings_(findings), mischief_(std::move(mischief)) {}

void Traffic::run(rmem::sim::Process& process) {
    Incarnation& me =
        process.keep(std::make_unique<Incarnation>(process, model_, mischief_, scenario_));
    incarnations_.at(me.rank) = &me;
    while (!enough()) act(me);
    settle(me);
    leave(me);
}

bool Traffic::enough() const {
    return model_.sent() >= scenario_.messages && !more_to_come();
}

void Traffic::act(Incarnation& me) {
    if (me.process.now_ns() < deaf_until_ns_.at(me.rank)) return me.process.sleep(kMicrosecond);
    switch (me.random.below(16)) {
        case 0:
        case 1:
        case 2: return send(me);
        case 3:
        case 4:
        case 5: return receive(me);
        case 6: return me.random.one_in(4) ? cancel(me) : receive(me);
        case 7: return peek(me);
        case 8: return end_claim(me);
        case 9: return me.process.sleep(me.random.between(1, 20 * kMicrosecond));
        default: progress(me);
    }
}

bool Traffic::progress(Incarnation& me) {
    const bool any = me.device.progress();
    me.look_for_losses();
    return any;
}

// ---- Sending

/// Around each limit of the device's protocols, and between.
std::size_t Traffic::some_size(Incarnation& me) const {
    const std::size_t packet = me.device.packet_most() - kHeaderBytes;
    switch (me.random.below(16)) {
        case 0: return 0;
        case 1: return packet - me.random.below(2);
        case 2: return packet + 1 + me.random.below(2);
        case 3:
        case 4: return me.random.below(scenario_.settings.board.data_bytes);
        case 5: return kEagerMost * (scenario_.heavy ? 1 : 0) + me.random.below(3);
        case 6:
            return scenario_.heavy && me.random.one_in(4) ? kEagerMost + me.random.below(kEagerMost)
                                                          : 8;
        default: break;
    }
    if (scenario_.heavy && me.random.one_in(2))
        return kEagerMost / 2 + me.random.below(kEagerMost / 2);
    return me.random.below(100);
}

std::uint64_t Traffic::some_tag(Incarnation& me, bool untagged) const {
    return untagged ? 0 : me.random.below(kTags);
}

void Traffic::send(Incarnation& me) {
    if (scenario_.heavy && me.rank == 0) {
        progress(me);
        return;
    }
    const unsigned to = scenario_.heavy && me.random.one_in(2) ? 0 : me.somebody();
    Sent& sent = model_.sends(me.rank, to, some_size(me));
    sent.untagged = me.random.one_in(4);
    sent.tag = some_tag(me, sent.untagged);
    if (me.random.one_in(4)) sent.data = static_cast<std::uint32_t>(me.random.next());
    sent.after_match = me.random.one_in(scenario_.heavy ? 64 : 8);
    sent.copy = me.random.one_in(4);
    sent.silent = sent.copy && me.random.one_in(2);
    mpi_channel::SendOrder order;
    order.to = to;
    order.tag = sent.tag;
    order.untagged = sent.untagged;
    order.data = sent.data;
    order.parts = parts_of(sent.bytes, me.random.below(sent.size + 1));
    order.copy = sent.copy;
    order.after_match = sent.after_match;
    order.silent = sent.silent;
    order.context = &sent;
    me.device.send(order);
    if (sent.copy) std::fill(sent.bytes.begin(), sent.bytes.end(), std::byte{0x55});
    if (me.device.backlog(to) != 0) findings_.cover(CoverageMark::waited);
    me.look_for_losses();
    on_sent();
}

// ---- Receiving

/// Of a size of its own, so that some messages are cut; sometimes for several.
void Traffic::receive(Incarnation& me) {
    if (scenario_.heavy && me.rank == 0 && !me.random.one_in(8)) {
        progress(me);
        return;
    }
    const std::size_t size = some_size(me);
    const bool is_for_several = me.random.one_in(8);
    Waiting& waiting =
        model_.receives(me.rank, is_for_several ? 4 * size : size + me.random.below(100));
    waiting.untagged = me.random.one_in(4);
    waiting.wanted.source = me.random.one_in(3) ? kAnySource : me.somebody();
    waiting.wanted.tag = some_tag(me, waiting.untagged);
    const std::uint64_t ignores = me.random.below(4);
    waiting.wanted.ignore = ignores == 0 ? kAllBits : ignores == 1 ? 1 : 0;
    if (is_for_several) waiting.least = 1 + me.random.below(size + 1);
    post(me, waiting);
}

void Traffic::post(Incarnation& me, Waiting& waiting) {
    mpi_channel::ReceiveOrder order;
    order.from = waiting.wanted.source;
    order.tag = waiting.wanted.tag;
    order.ignore = waiting.wanted.ignore;
    order.untagged = waiting.untagged;
    order.least = waiting.least;
    order.parts = parts_of(waiting.buffer, me.random.below(waiting.buffer.size() + 1));
    order.context = &waiting;
    model_.posts(waiting);
    me.device.receive(order);
    me.look_for_losses();
}

/// One that waits, or sometimes one that is over.
void Traffic::cancel(Incarnation& me) {
    const auto& posted = model_.posted(me.rank);
    if (posted.empty()) return;
    auto chosen = posted.begin();
    std::advance(chosen, static_cast<std::ptrdiff_t>(me.random.below(posted.size())));
    Waiting& waiting = **chosen;
    if (me.random.one_in(2)) progress(me);  // it may be over by now
    const bool was_posted = model_.cancels(waiting);
    if (!was_posted) findings_.cover(CoverageMark::too_late);
    if (me.device.cancel(&waiting) != was_posted) {
        model_.complain(me.rank, "cancelling a receive said the opposite of what is so");
    }
    me.look_for_losses();
}

void Traffic::peek(Incarnation& me) {
    Wanted wanted;
    const bool untagged = me.random.one_in(4);
    wanted.source = me.random.one_in(2) ? kAnySource : me.somebody();
    wanted.tag = some_tag(me, untagged);
    wanted.ignore = me.random.one_in(2) ? kAllBits : 0;
    const bool claims = me.claimed == nullptr && me.random.one_in(2);
    Unexpected* found =
        claims ? me.device.claim(wanted, untagged) : me.device.peek(wanted, untagged);
    Sent* const sent = model_.peeks(me.rank, wanted, untagged);
    if ((found == nullptr) != (sent == nullptr)) {
        return model_.complain(me.rank, "peeking saw another message than is there");
    }
    if (found == nullptr) return;
    findings_.cover(CoverageMark::peeked);
    if (found->envelope.source != sent->from || found->envelope.tag != sent->tag ||
        found->envelope.size != sent->size || found->data != sent->data) {
        model_.complain(me.rank, "peeking saw another message than comes first");
    }
    if (!claims) return;
    model_.claims(*sent);
    me.claimed = found;
    me.claimed_sent = sent;
}

void Traffic::end_claim(Incarnation& me) {
    if (me.claimed == nullptr) return;
    Unexpected& message = *std::exchange(me.claimed, nullptr);
    Sent& sent = *std::exchange(me.claimed_sent, nullptr);
    if (me.random.one_in(3)) {
        findings_.cover(CoverageMark::claimed_discarded);
        model_.discards(sent);
        return me.device.discard(message);
    }
    findings_.cover(CoverageMark::claimed_received);
    Waiting& waiting = model_.receives(me.rank, me.random.below(2 * sent.size + 1));
    waiting.untagged = sent.untagged;
    mpi_channel::ReceiveOrder order;
    order.untagged = sent.untagged;
    order.parts = parts_of(waiting.buffer, me.random.below(waiting.buffer.size() + 1));
    order.context = &waiting;
    model_.receives_claimed(sent, waiting);
    me.device.receive_claimed(message, order);
    me.look_for_losses();
}

// ---- The end

void Traffic::settle(Incarnation& me) {
    if (settle_until_ns_ == 0) settle_until_ns_ = me.process.now_ns() + kSettleNs;
    const auto goes_on = [&] {
        return me.process.now_ns() < settle_until_ns_ && findings_.violations.empty() &&
               !(model_.is_settled() && is_quiet());
    };
    while (goes_on()) {
        end_claim(me);
        receive_unexpected(me);
        if (!progress(me)) me.process.sleep(me.random.between(1, 10 * kMicrosecond));
    }
    while (!model_.posted(me.rank).empty()) {
        Waiting& waiting = *model_.posted(me.rank).front();
        model_.cancels(waiting);
        if (me.device.cancel(&waiting)) continue;
        return model_.complain(me.rank, "a receive that waits was not there to be cancelled");
    }
}

void Traffic::receive_unexpected(Incarnation& me) {
    if (model_.unexpected(me.rank).empty()) return;
    const Sent& sent = *model_.unexpected(me.rank).front();
    Waiting& waiting = model_.receives(me.rank, sent.size);
    waiting.untagged = sent.untagged;
    waiting.wanted = {kAnySource, sent.tag, 0};
    post(me, waiting);
}

/// No packet is on its way between the living, and none waits to leave.
bool Traffic::is_quiet() const {
    for (const Incarnation* from : incarnations_) {
        for (const Incarnation* to : incarnations_) {
            if (from == nullptr || to == nullptr) continue;
            if (from->device.backlog(to->rank) != 0) return false;
            if (from->tap.sent_to(to->rank) != to->tap.received_from(from->rank)) return false;
        }
    }
    return true;
}

/// Nobody leaves while others may still need an answer; the last one sees that nothing was mislaid.
void Traffic::leave(Incarnation& me) {
    if (++finished_ == model_.alive()) check_credit();
    while (finished_ < model_.alive()) {
        if (!progress(me)) me.process.sleep(kMicrosecond);
    }
    if (me.device.counters().broken != 0) {
        model_.complain(me.rank, "it has given up a rank for what that sent");
    }
    note_coverage(me);
    incarnations_.at(me.rank) = nullptr;
}

/// A sender's credit is with it, or with the receiver of its messages.
void Traffic::check_credit() {
    for (const Incarnation* from : incarnations_) {
        for (const Incarnation* to : incarnations_) {
            if (from == nullptr || to == nullptr || !is_quiet()) continue;
            const std::size_t all = from->device.credit(to->rank) + to->device.held(from->rank);
            if (all == mpi_channel::kCredit) continue;
            model_.complain(from->rank, fmt::format("of its credit at rank {} {} bytes are left",
                                                    to->rank, all));
        }
    }
}

void Traffic::note_coverage(const Incarnation& me) {
    const mpi_channel::DeviceCounters counters = me.device.counters();
    findings_.cover(CoverageMark::short_sent, counters.short_sent);
    findings_.cover(CoverageMark::eager_sent, counters.eager_sent);
    findings_.cover(CoverageMark::rendezvous_sent, counters.rendezvous_sent);
    findings_.cover(CoverageMark::out_of_credit, counters.out_of_credit);
    findings_.cover(CoverageMark::unexpected, counters.unexpected);
}

}  // namespace simulator::mpi
