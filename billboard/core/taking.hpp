// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Taking: order, classes, deliveries.
///
/// A sender's messages are taken from the board in its order. One that is not what the caller asked
/// for (another class), or not yet whole (parts), moves to private memory, where its own caller
/// finds it later, before anything that is still on the board.
///
/// Invariants
///   (I4) What is taken from the board is delivered, set aside or counted as dropped: never lost.
///   BBP_ANY begins with the sender after the one that it took from last, so that nobody starves;
///   with the same one where the caller comes back for a message.
/// Asks Peers when nothing is there, Reassembly for what is in parts; hands buffers to Views.
/// Progress: one look takes a bounded number of messages, whatever their sender posts meanwhile.
/// Thread safety: one thread. Errors: billboard/endpoint.hpp.

#include "billboard/core/own_rank.hpp"
#include "billboard/core/peers.hpp"
#include "billboard/core/reassembly.hpp"
#include "billboard/core/set_aside.hpp"
#include "billboard/core/views.hpp"
#include "billboard/core/wake_fd.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/copy.hpp"
#include "rmem/base/marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

namespace billboard {

inline constexpr int kNobody = -2;                  ///< neither a rank nor BBP_ANY
inline constexpr unsigned kEmptyPollsPerLook = 64;  ///< try calls between looks at the clock

/// The expected case, from whom something seems to be there: a message that lies whole in its slot.
/// Whose it is; kNobody: nothing is there, or something that takes longer.
template <class Own>
[[nodiscard]] [[gnu::always_inline]] inline int recv_short(Own& own, const SetAside& aside,
                                                           int from, void* buf, std::size_t cap,
                                                           std::size_t* len, Class cls) {
    if constexpr (Own::Board::kInlineBytes != 0) {
        const auto s = static_cast<unsigned>(from);
        if (s >= own.ranks || buf == nullptr || !aside.empty()) [[unlikely]]
            return kNobody;
        const int length = own.board.receive_head(s, cls, buf, cap);
        if (length < 0) return kNobody;
        if (len != nullptr) *len = static_cast<std::size_t>(length);
        return from;
    }
    return kNobody;
}

template <class Own>
class Taking {
public:
    Taking(Own& own, Peers<Own>& peers, SetAside& aside, Reassembly<Own>& reassembly,
           Views<Own>& views)
        : own_(own), peers_(peers), aside_(aside), reassembly_(reassembly), views_(views) {}

    /// BBP_ANY looks there first.
    [[nodiscard]] unsigned next_any() const noexcept { return next_any_; }
    void set_next_any(unsigned s) noexcept {
        RMEM_CHECK_IF(Own::kIsSimulated, s < own_.ranks);
        next_any_ = s;
    }
    /// After a look that found nothing: whether it is too early to look for dead peers.
    [[nodiscard]] bool is_early_to_look_around() noexcept {
        return ++empty_polls_ < kEmptyPollsPerLook;
    }

    // ---- The longer ways of Endpoint's calls
    [[nodiscard]] int recv(int src, void* buf, std::size_t cap, std::size_t* len, Deadline deadline,
                           Class cls);
    [[nodiscard]] int probe(int src, std::size_t* len, Class cls);
    [[nodiscard]] int view(int src, const void** data, std::size_t* len, Deadline deadline,
                           Class cls);
    [[nodiscard]] int take(std::span<std::byte> small, const void** data, std::size_t* len,
                           Deadline deadline, Class cls);
    [[nodiscard]] int fd();
    /// From now on it wakes no thread.
    void close_fd() noexcept { wake_fd_.reset(); }

private:
    using Memory = typename Own::Memory;

    enum class Found { nothing, private_memory, board, in_parts };
    /// What a message must be like for a caller that looks for one: `ready`, whole as it is;
    /// `begun`, of one in parts the first will do; `coming`, so it will of one that is being
    /// filled.
    enum class Wanted { ready, begun, coming };

