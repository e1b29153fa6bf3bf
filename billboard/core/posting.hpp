// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Posting: this rank's buffers, multicasts, messages larger than a partition.
///
/// A message goes one of five ways:
///   inline    a short one, in the receiver's slot or lines (layout `inline`)
///   buffer    in the data partition, announced by its descriptor
///   filling   the same, but announced first and then filled in pieces, so that the receiver copies
///             out while the sender copies in (large messages to one receiver on a shared bank)
///   parts     larger than the data partition: as buffers one after the other
///   offered   the same, to ranks that can read it past the ring (core/far.hpp)
///
/// Invariants
///   What is announced lies in this rank's data partition, in a buffer that no receiver has still
///   to read; and never while the former incarnation's may be read: Peers (I3).
///   A rank is posted to only when it is connected, and has been told of what is taken back.
/// Asks Peers who can be posted to; and Reassembly, since a rank that sends to itself makes room by
/// taking its oldest messages aside.
/// Thread safety: one thread. Errors: billboard/endpoint.hpp.

#include "billboard/boards/buffers.hpp"
#include "billboard/core/aborts_due.hpp"
#include "billboard/core/far.hpp"
#include "billboard/core/own_rank.hpp"
#include "billboard/core/peers.hpp"
#include "billboard/core/reassembly.hpp"
#include "billboard/core/set_aside.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/marks.hpp"

#include <fmt/format.h>
#include <boost/container/small_vector.hpp>

#include <algorithm>
#include <optional>
#include <span>
#include <tuple>
#include <vector>

namespace billboard {

inline constexpr std::size_t kFillBytes = 64 * 1024;  ///< piece of a message posted while filling
inline constexpr std::size_t kFillFromBytes =
    64 * 1024;  ///< messages from this size on are filled so
/// A multicast in one bank is copied to each receiver up to this sum: then none has to look for it
/// elsewhere.
inline constexpr std::size_t kMaxCopiedBytes = 4096;
constexpr bool is_copied_to_each(std::size_t receivers, std::size_t bytes) {
    return receivers == 1 || bytes <= kInlineBytes || receivers * bytes <= kMaxCopiedBytes;
}
inline constexpr std::size_t kMaxPartBytes = 256 * 1024;  ///< of a message larger than a partition

/// A message, one piece behind the other. Only `body` may be larger than a partition.
struct Pieces {
    Bytes head, body;
    std::size_t size() const noexcept { return head.size() + body.size(); }
};
inline Pieces whole(const void* buf, std::size_t len) noexcept {
    return {{}, {static_cast<const std::byte*>(buf), len}};
}

template <class Own>
class Posting {
public:
    Posting(Own& own, Peers<Own>& peers, Reassembly<Own>& reassembly, AbortsDue& aborts_due)
        : own_(own),
          peers_(peers),
          reassembly_(reassembly),
          aborts_due_(aborts_due),
          buffers_(own.geometry.data_bytes()) {}

    [[nodiscard]] std::size_t data_bytes() const noexcept { return buffers_.data_bytes(); }

    // ---- The longer ways of Endpoint's calls, for all that EndpointCore does not do at once.
    // Not inlined: what they need on the stack would cost the short ways as much.
    [[nodiscard]] [[gnu::noinline]] int send(int dest, const void* buf, std::size_t len,
                                             Deadline deadline, Class cls);
    [[nodiscard]] [[gnu::noinline]] int mcast(std::span<const int> dests, const void* buf,
                                              std::size_t len, Deadline deadline, Class cls);
    [[nodiscard]] int send_joined(std::span<const int> dests, const Pieces& pieces, Class cls);
    [[nodiscard]] int compose(std::size_t len, void** buf);
    [[nodiscard]] int post(std::span<const int> dests, void* buf, std::size_t len,
                           Deadline deadline, Class cls);
    [[nodiscard]] int discard(void* buf);
    /// Two pieces as one, until the next call.
    [[nodiscard]] Bytes joined(const Pieces& pieces);

private:
    using Board = typename Own::Board;
    static constexpr bool kReplicated = Own::Memory::kReplicated;

    /// The receivers of one post that are still to be reached.
    struct Post {
        boost::container::small_vector<unsigned, 8> dests;  // no allocation for a few
        boost::container::small_vector<unsigned, 1> gone;   ///< struck from it
    };

