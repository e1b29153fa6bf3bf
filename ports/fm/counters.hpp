// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What Fast Messages count (rmem/ring/counters.hpp): enum FM_counter of ports/fm/fm.h.

#include "ports/fm/fm.h"
#include "rmem/ring/counters.hpp"

namespace ports::fm {

/// X(identifier, unit, meaning)
#define FM_COUNTER_LIST(X)                                                                        \
    X(handlers_entered, "calls", "handlers called; more than left for long: one does not return") \
    X(handlers_left, "calls", "handlers that have returned")                                      \
    X(frames_rejected, "frames", "1.0: frames returned to their senders")                         \
    X(frames_returned, "frames", "1.0: own frames that came back")                                \
    X(frames_resent, "frames", "1.0: frames sent again")                                          \
    X(acks_alone, "frames", "1.0: acknowledgements in a frame of their own")                      \
    X(sends_waiting, "calls", "sends that had to wait")                                           \
    X(frames_lost, "frames", "1.0: frames not accepted when their node died")                     \
    X(messages_cut, "messages", "2.x: messages cut off by the death of their sender")             \
    X(handlers_suspended, "events", "2.x: times a handler had to wait in FM_receive")             \
    X(credits_alone, "frames", "2.x: credit in a frame of its own")                               \
    X(invalid_handlers, "messages", "messages to a handler that there is not; dropped")           \
    X(foreign_binaries, "nodes", "nodes found to run another binary")                             \
    X(corrupt, "frames", "frames that no node of this library sends; dropped")                    \
    X(nodes_lost, "nodes", "nodes found dead or gone")

RMEM_DEFINE_COUNTERS(Counter, kCounterNames, FM_COUNTER_LIST, rmem::kCountersPerPort);

constexpr bool is_same(FM_counter documented, Counter own) {
    return static_cast<unsigned>(documented) == static_cast<unsigned>(own);
}
static_assert(kCounterNames.size() == FM_COUNTERS &&
              is_same(FM_HANDLERS_ENTERED, Counter::handlers_entered) &&
              is_same(FM_HANDLERS_LEFT, Counter::handlers_left) &&
              is_same(FM_FRAMES_REJECTED, Counter::frames_rejected) &&
              is_same(FM_FRAMES_RETURNED, Counter::frames_returned) &&
              is_same(FM_FRAMES_RESENT, Counter::frames_resent) &&
              is_same(FM_ACKS_ALONE, Counter::acks_alone) &&
              is_same(FM_SENDS_WAITING, Counter::sends_waiting) &&
              is_same(FM_FRAMES_LOST, Counter::frames_lost) &&
              is_same(FM_MESSAGES_CUT, Counter::messages_cut) &&
              is_same(FM_HANDLERS_SUSPENDED, Counter::handlers_suspended) &&
              is_same(FM_CREDITS_ALONE, Counter::credits_alone) &&
              is_same(FM_INVALID_HANDLERS, Counter::invalid_handlers) &&
              is_same(FM_FOREIGN_BINARIES, Counter::foreign_binaries) &&
              is_same(FM_CORRUPT, Counter::corrupt) && is_same(FM_NODES_LOST, Counter::nodes_lost));

}  // namespace ports::fm
