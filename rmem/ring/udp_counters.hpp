// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The counters of an engine of the udp link, by name: in the order of the lists, in its NodeBoard.

#include <array>
#include <cstddef>

#include "rmem/ring/counters.hpp"

namespace rmem::udp {

/// X(identifier, unit, meaning)
#define RMEM_UDP_COUNTERS(X)                                                                  \
    X(datagrams_sent, "datagrams", "sent")                                                    \
    X(datagrams_received, "datagrams", "from the socket, own ones included")                  \
    X(datagrams_taken, "datagrams", "well-formed, authentic and new")                         \
    X(batches_sent, "batches", "of own writes, each sent once")                               \
    X(batches_applied, "batches", "of others")                                                \
    X(retransmissions_sent, "batches", "sent again because somebody lacked them")             \
    X(probes_sent, "batches", "sent again because nobody had answered")                       \
    X(naks_sent, "gaps", "that this node has requested by NAK")                               \
    X(repeated, "batches", "that came again")                                                 \
    X(forwarded, "batches", "of dead nodes, sent to nodes that lacked them")                  \
    X(acks_alone, "datagrams", "with nothing but acknowledgements")                           \
    X(send_no_room, "datagrams", "not sent: the host's buffers were full")                    \
    X(send_refused, "datagrams", "not sent: firewall, no route, interface down")              \
    X(overflowed, "datagrams", "thrown away by the host: receive buffer full")                \
    X(receive_errors, "calls", "to receive that failed")                                      \
    X(refused_truncated, "datagrams", "refused: shorter than they say")                       \
    X(refused_oversized, "datagrams", "refused: longer than this ring's")                     \
    X(refused_random, "datagrams", "refused: of another program")                             \
    X(refused_version, "datagrams", "refused: of another version of this link")               \
    X(refused_ring, "datagrams", "of another ring, or of one with other settings")            \
    X(refused_malformed, "datagrams", "refused: an invalid section")                          \
    X(refused_unsigned, "datagrams", "refused: no tag where a key is set, or the other way")  \
    X(refused_tag, "datagrams", "refused: a tag by another key")                              \
    X(refused_replayed, "datagrams", "refused: taken before, or too old to tell")             \
    X(refused_incarnation, "datagrams", "refused: of no member, or of another incarnation")   \
    X(refused_stranger, "datagrams", "refused: of incarnations not yet proved to be current") \
    X(refused_namesake, "times", "another process was heard that has this node's number")     \
    X(refused_outside, "batches", "refused: outside of the bank or the window")               \
    X(joined, "events", "times this node has become a member")                                \
    X(formed, "events", "times it has formed a new ring")                                     \
    X(dropped, "events", "times the others had dropped it")                                   \
    X(members_came, "events", "other nodes that became members")                              \
    X(members_left, "events", "other nodes that died, were dropped or left")                  \
    X(questions_answered, "questions", "of joining nodes, for parts of the bank")             \
    X(clock_jumps, "events", "times another node's clock jumped")                             \
    X(held_back, "writes", "deferred until the timing profile's time")                        \
    X(faults_injected, "datagrams", "hit by RMEM_FAULTS")

inline constexpr std::size_t kUdpCounters = 48;
RMEM_DEFINE_COUNTERS(UdpCounter, kUdpCounterNames, RMEM_UDP_COUNTERS, kUdpCounters);

}  // namespace rmem::udp