    int check_source(int src) const;
    void look_for(int src, Class cls);
    [[nodiscard]] bool has_whole(int src, Class cls);
    [[nodiscard]] int find(int src, Class cls, Wanted wanted, Found& found, unsigned& s,
                           Arrival& a);
    [[nodiscard]] int find_taken(int src, Class cls, Found& found, unsigned& s);
    int find_unfinished(int src, Class cls, Found& found, unsigned& s) const;
    int settle(unsigned s, Class cls, Wanted wanted, Arrival& a);
    bool has_next_beside(unsigned s) const;
    [[nodiscard]] int nothing_from(int src, Deadline deadline);
    void look_around(int src);
    [[nodiscard]] int try_recv(int src, void* buf, std::size_t cap, std::size_t* len,
                               Deadline deadline, Class cls);
    int deliver(unsigned s, bool any, const Arrival& a, void* buf, std::size_t cap,
                std::size_t* len, Deadline deadline);
    [[nodiscard]] int deliver_private(SetAside::Message* message, void* buf, std::size_t cap,
                                      std::size_t* len);
    [[nodiscard]] int copy_filling(unsigned s, bool any, const Arrival& a, void* buf,
                                   Deadline deadline);
    [[nodiscard]] int recv_parts(unsigned s, bool any, void* buf, std::size_t cap, std::size_t* len,
                                 Deadline deadline, Class cls);
    [[nodiscard]] int half_lost(unsigned s, bool any);
    void gather_latest();
    [[nodiscard]] int try_view(int src, const void** data, std::size_t* len, Class cls,
                               Deadline deadline, std::span<std::byte> small = {});