    /// A message larger than a partition.
    struct LongSend {
        Post& post;  ///< those who are still to get its bytes
        Bytes bytes;
        int awaited;
        Deadline deadline;
        Class cls;
        std::vector<unsigned> readers;  ///< who have read them
        bool is_begun;                  ///< something of it has been posted
    };

    int check(std::span<const int> dests, const Pieces& pieces) const;
    int send_one(int dest, const Pieces& pieces, Deadline deadline, Class cls);
    int send_many(std::span<const int> dests, const Pieces& pieces, Deadline deadline, Class cls);
    [[nodiscard]] int post_to(Post& post, const Pieces& pieces, Deadline deadline, Class cls);
    [[nodiscard]] int try_post(Post& post, const Pieces& pieces, Class cls);
    int ready(Post& post, bool needs_data, std::size_t bytes);
    [[nodiscard]] bool self_room();
    bool post_abort(unsigned d);
    [[nodiscard]] std::optional<unsigned> allocate(std::size_t bytes);
    [[nodiscard]] std::optional<unsigned> allocate_for(const Post& post, std::size_t bytes);
    void announce(const Post& post, unsigned buffer, const Descriptor& d);
    void fill(unsigned buffer, const void* buf, std::size_t len);
    void after_post(std::size_t at, std::size_t len);
    void take_back(const Post& post);
    void strike_gone(Post& post);
    [[nodiscard]] int send_long(Post& post, Bytes bytes, int awaited, Deadline deadline, Class cls);
    [[nodiscard]] bool may_offer(const Post& post, std::size_t bytes);
    [[nodiscard]] int offer(LongSend& message);
    [[nodiscard]] int send_parts(LongSend& message);
    [[nodiscard]] int post_part(LongSend& message, Bytes bytes, Part part);
    [[nodiscard]] int try_part(Post& post, Bytes bytes, std::size_t total, Class cls, Part part);
    [[nodiscard]] int result_of(const Post& post);
    int room_timed_out(const Post& post) const;
    std::optional<unsigned> find_composed(const void* buf) const;
    [[nodiscard]] int try_post_composed(Post& post, unsigned buffer, std::size_t len, Class cls);
    /// Or have gone since they were looked at: then nobody reads it.
    bool are_connected(const Post& post) const {
        return std::all_of(post.dests.begin(), post.dests.end(),
                           [&](unsigned d) { return peers_.is_connected(d) || peers_.is_gone(d); });
    }
    [[nodiscard]] bool may_be_inline(const Post& post, std::size_t len) const {
        return (post.dests.size() == 1 || !kReplicated) && own_.board.is_short(len);
    }
    /// Where a buffer lies in the bank.
    std::size_t place_of(unsigned buffer) const {
        return own_.geometry.data(own_.me) + buffers_.offset(buffer);
    }

