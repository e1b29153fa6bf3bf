// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Receiving: order, classes, parts, views. Part of EndpointCore
/// (billboard/core/endpoint_core.hpp).
///
/// A sender's messages are taken from the board in its order. One that is not what the caller asked
/// for (another class), or not yet whole (parts), moves to private memory, where its own caller
/// finds it later, before anything that is still on the board.

#include "billboard/core/endpoint_core.hpp"
#include "rmem/base/marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace billboard {

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::check_source(int src) const {
    if (src == BBP_ANY || (src >= 0 && static_cast<unsigned>(src) < ranks_)) return BBP_OK;
    return fail(
        BBP_ERANK,
        fmt::format("there is no rank {} in ring '{}', which has ranks 0 to {} (and BBP_ANY)", src,
                    member_.ring().config().name, ranks_ - 1));
}

template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::drop(unsigned s, const Arrival& a, Counter why) {
    board_.take(s, a);
    if (!a.is_inline && a.buffer < kBuffers) board_.acknowledge(s, a.buffer);
    count(why);
}

template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::is_filled(unsigned s, const Arrival& a) const {
    return a.is_inline || a.descriptor.part != Part::filling ||
           memory_.load(geometry_.filled(s, a.buffer)) >= a.length;
}

/// Moves s's next message to private memory. False while it is not whole or there is no room.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::set_aside(unsigned s, const Arrival& a) {
    const Part part = a.is_inline ? Part::whole : a.descriptor.part;
    if (peers_[s].gathering || (part != Part::whole && part != Part::filling)) return gather(s, a);
    if (!is_filled(s, a) || !aside_.has_room(a.length)) return false;
    aside_.push(a.cls, s, {bytes_of(s, a), a.length});
    board_.take(s, a);
    if (!a.is_inline) board_.acknowledge(s, a.buffer);
    count(Counter::set_aside);
    return true;
}

/// Takes one part of a larger message, into `sink` or private memory; in private memory, the last
/// part makes it a message. False while private memory has no room for it.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::gather(unsigned s, const Arrival& a) {
    Peer& p = peers_[s];
    const Part part = a.is_inline ? Part::whole : a.descriptor.part;
    std::size_t skipped = 0, bytes = a.length;
    if (!a.corrupt && part == Part::first && !p.gathering) {
        const std::uint64_t total = total_of(s, a);
        if (total == 0 || total == kImpossible) {
            drop(s, a, total == 0 ? Counter::aborts_received : Counter::corrupt);
            return true;
        }
        if (!aside_.has_room(total)) return false;
        skipped = sizeof total;
        bytes -= skipped;
        // Before anything changes: without memory the message stays.
        if (p.sink == nullptr) p.gathered.reserve(bytes);
        start_gathering(p, a.cls, total);
    } else if (a.corrupt || !p.gathering || (part != Part::more && part != Part::last)) {
        give_up_gathering(s, a, part);
        return true;
    }
    // An empty part is none that brings the message nearer to its end.
    if (bytes > p.gathering_total - p.gathered_bytes || a.cls != p.gathering_class ||
        (bytes == 0 && part != Part::first)) {
        give_up_gathering(s, a, part);
        return true;
    }
    const std::byte* from =
        bytes_of(s, a) + skipped;  // only now that it is known to be in the bank
    if (p.sink != nullptr) {
        std::memcpy(p.sink + p.gathered_bytes, from, bytes);
    } else {
        p.gathered.insert(p.gathered.end(), from, from + bytes);
    }
    p.gathered_bytes += bytes;
    board_.take(s, a);
    board_.acknowledge(s, a.buffer);
    if (p.gathered_bytes == p.gathering_total) {
        p.sink_filled = p.sink != nullptr;
        if (!p.sink_filled) aside_.push({p.gathering_class, s, std::move(p.gathered)});
        stop_gathering(p);
    }
    return true;
}

/// The size of the message that a first part begins: 0 if it has been taken back, kImpossible if it
/// cannot be. Read as words, since its sender may be taking it back just now.
template <class M, template <class> class BoardOf>
std::uint64_t EndpointCore<M, BoardOf>::total_of(unsigned s, const Arrival& a) const {
    if (a.length < kTotalBytes) return kImpossible;
    const std::size_t at = geometry_.data(s) + a.descriptor.offset;
    const std::uint64_t low = memory_.load(at), high = memory_.load(at + rmem::kWordBytes);
    if (low == 0) return 0;  // written first when taken back, last of all values when posted
    const std::uint64_t total = high << 32 | low;
    return total > a.length - kTotalBytes && total <= kMaxMessageBytes ? total : kImpossible;
}

