// SPDX-License-Identifier: Apache-2.0
// The Go-Back-N layer: what carries it out (ports/dp/go_back_n.hpp decides).
#include "ports/dp/service.hpp"

#include <algorithm>
#include <cerrno>

namespace ports::dp {

namespace {

using billboard::Deadline;

/// Always short: what is due by the clock is looked after between them.
constexpr std::int64_t kSliceNs = billboard::Slices::kShortestNs;
constexpr billboard::SliceLengths kShortSlices{kSliceNs, kSliceNs, kSliceNs};

std::uint32_t edge(unsigned nid, unsigned dpid) {
    return nid | dpid << 16;
}

}  // namespace

bool Service::is_idle(const Endpoint& e) noexcept {
    const auto idle = [](const Target& t) { return !t.sender || t.sender->is_idle(); };
    return std::all_of(e.targets.begin(), e.targets.end(), idle) &&
           std::all_of(e.leaving.begin(), e.leaving.end(), idle);
}

/// A negative errno if a receiver has been given up.
int Service::broken(const Endpoint& e) noexcept {
    const auto dead = [](const Target& t) { return t.is_dead; };
    if (std::any_of(e.targets.begin(), e.targets.end(), dead)) return -EHOSTDOWN;
    const auto broken = [](const Target& t) { return t.sender && t.sender->is_broken(); };
    return std::any_of(e.targets.begin(), e.targets.end(), broken) ? -ETIMEDOUT : 0;
}

/// Holds, others come in, until `done` is not 0: its result. -ETIMEDOUT: not in time.
int Service::wait_until(Held& held, Endpoint& e, std::int64_t timeout_ns,
                        const std::function<int()>& done) {
    const Deadline deadline = ring()->deadline_in(timeout_ns);
    for (billboard::Slices slices(held, *ring(), Deadline::never(), kShortSlices);; slices.pass()) {
        if (const int result = done(); result != 0) return result;
        if (e.has_ended) return -EBADF;
        if (deadline.passed(now_ns())) return -ETIMEDOUT;
        const int from = receive_one(slices.deadline());
        if (from == BBP_EPEER) return -EHOSTDOWN;
        if (from >= 0) receive_all();
        tick();
        offer_due();
    }
}

int Service::set_reliable(Endpoint& e, bool on) {
    const auto held = process_->hold();
    if (on == e.is_reliable) return 0;
    if (!is_idle(e)) return -EBUSY;
    if (on && e.receivers.empty()) ++reliable_;
    if (!on && e.receivers.empty()) --reliable_;
    e.is_reliable = on;
    for (Target& target : e.targets) {
        target.sender = on ? std::make_unique<GoBackNSender>(++generation_) : nullptr;
    }
    e.set_raw();
    return 0;
}

int Service::drain(Endpoint& e, std::int64_t timeout_ns) {
    auto held = process_->hold();
    if (is_idle(e)) return 0;
    const int result = wait_until(held, e, timeout_ns, [&] {
        const int error = broken(e);
        return error != 0 ? error : is_idle(e) ? 1 : 0;
    });
    return std::min(result, 0);
}

int Service::send_reliably(Held& held, Endpoint& e, int fd, const void* message,
                           std::size_t length) {
    const auto* bytes = static_cast<const std::byte*>(message);
    const auto has_room = [](const Target& t) { return t.sender->has_room(); };
    const auto all_have_room = [&] {
        if (const int error = broken(e); error != 0) return error;
        return std::all_of(e.targets.begin(), e.targets.end(), has_room) ? 1 : 0;
    };
    int room = all_have_room();
    if (room == 0) {
        if (fd >= 0 && is_nonblocking(e, fd)) {
            receive_all();
            tick();
            room = all_have_room();
            if (room == 0) return -EAGAIN;
        } else {
            room = wait_until(held, e, rmem::kNever, all_have_room);
        }
    }
    if (room < 0) return room;
    for (Target& target : e.targets) {
        target.sender->push({bytes, bytes + length});
        pump(e, target);
    }
    return 0;
}

/// Gives the network what it takes.
void Service::pump(Endpoint& e, Target& target) {
    GoBackNSender& sender = *target.sender;
    const int dest = static_cast<int>(target.nid);
    while (const std::vector<std::byte>* message = target.is_dead ? nullptr : sender.to_send()) {
        const std::array<std::uint64_t, 2> lead{
            Header{target.nid, target.dpid, message->size(), Kind::reliable}.word(),
            Label{static_cast<std::uint16_t>(e.dpid()), sender.generation(),
                  sender.sequence_to_send()}
                .word()};
        Outgoing out(ring(), {&dest, 1}, std::as_bytes(std::span(lead)), *message);
        int result = out.post(Deadline::now());
        if (result == BBP_EPEER)
            result = out.post(Deadline::now());  // one that is back is told of once
        target.is_dead = result == BBP_EPEER;
        if (result != BBP_OK) return;
        RMEM_MARK("dp.reliable-posted");
        if (sender.sent(now_ns())) e.count(Counter::again);
    }
}

void Service::on_reliable(unsigned from, Endpoint& e, const Frame& frame) {
    const std::uint32_t source = edge(from, frame.label.source);
    if (e.receivers.empty() && !e.is_reliable) ++reliable_;
    GoBackNReceiver& receiver = e.receivers[source];
    switch (receiver.on_message(frame.label.generation, frame.label.sequence)) {
        case GoBackNReceiver::Verdict::deliver:
            if (deliver(e, frame.container, frame.header.length)) {
                receiver.delivered();
            } else {
                receiver.refused();
            }
            break;
        default: e.count(Counter::out_of_order);
    }
    if (receiver.owes_ack_now()) acknowledge(e, source, receiver);
}

void Service::acknowledge(Endpoint& e, std::uint32_t source, GoBackNReceiver& receiver) {
    const int dest = static_cast<int>(source & 0xffff);
    const std::array<std::uint64_t, 3> words{
        Header{source & 0xffff, source >> 16, 1, Kind::ack}.word(),
        Label{static_cast<std::uint16_t>(e.dpid()), receiver.generation(), receiver.awaited()}
            .word(),
        receiver.gap() ? 1U : 0U};
    const int result = ring().send(dest, words.data(), sizeof words, Deadline::now());
    RMEM_MARK("dp.acknowledged");
    if (result != BBP_EAGAIN) receiver.acknowledged();  // a dead sender awaits no answer
}

void Service::on_ack(unsigned from, Endpoint& e, const Frame& frame) {
    if (frame.header.length != 1) {
        count(Counter::dropped_corrupt);
        return;
    }
    const bool gap = frame.container[0] != std::byte{0};
    for (std::vector<Target>* edges : {&e.targets, &e.leaving}) {
        for (Target& target : *edges) {
            if (!target.sender || target.nid != from || target.dpid != frame.label.source ||
                target.sender->generation() != frame.label.generation) {
                continue;
            }
            target.sender->on_ack(frame.label.sequence, gap, now_ns());
            pump(e, target);
            return;
        }
    }
}

/// What is due by the clock or was left undone.
void Service::tick() noexcept {
    if (reliable_ == 0) return;
    const std::int64_t now = now_ns();
    for (auto& [id, endpoint] : endpoints_) tick(*endpoint, now);
}

void Service::tick(Endpoint& e, std::int64_t now) {
    for (auto& [source, receiver] : e.receivers) {
        // What was refused may come again once a quarter of the pool is free.
        if (receiver.is_blocked() && e.pool->has_room(e.pool->size() / 4))
            receiver.has_room_again();
        if (receiver.owes_ack() || receiver.gap()) acknowledge(e, source, receiver);
    }
    for (std::vector<Target>* edges : {&e.targets, &e.leaving}) {
        for (Target& target : *edges) {
            if (!target.sender || target.is_dead) continue;
            if (target.sender->on_tick(now)) e.count(Counter::timeouts);
            pump(e, target);
        }
    }
    std::erase_if(e.leaving, [](const Target& t) {
        return t.is_dead || t.sender->is_idle() || t.sender->is_broken();
    });
}

}  // namespace ports::dp
