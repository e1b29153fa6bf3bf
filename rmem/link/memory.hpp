// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The needs of a protocol from its link: the Memory concept.
///
/// Protocol code is a template on it, instantiated once per link, so that `direct` pays nothing for
/// the links that log, send or simulate. All offsets are into the bank and multiples of a word.
///
/// Order
///   Between writes of one node there is order, inside one write there is none. A flag is therefore
///   a write of its own: post_word. A reader that has seen a flag (load with acquire) may read what
///   its writer wrote before it with plain loads (`data`).
/// Room
///   Before a group of writes, at most kMaxGroupWrites, a protocol asks `room(bytes)` for the sum
///   of their bytes; once granted, the writes of the group cannot fail. No room is back-pressure:
///   wait and ask again.
/// Batches
///   What is written between two commits may travel together. `write_lazy` may wait for the next
///   commit, or for a short timer: it is for acknowledgements. Where answers take long a link may
///   offer `commit_on_wait` (CommitsOnWait): the writes leave when the caller next waits, if no
///   commit has taken them along; and `progress_to_post`, progress before a group of writes, which
///   spares a caller that has just taken a message.
/// Waiting
///   `begin_wait`, then `wait` between polls, then `end_wait`, as in rmem/ring/waiting/waiting.hpp.
///   `wait` makes progress on the link; until then a caller may poll `brief_polls()` times by
///   itself, on links where nothing needs progress to arrive. A caller that polls without `wait`
///   calls `give_way` after each look that found nothing (rmem/ring/waiting/waiting.hpp);
///   `is_crowded` says whether that gives a processor away. `notify(rank)` follows a post that
///   `rank` may be sleeping for.
/// Posts
///   A message that follows its flag's word is a write and a post_word. Where each write has its
///   price, a link may offer both in one (PostsWhole): `post(offset, words, count)`, of up to
///   kMaxPostWords, of which the first is there last.
/// Hints
///   `expect_write(offset, bytes)`: these bytes are probably written next. Where a store is the
///   transfer, their cache lines are fetched from the last reader now, so that the store need not
///   wait.
///   `expect_read(offset, bytes)`: these bytes have been announced, and are read next. Where a load
///   fetches cache lines from the writer, the writer pushes them out now.
/// Propagation
///   A link that does not time each write by itself (kReplicated is false) is given samples:
///   `stamp` just before a post_word, with what it will write, and `seen` by the rank that awaited
///   that word.
/// Membership
///   `M::Ring` and `M::Membership` are the ring's types, rmem/ring/ring.hpp's where processes are
///   real. Protocols use of a Membership, made of (shared_ptr<Ring>, Member): ring().config(),
///   incarnation(), held() and slot().protocol.
/// Bytes
///   Only whole words travel. A write may end inside a word: the rest of that word is then
///   unspecified in every bank, so protocols give each message whole words.

#include "rmem/base/clock.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <concepts>
#include <cstddef>
#include <cstdint>

namespace rmem {

template <class M>
concept Memory = requires(M m, const M c, std::size_t offset, const void* from, std::uint32_t value,
                          Deadline deadline, unsigned rank) {
    {
        M::kReplicated
        } -> std::convertible_to<bool>;  // a bank per node: payload is worth sending once
    {
        M::kFar
        } -> std::convertible_to<bool>;  // an answer takes so long that many messages are under way
    { M::kHasDescriptors } -> std::convertible_to<bool>;           // a waiting process can poll one
    { c.load(offset) } -> std::same_as<std::uint32_t>;             // acquire
    { c.data(offset, offset) } -> std::same_as<const std::byte*>;  // (offset, bytes): plain reads
    { c.own(offset) } -> std::same_as<std::byte*>;                 // compose here, then publish
    { m.room(offset) } -> std::same_as<bool>;
    m.write(offset, from, offset);  // (offset, from, bytes)
    m.publish(offset, offset);      // (offset, bytes): sends the bytes filled into `own`
    m.post_word(offset, value);     // release
    m.write_lazy(offset, value);
    m.commit();
    m.notify(rank);
    m.expect_write(offset, offset);  // (offset, bytes)
    m.expect_read(offset, offset);   // (offset, bytes)
    m.stamp(offset, value);
    m.seen(offset, value, std::int64_t{});       // (offset, value, waited since)
    { c.is_alive(rank) } -> std::same_as<bool>;  // may cost a system call
    m.progress();                                // once, without waiting
    { c.in_flight() } -> std::same_as<bool>;     // something is known to be on its way to this bank
    { c.brief_polls() } -> std::same_as<unsigned>;
    { m.is_crowded() } -> std::same_as<bool>;
    m.give_way();
    m.begin_wait();
    { m.wait(deadline) } -> std::same_as<Step>;
    m.end_wait();
    { c.now_ns() } -> std::same_as<std::int64_t>;  // the clock of deadlines
};

inline constexpr std::size_t kMaxGroupWrites = 64;
inline constexpr std::size_t kLinePostWords = kLineBytes / kWordBytes;  ///< each link has as many
/// A rank that leaves waits no longer for others: to have its writes, or to give a lock free.
inline constexpr std::int64_t kLeaveNs = 1'000'000'000;

template <class M>
concept PostsWhole = M::kMaxPostWords >= kLinePostWords&& requires(M m, std::size_t offset,
                                                                   const std::uint32_t* words) {
    m.post(offset, words, offset);  // (offset, words, count)
};

template <class M>
concept CommitsOnWait = requires(M m) {
    m.commit_on_wait();
    m.progress_to_post();
};

/// Whether the memory is of a simulated world: there checks cost no time that is measured.
template <class M>
inline constexpr bool is_simulated = requires {
    typename M::Simulated;
};

}  // namespace rmem