template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::start_gathering(Peer& p, Class cls, std::size_t total) {
    p.gathering = true;
    ++gathering_;
    p.gathering_class = cls;
    p.gathering_total = total;
    p.gathered_bytes = 0;
    p.gathered.clear();
}

/// A part that ends what has been gathered, or has no beginning.
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::give_up_gathering(unsigned s, const Arrival& a, Part part) {
    stop_gathering(peers_[s]);
    if (a.is_inline || part == Part::whole || part == Part::filling) {
        count(Counter::halves_dropped);  // of the gathered message; this one is another
        return;
    }
    const bool rest = !a.corrupt && (part == Part::more || part == Part::last);
    drop(s, a,
         part == Part::aborted ? Counter::aborts_received
         : rest                ? Counter::halves_dropped  // its beginning was taken back
                               : Counter::corrupt);
}

inline int corrupt_error(unsigned s) {
    return fail(BBP_ECORRUPT, fmt::format("rank {} has posted what no rank of this library writes; "
                                          "the message is dropped",
                                          s));
}

/// Makes s's next message one of class `cls` that can be delivered now: BBP_OK and `a`, or
/// BBP_EAGAIN. A sender that posts messages of other classes without end must not keep the caller
/// from its deadline.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::settle(unsigned s, Class cls, Wanted wanted, Arrival& a) {
    for (unsigned looks = kMostLooks; looks > 0 && board_.peek(s, a); --looks) {
        if (a.corrupt) {
            drop(s, a, Counter::corrupt);
            return corrupt_error(s);
        }
        const Part part = a.is_inline ? Part::whole : a.descriptor.part;
        const bool is_next = a.cls == cls && !peers_[s].gathering;
        // What its sender has died over will not be filled any more.
        if (part == Part::filling && peers_[s].gone && !is_filled(s, a)) {
            drop(s, a, Counter::halves_dropped);
            continue;
        }
        if (is_next && (part == Part::whole ||
                        (part == Part::filling && (wanted == Wanted::coming || is_filled(s, a)))))
            return BBP_OK;
        if (is_next && part == Part::filling) return BBP_EAGAIN;
        if (!set_aside(s, a)) return BBP_EAGAIN;
        // The rest can go straight to the caller's buffer.
        if (wanted != Wanted::ready && peers_[s].gathering && peers_[s].gathering_class == cls)
            return BBP_EAGAIN;
        if (aside_.find(cls, static_cast<int>(s)) != nullptr) return BBP_EAGAIN;  // it is there now
    }
    return BBP_EAGAIN;
}

/// Takes what has come of s's message in parts: all that is on the board now. A sender that keeps
/// up with the caller must not keep it from its deadline for the length of the message.
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::gather_from(unsigned s) {
    Arrival a;
    for (unsigned looks = kMostLooks; looks > 0 && peers_[s].gathering && board_.peek(s, a);
         --looks) {
        gather(s, a);
        RMEM_MARK("receive.part-taken");
    }
}

/// Takes what has come of messages in parts. The whole ones are in private memory then, those taken
/// back are nowhere.
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::gather_all() {
    for (unsigned r = 0; gathering_ != 0 && r < ranks_; ++r) gather_from(r);
}

/// Before somebody is told of a message in parts: it may have been taken back already.
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::gather_latest() {
    memory_.progress();
    gather_all();
}

/// A sender of whose message in parts more is to come; -1 if none.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::find_in_parts(int src, Class cls) const {
    for (unsigned r = 0; gathering_ != 0 && r < ranks_; ++r) {
        const bool asked_for = src == BBP_ANY || src == static_cast<int>(r);
        if (asked_for && peers_[r].gathering && peers_[r].gathering_class == cls) {
            return static_cast<int>(r);
        }
    }
    return -1;
}

