// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The counters of an engine of the udp link, by name: in the order of the lists, in its NodeBoard.

#include "rmem/ring/counters.hpp"

#include <array>
#include <cstddef>

namespace rmem::udp {

/// X(identifier, kind, unit, meaning)
#define RMEM_UDP_COUNTERS(X)                                                                      \
    X(datagrams_sent, work, "datagrams", "sent")                                                  \
    X(datagrams_received, work, "datagrams", "that the socket gave, own ones among them")         \
    X(datagrams_taken, work, "datagrams", "well-formed, authentic and new")                       \
    X(batches_sent, work, "batches", "of own writes, each sent once")                             \
    X(batches_applied, work, "batches", "of others")                                              \
    X(retransmissions_sent, retransmissions, "batches", "sent again after a NAK")                 \
    X(probes_sent, retransmissions, "batches", "sent again because no acknowledgement came")      \
    X(naks_sent, losses, "gaps", "for which this node sent a NAK")                                \
    X(repeated, retransmissions, "batches", "that came again")                                    \
    X(forwarded, retransmissions, "batches", "of dead nodes, sent to nodes that lacked them")     \
    X(acks_alone, work, "datagrams", "with nothing but acknowledgements")                         \
    X(send_no_room, losses, "datagrams", "not sent: the host's buffers were full")                \
    X(send_refused, losses, "datagrams", "not sent: firewall, no route, interface down")          \
    X(overflowed, losses, "datagrams", "dropped by the host: receive buffer full")                \
    X(receive_errors, losses, "calls", "to receive that failed")                                  \
    X(refused_truncated, refusals, "datagrams", "refused: shorter than they say")                 \
    X(refused_oversized, refusals, "datagrams", "refused: longer than this ring's")               \
    X(refused_random, refusals, "datagrams", "refused: of another program")                       \
    X(refused_version, refusals, "datagrams", "refused: of another version of this link")         \
    X(refused_ring, refusals, "datagrams", "of another ring, or of one with other settings")      \
    X(refused_malformed, refusals, "datagrams", "refused: an invalid section")                    \
    X(refused_unsigned, refusals, "datagrams",                                                    \
      "refused: no tag where a key is set, or the other way")                                     \
    X(refused_tag, refusals, "datagrams", "refused: a tag by another key")                        \
    X(refused_replayed, refusals, "datagrams", "refused: seen before, or too old to tell")        \
    X(refused_incarnation, refusals, "datagrams", "refused: of no member or another incarnation") \
    X(refused_stranger, refusals, "datagrams",                                                    \
      "refused: of incarnations that have not proved to be new")                                  \
    X(refused_namesake, refusals, "times",                                                        \
      "another process was heard that has this node's number")                                    \
    X(refused_outside, refusals, "batches", "refused: outside of the bank or the window")         \
    X(joined, members, "events", "times this node has become a member")                           \
    X(formed, members, "events", "times it has formed a new ring")                                \
    X(dropped, members, "events", "times the others had dropped it")                              \
    X(members_came, members, "events", "other nodes that became members")                         \
    X(members_left, members, "events", "other nodes that died, were dropped or left")             \
    X(requests_answered, members, "requests", "of joining nodes, for parts of the bank")          \
    X(clock_jumps, other, "events", "times another node's clock jumped")                          \
    X(deferred, other, "writes", "deferred until the timing profile's time")                      \
    X(faults_injected, other, "datagrams", "hit by RMEM_FAULTS")

inline constexpr std::size_t kUdpCounters = 48;
RMEM_DEFINE_KIND_COUNTERS(UdpCounter, kUdpCounterNames, RMEM_UDP_COUNTERS, kUdpCounters);

}  // namespace rmem::udp
