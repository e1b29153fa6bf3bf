// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Sending: buffers, multicast, messages larger than a partition. Part of EndpointCore.
///
/// A message goes one of four ways:
///   inline    up to 60 bytes, in the receiver's slot (layout `inline`)
///   buffer    in the data partition, announced by its descriptor
///   filling   the same, but announced first and then filled in pieces, so that the receiver copies
///             out while the sender copies in (large messages to one receiver on a shared bank)
///   parts     larger than the data partition: as buffers one after the other

#include "billboard/core/endpoint_core.hpp"
#include "rmem/base/marks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace billboard {

inline constexpr std::size_t kFillBytes = 64 * 1024;  ///< piece of a message posted while filling
inline constexpr std::size_t kFillFromBytes =
    64 * 1024;  ///< messages from this size on are filled so
inline constexpr std::size_t kMaxPartBytes = 256 * 1024;  ///< of a message larger than a partition

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::check_message(std::span<const int> dests, const void* buf,
                                            std::size_t len) const {
    if (buf == nullptr && len != 0) {
        return fail(BBP_EINVAL, fmt::format("the message is a null pointer with length {}", len));
    }
    RankSet named;
    for (const int dest : dests) {
        if (dest < 0 || static_cast<unsigned>(dest) >= ranks_) {
            return fail(BBP_ERANK,
                        fmt::format("there is no rank {} in ring '{}', which has ranks 0 to "
                                    "{}",
                                    dest, member_.ring().config().name, ranks_ - 1));
        }
        if (named[static_cast<unsigned>(dest)]) {
            return fail(BBP_EINVAL,
                        fmt::format("rank {} is named twice; name each receiver once", dest));
        }
        named[static_cast<unsigned>(dest)] = true;
    }
    if (len > kMaxMessageBytes) {
        return fail(BBP_ESIZE,
                    fmt::format("a message of {} bytes is larger than the {} that can be sent; "
                                "send it in pieces",
                                len, kMaxMessageBytes));
    }
    return BBP_OK;
}

/// Spins until d has room for one more message, but not for long: a rank never makes it for itself
/// so.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::await_room_briefly(unsigned d) {
    if (d == me_) return false;
    for (unsigned polls = memory_.brief_polls(); polls > 0; --polls) {
        rmem::cpu_relax();
        if (board_.tx_room(d)) return true;
    }
    return false;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::send_slowly(int dest, const void* buf, std::size_t len,
                                          Deadline deadline, Class cls) {
    if (const int bad = check_message({&dest, 1}, buf, len); bad != BBP_OK) return bad;
    Post post{{static_cast<unsigned>(dest)}, {}};
    const int result = post_to(post, whole(buf, len), deadline, cls);
    return result == BBP_EPEER ? gone_error(static_cast<unsigned>(dest)) : result;
}

/// The expected case of a short multicast: to ranks that there are, each once, with room for all.
/// Replicated banks get a multicast's payload once, whatever its size.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::can_post_inline(std::span<const int> dests) {
    if ((M::kReplicated && dests.size() != 1) || dests.empty() || aborts_due_ != 0) return false;
    RankSet seen;
    for (const int dest : dests) {
        const auto d = static_cast<unsigned>(dest);
        if (d >= ranks_ || seen[d] || !board_.tx_room(d)) return false;
        seen[d] = true;
    }
    return memory_.room(dests.size() * rmem::kLineBytes);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::mcast(std::span<const int> dests, const void* buf, std::size_t len,
                                    Deadline deadline, Class cls) {
    if (Board::kInlineBytes != 0 && len <= Board::kInlineBytes && (buf != nullptr || len == 0) &&
        can_post_inline(dests)) [[likely]] {
        for (const int d : dests) board_.post_inline(static_cast<unsigned>(d), cls, buf, len);
        memory_.commit();
        for (const int d : dests) memory_.notify(static_cast<unsigned>(d));
        count(Counter::multicasts);
        return BBP_OK;
    }
    if (const int bad = check_message(dests, buf, len); bad != BBP_OK) return bad;
    return mcast_slowly(dests, whole(buf, len), deadline, cls);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::mcast_slowly(std::span<const int> dests, const Pieces& pieces,
                                           Deadline deadline, Class cls) {
    Post post{{dests.begin(), dests.end()}, {}};
    const int result = post_to(post, pieces, deadline, cls);
    if (result == BBP_OK) count(Counter::multicasts);
    if (result != BBP_EPEER) return result;
    return fail(BBP_EPEER,
                fmt::format("{} of the multicast's {} receivers are dead or have left; the "
                            "others have got it",
                            dests.size() - post.dests.size(), dests.size()));
}

/// The expected case: a short one to one rank.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::send_joined(std::span<const int> dests, Bytes head, Bytes body,
                                          Class cls) {
    if (dests.size() == 1 && send_joined_at_once(dests[0], head, body, cls)) [[likely]]
        return BBP_OK;
    return send_joined_slowly(dests, {head, body}, cls);
}

