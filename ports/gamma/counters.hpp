// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a GAMMA process counts (rmem/ring/counters.hpp). `handlers_begun` and `handlers_ended` are
/// the watchdog: where they differ, and stay, a handler does not return.

#include "rmem/ring/counters.hpp"

namespace ports::gamma {

/// X(identifier, unit, meaning)
#define GAMMA_COUNTERS(X)                                                                        \
    X(handlers_begun, "calls", "handlers begun; more than ended for long: one does not return")  \
    X(handlers_ended, "calls", "handlers that have returned")                                    \
    X(errors_raised, "errors", "errors told to an error handler, or to a waiting call")          \
    X(messages_received, "messages", "messages delivered into a port's buffer")                  \
    X(frames_sent, "frames", "frames of more than 52 bytes of a message sent")                   \
    X(frames_overrun, "frames", "frames not sent: their receiver did not read for too long")     \
    X(frames_lost, "frames", "frames that never came, as their numbers tell")                    \
    X(messages_overlong, "messages", "messages larger than their port's buffer; dropped")        \
    X(messages_broken, "messages", "messages given up before their end: loss or dead sender")    \
    X(frames_unbound, "frames", "frames to ports that are not bound; dropped")                   \
    X(frames_skipped, "frames", "later frames of messages that were dropped")                    \
    X(frames_refused, "frames", "frames that no GAMMA process writes, or not for here; dropped") \
    X(sources_stalled, "events", "times a sender was left waiting: its port was in use")         \
    X(send_waits, "frames", "frames that waited for room at their receiver")                     \
    X(barriers, "calls", "barriers completed")                                                   \
    X(peers_gone, "events", "dead or departed processes met")

RMEM_DEFINE_COUNTERS(Counter, kCounterNames, GAMMA_COUNTERS, rmem::kCountersPerPort);

}  // namespace ports::gamma
