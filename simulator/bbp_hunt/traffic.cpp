// SPDX-License-Identifier: Apache-2.0
#include "simulator/bbp_hunt/traffic.hpp"

#include "billboard/bbp.h"
#include "billboard/boards/layout.hpp"
#include "billboard/errors.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace simulator::bbp {

using billboard::Deadline;
using billboard::Endpoint;

namespace {

constexpr std::size_t kTellingBytes = 8;

/// The codes that any call may give at any time; others say that something is broken.
bool is_expected(int code) {
    return code >= 0 || code == BBP_EAGAIN || code == BBP_ETIMEDOUT || code == BBP_EPEER;
}

}  // namespace

/// A rank's incarnation, as its functions see it.
struct Traffic::Me {
    rmem::sim::Process& process;
    Endpoint& endpoint;
    rmem::Random random;
    unsigned rank;
    unsigned incarnation;

    Deadline soon() {
        if (random.one_in(2)) return Deadline::now();
        const std::int64_t ns = random.between(1, 200 * kMicrosecond);
        return endpoint.deadline_in(ns);
    }
    int somebody() { return static_cast<int>(random.below(Scenario::kRanks)); }
};

Traffic::Traffic(const Scenario& scenario, Ledger& ledger, Findings& findings, OpenEndpoint open)
    : scenario_(scenario),
      ledger_(ledger),
      findings_(findings),
      open_(std::move(open)),
      partition_(scenario.settings.board.data_bytes) {
    for (auto& buffer : in_) buffer.resize(4 * partition_);
    for (auto& buffer : out_) buffer.resize(4 * partition_);
}

void Traffic::run(rmem::sim::Process& process) {
    const unsigned rank = process.rank();
    ledger_.starts(rank);
    Endpoint& endpoint = process.keep(open_());
    Me me{process, endpoint,
          rmem::Random(scenario_.seed * 1009 + rank * 31 + process.incarnation()), rank,
          process.incarnation()};
    // Faults begin with the messages, and a rank whose words of joining are lost never joins.
    ++opened_;
    while (scenario_.loses && opened_ < Scenario::kRanks) process.sleep(kMicrosecond);
    const std::size_t buffers = free_buffers(me);
    while (!enough()) act(me);
    while (ranks_[rank].barriers < barriers_due()) barrier(me);
    settle(me);
    check_buffers(me, buffers);
    ++finished_;
    // No rank leaves while another may still need an answer.
    while (!enough() || finished_ < Scenario::kRanks) {
        unsigned alive = 0;
        for (unsigned r = 0; r < Scenario::kRanks; ++r) alive += ledger_.is_alive(r) ? 1U : 0U;
        if (enough() && finished_ >= alive) break;
        receive(me, true);
    }
}

bool Traffic::enough() const {
    return ledger_.posted() >= scenario_.messages && !more_to_come();
}

/// Where nobody dies and nothing is lost, all meet after a number of messages. Not by messages, for
/// which there may be no buffer while nobody reads.
unsigned Traffic::barriers_due() const {
    if (scenario_.ends || scenario_.loses) return 0;
    if (scenario_.settings.barrier != billboard::BarrierKind::arrival) return 0;
    return static_cast<unsigned>(std::min<std::uint64_t>(ledger_.posted(), scenario_.messages)) /
           kMessagesABarrier;
}

void Traffic::barrier(Me& me) {
    const unsigned number = ++ranks_[me.rank].barriers;
    if (const int code = me.endpoint.barrier(); code != BBP_OK) note_error(me, -1, code, "barrier");
    for (unsigned r = 0; r < Scenario::kRanks; ++r) {
        if (ranks_.at(r).barriers >= number) continue;
        findings_.violate(fmt::format("rank {} passed barrier {} before rank {} had come to it",
                                      me.rank, number, r));
    }
}