    Own& own_;
    Peers<Own>& peers_;
    SetAside& aside_;
    Reassembly<Own>& reassembly_;
    Views<Own>& views_;
    unsigned next_any_ = 0;
    unsigned empty_polls_ = kEmptyPollsPerLook;  ///< since the last look, whatever the call
    std::int64_t next_look_ns_ = 0;              ///< for dead peers, by a try call
    std::unique_ptr<WakeFd> wake_fd_;
};

template <class Own>
int Taking<Own>::check_source(int src) const {
    if (src == BBP_ANY || (src >= 0 && static_cast<unsigned>(src) < own_.ranks)) return BBP_OK;
    return fail(
        BBP_ERANK,
        fmt::format("there is no rank {} in ring '{}', which has ranks 0 to {} (and BBP_ANY)", src,
                    own_.member.ring().config().name, own_.ranks - 1));
}

[[nodiscard]] inline int corrupt_error(unsigned s) {
    return fail(
        BBP_ECORRUPT,
        fmt::format("rank {} posted a message with an invalid descriptor; the message is dropped",
                    s));
}

/// Makes s's next message one of class `cls` that can be delivered now: BBP_OK and `a`, or
/// BBP_EAGAIN. A sender that posts messages of other classes without end must not keep the caller
/// from its deadline.
template <class Own>
int Taking<Own>::settle(unsigned s, Class cls, Wanted wanted, Arrival& a) {
    for (unsigned looks = kMaxLooks<typename Own::Board>; looks > 0 && own_.board.peek(s, a);
         --looks) {
        if (a.corrupt) {
            own_.drop(s, a, Counter::corrupt);
            return corrupt_error(s);
        }
        const Part part = Own::part_of(a);
        const bool is_next = a.cls == cls && !reassembly_.has(s);
        // What its sender has died over will not be filled any more.
        if (peers_.is_gone(s) && !own_.is_filled(s, a)) {
            reassembly_.stop(s);
            own_.drop(s, a, Counter::halves_dropped);
            continue;
        }
        if (is_next &&
            (part == Part::whole ||
             (part == Part::filling && (wanted == Wanted::coming || own_.is_filled(s, a)))))
            return BBP_OK;
        if (is_next && part == Part::filling) return BBP_EAGAIN;
        if (!reassembly_.set_aside(s, a)) return BBP_EAGAIN;
        // The rest can go straight to the caller's buffer.
        if (wanted != Wanted::ready && reassembly_.has(s, cls)) return BBP_EAGAIN;
        if (aside_.find(cls, static_cast<int>(s)) != nullptr) return BBP_EAGAIN;  // it is there now
    }
    return BBP_EAGAIN;
}

/// Before somebody is told of a message in parts: it may have been taken back already.
template <class Own>
void Taking<Own>::gather_latest() {
    own_.memory.progress();
    reassembly_.gather_all();
}

/// The next message of `src` and `cls` that has left the board, whole or (of a named rank) in
/// parts; BBP_EPEER where the end of an incarnation comes before it.
template <class Own>
int Taking<Own>::find_taken(int src, Class cls, Found& found, unsigned& s) {
    if (src >= 0 && aside_.ends_next(cls, static_cast<unsigned>(src))) {
        s = static_cast<unsigned>(src);
        return peers_.tell_former_end(s);
    }
    if (const auto* message = aside_.find(cls, src)) {
        found = Found::private_memory;
        s = message->source;
        return BBP_OK;
    }
    return src == BBP_ANY ? BBP_EAGAIN : find_unfinished(src, cls, found, s);
}

template <class Own>
int Taking<Own>::find_unfinished(int src, Class cls, Found& found, unsigned& s) const {
    const int in_parts = reassembly_.find(src, cls);
    if (in_parts < 0) return BBP_EAGAIN;
    found = Found::in_parts;
    s = static_cast<unsigned>(in_parts);
    return BBP_OK;
}

/// The next message of `src` and `cls`: one that has left the board, or on the board of `s` as `a`.
/// Of anyone, one in parts comes last: its sender may be waiting for another receiver, who cannot
/// go on before a message of its own is received here.
template <class Own>
int Taking<Own>::find(int src, Class cls, Wanted wanted, Found& found, unsigned& s, Arrival& a) {
    const auto has_taken = [this] { return reassembly_.any() || !aside_.empty(); };
    if (wanted == Wanted::ready) reassembly_.gather_all();
    if (has_taken()) {
        if (const int taken = find_taken(src, cls, found, s); taken != BBP_EAGAIN) return taken;
    }
    unsigned start = src == BBP_ANY ? next_any_ : static_cast<unsigned>(src);
    for (unsigned tries = src == BBP_ANY ? own_.ranks : 1; tries > 0; --tries) {
        const int candidate = src == BBP_ANY ? own_.board.find(start) : src;
        if (candidate < 0) break;
        s = static_cast<unsigned>(candidate);
        found = Found::board;
        if (const int result = settle(s, cls, wanted, a); result != BBP_EAGAIN) return result;
        if (has_taken() && find_taken(src, cls, found, s) == BBP_OK) return BBP_OK;
        start = own_.after(s);
    }
    found = Found::nothing;
    return src == BBP_ANY ? find_unfinished(src, cls, found, s) : BBP_EAGAIN;
}

/// Where asking the link is a system call, a message that is here whole needs none.
template <class Own>
void Taking<Own>::look_for(int src, Class cls) {
    if constexpr (Memory::kFar) {
        if (has_whole(src, cls)) return;
    }
    own_.memory.progress();
}

/// Whether the next message of `src` is on the board, of this class and whole. One in parts may
/// have been taken back since the link was looked at.
template <class Own>
bool Taking<Own>::has_whole(int src, Class cls) {
    if (reassembly_.any() || !aside_.empty()) return false;
    const int s = src == BBP_ANY ? own_.board.find(next_any_) : src;
    Arrival a;
    if (s < 0 || !own_.board.peek(static_cast<unsigned>(s), a) || a.corrupt || a.cls != cls)
        return false;
    return Own::part_of(a) == Part::whole;
}

template <class Own>
int Taking<Own>::recv(int src, void* buf, std::size_t cap, std::size_t* len, Deadline deadline,
                      Class cls) {
    if (const int bad = check_source(src); bad != BBP_OK) return bad;
    if (buf == nullptr && cap != 0) {
        return fail(BBP_EINVAL, fmt::format("the buffer is a null pointer with capacity {}", cap));
    }
    look_for(src, cls);
    const bool any = src == BBP_ANY;
    const auto attempt = [&] {
        const int candidate = any ? own_.board.find(next_any_) : src;
        const int from = recv_short(own_, aside_, candidate, buf, cap, len, cls);
        if (from < 0) return try_recv(src, buf, cap, len, deadline, cls);
        if (any) set_next_any(own_.after(static_cast<unsigned>(from)));
        return from;
    };
    // Before a clock is read. EndpointCore has just tried the short way; where a store is the
    // transfer, nothing that it would take has come with the look.
    int result = Memory::kReplicated ? attempt() : try_recv(src, buf, cap, len, deadline, cls);
    // Of a message that has begun the first try waits for the rest.
    if (result == BBP_ETIMEDOUT) return receive_timed_out(src);
    if (result != BBP_EAGAIN) return result;
    if (is_try(deadline)) return own_.not_now();
    own_.board.wait_begins();
    result = peers_.wait_for(src, deadline, attempt, [&] {
        return src == BBP_ANY ? own_.board.find(next_any_) >= 0
                              : own_.board.has_next(static_cast<unsigned>(src));
    });
    own_.board.wait_ends();
    return result == BBP_ETIMEDOUT ? receive_timed_out(src) : result;
}

template <class Own>
int Taking<Own>::try_recv(int src, void* buf, std::size_t cap, std::size_t* len, Deadline deadline,
                          Class cls) {
    const bool any = src == BBP_ANY;
    const Wanted wanted = is_try(deadline) ? Wanted::ready : Wanted::coming;
    Found found = Found::nothing;
    unsigned s = 0;
    Arrival a;
    int result = find(src, cls, wanted, found, s, a);
    if (result == BBP_OK && found == Found::in_parts && reassembly_.total(s) > cap) {
        gather_latest();  // it may be whole by now, or nowhere
        result = find(src, cls, wanted, found, s, a);
    }
    if (result == BBP_EAGAIN) return nothing_from(src, deadline);
    if (result != BBP_OK) return result;
    const int delivered =
        found == Found::private_memory ? deliver_private(aside_.find(cls, src), buf, cap, len)
        : found == Found::in_parts     ? recv_parts(s, any, buf, cap, len, deadline, cls)
                                       : deliver(s, any, a, buf, cap, len, deadline);
    if (any && delivered == BBP_ESIZE) set_next_any(s);  // the caller comes back for this one
    if (delivered < 0) return delivered;
    if (any) set_next_any(own_.after(s));
    return static_cast<int>(s);
}

/// No message is there: because the peer has gone, or not yet.
template <class Own>
int Taking<Own>::nothing_from(int src, Deadline deadline) {
    if (src == BBP_ANY) {
        if (peers_.others_are_gone()) {
            return fail(BBP_EPEER, fmt::format("all other ranks of ring '{}' are dead or have left",
                                               own_.member.ring().config().name));
        }
    } else if (peers_.is_still_gone(static_cast<unsigned>(src))) {
        return peers_.end_incarnation(static_cast<unsigned>(src));
    }
    if (is_try(deadline)) look_around(src);
    return BBP_EAGAIN;
}

/// A try call found nothing: the moment to look for dead peers, now and then, and to arm bbp_fd.
template <class Own>
void Taking<Own>::look_around(int src) {
    if (!is_early_to_look_around()) {
        empty_polls_ = 0;
        if (const std::int64_t now = own_.memory.now_ns(); now >= next_look_ns_) {
            next_look_ns_ = now + rmem::kCheckNs;
            peers_.check();
            if (src >= 0) peers_.refresh(static_cast<unsigned>(src));
        }
    }
    if (!wake_fd_) return;
    wake_fd_->arm();
    // What was posted before may not be in the bank yet. (Where the descriptor has a source it is
    // readable then.)
    if (!wake_fd_->has_source()) own_.memory.progress();
    if (own_.board.find(0) >= 0 || aside_.has_messages() || own_.memory.in_flight() ||
        wake_fd_->is_busy()) {
        wake_fd_->signal();
    }
}

[[nodiscard]] inline int too_small(unsigned s, std::size_t size, std::size_t cap,
                                   std::size_t* len) {
    if (len != nullptr) *len = size;
    return fail(BBP_ESIZE,
                fmt::format("the message of rank {} has {} bytes, the buffer {}; it stays, "
                            "receive it with a larger one",
                            s, size, cap));
}

template <class Own>
int Taking<Own>::deliver_private(SetAside::Message* message, void* buf, std::size_t cap,
                                 std::size_t* len) {
    const std::size_t size = message->bytes.size();
    if (size > cap) return too_small(message->source, size, cap, len);
    const SetAside::Message taken = aside_.pop(message);
    if (size != 0) std::memcpy(buf, taken.bytes.data(), size);
    if (len != nullptr) *len = size;
    return static_cast<int>(taken.source);
}

template <class Own>
int Taking<Own>::deliver(unsigned s, bool any, const Arrival& a, void* buf, std::size_t cap,
                         std::size_t* len, Deadline deadline) {
    if (a.length > cap) return too_small(s, a.length, cap, len);
    if (Own::part_of(a) == Part::filling) {
        if (const int result = copy_filling(s, any, a, buf, deadline); result != BBP_OK)
            return result;
    } else if (a.length != 0) {
        rmem::copy_bytes(buf, own_.bytes_of(s, a), a.length);
    }
    if (len != nullptr) *len = a.length;
    RMEM_MARK("receive.copied");
    own_.board.take(s, a);
    RMEM_MARK("receive.taken");
    if (!a.is_inline) own_.board.acknowledge(s, a.buffer);
    own_.commit_taken();
    return static_cast<int>(s);
}

/// Copies out while the sender copies in.
template <class Own>
int Taking<Own>::copy_filling(unsigned s, bool any, const Arrival& a, void* buf,
                              Deadline deadline) {
    const std::byte* from = own_.bytes_of(s, a);
    const std::uint32_t incarnation = peers_.incarnation(s);
    std::size_t done = 0;
    const auto copy_more = [&]() -> int {
        if (peers_.incarnation(s) != incarnation) return BBP_EPEER;
        const std::size_t filled =
            std::min<std::size_t>(own_.memory.load(own_.geometry.filled(s, a.buffer)), a.length);
        if (filled > done && buf != nullptr) {
            std::memcpy(static_cast<std::byte*>(buf) + done, from + done, filled - done);
        }
        done = std::max(done, filled);
        if (done == a.length) return BBP_OK;
        return peers_.is_gone(s) ? BBP_EPEER : BBP_EAGAIN;
    };
    const int result = peers_.wait_for(static_cast<int>(s), deadline, copy_more);
    if (result != BBP_EPEER) return result;
    // Its sender is back already, and what it had posted taken over: set aside or dropped.
    if (peers_.incarnation(s) != incarnation) return BBP_EAGAIN;
    if (copy_more() == BBP_OK) return BBP_OK;  // the last piece came before the end
    own_.drop(s, a, Counter::halves_dropped);
    return any ? BBP_EAGAIN : peers_.tell_gone(s);
}

/// Receives the rest of a message larger than a partition straight into the caller's buffer. When
/// the deadline passes in between, or another sender has something for a call that receives from
/// any rank, what has come moves back to private memory for the next call.
template <class Own>
int Taking<Own>::recv_parts(unsigned s, bool any, void* buf, std::size_t cap, std::size_t* len,
                            Deadline deadline, Class cls) {
    const std::uint64_t total = reassembly_.total(s);
    if (total > cap) return too_small(s, total, cap, len);
    if (is_try(deadline))
        return peers_.is_still_gone(s)
                   ? half_lost(s, any)
                   : nothing_from(any ? BBP_ANY : static_cast<int>(s), deadline);
    auto* const to = static_cast<std::byte*>(buf);
    reassembly_.pour_into(s, to);
    bool others_turn = false;
    const auto attempt = [&]() -> int {
        if (any) {
            reassembly_.gather_all();  // others' reads past the ring go on, too
        } else {
            reassembly_.gather_from(s);
        }
        const bool more = reassembly_.has(s);
        others_turn = any && more && (aside_.find(cls, BBP_ANY) != nullptr || has_next_beside(s));
        return !more || others_turn ? BBP_OK : peers_.is_gone(s) ? BBP_EPEER : BBP_EAGAIN;
    };
    int result = BBP_OK;
    try {
        result = peers_.wait_for(static_cast<int>(s), deadline, attempt);
    } catch (...) {
        // No private memory, perhaps for another rank's message: nobody may write to `buf` later.
        reassembly_.drop(s);
        throw;
    }
    const bool is_whole = reassembly_.stop_pouring(s);
    if (others_turn && result == BBP_OK) result = BBP_EAGAIN;
    if (result == BBP_OK && is_whole) {
        if (len != nullptr) *len = total;
        return static_cast<int>(s);
    }
    if (result == BBP_OK) return BBP_EAGAIN;  // taken back by its sender: wait for the next message
    if (result == BBP_EPEER) return half_lost(s, any);
    reassembly_.keep(s, to);
    return result;
}

/// Whether somebody but s has something on the board, other than a message that is being read past
/// the ring.
template <class Own>
bool Taking<Own>::has_next_beside(unsigned s) const {
    const int other = own_.board.find(own_.after(s));
    if (other < 0 || static_cast<unsigned>(other) == s) return false;
    if (!reassembly_.is_reading(static_cast<unsigned>(other))) return true;
    for (unsigned r = 0; r < own_.ranks; ++r) {
        if (r != s && own_.board.has_next(r) && !reassembly_.is_reading(r)) return true;
    }
    return false;
}

/// The rest of a message in parts will never come. A receive from `any` has not named s: it goes on
/// to what others send, and the call that does name s is told.
template <class Own>
int Taking<Own>::half_lost(unsigned s, bool any) {
    reassembly_.drop(s);
    return any ? BBP_EAGAIN : peers_.tell_gone(s);
}

template <class Own>
int Taking<Own>::probe(int src, std::size_t* len, Class cls) {
    if (const int bad = check_source(src); bad != BBP_OK) return bad;
    own_.memory.progress();
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
        return nothing == BBP_EAGAIN ? own_.not_now() : nothing;
    }
    if (result != BBP_OK) return result;
    if (src == BBP_ANY) set_next_any(s);  // the caller comes back for this one
    if (len != nullptr) {
        *len = found == Found::board      ? a.length
               : found == Found::in_parts ? reassembly_.total(s)
                                          : aside_.find(cls, src)->bytes.size();
    }
    return static_cast<int>(s);
}

