// SPDX-License-Identifier: Apache-2.0
#include "ports/fm/fm1.hpp"

#include "billboard/errors.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <optional>

namespace ports::fm {

using billboard::fail;
using billboard::Slices;

namespace {

int failed(int error, int code, std::string sentence) {
    fail(code, std::move(sentence));
    return error;
}

}  // namespace

Fm1::Fm1(Network& network, Limits limits)
    : network_(network),
      limits_(limits),
      slots_(std::make_unique<Slot[]>(limits.slots)),
      peers_(network.nodes()),
      mask_(std::bit_ceil(limits.queue) - 1),
      queue_(std::make_unique_for_overwrite<Entry[]>(mask_ + std::size_t{1})) {
    for (unsigned i = 0; i < limits.slots; ++i)
        slots_[i].next = i + 1 == limits.slots ? kNone : static_cast<Index>(i + 1);
    due_.reserve(network.nodes());
}

// ---- Sending

int Fm1::check(unsigned node, const void* handler, const void* payload, std::size_t size) const {
    if (node >= peers_.size()) {
        return failed(EINVAL, BBP_ERANK,
                      fmt::format("there is no node {}; this ring has 0 to {}",
                                  static_cast<int>(node), peers_.size() - 1));
    }
    if (size > kFm1Payload) {
        return failed(
            EMSGSIZE, BBP_ESIZE,
            fmt::format(
                "a message of {} bytes is larger than a frame's {}; send it in pieces, or by "
                "FM 2.x",
                size, kFm1Payload));
    }
    if (payload == nullptr && size != 0)
        return failed(EINVAL, BBP_EINVAL,
                      fmt::format("the message is a null pointer with size {}", size));
    const auto place = network_.modules().find(handler);
    if (!place.is_known()) {
        return failed(
            EINVAL, BBP_EINVAL,
            "the handler is no function of the program, or of a library that it had loaded when "
            "FM_initialize was called");
    }
    if (network_.runs_another_binary(node, place.module)) {
        return failed(ENOEXEC, BBP_EINVAL,
                      fmt::format("node {} runs another binary{}, in which the handler is not "
                                  "where it is here; start "
                                  "the same program on all nodes",
                                  node, place.module == 0 ? "" : " or other libraries"));
    }
    return 0;
}

int Fm1::send(billboard::ProcessEndpoint::Held& held, unsigned node, Kind kind, const void* handler,
              const void* payload, std::size_t size) {
    if (const int bad = check(node, handler, payload, size); bad != 0) return bad;
    const Peer& p = peers_[node];
    // The billboard wakes a rank that waits for a message, and spins for one that waits for room:
    // the first is for a slot, the second for the network.
    std::optional<Slices> slices;
    for (Deadline deadline = Deadline::now();; deadline = slices->deadline()) {
        if (free_ != kNone && p.sent < limits_.to_one) {
            const int result = post_free(node, kind, handler, payload, size, deadline);
            if (result == BBP_OK) return 0;
            if (result == BBP_EPEER) return EHOSTDOWN;
            if (result != BBP_EAGAIN && result != BBP_ETIMEDOUT) return EIO;
            take_over();
        } else {
            if (await_one(deadline)) take_over();
            if (slices) network_.look_at(node);
        }
        if (!slices) network_.counts().add(Counter::sends_waiting);
        if (network_.handlers == 0) run_waiting();
        tidy();
        if (slices) {
            slices->pass();
        } else {
            slices.emplace(held, *network_.endpoint(), Deadline::never());
        }
    }
}

/// From the first free slot.
int Fm1::post_free(unsigned node, Kind kind, const void* handler, const void* payload,
                   std::size_t size, Deadline deadline) {
    Peer& p = peers_[node];
    int result = open(node, deadline);
    if (result != BBP_OK) return result;
    RMEM_CHECK(p.owed == 0 && network_.is_greeted(node));  // (F2)
    Slot& slot = slots_[free_];
    write(slot, header(kind, p.decided, network_.modules().find(handler)), payload, size);
    result = network_.heard(
        node, network_.endpoint().send(static_cast<int>(node), slot.frame, slot.size, deadline));
    if (result == BBP_OK) is_sent(p, node);
    return result;
}

/// Greets the node, and pays it back what it is owed.
int Fm1::open(unsigned node, Deadline deadline) {
    Peer& p = peers_[node];
    if (p.is_open) return BBP_OK;
    int result = network_.greet(node, deadline);
    if (result == BBP_OK) result = pay_back(node, deadline);
    // For a node that runs another binary, each handler is looked at.
    p.is_open = result == BBP_OK && !network_.runs_another_binary(node, 0) &&
                !network_.runs_another_binary(node, 1);
    return result;
}

/// Tells the slots that were returned; the last of them with the count that covers them all.
int Fm1::pay_back(unsigned node, Deadline deadline) {
    Peer& p = peers_[node];
    while (p.owed != 0) {
        std::array<std::byte, billboard::kInlineBytes> frame;
        std::array<std::uint8_t, kReturnedSlots> slots;
        std::size_t n = 0;
        for (std::size_t i = p.returned._Find_first(); i < kMaxSlots && n < slots.size();
             i = p.returned._Find_next(i)) {
            slots[n++] = static_cast<std::uint8_t>(i);
        }
        const ReturnedHeader head{Kind::returned, static_cast<std::uint8_t>(n),
                                  n == p.owed ? p.decided : p.told};
        std::memcpy(frame.data(), &head, sizeof head);
        std::memcpy(frame.data() + sizeof head, slots.data(), n);
        const int result = network_.post(node, frame.data(), sizeof head + n, deadline);
        if (result != BBP_OK) return result;
        for (std::size_t i = 0; i < n; ++i) p.returned.reset(slots[i]);
        p.owed = static_cast<std::uint16_t>(p.owed - n);
        p.told = head.ack;
    }
    return BBP_OK;
}

/// What was returned is sent again, as far as there is room now; what is returned again comes after
/// it.
void Fm1::resend() {
    List again;
    std::swap(again, returned_);
    while (again.first != kNone) {
        const Index index = take_first(again);
        Slot& slot = slots_[index];
        const unsigned node = slot.node;
        int result = open(node, Deadline::now());
        if (slot.state == State::free) continue;  // lost with its node
        if (result == BBP_OK) {
            std::memcpy(slot.frame + offsetof(Fm1Header, ack), &peers_[node].decided,
                        sizeof(std::uint16_t));
            result = network_.post(node, slot.frame, slot.size, Deadline::now());
        }
        if (result == BBP_OK) {
            enlist(peers_[node], index);
            network_.counts().add(Counter::frames_resent);
        } else if (slot.state != State::free) {
            append(returned_, index);
        }
    }
}

// ---- Decisions on frames sent

inline void Fm1::hear_of_ack(unsigned from, std::uint16_t ack) {
    if (network_.is_ahead(from)) return;  // nothing was sent to this one yet
    Peer& p = peers_[from];
    const auto more = static_cast<std::uint16_t>(ack - p.acked);
    if (more > p.sent) return network_.is_corrupt();
    for (std::uint16_t i = 0; i < more; ++i) {
        const Index index = take_first(p.frames);
        if (slots_[index].state == State::returned) {
            append(returned_, index);
            is_urgent_ = true;
        } else {
            set_free(index);
        }
    }
    p.sent = static_cast<std::uint16_t>(p.sent - more);
    p.acked = ack;
}

void Fm1::hear_of_returned(unsigned from, std::span<const std::byte> frame) {
    const auto head = read_as<ReturnedHeader>(frame.data());
    if (frame.size() != kReturnedHeader + head.count) return network_.is_corrupt();
    for (unsigned i = 0; i < head.count; ++i) {
        const auto index = std::to_integer<unsigned>(frame[kReturnedHeader + i]);
        if (index >= limits_.slots || slots_[index].state != State::sent ||
            slots_[index].node != from) {
            network_.is_corrupt();
            continue;
        }
        slots_[index].state = State::returned;
        network_.counts().add(Counter::frames_returned);
    }
    hear_of_ack(from, head.ack);
}

// ---- Receiving

/// All that has come, into the receive queue; a queue's length of frames at most. Whether there was
/// something.
bool Fm1::take_over() {
    unsigned taken = 0;
    while (taken <= limits_.queue && take_one()) ++taken;
    return taken != 0;
}

/// Whether there was one.
inline bool Fm1::take_one() {
    Entry& at = landing();
    std::size_t size = 0;
    const int from = network_.take_at_once(at.frame, size);
    if (from < 0) return from != BBP_EAGAIN && await_one(Deadline::now());
    const auto kind = static_cast<Kind>(at.frame[0]);
    if (size >= kFm1Header && (kind == Kind::four || kind == Kind::buffer)) [[likely]] {
        take_data(at, static_cast<unsigned>(from), size);
    } else {
        take_other(at, static_cast<unsigned>(from), {at.frame, size});
    }
    return true;
}

/// The same, however it comes; and waits for it.
bool Fm1::await_one(Deadline deadline) {
    Entry& at = landing();
    std::span<const std::byte> frame;
    const int from = network_.take(at.frame, frame, deadline);
    if (from < 0) return from == BBP_ECORRUPT;
    take_other(at, static_cast<unsigned>(from), frame);
    return true;
}

void Fm1::take_other(const Entry& landing, unsigned from, std::span<const std::byte> frame) {
    network_.deliver(from, frame);
    network_.endpoint().release(landing.frame, frame);
}

void Fm1::take_in(unsigned from, std::span<const std::byte> frame) {
    if (static_cast<Kind>(frame[0]) == Kind::returned) {
        if (frame.size() < kReturnedHeader) return network_.is_corrupt();
        return hear_of_returned(from, frame);
    }
    if (frame.size() < kFm1Header || frame.size() > kFm1Frame) return network_.is_corrupt();
    Entry& at = landing();
    if (frame.data() != at.frame) std::memcpy(at.frame, frame.data(), frame.size());
    take_data(at, from, frame.size());
}

/// The data frame in the landing place.
inline void Fm1::take_data(Entry& landing, unsigned from, std::size_t size) {
    if (!decide(landing, from, size)) [[unlikely]]
        return;
    RMEM_CHECK_IF(false, has_place() && &landing == &entry(tail_));  // (F3)
    ++tail_;
    landing.size = static_cast<std::uint32_t>(size);
    landing.from = static_cast<std::uint16_t>(from);
    landing.done = false;
}

/// Accepted, or returned. Whether it is accepted.
inline bool Fm1::decide(Entry& landing, unsigned from, std::size_t size) {
    const auto head = read_as<Fm1Header>(landing.frame);
    hear_of_ack(from, head.ack);
    if (head.kind == Kind::four && size != kFm1Header + 4 * sizeof(int)) [[unlikely]] {
        network_.is_corrupt();
        return false;
    }
    Peer& p = peers_[from];
    if (p.told == p.decided) p.waited = 0;
    if (!p.is_due) [[unlikely]] {
        p.is_due = true;
        due_.push_back(static_cast<Index>(from));
    }
    ++p.decided;
    if (static_cast<std::uint16_t>(p.decided - p.told) >= p.ack_every) is_urgent_ = true;
    if (drops_) [[unlikely]]
        return false;
    return &landing != &spare_ || refuse(from, head.slot);
}

/// Returns the frame of that slot. False.
bool Fm1::refuse(unsigned from, unsigned slot) {
    Peer& p = peers_[from];
    if (p.returned[slot]) {
        network_.is_corrupt();
        return false;
    }
    p.returned.set(slot);
    ++p.owed;
    p.is_open = false;
    is_urgent_ = true;
    network_.counts().add(Counter::frames_rejected);
    return false;
}

// ---- Handlers

int Fm1::extract() {
    if (!take_over() && waiting() == 0) {
        const bool is_time = network_.found_nothing();
        if (is_time) tidy();
        if (network_.may_look_again()) {
            if (is_time) await_one(Deadline::now());
            take_over();
        }
    }
    const int processed = run_waiting();
    if (processed != 0) network_.found_something();
    if (is_urgent_ || ++busy_calls_ % kTidyEvery == 0) [[unlikely]]
        tidy();
    return processed;
}

/// Those that were there at the beginning: what their handlers take over waits for its turn.
inline int Fm1::run_waiting() {
    int processed = 0;
    for (const std::uint32_t end = tail_; static_cast<std::int32_t>(end - next_) > 0; ++processed)
        run(entry(next_++));
    if (head_ == tail_) head_ = next_ = tail_ = 0;
    return processed;
}

inline void Fm1::run(Entry& e) {
    /// A nested extract may be done earlier than the handlers around it.
    struct Done {
        Fm1& fm1;
        Entry& e;
        ~Done() {
            e.done = true;
            while (fm1.head_ != fm1.next_ && fm1.entry(fm1.head_).done) ++fm1.head_;
        }
    } const done{*this, e};
    const auto head = read_as<Fm1Header>(e.frame);
    const void* const handler = network_.runs_another_binary(e.from, head.module)
                                    ? nullptr
                                    : network_.modules().at({head.module, head.offset});
    if (handler == nullptr) [[unlikely]] {
        return say_invalid(e.from, head);
    }
    const Handling handling(network_);
    std::byte* const payload = e.frame + kFm1Header;
    if (head.kind == Kind::four) {
        reinterpret_cast<void (*)(int, int, int, int)>(reinterpret_cast<std::uintptr_t>(handler))(
            read_as<int>(payload), read_as<int>(payload + 4), read_as<int>(payload + 8),
            read_as<int>(payload + 12));
    } else {
        reinterpret_cast<void (*)(void*, int)>(reinterpret_cast<std::uintptr_t>(handler))(
            payload, static_cast<int>(e.size - kFm1Header));
    }
}

void Fm1::say_invalid(unsigned from, const Fm1Header& head) {
    network_.counts().add(Counter::invalid_handlers);
    network_.say(fmt::format("Received invalid handler {:#x} of module {} from node {}",
                             head.offset, head.module, from));
}

// ---- What is left to do at the end of a call

void Fm1::tidy() {
    is_urgent_ = false;
    if (!due_.empty()) tell_due();
    if (returned_.first == kNone) [[likely]]
        return;
    resend();
    RMEM_CHECK(is_each_slot_in_one_list());
}

/// Tells decisions in a frame of their own where enough are due, or where nothing has carried them
/// for long.
void Fm1::tell_due() {
    std::erase_if(due_, [&](Index node) {
        Peer& p = peers_[node];
        const auto untold = static_cast<std::uint16_t>(p.decided - p.told);
        if (p.owed == 0 && untold != 0 && untold < p.ack_every && ++p.waited < kAckAfter)
            return false;
        if (p.owed != 0 || untold != 0) {
            if (!tell(node)) return false;
        }
        p.is_due = false;
        return true;
    });
}

/// False: no room now.
bool Fm1::tell(unsigned node) {
    Peer& p = peers_[node];
    if (p.owed != 0) return open(node, Deadline::now()) != BBP_EAGAIN;
    const ReturnedHeader ack{Kind::returned, 0, p.decided};
    const int result = network_.post(node, &ack, sizeof ack, Deadline::now());
    if (result == BBP_OK) {
        p.told = ack.ack;
        network_.counts().add(Counter::acks_alone);
    }
    return result != BBP_EAGAIN;
}

// ---- Incarnations of nodes

unsigned Fm1::forget(unsigned node, bool all) {
    Peer& p = peers_[node];
    unsigned lost = 0;
    const auto lose = [&](Index index) {
        set_free(index);
        ++lost;
    };
    while (p.frames.first != kNone) lose(take_first(p.frames));
    List others;
    while (returned_.first != kNone) {
        const Index index = take_first(returned_);
        slots_[index].node == node ? lose(index) : append(others, index);
    }
    returned_ = others;
    p.sent = 0;
    p.acked = kFirstCount;
    p.is_open = false;
    network_.counts().add(Counter::frames_lost, lost);
    if (all) meet(node, {});
    return lost;
}

/// (F1), and that no slot is in none.
bool Fm1::is_each_slot_in_one_list() const {
    std::vector<unsigned> times(limits_.slots);
    bool fits = true;
    const auto walk = [&](Index first, auto&& belongs) {
        for (Index i = first; i != kNone && fits; i = slots_[i].next)
            fits = i < limits_.slots && ++times[i] == 1 && belongs(slots_[i]);
    };
    walk(free_, [](const Slot& s) { return s.state == State::free; });
    walk(returned_.first, [](const Slot& s) { return s.state == State::returned; });
    for (std::size_t node = 0; node < peers_.size(); ++node) {
        walk(peers_[node].frames.first,
             [&](const Slot& s) { return s.state != State::free && s.node == node; });
    }
    return fits && std::find(times.begin(), times.end(), 0U) == times.end();
}

void Fm1::meet(unsigned node, const Hello& hello) {
    Peer& p = peers_[node];
    p.decided = p.told = kFirstCount;
    p.owed = 0;
    p.returned.reset();
    p.is_open = false;
    p.ack_every = std::clamp<std::uint16_t>(hello.window / 4, 1, kAckEvery);
}

unsigned Fm1::settle(Deadline deadline) {
    drops_ = true;
    unsigned undecided = 0;
    for (bool is_last = false;; is_last = deadline.passed(rmem::program_now_ns())) {
        take_over();
        tidy();
        undecided = 0;
        for (unsigned node = 0; node < peers_.size(); ++node) {
            if (peers_[node].sent != 0) network_.look_at(node);
            undecided += peers_[node].sent;
        }
        for (Index i = returned_.first; i != kNone; i = slots_[i].next) ++undecided;
        if (undecided == 0 || is_last) break;
        await_one(network_.endpoint()->deadline_in(Slices::kShortestNs));
    }
    RMEM_CHECK(is_each_slot_in_one_list());
    // What was accepted is told; otherwise its senders would think it lost.
    for (const Index node : due_) {
        if (peers_[node].decided != peers_[node].told || peers_[node].owed != 0) tell(node);
    }
    return undecided;
}

}  // namespace ports::fm