void Traffic::act(Me& me) {
    ledger_.calls(me.rank);
    if (ranks_[me.rank].barriers < barriers_due()) return barrier(me);
    const bool starved = me.process.now_ns() < ranks_[me.rank].starved_until_ns;
    switch (me.random.below(12)) {
        case 0:
        case 1:
        case 2:
        case 3: return send(me);
        case 4: return multicast(me);
        case 5: return compose(me);
        case 6: return me.process.sleep(me.random.between(1, 20 * kMicrosecond));
        case 7: return starved ? send(me) : view(me);
        case 8: return look(me);
        default: return starved ? me.process.sleep(kMicrosecond) : receive(me, false);
    }
}

// ---- Sending

/// Mostly short; sometimes as large as a partition, or larger. Where messages may end with their
/// sender or receiver, they are long enough to tell them apart.
std::size_t Traffic::some_size(Me& me) const {
    std::size_t size = 0;
    switch (me.random.below(16)) {
        case 0: break;
        case 1: size = me.random.below(partition_ / 2); break;
        case 2: size = me.random.below(partition_) + 1; break;
        case 3: size = me.random.one_in(8) ? me.random.below(3 * partition_) : 4; break;
        default: size = me.random.below(100);
    }
    return scenario_.ends ? std::max(size, kTellingBytes) : size;
}

void Traffic::posted(Me& me, std::span<const int> dests, std::uint64_t number, int code) {
    ledger_.ends(me.rank, dests, number, code);
    if (code == BBP_OK) on_posted();
}

void Traffic::send(Me& me) {
    const int dest = me.somebody();
    const Deadline deadline = me.soon();
    const std::size_t size = some_size(me);
    const std::uint64_t number = ledger_.next_number(me.rank);
    const std::span bytes(out_[me.rank].data(), size);
    Ledger::fill(bytes, me.rank, me.incarnation, number);
    ledger_.begins(me.rank, {&dest, 1}, number, size);
    const int code = me.endpoint.send(dest, bytes.data(), size, deadline);
    posted(me, {&dest, 1}, number, code);
    if (code == BBP_OK && size > partition_) findings_.cover(CoverageMark::in_parts);
    // A try of a message that needs several parts is refused.
    if (code != BBP_ESIZE || size <= partition_) note_error(me, dest, code, "send");
}

void Traffic::multicast(Me& me) {
    std::array<int, Scenario::kRanks> dests{};
    std::size_t count = 0;
    const std::uint64_t chosen = me.random.below(1U << Scenario::kRanks);
    for (unsigned r = 0; r < Scenario::kRanks; ++r) {
        if ((chosen >> r & 1U) != 0) dests.at(count++) = static_cast<int>(r);
    }
    const std::span<const int> list(dests.data(), count);
    const Deadline deadline = me.soon();
    const std::size_t size = std::min(some_size(me), partition_);
    const std::uint64_t number = ledger_.next_number(me.rank);
    const std::span bytes(out_[me.rank].data(), size);
    Ledger::fill(bytes, me.rank, me.incarnation, number);
    ledger_.begins(me.rank, list, number, size);
    const int code = me.endpoint.mcast(list, bytes.data(), size, deadline);
    posted(me, list, number, code);
    if (code == BBP_OK && count > 1) findings_.cover(CoverageMark::multicast);
    if (code == BBP_EPEER) {
        ledger_.is_told_of_some(me.rank, list);
    } else {
        note_error(me, -1, code, "multicast");
    }
}

void Traffic::compose(Me& me) {
    const std::size_t size = std::min(some_size(me), partition_ / 2);
    void* place = nullptr;
    if (me.endpoint.compose(size, &place) != BBP_OK) return;
    if (me.random.one_in(8)) {
        me.endpoint.discard(place);
        return;
    }
    const int dest = me.somebody();
    const std::uint64_t number = ledger_.next_number(me.rank);
    Ledger::fill({static_cast<std::byte*>(place), size}, me.rank, me.incarnation, number);
    ledger_.begins(me.rank, {&dest, 1}, number, size);
    const int code = me.endpoint.post({&dest, 1}, place, size, me.soon());
    posted(me, {&dest, 1}, number, code);
    if (code == BBP_EAGAIN || code == BBP_ETIMEDOUT) me.endpoint.discard(place);
    note_error(me, dest, code, "post");
}

