// SPDX-License-Identifier: Apache-2.0
// Sending: frames, waiting for room, what is owed.
#include "ports/gamma/process.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>

namespace ports::gamma {

namespace {

/// Of a wait for room: what comes meanwhile is to be taken in soon.
constexpr billboard::SliceLengths kRoomSlices{.longest_ns =
                                                  billboard::SliceLengths{}.longest_in_company_ns};
constexpr int kIncarnationOver = 2;  ///< no code: the receiver has come back during the message

}  // namespace

void Pieces::copy(std::byte* to, std::size_t offset, std::size_t bytes) const noexcept {
    const std::size_t of_first = offset < first_bytes ? std::min(bytes, first_bytes - offset) : 0;
    if (of_first != 0)
        rmem::copy_bytes(to, static_cast<const std::byte*>(first) + offset, of_first);
    if (bytes == of_first) return;
    rmem::copy_bytes(to + of_first,
                     static_cast<const std::byte*>(second) + (offset + of_first - first_bytes),
                     bytes - of_first);
}

/// One call of gamma_send. The port may be bound again meanwhile, by a handler: what it was bound
/// to then counts.
struct Process::Outgoing {
    unsigned port;
    Service service;
    Out out;
    std::uint32_t incarnations = 0;  ///< of the receiver, when it began
    bool met_dead = false;