/// What is short, or written once for all banks, is one piece on its way.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::send_joined_slowly(std::span<const int> dests, const Pieces& pieces,
                                                 Class cls) {
    const auto& [head, body] = pieces;
    const Deadline now = Deadline::now();
    if (M::kReplicated || pieces.size() <= Board::kInlineBytes) {
        joined_.resize(pieces.size());
        std::copy(body.begin(), body.end(), std::copy(head.begin(), head.end(), joined_.begin()));
        return dests.size() == 1 ? send(dests[0], joined_.data(), joined_.size(), now, cls)
                                 : mcast(dests, joined_.data(), joined_.size(), now, cls);
    }
    if (const int bad = check_message(dests, head.data(), pieces.size()); bad != BBP_OK) return bad;
    if (dests.size() != 1) return mcast_slowly(dests, pieces, now, cls);
    Post post{{static_cast<unsigned>(dests[0])}, {}};
    const int result = post_to(post, pieces, now, cls);
    return result == BBP_EPEER ? gone_error(static_cast<unsigned>(dests[0])) : result;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::post_to(Post& post, const Pieces& pieces, Deadline deadline,
                                      Class cls) {
    look_before_post();
    awaited_ = post.dests.size() == 1 ? static_cast<int>(post.dests.front()) : BBP_ANY;
    const std::size_t len = pieces.size();
    if (len <= buffers_.data_bytes()) {
        bool waited = false;
        const int result = wait_for(deadline, [&] {
            const int tried = try_post(post, pieces, cls);
            if (tried == BBP_EAGAIN && !waited) count(Counter::send_waits);
            waited = true;
            return tried;
        });
        return result == BBP_ETIMEDOUT ? room_timed_out(post) : result;
    }
    if (is_try(deadline)) {
        return fail(BBP_ESIZE,
                    fmt::format("a message of {} bytes is larger than a partition's {} and "
                                "could never be sent without waiting; use bbp_send or "
                                "bbp_send_for, or a larger RMEM_PARTITION",
                                len, buffers_.data_bytes()));
    }
    return send_in_parts(post, pieces.body, deadline, cls);
}

/// What is told of a post that has reached all it can.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::result_of(const Post& post) {
    for (const unsigned d : post.gone) tell_gone(d);
    return post.gone.empty() ? BBP_OK : BBP_EPEER;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::room_timed_out(const Post& post) const {
    return send_timed_out(std::vector<int>(post.dests.begin(), post.dests.end()));
}

/// Whether all receivers can be posted to; the dead are struck from the list.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::ready(Post& post, bool needs_data, std::size_t bytes) {
    const auto is_gone = [&](unsigned d) {
        Peer& p = peers_[d];
        if (!p.tx_open) refresh(d);
        if (!p.gone && !p.peer_due) return false;
        post.gone.push_back(d);
        return true;
    };
    post.dests.erase(std::remove_if(post.dests.begin(), post.dests.end(), is_gone),
                     post.dests.end());
    bool all = true;
    for (const unsigned d : post.dests) {
        if (peers_[d].abort_due && !post_abort(d)) all = false;
        if (!board_.tx_room(d) && !(d == me_ && self_room())) all = false;
    }
    if (!all || (needs_data && !data_open())) return BBP_EAGAIN;
    return memory_.room(bytes + post.dests.size() * kAnnounceBytes) ? BBP_OK : BBP_EAGAIN;
}