template <class Own>
int Taking<Own>::fd() {
    if constexpr (!Memory::kHasDescriptors) {
        return fail(BBP_EINVAL,
                    fmt::format("ring '{}' is simulated: no descriptor can be polled in "
                                "virtual time; wait with bbp_recv_for",
                                own_.member.ring().config().name));
    } else {
        return guarded([&] {
            if (!wake_fd_) {
                rmem::InterruptSource* source = nullptr;
                if constexpr (requires { own_.memory.interrupt_source(); })
                    source = own_.memory.interrupt_source();
                wake_fd_ = std::make_unique<WakeFd>(own_.member.ring(), own_.me, source);
                wake_fd_->signal();  // something may have come before: the first look finds out
            }
            return wake_fd_->get();
        });
    }
}

template <class Own>
int Taking<Own>::view(int src, const void** data, std::size_t* len, Deadline deadline, Class cls) {
    if (const int bad = check_source(src); bad != BBP_OK) return bad;
    if (data == nullptr || len == nullptr) {
        return fail(BBP_EINVAL, "the place for the message's address or length is a null pointer");
    }
    look_for(src, cls);
    const int result =
        peers_.wait_for(src, deadline, [&] { return try_view(src, data, len, cls, deadline); });
    return result == BBP_ETIMEDOUT ? receive_timed_out(src) : result;
}