/// The next message of `src` and `cls` that has left the board, whole or (of a named rank) in
/// parts; BBP_EPEER where the end of a life comes before it.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::find_taken(int src, Class cls, Found& found, unsigned& s) {
    if (src >= 0 && aside_.ends_next(cls, static_cast<unsigned>(src))) {
        s = static_cast<unsigned>(src);
        const int told = tell_gone(s);
        peers_[s].peer_due = peers_[s].gone;  // the life after it may have ended, too
        return told;
    }
    if (const auto* message = aside_.find(cls, src)) {
        found = Found::private_memory;
        s = message->source;
        return BBP_OK;
    }
    return src == BBP_ANY ? BBP_EAGAIN : find_unfinished(src, cls, found, s);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::find_unfinished(int src, Class cls, Found& found, unsigned& s) const {
    const int in_parts = find_in_parts(src, cls);
    if (in_parts < 0) return BBP_EAGAIN;
    found = Found::in_parts;
    s = static_cast<unsigned>(in_parts);
    return BBP_OK;
}

/// The next message of `src` and `cls`: one that has left the board, or on the board of `s` as `a`.
/// Of anyone, one in parts comes last: its sender may be waiting for another receiver, who cannot
/// go on before a message of its own is received here.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::find(int src, Class cls, Wanted wanted, Found& found, unsigned& s,
                                   Arrival& a) {
    const auto has_taken = [this] { return gathering_ != 0 || !aside_.empty(); };
    if (wanted == Wanted::ready) gather_all();
    if (has_taken()) {
        if (const int taken = find_taken(src, cls, found, s); taken != BBP_EAGAIN) return taken;
    }
    unsigned start = src == BBP_ANY ? next_any_ : static_cast<unsigned>(src);
    for (unsigned tries = src == BBP_ANY ? ranks_ : 1; tries > 0; --tries) {
        const int candidate = src == BBP_ANY ? board_.find(start) : src;
        if (candidate < 0) break;
        s = static_cast<unsigned>(candidate);
        found = Found::board;
        if (const int result = settle(s, cls, wanted, a); result != BBP_EAGAIN) return result;
        if (has_taken() && find_taken(src, cls, found, s) == BBP_OK) return BBP_OK;
        start = static_cast<unsigned>(candidate) + 1 == ranks_
                    ? 0
                    : static_cast<unsigned>(candidate) + 1;
    }
    found = Found::nothing;
    return src == BBP_ANY ? find_unfinished(src, cls, found, s) : BBP_EAGAIN;
}

/// Whether the next message of `src` is on the board, of this class and whole. One in parts may
/// have been taken back since the link was looked at.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::has_whole(int src, Class cls) {
    if (gathering_ != 0 || !aside_.empty()) return false;
    const int s = src == BBP_ANY ? board_.find(next_any_) : src;
    Arrival a;
    if (s < 0 || !board_.peek(static_cast<unsigned>(s), a) || a.corrupt || a.cls != cls)
        return false;
    return a.is_inline || a.descriptor.part == Part::whole;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::recv_slowly(int src, void* buf, std::size_t cap, std::size_t* len,
                                          Deadline deadline, Class cls) {
    if (const int bad = check_source(src); bad != BBP_OK) return bad;
    if (buf == nullptr && cap != 0) {
        return fail(BBP_EINVAL, fmt::format("the buffer is a null pointer with capacity {}", cap));
    }
    look_for(src, cls);
    const auto attempt = [&] { return try_recv(src, buf, cap, len, deadline, cls); };
    int result = attempt();  // before a clock is read
    if (result != BBP_EAGAIN) return result;
    if (is_try(deadline)) return not_now();
    board_.wait_begins();
    awaited_ = src;
    result = wait_for(deadline, attempt, [&] {
        return src == BBP_ANY ? board_.find(next_any_) >= 0
                              : board_.has_next(static_cast<unsigned>(src));
    });
    board_.wait_ends();
    return result == BBP_ETIMEDOUT ? receive_timed_out(src) : result;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::try_recv(int src, void* buf, std::size_t cap, std::size_t* len,
                                       Deadline deadline, Class cls) {
    const bool any = src == BBP_ANY;
    const int candidate = any ? board_.find(next_any_) : src;
    if (const int quick = recv_inline(candidate, any, buf, cap, len, cls); quick >= 0) [[likely]]
        return quick;
    const Wanted wanted = is_try(deadline) ? Wanted::ready : Wanted::coming;
    Found found = Found::nothing;
    unsigned s = 0;
    Arrival a;
    int result = find(src, cls, wanted, found, s, a);
    if (result == BBP_OK && found == Found::in_parts && peers_[s].gathering_total > cap) {
        gather_latest();  // it may be whole by now, or nowhere
        result = find(src, cls, wanted, found, s, a);
    }
    if (result == BBP_EAGAIN) return nothing_from(src, deadline);
    if (result != BBP_OK) return result;
    const int delivered = found == Found::private_memory
                              ? deliver_private(aside_.find(cls, src), buf, cap, len)
                          : found == Found::in_parts ? recv_parts(s, any, buf, cap, len, deadline)
                                                     : deliver(s, any, a, buf, cap, len, deadline);
    if (any && delivered == BBP_ESIZE) next_any_ = s;  // the caller comes back for this one
    if (delivered < 0) return delivered;
    if (any) next_any_ = s + 1 == ranks_ ? 0 : s + 1;
    return static_cast<int>(s);
}

/// No message is there: because the peer has gone, or not yet.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::nothing_from(int src, Deadline deadline) {
    if (src == BBP_ANY) {
        if (others_gone()) {
            return fail(BBP_EPEER, fmt::format("all other ranks of ring '{}' are dead or have left",
                                               member_.ring().config().name));
        }
    } else if (is_gone(static_cast<unsigned>(src))) {
        return end_incarnation(static_cast<unsigned>(src));
    }
    if (is_try(deadline)) look_around(src);
    return BBP_EAGAIN;
}

