// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What happens at an endpoint, counted by the daemon (rmem/ring/counters.hpp).

#include "rmem/ring/counters.hpp"

#include <array>

namespace ports::munet {

/// X(identifier, unit, meaning)
#define MUNET_COUNTERS(X)                                                                          \
    X(sent, "messages", "messages and parts taken from the endpoint's descriptors")                \
    X(sent_bytes, "bytes", "of what was sent")                                                     \
    X(received, "messages", "messages and parts placed in its receive buffer")                     \
    X(received_bytes, "bytes", "of what was received")                                             \
    X(moved, "messages", "of those sent, the ones the daemon fetched from the send buffer")        \
    X(credits, "messages", "descriptors with nothing but credit")                                  \
    X(asked, "events", "places asked for at other endpoints")                                      \
    X(refused, "events", "places that it did not get")                                             \
    X(turned_away, "events", "senders that found no place here")                                   \
    X(undelivered, "messages", "messages whose destination was gone")                              \
    X(bad_descriptors, "descriptors", "descriptors that no library writes")                        \
    X(forged, "messages", "messages to a destination that it has not opened")                      \
    X(over_credit, "messages", "messages without credit, dropped")                                 \
    X(bad_credits, "events", "credits for what it never got")                                      \
    X(bad_consumed, "events", "claims to have consumed what was never there, or less than before") \
    X(no_room, "messages", "messages dropped because it gave credit for room that it did not make")

RMEM_DEFINE_COUNTERS(Counter, kCounterNames, MUNET_COUNTERS, rmem::kCountersPerPort);

}  // namespace ports::munet
