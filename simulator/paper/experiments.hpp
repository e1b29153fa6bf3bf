// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The paper's measurements of its protocol, repeated in a simulated world.
///
/// A waiting rank polls, so it sees the awaited word up to a poll late, and two ranks that answer
/// each other at equal intervals meet the same delay each time. So every figure here is a mean over
/// the phases between sender and poll: ranks think for some nanoseconds more each round, which is
/// taken off again, or wait a while before they begin.
///
/// Units: picoseconds of virtual time, since means of nanoseconds are not whole. Equal testbeds
/// give equal results. Errors and thread safety: simulator/paper/worlds.hpp.

#include "simulator/paper/worlds.hpp"

#include <cstddef>
#include <cstdint>

namespace simulator {

/// Half a round trip between ranks 0 and 1, as the paper measures: from the call of bbp_send to the
/// return of the bbp_recv that has the message.
std::int64_t one_way_ps(const Testbed& testbed, std::size_t bytes);

/// From the call of bbp_mcast by rank 0 until the last of ranks 1 to `receivers`, which are
/// waiting, has it: returns from bbp_recv. A world has one clock, so this needs no answer.
std::int64_t multicast_ps(const Testbed& testbed, std::size_t bytes, unsigned receivers);

/// The same, as far as hosts without a common clock can measure it: the last receiver answers with
/// a message of that size, whose one-way time is taken off.
std::int64_t multicast_by_answer_ps(const Testbed& testbed, std::size_t bytes, unsigned receivers);

/// One of many bbp_barriers of all ranks, one after the other; how they work: testbed.barrier.
std::int64_t barrier_ps(const Testbed& testbed);

/// A multicast to all other ranks, and a barrier, in one world: with many ranks, most time goes
/// into their joining.
struct Collectives {
    std::int64_t multicast_ps = 0, barrier_ps = 0;
};
Collectives collectives(const Testbed& testbed, std::size_t bytes);

}  // namespace simulator