/// A rank that sends to itself cannot wait for itself: it takes its oldest messages aside instead.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::self_room() {
    Arrival a;
    while (board_.peek(me_, a)) {
        if (a.corrupt) {
            drop(me_, a, Counter::corrupt);
        } else if (!set_aside(me_, a)) {
            return false;
        }
    }
    board_.tell(me_);
    return board_.tx_room(me_);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::try_post(Post& post, const Pieces& pieces, Class cls) {
    const auto& [head, body] = pieces;
    const std::size_t len = pieces.size();
    // Replicated banks get a multicast's payload once, whatever its size.
    const bool is_inline = Board::kInlineBytes != 0 && len <= Board::kInlineBytes &&
                           (!M::kReplicated || post.dests.size() == 1) && head.empty();
    if (const int result = ready(post, !is_inline, len); result != BBP_OK) return result;
    if (post.dests.empty()) return result_of(post);
    std::size_t at = 0;
    if (is_inline) {
        for (const unsigned d : post.dests) board_.post_inline(d, cls, body.data(), len);
    } else {
        const auto buffer = allocate_for(post, len);
        if (!buffer) return BBP_EAGAIN;
        Descriptor d{buffers_.offset(*buffer), static_cast<std::uint32_t>(len), 0, cls,
                     Part::whole};
        at = geometry_.data(me_) + d.offset;
        if (Board::kFills && len >= kFillFromBytes && post.dests.size() == 1 && head.empty()) {
            d.part = Part::filling;
            memory_.post_word(geometry_.filled(me_, *buffer), 0);
            announce(post, *buffer, d);
            RMEM_MARK("send.announced-unfilled");
            fill(*buffer, body.data(), len);
        } else {
            if (!head.empty()) memory_.write(at, head.data(), head.size());
            memory_.write(at + head.size(), body.data(), body.size());
            RMEM_MARK("send.data-written");
            announce(post, *buffer, d);
        }
        count(Counter::buffers_posted);
        count(Counter::bytes_posted, len);
    }
    memory_.commit();
    for (const unsigned d : post.dests) memory_.notify(d);
    if (!is_inline) after_post(at, len);
    return result_of(post);
}

/// What lies `at` is read now; and who sends a message in a buffer often sends another of that
/// size.
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::after_post(std::size_t at, std::size_t len) {
    memory_.expect_read(at, len);
    const std::size_t next = buffers_.end();
    if (next + len <= buffers_.data_bytes()) memory_.expect_write(geometry_.data(me_) + next, len);
}

template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::announce(const Post& post, unsigned buffer, const Descriptor& d) {
    if (post.dests.size() == 1) {
        board_.post_alone(post.dests.front(), buffer, d);
        return;
    }
    if constexpr (M::kReplicated || Board::kInlineBytes == 0) {
        board_.describe(buffer, d);
        RMEM_MARK("mcast.described");
        for (const unsigned dest : post.dests) {
            board_.post(dest, buffer);
            RMEM_MARK("mcast.one-announced");
        }
    } else {
        for (const unsigned dest : post.dests) {
            board_.post_alone(dest, buffer, d);
            RMEM_MARK("mcast.one-announced");
        }
    }
}

template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::fill(unsigned buffer, const void* buf, std::size_t len) {
    const std::size_t at = geometry_.data(me_) + buffers_.offset(buffer);
    for (std::size_t done = 0; done < len;) {
        const std::size_t piece = std::min(kFillBytes, len - done);
        memory_.write(at + done, static_cast<const std::byte*>(buf) + done, piece);
        done += piece;
        memory_.post_word(geometry_.filled(me_, buffer), static_cast<std::uint32_t>(done));
        RMEM_MARK("send.piece-filled");
    }
}