/// A try call found nothing: the moment to look for dead peers, now and then, and to arm bbp_fd.
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::look_around(int src) {
    if (++empty_polls_ >= kEmptyPollsPerLook) {
        empty_polls_ = 0;
        if (const std::int64_t now = memory_.now_ns(); now >= next_look_ns_) {
            next_look_ns_ = now + rmem::kCheckNs;
            check_peers();
            if (src >= 0) refresh(static_cast<unsigned>(src));
        }
    }
    if (!wake_fd_) return;
    wake_fd_->arm();
    if (board_.find(0) >= 0 || aside_.has_messages() || memory_.in_flight()) wake_fd_->signal();
}

inline int too_small(unsigned s, std::size_t size, std::size_t cap, std::size_t* len) {
    if (len != nullptr) *len = size;
    return fail(BBP_ESIZE,
                fmt::format("the message of rank {} has {} bytes, the buffer {}; it stays, "
                            "receive it with a larger one",
                            s, size, cap));
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::deliver_private(SetAside::Message* message, void* buf,
                                              std::size_t cap, std::size_t* len) {
    const std::size_t size = message->bytes.size();
    if (size > cap) return too_small(message->source, size, cap, len);
    const SetAside::Message taken = aside_.pop(message);
    if (size != 0) std::memcpy(buf, taken.bytes.data(), size);
    if (len != nullptr) *len = size;
    return static_cast<int>(taken.source);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::deliver(unsigned s, bool any, const Arrival& a, void* buf,
                                      std::size_t cap, std::size_t* len, Deadline deadline) {
    if (a.length > cap) return too_small(s, a.length, cap, len);
    if (!a.is_inline && a.descriptor.part == Part::filling) {
        if (const int result = copy_filling(s, any, a, buf, deadline); result != BBP_OK)
            return result;
    } else if (a.length != 0) {
        rmem::copy_bytes(buf, bytes_of(s, a), a.length);
    }
    if (len != nullptr) *len = a.length;
    RMEM_MARK("receive.copied");
    board_.take(s, a);
    RMEM_MARK("receive.taken");
    if (!a.is_inline) board_.acknowledge(s, a.buffer);
    commit_taken();
    return static_cast<int>(s);
}

/// Copies out while the sender copies in.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::copy_filling(unsigned s, bool any, const Arrival& a, void* buf,
                                           Deadline deadline) {
    const std::byte* from = bytes_of(s, a);
    const std::uint32_t incarnation = peers_[s].incarnation;
    std::size_t done = 0;
    const auto copy_more = [&]() -> int {
        if (peers_[s].incarnation != incarnation) return BBP_EPEER;
        const std::size_t filled =
            std::min<std::size_t>(memory_.load(geometry_.filled(s, a.buffer)), a.length);
        if (filled > done && buf != nullptr) {
            std::memcpy(static_cast<std::byte*>(buf) + done, from + done, filled - done);
        }
        done = std::max(done, filled);
        if (done == a.length) return BBP_OK;
        return peers_[s].gone ? BBP_EPEER : BBP_EAGAIN;
    };
    const int result = wait_for(deadline, copy_more);
    if (result != BBP_EPEER) return result;
    // Its sender is back already, and what it had posted taken over: set aside or dropped.
    if (peers_[s].incarnation != incarnation) return BBP_EAGAIN;
    if (copy_more() == BBP_OK) return BBP_OK;  // the last piece came before the end
    drop(s, a, Counter::halves_dropped);
    return any ? BBP_EAGAIN : tell_gone(s);
}

/// Receives the rest of a message larger than a partition straight into the caller's buffer. When
/// the deadline passes in between, or another sender has something for who receives from anybody,
/// what has come moves back to private memory for the next call.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::recv_parts(unsigned s, bool any, void* buf, std::size_t cap,
                                         std::size_t* len, Deadline deadline) {
    Peer& p = peers_[s];
    const std::uint64_t total = p.gathering_total;
    if (total > cap) return too_small(s, total, cap, len);
    if (is_try(deadline))
        return is_gone(s) ? half_lost(s, any)
                          : nothing_from(any ? BBP_ANY : static_cast<int>(s), deadline);
    p.sink = static_cast<std::byte*>(buf);
    p.sink_filled = false;
    std::copy(p.gathered.begin(), p.gathered.end(), p.sink);
    bool others_turn = false;
    const auto attempt = [&]() -> int {
        gather_from(s);
        others_turn = any && p.gathering && has_next_beside(s);
        return !p.gathering || others_turn ? BBP_OK : p.gone ? BBP_EPEER : BBP_EAGAIN;
    };
    int result = BBP_OK;
    try {
        result = wait_for(deadline, attempt);
    } catch (...) {
        // No private memory, perhaps for another rank's message: nobody may write to `buf` later.
        stop_gathering(p);
        count(Counter::halves_dropped);
        throw;
    }
    p.sink = nullptr;
    if (others_turn && result == BBP_OK) result = BBP_EAGAIN;
    if (result == BBP_OK && p.sink_filled) {
        if (len != nullptr) *len = total;
        return static_cast<int>(s);
    }
    if (result == BBP_OK) return BBP_EAGAIN;  // taken back by its sender: wait for the next message
    if (result == BBP_EPEER) return half_lost(s, any);
    const auto* come = static_cast<const std::byte*>(buf);
    p.gathered.assign(come, come + p.gathered_bytes);
    return result;
}

