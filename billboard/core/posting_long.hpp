// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The ways of Posting for messages larger than the data partition: in parts, and offered to be
/// read past the ring (billboard/core/far.hpp); and taking back what was sent of one.
///
/// Included by billboard/core/posting.hpp.

#include "billboard/core/far.hpp"
#include "billboard/core/posting.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace billboard {

/// Whether all of its receivers may be able to read it.
template <class Own>
bool Posting<Own>::may_offer(const Post& post, std::size_t bytes) {
    return own_.far != nullptr && bytes >= rmem::kFarLeast &&
           std::all_of(post.dests.begin(), post.dests.end(),
                       [&](unsigned d) { return d != own_.me && own_.far->reaches(d, bytes); });
}

template <class Own>
int Posting<Own>::send_long(Post& post, Bytes bytes, int awaited, Deadline deadline, Class cls) {
    LongSend message{post, bytes, awaited, deadline, cls, {}, false};
    const auto end = [&] {
        post.dests.insert(post.dests.end(), message.readers.begin(), message.readers.end());
        if (message.is_begun && !post.dests.empty()) take_back(post);
    };
    try {
        int result = may_offer(post, bytes.size()) ? offer(message) : BBP_OK;
        if (result == BBP_OK) result = send_parts(message);
        if (result == BBP_OK) return result_of(post);
        end();
        return result == BBP_ETIMEDOUT ? room_timed_out(post) : result;
    } catch (...) {  // no private memory for what comes meanwhile
        end();
        throw;
    }
}

/// Offers a message and waits until all have read it, or know that they cannot. Those who have are
/// its readers then.
template <class Own>
int Posting<Own>::offer(LongSend& message) {
    auto& [post, bytes, awaited, deadline, cls, readers, is_begun] = message;
    const FarRegion region(*own_.far, bytes, own_.far_uses);
    std::array<std::byte, FarOffer::kMaxBytes> words;
    if (!region.place()) return BBP_OK;
    const std::size_t size = FarOffer{*region.place(), own_.far->name()}.write(words);
    if (size == 0) return BBP_OK;
    int result = post_part(message, {words.data(), size}, Part::offered);
    if (result != BBP_OK || post.dests.empty()) return result;
    const unsigned offered = part_buffer_;
    const HeldBuffer held(buffers_, offered);  // `read` must not get its number
    own_.count(Counter::offers_posted);
    result = post_part(message, {}, Part::read);
    if (result != BBP_OK) return result;
    const unsigned read = part_buffer_;
    result = peers_.wait_for(message.awaited, message.deadline, [&, offered] {
        strike_gone(message.post);
        return std::all_of(message.post.dests.begin(), message.post.dests.end(),
                           [&](unsigned d) { return own_.board.is_acknowledged(d, offered); })
                   ? BBP_OK
                   : BBP_EAGAIN;
    });
    if (result != BBP_OK) return result;
    decltype(post.dests) others;
    for (const unsigned d : post.dests) {
        if (own_.board.is_acknowledged(d, read)) {
            readers.push_back(d);
        } else {
            own_.far->found_no_reader(d);
            others.push_back(d);
        }
    }
    post.dests = others;
    return BBP_OK;
}

/// A receiver that has read all of it by itself takes its end alone, with the last part.
template <class Own>
int Posting<Own>::send_parts(LongSend& message) {
    auto& [post, bytes, awaited, deadline, cls, readers, is_begun] = message;
    const std::size_t len = bytes.size();
    const std::size_t part_bytes =
        std::min(kMaxPartBytes, buffers_.data_bytes() / 4 / rmem::kWordBytes * rmem::kWordBytes);
    for (std::size_t done = 0;;) {
        if (is_begun && post.dests.empty()) done = len;
        const std::size_t piece = std::min(part_bytes - (is_begun ? 0 : kTotalBytes), len - done);
        const bool is_last = done + piece == len;
        if (is_last) {
            post.dests.insert(post.dests.end(), readers.begin(), readers.end());
            readers.clear();
            if (post.dests.empty()) return BBP_OK;
        }
        const Part part = !is_begun ? Part::first : is_last ? Part::last : Part::more;
        const int result = post_part(message, bytes.subspan(done, piece), part);
        if (result != BBP_OK || is_last) return result;
        RMEM_MARK("send.part-posted");
        done += piece;
    }
}

template <class Own>
int Posting<Own>::post_part(LongSend& message, Bytes bytes, Part part) {
    const int result = peers_.wait_for(message.awaited, message.deadline, [&] {
        return try_part(message.post, bytes, message.bytes.size(), message.cls, part);
    });
    if (result == BBP_OK) message.is_begun = true;
    return result;
}

template <class Own>
int Posting<Own>::try_part(Post& post, Bytes bytes, std::size_t total, Class cls, Part part) {
    const std::size_t head = part == Part::first || part == Part::offered ? kTotalBytes : 0;
    if (const int result = ready(post, true, bytes.size() + head); result != BBP_OK) return result;
    if (post.dests.empty()) return BBP_OK;
    const auto buffer = allocate_for(post, bytes.size() + head);
    if (!buffer) return BBP_EAGAIN;
    const Descriptor d{buffers_.offset(*buffer), static_cast<std::uint32_t>(bytes.size() + head), 0,
                       cls, part};
    const std::size_t at = own_.geometry.data(own_.me) + d.offset;
    const std::uint64_t announced = total;
    if (head != 0) own_.memory.write(at, &announced, kTotalBytes);
    if (head != 0) first_part_at_ = at;
    if (!bytes.empty()) own_.memory.write(at + head, bytes.data(), bytes.size());
    announce(post, *buffer, d);
    part_buffer_ = *buffer;
    own_.count(Counter::segments_posted);
    own_.memory.commit();
    for (const unsigned dest : post.dests) own_.memory.notify(dest);
    return BBP_OK;
}

/// Takes back what has been posted of a message: from a receiver that has not looked yet by its
/// total, which needs no room, from one that is gathering it by a part that says so. (Where the
/// first part's buffer has been read and used again, it holds a later part of the same message.)
template <class Own>
void Posting<Own>::take_back(const Post& post) {
    own_.memory.post_word(first_part_at_, 0);
    own_.memory.commit();
    for (const unsigned d : post.dests) {
        aborts_due_.set(d, true);
        post_abort(d);
    }
    own_.count(Counter::aborts_sent);
}

/// Takes back a message that was sent in part. False: no room yet; it stays due.
template <class Own>
bool Posting<Own>::post_abort(unsigned d) {
    if (!own_.board.tx_room(d) || !peers_.may_post_data() || !own_.memory.room(kAnnounceBytes))
        return false;
    const auto buffer = allocate(0);
    if (!buffer) return false;
    RMEM_MARK("send.before-abort");
    own_.board.post_alone(d, *buffer, {buffers_.offset(*buffer), 0, 0, Class::user, Part::aborted});
    own_.memory.commit();
    own_.memory.notify(d);
    aborts_due_.set(d, false);
    return true;
}

}  // namespace billboard