    Own& own_;
    Peers<Own>& peers_;
    Reassembly<Own>& reassembly_;
    AbortsDue& aborts_due_;
    Buffers buffers_;
    std::size_t first_part_at_ = 0;  ///< of the message that is being sent in parts
    unsigned part_buffer_ = 0;       ///< of the part posted last
    std::vector<std::byte> joined_;  ///< two pieces, where they cannot be joined in place
};

template <class Own>
int Posting<Own>::check(std::span<const int> dests, const Pieces& pieces) const {
    for (const Bytes piece : {pieces.head, pieces.body}) {
        if (piece.data() != nullptr || piece.empty()) continue;
        return fail(BBP_EINVAL,
                    fmt::format("the message is a null pointer with length {}", piece.size()));
    }
    if (const int bad = own_.check_ranks(dests); bad != BBP_OK) return bad;
    if (pieces.size() <= kMaxMessageBytes) return BBP_OK;
    return fail(BBP_ESIZE,
                fmt::format("a message of {} bytes is larger than the {} that can be sent; "
                            "send it in pieces",
                            pieces.size(), kMaxMessageBytes));
}

template <class Own>
int Posting<Own>::send(int dest, const void* buf, std::size_t len, Deadline deadline, Class cls) {
    return send_one(dest, whole(buf, len), deadline, cls);
}

template <class Own>
int Posting<Own>::mcast(std::span<const int> dests, const void* buf, std::size_t len,
                        Deadline deadline, Class cls) {
    return send_many(dests, whole(buf, len), deadline, cls);
}

template <class Own>
int Posting<Own>::send_joined(std::span<const int> dests, const Pieces& pieces, Class cls) {
    return dests.size() == 1 ? send_one(dests[0], pieces, Deadline::now(), cls)
                             : send_many(dests, pieces, Deadline::now(), cls);
}

template <class Own>
int Posting<Own>::send_one(int dest, const Pieces& pieces, Deadline deadline, Class cls) {
    if (const int bad = check({&dest, 1}, pieces); bad != BBP_OK) return bad;
    Post post{{static_cast<unsigned>(dest)}, {}};
    const int result = post_to(post, pieces, deadline, cls);
    return result == BBP_EPEER ? peers_.gone_error(static_cast<unsigned>(dest)) : result;
}

template <class Own>
int Posting<Own>::send_many(std::span<const int> dests, const Pieces& pieces, Deadline deadline,
                            Class cls) {
    if (const int bad = check(dests, pieces); bad != BBP_OK) return bad;
    Post post{{dests.begin(), dests.end()}, {}};
    const int result = post_to(post, pieces, deadline, cls);
    if (result == BBP_OK) own_.count(Counter::multicasts);
    if (result != BBP_EPEER) return result;
    return fail(BBP_EPEER,
                fmt::format("{} of the multicast's {} receivers are dead or have left; the "
                            "others have got it",
                            post.gone.size(), dests.size()));
}

template <class Own>
Bytes Posting<Own>::joined(const Pieces& pieces) {
    joined_.resize(pieces.size());
    std::copy(pieces.body.begin(), pieces.body.end(),
              std::copy(pieces.head.begin(), pieces.head.end(), joined_.begin()));
    return joined_;
}

template <class Own>
int Posting<Own>::post_to(Post& post, const Pieces& pieces, Deadline deadline, Class cls) {
    own_.look_before_post();
    const int awaited = post.dests.size() == 1 ? static_cast<int>(post.dests.front()) : BBP_ANY;
    const std::size_t len = pieces.size();
    if (len <= buffers_.data_bytes()) {
        bool waited = false;
        const int result = peers_.wait_for(awaited, deadline, [&] {
            const int tried = try_post(post, pieces, cls);
            if (tried == BBP_EAGAIN && !waited) own_.count(Counter::send_waits);
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
    return send_long(post, pieces.body, awaited, deadline, cls);
}

/// What is told of a post that has reached all it can.
template <class Own>
int Posting<Own>::result_of(const Post& post) {
    for (const unsigned d : post.gone) std::ignore = peers_.tell_gone(d);  // one sentence for all
    return post.gone.empty() ? BBP_OK : BBP_EPEER;
}

template <class Own>
int Posting<Own>::room_timed_out(const Post& post) const {
    return send_timed_out(std::vector<int>(post.dests.begin(), post.dests.end()));
}

template <class Own>
void Posting<Own>::strike_gone(Post& post) {
    const auto is_gone = [&](unsigned d) {
        if (peers_.may_post_to(d)) return false;
        post.gone.push_back(d);
        return true;
    };
    post.dests.erase(std::remove_if(post.dests.begin(), post.dests.end(), is_gone),
                     post.dests.end());
}

/// Whether all receivers can be posted to; the dead are struck from the list.
template <class Own>
int Posting<Own>::ready(Post& post, bool needs_data, std::size_t bytes) {
    strike_gone(post);
    bool all = true;
    for (const unsigned d : post.dests) {
        if (aborts_due_.to(d) && !post_abort(d)) all = false;
        if (!own_.board.tx_room(d) && !(d == own_.me && self_room())) all = false;
    }
    if (!all || (needs_data && !peers_.may_post_data())) return BBP_EAGAIN;
    const std::size_t written = needs_data ? bytes : Board::posted_bytes(bytes);
    return own_.memory.room(written + post.dests.size() * kAnnounceBytes) ? BBP_OK : BBP_EAGAIN;
}

/// A rank that sends to itself cannot wait for itself: it takes its oldest messages aside instead.
template <class Own>
bool Posting<Own>::self_room() {
    Arrival a;
    while (own_.board.peek(own_.me, a)) {
        if (a.corrupt) {
            own_.drop(own_.me, a, Counter::corrupt);
        } else if (!reassembly_.set_aside(own_.me, a)) {
            return false;
        }
    }
    own_.board.tell(own_.me);
    return own_.board.tx_room(own_.me);
}

template <class Own>
int Posting<Own>::try_post(Post& post, const Pieces& pieces, Class cls) {
    const auto& [head, body] = pieces;
    const std::size_t len = pieces.size();
    // Replicated banks get a multicast's payload once, whatever its size.
    const bool is_inline = Board::kInlineBytes != 0 && head.empty() && may_be_inline(post, len) &&
                           is_copied_to_each(post.dests.size(), len);
    if (const int result = ready(post, !is_inline, len); result != BBP_OK) return result;
    if (post.dests.empty()) return result_of(post);
    std::size_t at = 0;
    if (is_inline) {
        for (const unsigned d : post.dests) own_.board.post_inline(d, cls, body.data(), len);
    } else {
        const auto buffer = allocate_for(post, len);
        if (!buffer) return BBP_EAGAIN;
        Descriptor d{buffers_.offset(*buffer), static_cast<std::uint32_t>(len), 0, cls,
                     Part::whole};
        at = own_.geometry.data(own_.me) + d.offset;
        if (Board::kFills && len >= kFillFromBytes && post.dests.size() == 1 && head.empty()) {
            d.part = Part::filling;
            own_.memory.post_word(own_.geometry.filled(own_.me, *buffer), 0);
            announce(post, *buffer, d);
            RMEM_MARK("send.announced-unfilled");
            fill(*buffer, body.data(), len);
        } else {
            if (!head.empty()) own_.memory.write(at, head.data(), head.size());
            own_.memory.write(at + head.size(), body.data(), body.size());
            RMEM_MARK("send.data-written");
            announce(post, *buffer, d);
        }
        own_.count(Counter::buffers_posted);
        own_.count(Counter::bytes_posted, len);
    }
    own_.memory.commit();
    for (const unsigned d : post.dests) own_.memory.notify(d);
    if (!is_inline) after_post(at, len);
    return result_of(post);
}

/// What lies `at` is read now; and a rank that sends a message in a buffer often sends another of
/// that size.
template <class Own>
void Posting<Own>::after_post(std::size_t at, std::size_t len) {
    own_.memory.expect_read(at, len);
    const std::size_t next = buffers_.end();
    if (next + len <= buffers_.data_bytes())
        own_.memory.expect_write(own_.geometry.data(own_.me) + next, len);
}

template <class Own>
void Posting<Own>::announce(const Post& post, unsigned buffer, const Descriptor& d) {
    RMEM_CHECK_IF(Own::kIsSimulated, d.offset == buffers_.offset(buffer) &&
                                         d.length <= buffers_.size(buffer) && are_connected(post));
    if (post.dests.size() == 1) {
        own_.board.post_alone(post.dests.front(), buffer, d);
        return;
    }
    if constexpr (kReplicated || Board::kInlineBytes == 0) {
        own_.board.describe(buffer, d);
        RMEM_MARK("mcast.described");
        for (const unsigned dest : post.dests) {
            own_.board.post(dest, buffer);
            RMEM_MARK("mcast.one-announced");
        }
    } else {
        for (const unsigned dest : post.dests) {
            own_.board.post_alone(dest, buffer, d);
            RMEM_MARK("mcast.one-announced");
        }
    }
}

template <class Own>
void Posting<Own>::fill(unsigned buffer, const void* buf, std::size_t len) {
    const std::size_t at = place_of(buffer);
    for (std::size_t done = 0; done < len;) {
        const std::size_t piece = std::min(kFillBytes, len - done);
        own_.memory.write(at + done, static_cast<const std::byte*>(buf) + done, piece);
        done += piece;
        own_.memory.post_word(own_.geometry.filled(own_.me, buffer),
                              static_cast<std::uint32_t>(done));
        RMEM_MARK("send.piece-filled");
    }
}

/// A buffer, after garbage collection if need be. Large ones collect first: memory that was used
/// just now is still in the cache.
template <class Own>
std::optional<unsigned> Posting<Own>::allocate(std::size_t bytes) {
    if (!own_.board.may_describe()) return std::nullopt;
    if (bytes < kFillFromBytes) {
        if (const auto buffer = buffers_.allocate(bytes)) return buffer;
    }
    own_.count(Counter::collections);
    RMEM_MARK("collect.before");
    buffers_.collect(own_.board.busy());
    RMEM_MARK("collect.after");
    return buffers_.allocate(bytes);
}

/// As `allocate`; a rank that waits for room that only it can make, makes it.
template <class Own>
std::optional<unsigned> Posting<Own>::allocate_for(const Post& post, std::size_t bytes) {
    if (const auto buffer = allocate(bytes)) return buffer;
    const bool to_self =
        std::find(post.dests.begin(), post.dests.end(), own_.me) != post.dests.end();
    return to_self && self_room() ? allocate(bytes) : std::nullopt;
}

template <class Own>
int Posting<Own>::compose(std::size_t len, void** buf) {
    if (buf == nullptr)
        return fail(BBP_EINVAL, "the place for the buffer's address is a null pointer");
    if (len > buffers_.data_bytes()) {
        return fail(BBP_ESIZE,
                    fmt::format("a buffer of {} bytes is larger than a partition's {}; use "
                                "bbp_send, or a larger RMEM_PARTITION",
                                len, buffers_.data_bytes()));
    }
    // The link is asked only where it is waited for: a program that composes posts next, which asks
    // it, and a link that is asked twice between two messages gathers them no more.
    auto buffer = peers_.may_post_data() ? allocate(len) : std::nullopt;
    if (!buffer) {
        own_.memory.progress();
        if (peers_.may_post_data()) buffer = allocate(len);
    }
    if (!buffer) return own_.not_now();
    buffers_.hold(*buffer);
    *buf = own_.memory.own(place_of(*buffer));
    return BBP_OK;
}

/// The buffer that was composed at this address.
template <class Own>
std::optional<unsigned> Posting<Own>::find_composed(const void* buf) const {
    for (unsigned i = 0; i < kBuffers; ++i) {
        if (!buffers_.is_held(i)) continue;
        if (own_.memory.own(place_of(i)) == buf) return i;
    }
    return std::nullopt;
}

[[nodiscard]] inline int not_composed() {
    return fail(BBP_EINVAL,
                "the buffer was not composed by this rank, or was posted before; call bbp_compose "
                "for each message");
}

/// A buffer stays composed until it can be posted.
template <class Own>
int Posting<Own>::post(std::span<const int> dests, void* buf, std::size_t len, Deadline deadline,
                       Class cls) {
    if (const int bad = check(dests, whole(buf, len)); bad != BBP_OK) return bad;
    const auto buffer = find_composed(buf);
    if (!buffer) return not_composed();
    if (len > buffers_.size(*buffer)) {
        return fail(
            BBP_ESIZE,
            fmt::format(
                "the composed buffer has {} bytes, and the message {}; compose a larger one",
                buffers_.size(*buffer), len));
    }
    own_.look_before_post();
    const int awaited = dests.size() == 1 ? dests[0] : BBP_ANY;
    Post post{{dests.begin(), dests.end()}, {}};
    const int result = peers_.wait_for(awaited, deadline,
                                       [&] { return try_post_composed(post, *buffer, len, cls); });
    if (result == BBP_ETIMEDOUT) return room_timed_out(post);
    if (result != BBP_EPEER) return result;
    if (dests.size() == 1) return peers_.gone_error(static_cast<unsigned>(dests[0]));
    return fail(BBP_EPEER, "some of the receivers are dead or have left; the others have got it");
}

template <class Own>
int Posting<Own>::try_post_composed(Post& post, unsigned buffer, std::size_t len, Class cls) {
    if (const int result = ready(post, true, len); result != BBP_OK) return result;
    buffers_.release_hold(buffer);
    if (post.dests.empty()) return result_of(post);
    const std::size_t at = place_of(buffer);
    own_.memory.publish(at, len);
    RMEM_MARK("post.published");
    announce(post, buffer,
             {buffers_.offset(buffer), static_cast<std::uint32_t>(len), 0, cls, Part::whole});
    own_.memory.commit();
    for (const unsigned d : post.dests) own_.memory.notify(d);
    after_post(at, len);
    return result_of(post);
}

template <class Own>
int Posting<Own>::discard(void* buf) {
    const auto buffer = find_composed(buf);
    if (!buffer) return not_composed();
    buffers_.free(*buffer);
    return BBP_OK;
}

}  // namespace billboard

#include "billboard/core/posting_long.hpp"
