// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A posting board's view for a receiver: the next message of one sender.
///
/// A posting board is the part of the billboard that differs between the two layouts: how a sender
/// announces a message to a receiver and how the receiver finds it in order. Both boards offer
///
///   kInlineBytes              payload that can be announced without a buffer, at most; 0 if none
///   is_short(bytes)           whether such a message can, on this ring; up to most_short()
///   posted_bytes(bytes)       what the link must have room for then
///   can_join(bytes)           whether one of two pieces can, which post_joined does
///   clear(s, epoch)           s has taken all that is for it: what former posts were found by
///   is_clear(s, epoch)        whether nothing there looks like s's first posts of this epoch
///   open_rx(s, epoch)         forget the words there: from now on s's posts of this epoch count
///   open_tx(s, epoch)         s has opened: from now on this rank may post to it
///   close(s)                  nothing is posted to s; earlier ones count as acknowledged
///   tx_room(s)                whether one more announcement to s fits
///   post_inline(s, …)         announce a short message (room was asked for)
///   describe(i, d), post(s, i)  write buffer i's descriptor, then announce it to each receiver
///   post_alone(s, i, d)       both, for a single receiver
///   busy()                    buffers that some receiver has not acknowledged
///   peek(s, a)                the next message of s, left where it is
///   take(s, a)                it is no longer the next; acknowledge(s, i) frees its buffer
///   find(first)               some sender, from `first` on in rank order, that peek would show; or
///                             -1
///   wait_begins(), wait_ends()   around a wait for messages, for samples of propagation
///   tell(s)                   lets s know at once which messages are taken
///
/// A peer's words are not trusted: an impossible flag or descriptor is shown as `corrupt`.

#include "billboard/boards/layout.hpp"

#include <cstddef>
#include <cstdint>

namespace billboard {

struct Arrival {
    const std::byte* payload = nullptr;  ///< inline messages: where the bytes are
    Descriptor descriptor;               ///< else: the buffer's bytes
    std::uint32_t length = 0;
    unsigned buffer = 0;
    unsigned place = 0;  ///< the board's own: where `take` finds it again
    Class cls = Class::user;
    bool is_inline = false;
    bool corrupt = false;
};

/// The bytes that an announcement to one receiver takes beside its payload, at most.
inline constexpr std::size_t kAnnounceBytes = rmem::kLineBytes;

/// Counters that wrap start just below the wrap, so that every run crosses it.
inline constexpr std::uint32_t kFirstCount = 0xffffffe0;
/// As others are told one: a word that nobody has written yet is the first.
constexpr std::uint32_t word_of_count(std::uint32_t count) noexcept {
    return count - kFirstCount;
}
constexpr std::uint32_t count_of_word(std::uint32_t word) noexcept {
    return word + kFirstCount;
}

/// Whether the epoch, the sum of two ranks' incarnations, is of the first ones of both. Then the
/// words of the pair are 0, as the ring was made, and need not be written: on a wire, the words
/// that all pairs begin with would take each rank the time of them all.
constexpr bool is_first_of_both(std::uint32_t epoch) noexcept {
    return epoch == 2;
}

}  // namespace billboard