// ---- Receiving

void Traffic::receive(Me& me, bool patient) {
    ledger_.calls(me.rank);
    const bool any = patient || me.random.one_in(2);
    const int source = any ? BBP_ANY : me.somebody();
    const Deadline deadline = patient ? me.endpoint.deadline_in(50 * kMicrosecond) : me.soon();
    auto& buffer = in_[me.rank];
    std::size_t length = 0;
    const int from = me.endpoint.recv(source, buffer.data(), buffer.size(), &length, deadline);
    if (from >= 0) {
        ledger_.receives(me.rank, static_cast<unsigned>(from), source != BBP_ANY,
                         {buffer.data(), length});
    } else {
        note_error(me, source, from, "receive");
        if (patient && from == BBP_EPEER) me.process.sleep(10 * kMicrosecond);
    }
}

void Traffic::view(Me& me) {
    const int source = me.random.one_in(2) ? BBP_ANY : me.somebody();
    const void* data = nullptr;
    std::size_t length = 0;
    const int from = me.endpoint.view(source, &data, &length, me.soon());
    if (from == BBP_ESIZE) return;  // in parts: to be received
    if (from < 0) return note_error(me, source, from, "view");
    if (me.random.one_in(4)) me.process.sleep(me.random.between(1, 5 * kMicrosecond));
    ledger_.receives(me.rank, static_cast<unsigned>(from), source != BBP_ANY,
                     {static_cast<const std::byte*>(data), length});
    me.endpoint.release(data);
}

void Traffic::look(Me& me) {
    const int source = me.random.one_in(2) ? BBP_ANY : me.somebody();
    std::size_t length = 0;
    const int found =
        me.random.one_in(2) ? me.endpoint.available(source) : me.endpoint.probe(source, &length);
    note_error(me, source, found, "probe");
}

void Traffic::note_error(Me& me, int peer, int code, const char* call) {
    if (code == BBP_EPEER && peer >= 0) {
        ledger_.is_told(me.rank, static_cast<unsigned>(peer));
    } else if (code == BBP_EAGAIN || code == BBP_ETIMEDOUT) {
        if (peer >= 0 && call[0] == 's') findings_.cover(CoverageMark::send_waited);
    } else if (!is_expected(code)) {
        ledger_.complain_of(me.rank,
                            fmt::format("{} said {}: {}", call, code, billboard::last_error()));
    }
}

// ---- The end

void Traffic::settle(Me& me) {
    if (settle_until_ns_ == 0) settle_until_ns_ = me.process.now_ns() + kSettleNs;
    while (!ledger_.is_settled() && me.process.now_ns() < settle_until_ns_) receive(me, true);
}

/// How many messages without bytes can be composed at once.
std::size_t Traffic::free_buffers(Me& me) {
    std::array<void*, billboard::kBuffers> places{};
    std::size_t got = 0;
    while (got < places.size() && me.endpoint.compose(0, &places.at(got)) == BBP_OK) ++got;
    for (std::size_t i = 0; i < got; ++i) me.endpoint.discard(places.at(i));
    return got;
}

/// All its buffers are free again once everybody has received what it sent.
void Traffic::check_buffers(Me& me, std::size_t buffers) {
    if (ledger_.any_losses() || ledger_.any_deaths()) return;
    std::size_t free = 0;
    for (int looks = 0; looks < 100 && free < buffers; ++looks) {  // answers may be under way
        receive(me, true);
        free = free_buffers(me);
    }
    if (free == buffers) return;
    findings_.violate(fmt::format("rank {} has {} buffers free of {}, though all is received",
                                  me.rank, free, buffers));
}

}  // namespace simulator::bbp
