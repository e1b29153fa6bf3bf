// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A long run of random messages among some ranks, each of which must arrive once, in order,
/// intact.
///
/// Sender s's messages follow from (seed, s): to whom (one rank, or several as a multicast), of
/// what size, with what bytes. A receiver follows the plans of all senders, so it knows the next
/// message of each to the last byte: a lost, doubled, torn, misdirected or overtaken one is seen at
/// once. Ranks only try, and receive while they cannot send, so they never wait for each other.
/// Some messages are viewed in place and released out of order, some are composed in place and
/// posted, with room that is composed in and discarded before. With `setup.partition` smaller than
/// `largest`, some are larger than a partition: a send of these cannot be a try, so it has a short
/// deadline, and a message taken back at its end is sent again.

#include "tests/support/rank_processes.hpp"

#include <cstdint>
#include <vector>

namespace rmem::test {

/// One message of a sender's plan.
struct PlannedMessage {
    std::vector<int> dests;
    std::size_t size = 0;
    std::uint64_t seed = 0;
    bool composed = false;   ///< it is composed in place and posted
    bool discarded = false;  ///< some room is composed in and discarded before it
};

/// The messages of one sender, one after the other.
class SoakPlan {
public:
    SoakPlan(std::uint64_t seed, int sender, int ranks, std::size_t largest,
             std::uint64_t messages);

    bool done() const { return made_ == messages_; }
    std::uint64_t planned() const { return messages_; }
    /// The next message.
    const PlannedMessage& next();
    /// The next message that goes to `receiver`; null when there is none left.
    const PlannedMessage* next_for(int receiver);

private:
    std::uint64_t state_;
    int ranks_;
    std::size_t largest_;
    std::uint64_t messages_;
    std::uint64_t made_ = 0;
    PlannedMessage message_;
};

/// One rank's part of such a run, with this many messages of each rank; ends when all have had
/// theirs.
void soak(Rank& me, std::uint64_t messages_each, std::uint64_t seed, std::size_t largest);

/// Runs `messages` (in all) of up to `largest` bytes (0: a partition) among the ranks of `setup`;
/// failures are gtest's.
void run_soak(const RingSetup& setup, std::uint64_t messages, std::uint64_t seed,
              std::size_t largest = 0);

/// RMEM_SOAK_MESSAGES and RMEM_SOAK_SEED, or these values: of the messages a tenth in a sanitized
/// build, whose messages take ten times as long.
std::uint64_t soak_messages(std::uint64_t by_default);
std::uint64_t soak_seed();

}  // namespace rmem::test