    bool is_to_all() const noexcept { return out.dest == kToAll; }
};

std::span<const int> Process::members(const Out& out) const noexcept {
    return others_[out.par_pid];
}

int Process::send(unsigned port, const Pieces& message, Service service) {
    Held held = hold();
    if (port <= kLastPort && message.size() <= kHeadPayload && detours_ == 0) [[likely]] {
        Port& p = ports_[port];
        if (p.out.dest >= 0 && message.second_bytes == 0 && !message.has_holes()) [[likely]] {
            std::uint64_t frame[1 + rmem::kShortBytes / sizeof(std::uint64_t)];
            frame[0] = both_words(p.out.header, *p.out.number);
            rmem::copy_short(frame + 1, message.first, message.first_bytes);
            const std::size_t bytes = kHeaderBytes + message.first_bytes;
            const int result = endpoint_.send_at_once(p.out.dest, frame, bytes);
            if (result == BBP_OK) [[likely]] {
                ++*p.out.number;
                pause_.sent();
                return BBP_OK;
            }
            // Said once of an incarnation that is over: trying again could reach the next one.
            if (result == BBP_EPEER) return told_gone(port, p.out.dest);
        }
    }
    return send_slowly(held, port, message, service);
}

/// Whether it can be sent at all: BBP_OK, or why not.
int Process::check_message(unsigned port, const Pieces& message, Service service) {
    if (!is_bound(port)) {
        return fail(GAMMA_EPORT,
                    fmt::format("port {} is not bound; bind it by gamma_set_active_port, "
                                "or gamma_setport, to where its messages go",
                                port));
    }
    if (message.has_holes())
        return fail(GAMMA_EINVAL,
                    "the message, or a piece of it, is a null pointer with a length that is not 0");
    if (message.size() > kMaxMessageBytes) {
        return fail(GAMMA_ESIZE, fmt::format("a message of {} bytes is larger than the {} that can "
                                             "be sent; send it in pieces",
                                             message.size(), kMaxMessageBytes));
    }
    if (service == Service::immediate && message.size() > frame_payload_) {
        return fail(GAMMA_ESIZE,
                    fmt::format("a message of {} bytes is larger than a frame's {}, and cannot be "
                                "sent without waiting; send it in pieces",
                                message.size(), frame_payload_));
    }
    return BBP_OK;
}

int Process::send_slowly(Held& held, unsigned port, const Pieces& message, Service service) {
    if (const int refused = check_message(port, message, service); refused != BBP_OK)
        return refused;
    pump();
    Outgoing out{port, service, ports_[port].out};
    if (out.is_to_all() && members(out.out).empty()) return BBP_OK;
    if (!out.is_to_all()) {
        Peer& peer = peers_[static_cast<unsigned>(out.out.dest)];
        if (peer.is_returned) return told_gone(port, out.out.dest);
        out.incarnations = peer.incarnations;
    }
    if (is_in_parts(out.out.number)) {
        if (service == Service::immediate) return GAMMA_EAGAIN;
        if (depth_ != 0 || atomic_ != 0) {
            return fail(
                GAMMA_EAGAIN,
                fmt::format("a longer message of this process to the same port is under way, "
                            "and port {}'s would come into the middle of it; send it later, or to "
                            "another port",
                            port));
        }
        const int waited = await_stream(held, out.out.number);
        if (waited != BBP_OK) return waited;
    }
    const std::size_t size = message.size();
    if (size > frame_payload_) return send_parts(held, out, message);
    const int result = send_frame(held, out, kHeaderBytes, message, 0, size);
    if (result == BBP_EPEER || (result == BBP_OK && out.met_dead))
        return told_gone(port, out.out.dest);
    if (result != BBP_EAGAIN || service == Service::immediate) return result;
    if (service == Service::best_effort) {
        lose(out, 1);
        return BBP_OK;
    }
    return fail(GAMMA_EAGAIN,
                fmt::format("there is no room for port {}'s message, and its receiver "
                            "may be waiting for this process to take in messages; send "
                            "it when no handler runs, outside of gamma_atomic",
                            port));
}

/// A message longer than a frame: each frame goes out as soon as it is filled.
int Process::send_parts(Held& held, Outgoing& out, const Pieces& message) {
    struct UnderWay {
        UnderWay(Process& p, const std::uint32_t* s) : process(p), stream(s) {
            RMEM_CHECK(!process.is_in_parts(stream));  // (G4)
            process.in_parts_.push_back(stream);
            process.count_detours();
        }
        ~UnderWay() {
            process.in_parts_.erase(
                std::find(process.in_parts_.begin(), process.in_parts_.end(), stream));
            process.count_detours();
        }
        Process& process;
        const std::uint32_t* stream;
    };
    const UnderWay under_way(*this, out.out.number);
    const std::size_t size = message.size();
    for (std::size_t offset = 0; offset < size; offset += frame_payload_) {
        const std::size_t bytes = std::min(frame_payload_, size - offset);
        const int result = send_frame(held, out, kPartsHeaderBytes, message, offset, bytes);
        if (result == BBP_OK) continue;
        if (result == BBP_EPEER) return told_gone(out.port, out.out.dest);
        if (result != BBP_EAGAIN) return result;
        const bool is_best_effort = out.service == Service::best_effort;
        if (offset == 0 && !is_best_effort) {
            return fail(GAMMA_EAGAIN,
                        "there is no room for the message, and messages cannot be "
                        "taken in meanwhile; send it when no handler runs");
        }
        lose(out,
             static_cast<std::uint32_t>((size - offset + frame_payload_ - 1) / frame_payload_));
        if (is_best_effort) return BBP_OK;
        return fail(GAMMA_ELOST,
                    "there was no room for the rest of the message, and messages could "
                    "not be taken in meanwhile; the receiver's error handler is told");
    }
    return out.met_dead ? told_gone(out.port, out.out.dest) : BBP_OK;
}

/// BBP_EAGAIN: it has found no room for too long, and nothing was sent. BBP_EPEER: the receiver is
/// dead.
int Process::send_frame(Held& held, Outgoing& out, std::size_t header_bytes, const Pieces& message,
                        std::size_t offset, std::size_t bytes) {
    const std::size_t length = header_bytes + bytes;
    const bool in_parts = header_bytes == kPartsHeaderBytes;
    const auto write_header = [&](std::byte* frame) {
        const std::uint64_t words =
            both_words(out.out.header | (in_parts ? unsigned{kParts} << 4 : 0U), *out.out.number);
        std::memcpy(frame, &words, sizeof words);
        if (!in_parts) return;
        put_word(frame, 8, static_cast<std::uint32_t>(message.size()));
        put_word(frame, 12, static_cast<std::uint32_t>(offset));
    };
    const std::span<const int> dests =
        out.is_to_all() ? members(out.out) : std::span<const int>(&out.out.dest, 1);
    const auto is_incarnation_over = [&] {
        return !out.is_to_all() &&
               peers_[static_cast<unsigned>(out.out.dest)].incarnations != out.incarnations;
    };
    // Another thread may have begun a message in parts while this one gave way.
    const auto is_barred = [&] { return !in_parts && is_in_parts(out.out.number); };
    int result = BBP_OK;
    if (length <= endpoint_.short_bytes()) {
        alignas(8) std::byte frame[billboard::kTakenBytes];
        message.copy(frame + header_bytes, offset, bytes);
        result = wait_for_room(held, out, [&](Deadline deadline) -> int {
            if (is_incarnation_over()) return kIncarnationOver;
            if (is_barred()) return BBP_EAGAIN;
            write_header(frame);
            if (!out.is_to_all()) return endpoint_.send(out.out.dest, frame, length, deadline);
            return endpoint_.mcast(dests, frame, length, deadline);
        });
        if (result == BBP_OK && length > billboard::kInlineBytes) count(Counter::frames_sent);
    } else {
        void* composed = nullptr;
        result = wait_for_room(held, out, [&](Deadline deadline) -> int {
            if (is_incarnation_over()) return kIncarnationOver;
            if (is_barred()) return BBP_EAGAIN;
            if (composed == nullptr) {
                const int made = compose(length, composed, deadline);
                if (made != BBP_OK) return made;
                message.copy(static_cast<std::byte*>(composed) + header_bytes, offset, bytes);
            }
            write_header(static_cast<std::byte*>(composed));
            return endpoint_.post(dests, composed, length, deadline);
        });
        if (composed != nullptr && result != BBP_OK && result != BBP_EPEER)
            endpoint_->discard(composed);
        if (result == BBP_OK) count(Counter::frames_sent);
    }
    if (result == kIncarnationOver) return BBP_EPEER;
    if (out.is_to_all() && result == BBP_EAGAIN && out.service == Service::best_effort) {
        std::byte frame[kFrameBytes];
        write_header(frame);
        message.copy(frame + header_bytes, offset, bytes);
        result = broadcast_to_each(out, frame, length);
    }
    if (out.is_to_all() && result == BBP_EPEER) {
        out.met_dead = true;  // the others have got it
        result = BBP_OK;
    }
    if (result == BBP_OK) ++*out.out.number;
    return result;
}

/// Returns a buffer of the own partition; while none is free, takes in messages until the deadline.
int Process::compose(std::size_t bytes, void*& composed, Deadline deadline) {
    int result = endpoint_->compose(bytes, &composed);
    if (result != BBP_EAGAIN) return result;
    int taken = 0;
    if (!may_take_in()) {
        ::sched_yield();
    } else if (deadline.at_ns != Deadline::now().at_ns) {
        take_one(deadline, taken);
    }
    return endpoint_->compose(bytes, &composed);
}

/// Some of the group have room and some have not: these lose the frame.
int Process::broadcast_to_each(Outgoing& out, const std::byte* frame, std::size_t bytes) {
    Out next = out.out;
    std::uint32_t number_after = *out.out.number + 1;
    next.number = &number_after;
    int result = BBP_OK;
    for (const int member : members(out.out)) {
        const int sent = endpoint_.send(member, frame, bytes, Deadline::now());
        if (sent == BBP_EPEER) {
            result = BBP_EPEER;
        } else if (sent != BBP_OK) {
            owe(member, next);
            count(Counter::frames_overrun);
        }
    }
    return result;
}

/// Tries until `attempt` gives something else than BBP_EAGAIN, taking in meanwhile what comes: two
/// processes that send to each other do not wait for each other. BBP_EAGAIN: the frame's patience
/// is over.
template <class Attempt>
int Process::wait_for_room(Held& held, const Outgoing& out, Attempt&& attempt) {
    int result = attempt(Deadline::now());
    if (result != BBP_EAGAIN || out.service == Service::immediate) return result;
    count(Counter::send_waits);
    const bool is_free = depth_ == 0 && atomic_ == 0;
    Deadline end = Deadline::never();
    if (out.service == Service::best_effort) {
        const auto dests =
            out.is_to_all() ? members(out.out) : std::span<const int>(&out.out.dest, 1);
        const bool is_overrun =
            std::any_of(dests.begin(), dests.end(), [&](int d) { return owes(d); });
        end = endpoint_->deadline_in(is_overrun ? 0 : settings_.patience_ns);
    } else if (!is_free) {
        end = endpoint_->deadline_in(settings_.deadlock_ns);
    }
    bool took = false;
    for (billboard::Slices slices(held, *endpoint_, Deadline::never(), kRoomSlices);;
         slices.pass(is_free, took)) {
        took = take_in();
        result = attempt(took ? Deadline::now() : slices.deadline());
        if (result != BBP_EAGAIN && result != BBP_ETIMEDOUT) return result;
        polled();
        if (end.passed(endpoint_.now_ns())) return BBP_EAGAIN;
    }
}

// ---- Losses

/// `frames` frames are not sent; the nodes that should have got them are told when there is room.
void Process::lose(const Outgoing& out, std::uint32_t frames) {
    *out.out.number += frames;
    const auto dests = out.is_to_all() ? members(out.out) : std::span<const int>(&out.out.dest, 1);
    for (const int dest : dests) {
        owe(dest, out.out);
        count(Counter::frames_overrun, frames);
    }
}

void Process::owe(int dest, const Out& out) {
    Header header = Header::of(out.header);
    header.kind = Kind::lost;
    const std::uint32_t word = header.word();
    const auto known = std::find_if(notices_.begin(), notices_.end(), [&](const Notice& n) {
        return n.dest == dest && n.header == word;
    });
    if (known != notices_.end()) {
        known->number = *out.number;
    } else {
        notices_.push_back({dest, word, *out.number});
    }
    count_detours();
}

bool Process::owes(int dest) const noexcept {
    return std::any_of(notices_.begin(), notices_.end(),
                       [&](const Notice& n) { return n.dest == dest; });
}

/// Sends what is owed, as far as there is room. Whether nothing is owed any more.
bool Process::pump() {
    if (answers_due_ == 0 && notices_.empty()) return true;
    for (unsigned r = 0; r < ranks_; ++r) {
        if (!peers_[r].answer_due) continue;
        int result = say_hello(r, true);
        if (result == BBP_EPEER) result = say_hello(r, true);  // the first told of the former one
        if (result == BBP_OK || result == BBP_EPEER) peers_[r].answer_due = false;
    }
    std::erase_if(notices_, [&](const Notice& n) {
        const std::uint64_t words = both_words(n.header, n.number);
        const int result = endpoint_.send(n.dest, &words, sizeof words, Deadline::now());
        return result == BBP_OK || result == BBP_EPEER;
    });
    count_detours();
    return answers_due_ == 0 && notices_.empty();
}

void Process::count_detours() noexcept {
    const auto number_of = [&](bool Peer::*flag) {
        return static_cast<unsigned>(
            std::count_if(peers_.begin(), peers_.end(), [&](const Peer& p) { return p.*flag; }));
    };
    answers_due_ = number_of(&Peer::answer_due);
    returned_ = number_of(&Peer::is_returned);
    detours_ = static_cast<unsigned>(notices_.size() + in_parts_.size()) + answers_due_ + returned_;
}

// ---- Peers

/// From then on all streams to that rank begin.
int Process::say_hello(unsigned rank, bool is_answer) {
    const Request& own = peers_[me_].request;
    std::vector<std::byte> frame(kHelloBytes);
    const Header header{Kind::hello, is_answer ? unsigned{kAnswer} : 0U, 0, 0, 0};
    put_word(frame.data(), 0, header.word());
    put_word(frame.data(), 4, settings_.first_number);
    put_word(frame.data(), 8,
             kVersion | own.nodes << 8 | (own.par_pid ? kAsksPid | *own.par_pid << 16 : 0U));
    put_word(frame.data(), 12, barriers_);
    for (unsigned pid = 0; pid < groups_.size(); ++pid) {
        const Group& group = groups_[pid];
        if (std::find(group.begin(), group.end(), static_cast<int>(rank)) == group.end()) continue;
        for (unsigned port = 0; port <= kLastPort; ++port) {
            const std::uint32_t number = to_group_[pid * std::size_t{kPorts} + port];
            if (number == settings_.first_number) continue;
            frame.resize(frame.size() + 8);
            put_word(frame.data(), frame.size() - 8, port);
            put_word(frame.data(), frame.size() - 4, number);
        }
    }
    const int result =
        endpoint_.send(static_cast<int>(rank), frame.data(), frame.size(), Deadline::now());
    if (result != BBP_OK) return result;
    std::fill_n(to_rank_.begin() + static_cast<std::ptrdiff_t>(rank * kPorts), kPorts,
                settings_.first_number);
    peers_[rank].is_greeted = true;
    return BBP_OK;
}

/// GAMMA_EPEER, told to the port's error handler too. `rank` kToAll: one of the group.
int Process::told_gone(unsigned port, int rank) {
    if (rank >= 0) {
        peers_[static_cast<unsigned>(rank)].is_returned = false;
        count_detours();
        lose_sources(static_cast<unsigned>(rank));
    }
    const Port& p = ports_[port];
    if (p.on_error != nullptr && !p.is_in_error) raise_error(port, GAMMA_EPEER);
    if (rank < 0) {
        return fail(GAMMA_EPEER,
                    fmt::format("some of the group that port {} is bound to are dead or "
                                "have left; the others have got the message",
                                port));
    }
    return fail(GAMMA_EPEER,
                fmt::format("rank {}, which port {} is bound to, is dead or has left, or "
                            "has come back as a new incarnation since",
                            rank, port));
}

// ---- Barrier

int Process::send_round(Held& held, int to, unsigned round, bool failed) {
    const Header header{Kind::barrier, failed ? unsigned{kFailed} : 0U, kBarrierPort, par_pid_,
                        round};
    const std::uint64_t words = both_words(header.word(), barriers_);
    const Outgoing out{
        kBarrierPort, Service::flow_controlled, {header.word(), to, nullptr, par_pid_}};
    const int result = wait_for_room(held, out, [&](Deadline deadline) -> int {
        return endpoint_.send(to, &words, sizeof words, deadline);
    });
    if (result != BBP_EPEER) return result;
    return fail(GAMMA_EPEER,
                fmt::format("rank {} of the group is dead or has left; the barrier cannot "
                            "be completed",
                            to));
}

}  // namespace ports::gamma
