// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Names of what Fast Messages count (enum FM_counter), for tools.

#include "ports/fm/fm.h"
#include "rmem/ring/counters.hpp"

#include <array>
#include <cstddef>

namespace ports::fm {

/// X(FM_counter, name, unit, meaning), in the order of the enum
#define FM_COUNTER_NAMES(X)                                                                        \
    X(FM_HANDLERS_ENTERED, handlers_entered, "calls",                                              \
      "handlers called; more than left for long: one does not return")                             \
    X(FM_HANDLERS_LEFT, handlers_left, "calls", "handlers that have returned")                     \
    X(FM_FRAMES_REJECTED, frames_rejected, "frames", "1.0: frames returned to their senders")      \
    X(FM_FRAMES_RETURNED, frames_returned, "frames", "1.0: own frames that came back")             \
    X(FM_FRAMES_RESENT, frames_resent, "frames", "1.0: frames sent again")                         \
    X(FM_ACKS_ALONE, acks_alone, "frames", "1.0: acknowledgements in a frame of their own")        \
    X(FM_SENDS_WAITING, sends_waiting, "calls", "sends that had to wait")                          \
    X(FM_FRAMES_LOST, frames_lost, "frames", "1.0: frames not accepted when their node died")      \
    X(FM_MESSAGES_CUT, messages_cut, "messages", "2.x: messages whose sender died in their midst") \
    X(FM_HANDLERS_SUSPENDED, handlers_suspended, "events",                                         \
      "2.x: times a handler had to wait in FM_receive")                                            \
    X(FM_CREDITS_ALONE, credits_alone, "frames", "2.x: credit in a frame of its own")              \
    X(FM_INVALID_HANDLERS, invalid_handlers, "messages",                                           \
      "messages to a handler that there is not; dropped")                                          \
    X(FM_FOREIGN_BINARIES, foreign_binaries, "nodes", "nodes found to run another binary")         \
    X(FM_CORRUPT, corrupt, "frames", "frames that no node of this library sends; dropped")         \
    X(FM_NODES_LOST, nodes_lost, "nodes", "nodes found dead or gone")

inline constexpr std::array<rmem::CounterName, FM_COUNTERS> kCounterNames = {{
#define X(id, name, unit, meaning) {#name, unit, meaning},
    FM_COUNTER_NAMES(X)
#undef X
}};
static_assert(kCounterNames.size() <= rmem::kCountersPerPort);

inline constexpr std::array<FM_counter, FM_COUNTERS> kCounterOrder = {
#define X(id, name, unit, meaning) id,
    FM_COUNTER_NAMES(X)
#undef X
};
static_assert([] {
    for (unsigned i = 0; i < FM_COUNTERS; ++i) {
        if (kCounterOrder[i] != i) return false;
    }
    return true;
}());

}  // namespace ports::fm
