// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The billboard's counters of a rank, in RankSlot::protocol (rmem/ring/counters.hpp).
/// Short messages are not counted here, since that would cost as much as a tenth of sending one:
/// the FIFOs' consumed counts (billboard/boards/layout.hpp) tell how many each pair has exchanged.

#include "rmem/ring/counters.hpp"

namespace billboard {

/// X(identifier, kind, unit, meaning)
#define BBP_COUNTERS(X)                                                                         \
    X(buffers_posted, work, "messages", "messages posted in the data partition")                \
    X(bytes_posted, work, "bytes", "of the messages posted")                                    \
    X(multicasts, work, "messages", "multicasts posted, whatever the number of receivers")      \
    X(segments_posted, work, "segments", "parts of messages larger than a partition")           \
    X(offers_posted, work, "messages", "messages offered to be read past the ring")             \
    X(offers_read, work, "messages", "messages read past the ring")                             \
    X(offers_unread, other, "messages", "offered messages that this rank could not read")       \
    X(collections, work, "runs", "garbage collections of the own buffers")                      \
    X(send_waits, back_pressure, "calls", "sends that had to wait for a receiver")              \
    X(peer_checks, work, "looks", "looks for dead and returned peers, while waiting or trying") \
    X(set_aside, other, "messages",                                                             \
      "messages moved to private memory on the way to another class")                           \
    X(aborts_sent, other, "messages",                                                           \
      "messages taken back because a deadline passed before their end")                         \
    X(aborts_received, losses, "messages", "such messages dropped here")                        \
    X(halves_dropped, losses, "messages", "messages whose sender died before their end")        \
    X(corrupt, refusals, "messages",                                                            \
      "messages refused because no rank of this library writes such")                           \
    X(peers_dead, members, "events", "peers found dead")                                        \
    X(peers_left, members, "events", "peers that left")                                         \
    X(peers_returned, members, "events", "peers that came back with a new incarnation")         \
    X(barriers, work, "calls", "barriers completed")

RMEM_DEFINE_KIND_COUNTERS(Counter, kCounterNames, BBP_COUNTERS, rmem::kCountersPerBlock);

}  // namespace billboard