template <class Own>
int Taking<Own>::try_view(int src, const void** data, std::size_t* len, Class cls,
                          Deadline deadline, std::span<std::byte> small) {
    Found found = Found::nothing;
    unsigned s = 0;
    Arrival a;
    // A caller that takes all that comes takes the sender that is ready first.
    const Wanted wanted = small.empty() ? Wanted::coming : Wanted::ready;
    if (const int result = find(src, cls, wanted, found, s, a); result != BBP_OK) {
        return result == BBP_EAGAIN ? nothing_from(src, deadline) : result;
    }
    if (found == Found::in_parts) {
        return fail(BBP_ESIZE, fmt::format("the message of rank {} is larger than a partition and "
                                           "cannot be viewed; receive it with bbp_recv",
                                           s));
    }
    if (src == BBP_ANY) set_next_any(own_.after(s));
    if (!small.empty() && found == Found::board && a.is_inline && a.length <= small.size()) {
        rmem::copy_bytes(small.data(), a.payload, a.length);
        *data = small.data();
        *len = a.length;
        own_.board.take(s, a);
        return static_cast<int>(s);
    }
    if (found == Found::private_memory) {
        std::vector<std::byte> bytes = aside_.pop(aside_.find(cls, src)).bytes;
        *len = bytes.size();
        *data = views_.add(s, std::move(bytes));
        return static_cast<int>(s);
    }
    if (!own_.is_filled(s, a)) {
        if (!peers_.is_gone(s)) return BBP_EAGAIN;
        const int end = copy_filling(s, src == BBP_ANY, a, nullptr, {});
        return end == BBP_OK ? BBP_EAGAIN : end;
    }
    *len = a.length;
    *data = a.is_inline ? views_.add(s, {a.payload, a.payload + a.length})
                        : views_.add(s, a.buffer, own_.bytes_of(s, a));
    own_.board.take(s, a);
    return static_cast<int>(s);
}

template <class Own>
int Taking<Own>::take(std::span<std::byte> small, const void** data, std::size_t* len,
                      Deadline deadline, Class cls) {
    look_for(BBP_ANY, cls);
    const auto attempt = [&] { return try_view(BBP_ANY, data, len, cls, deadline, small); };
    if (is_try(deadline)) return attempt();
    const int result = peers_.wait_for(BBP_ANY, deadline, attempt,
                                       [&] { return own_.board.find(next_any_) >= 0; });
    return result == BBP_ETIMEDOUT ? receive_timed_out(BBP_ANY) : result;
}

}  // namespace billboard