/// Whether somebody but s has something on the board.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::has_next_beside(unsigned s) const {
    const int other = board_.find(s + 1 == ranks_ ? 0 : s + 1);
    return other >= 0 && static_cast<unsigned>(other) != s;
}

/// The rest of a message in parts will never come. A receive from `any` has not named s: it goes on
/// to what others send, and the call that does name s is told.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::half_lost(unsigned s, bool any) {
    Peer& p = peers_[s];
    stop_gathering(p);
    count(Counter::halves_dropped);
    return any ? BBP_EAGAIN : tell_gone(s);
}

template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::stop_gathering(Peer& p) {
    if (p.gathering) --gathering_;
    p.gathering = false;
    p.sink = nullptr;
    p.gathered = {};
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::probe(int src, std::size_t* len, Class cls) {
    if (const int bad = check_source(src); bad != BBP_OK) return bad;
    memory_.progress();
    Found found = Found::nothing;
    unsigned s = 0;
    Arrival a;
    int result = find(src, cls, Wanted::begun, found, s, a);
    if (result == BBP_OK && found == Found::in_parts) {
        gather_latest();
        result = find(src, cls, Wanted::begun, found, s, a);
    }
    if (result == BBP_EAGAIN) {
        const int nothing = nothing_from(src, Deadline::now());
        return nothing == BBP_EAGAIN ? not_now() : nothing;
    }
    if (result != BBP_OK) return result;
    if (src == BBP_ANY) next_any_ = s;  // the caller comes back for this one
    if (len != nullptr) {
        *len = found == Found::board      ? a.length
               : found == Found::in_parts ? peers_[s].gathering_total
                                          : aside_.find(cls, src)->bytes.size();
    }
    return static_cast<int>(s);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::fd() {
    if constexpr (!M::kHasDescriptors) {
        return fail(BBP_EINVAL,
                    fmt::format("ring '{}' is simulated: no descriptor can be polled in "
                                "virtual time; wait with bbp_recv_for",
                                member_.ring().config().name));
    } else {
        return guarded([&] {
            if (!wake_fd_) {
                wake_fd_ = std::make_unique<WakeFd>(member_.ring(), me_);
                wake_fd_->signal();  // something may have come before: the first look finds out
            }
            return wake_fd_->get();
        });
    }
}

}  // namespace billboard