/// A buffer, after garbage collection if need be. Large ones collect first: memory that was used
/// just now is still in the cache.
template <class M, template <class> class BoardOf>
std::optional<unsigned> EndpointCore<M, BoardOf>::allocate(std::size_t bytes) {
    if (!board_.may_describe()) return std::nullopt;
    if (bytes < kFillFromBytes) {
        if (const auto buffer = buffers_.allocate(bytes)) return buffer;
    }
    count(Counter::collections);
    RMEM_MARK("collect.before");
    buffers_.collect(board_.busy());
    RMEM_MARK("collect.after");
    return buffers_.allocate(bytes);
}

/// As `allocate`; who waits for room that only it can make, makes it.
template <class M, template <class> class BoardOf>
std::optional<unsigned> EndpointCore<M, BoardOf>::allocate_for(const Post& post,
                                                               std::size_t bytes) {
    if (const auto buffer = allocate(bytes)) return buffer;
    const bool to_self = std::find(post.dests.begin(), post.dests.end(), me_) != post.dests.end();
    return to_self && self_room() ? allocate(bytes) : std::nullopt;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::send_in_parts(Post& post, Bytes bytes, Deadline deadline, Class cls) {
    const std::size_t len = bytes.size();
    const std::size_t part_bytes =
        std::min(kMaxPartBytes, buffers_.data_bytes() / 4 / rmem::kWordBytes * rmem::kWordBytes);
    const std::byte* from = bytes.data();
    for (std::size_t done = 0; done < len;) {
        const std::size_t overhead = done == 0 ? kTotalBytes : 0;
        const std::size_t piece = std::min(part_bytes - overhead, len - done);
        const Part part = done == 0 ? Part::first : done + piece == len ? Part::last : Part::more;
        const int result =
            wait_for(deadline, [&] { return try_part(post, from + done, piece, len, cls, part); });
        if (post.dests.empty()) return result_of(post);
        if (result != BBP_OK) {
            if (done != 0) take_back(post);
            return result == BBP_ETIMEDOUT ? room_timed_out(post) : result;
        }
        RMEM_MARK("send.part-posted");
        done += piece;
    }
    return result_of(post);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::try_part(Post& post, const std::byte* from, std::size_t bytes,
                                       std::size_t total, Class cls, Part part) {
    const std::size_t head = part == Part::first ? kTotalBytes : 0;
    if (const int result = ready(post, true, bytes + head); result != BBP_OK) return result;
    if (post.dests.empty()) return BBP_OK;
    const auto buffer = allocate_for(post, bytes + head);
    if (!buffer) return BBP_EAGAIN;
    const Descriptor d{buffers_.offset(*buffer), static_cast<std::uint32_t>(bytes + head), 0, cls,
                       part};
    const std::size_t at = geometry_.data(me_) + d.offset;
    const std::uint64_t announced = total;
    if (head != 0) memory_.write(at, &announced, kTotalBytes);
    if (head != 0) first_part_at_ = at;
    memory_.write(at + head, from, bytes);
    announce(post, *buffer, d);
    count(Counter::segments_posted);
    memory_.commit();
    for (const unsigned dest : post.dests) memory_.notify(dest);
    return BBP_OK;
}

/// Takes back what has been posted of a message: from who has not looked yet by its total, which
/// needs no room, from who is gathering it by a part that says so. (Where the first part's buffer
/// has been read and used again, it holds a later part of the same message.)
template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::take_back(const Post& post) {
    memory_.post_word(first_part_at_, 0);
    memory_.commit();
    for (const unsigned d : post.dests) {
        set_abort_due(d, true);
        post_abort(d);
    }
    count(Counter::aborts_sent);
}

template <class M, template <class> class BoardOf>
void EndpointCore<M, BoardOf>::set_abort_due(unsigned d, bool due) {
    if (peers_[d].abort_due == due) return;
    peers_[d].abort_due = due;
    aborts_due_ += due ? 1U : ~0U;
}

/// Takes back a message that was sent in part. False: no room yet; `abort_due` stays.
template <class M, template <class> class BoardOf>
bool EndpointCore<M, BoardOf>::post_abort(unsigned d) {
    if (!board_.tx_room(d) || !data_open() || !memory_.room(kAnnounceBytes)) return false;
    const auto buffer = allocate(0);
    if (!buffer) return false;
    RMEM_MARK("send.before-abort");
    board_.post_alone(d, *buffer, {buffers_.offset(*buffer), 0, 0, Class::user, Part::aborted});
    memory_.commit();
    memory_.notify(d);
    set_abort_due(d, false);
    return true;
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::compose(std::size_t len, void** buf) {
    if (buf == nullptr)
        return fail(BBP_EINVAL, "no place to put the buffer's address: a null pointer");
    if (len > buffers_.data_bytes()) {
        return fail(BBP_ESIZE,
                    fmt::format("a buffer of {} bytes is larger than a partition's {}; use "
                                "bbp_send, or a larger RMEM_PARTITION",
                                len, buffers_.data_bytes()));
    }
    // The link is asked only where it is waited for: who composes posts next, which asks it, and a
    // link that is asked twice between two messages gathers them no more.
    auto buffer = data_open() ? allocate(len) : std::nullopt;
    if (!buffer) {
        memory_.progress();
        if (data_open()) buffer = allocate(len);
    }
    if (!buffer) return not_now();
    buffers_.hold(*buffer);
    *buf = memory_.own(geometry_.data(me_) + buffers_.offset(*buffer));
    return BBP_OK;
}

/// The buffer that was composed at this address.
template <class M, template <class> class BoardOf>
std::optional<unsigned> EndpointCore<M, BoardOf>::find_composed(const void* buf) const {
    for (unsigned i = 0; i < kBuffers; ++i) {
        if (!buffers_.is_held(i)) continue;
        if (memory_.own(geometry_.data(me_) + buffers_.offset(i)) == buf) return i;
    }
    return std::nullopt;
}

inline int not_composed() {
    return fail(BBP_EINVAL, "the buffer was not composed by this rank, or has been posted already");
}

/// A buffer stays composed until it can be posted.
template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::post(std::span<const int> dests, void* buf, std::size_t len,
                                   Deadline deadline, Class cls) {
    if (const int bad = check_message(dests, buf, len); bad != BBP_OK) return bad;
    const auto buffer = find_composed(buf);
    if (!buffer) return not_composed();
    if (len > buffers_.size(*buffer)) {
        return fail(BBP_ESIZE, fmt::format("the composed buffer has {} bytes, not {}",
                                           buffers_.size(*buffer), len));
    }
    look_before_post();
    awaited_ = dests.size() == 1 ? dests[0] : BBP_ANY;
    Post post{{dests.begin(), dests.end()}, {}};
    const int result =
        wait_for(deadline, [&] { return try_post_composed(post, *buffer, len, cls); });
    if (result == BBP_ETIMEDOUT) return room_timed_out(post);
    if (result != BBP_EPEER) return result;
    if (dests.size() == 1) return gone_error(static_cast<unsigned>(dests[0]));
    return fail(BBP_EPEER, "some of the receivers are dead or have left; the others have got it");
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::try_post_composed(Post& post, unsigned buffer, std::size_t len,
                                                Class cls) {
    if (const int result = ready(post, true, len); result != BBP_OK) return result;
    buffers_.release_hold(buffer);
    if (post.dests.empty()) return result_of(post);
    const std::size_t at = geometry_.data(me_) + buffers_.offset(buffer);
    memory_.publish(at, len);
    RMEM_MARK("post.published");
    announce(post, buffer,
             {buffers_.offset(buffer), static_cast<std::uint32_t>(len), 0, cls, Part::whole});
    memory_.commit();
    for (const unsigned d : post.dests) memory_.notify(d);
    after_post(at, len);
    return result_of(post);
}

template <class M, template <class> class BoardOf>
int EndpointCore<M, BoardOf>::discard(void* buf) {
    const auto buffer = find_composed(buf);
    if (!buffer) return not_composed();
    buffers_.free(*buffer);
    return BBP_OK;
}

}  // namespace billboard
