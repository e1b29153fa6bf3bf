// SPDX-License-Identifier: Apache-2.0
// ctest: full

/// Random messages and multicasts among 4 ranks, each delivered once, in order, intact, on every
/// kind of ring (tests/support/soak.hpp says how that is checked). RMEM_SOAK_MESSAGES and
/// RMEM_SOAK_SEED change the run; by hand, RMEM_SOAK_MESSAGES=10000000.

#include "tests/support/soak.hpp"
#include "tests/support/conformance.hpp"

namespace rmem::test {
namespace {

constexpr std::uint64_t kSoakMessages = 200'000;
constexpr std::uint64_t kLargeMessages = 2'000;

class Soak : public Conformance {};
RMEM_ON_ALL_RINGS(Soak);

TEST_P(Soak, delivers_each_message_once_in_order_intact) {
    RingSetup ranks = setup(4);
    ranks.deadline = std::chrono::seconds(110);
    run_soak(ranks, soak_messages(kSoakMessages) / GetParam().thrift, soak_seed());
}

/// A smaller partition and larger messages, so that many go in parts and many are taken back.
TEST_P(Soak, delivers_messages_larger_than_a_partition_among_others) {
    RingSetup ranks = setup(4);
    ranks.partition = 4096;
    ranks.deadline = std::chrono::seconds(110);
    run_soak(ranks, soak_messages(kLargeMessages) / GetParam().thrift, soak_seed(), 5 * 4096);
}

TEST_P(Soak, delivers_through_a_partition_that_is_always_full) {
    RingSetup ranks = setup(5);
    ranks.partition = 2048;
    ranks.deadline = std::chrono::seconds(110);
    run_soak(ranks, soak_messages(kSoakMessages) / 20 / GetParam().thrift, soak_seed() + 2);
}

}  // namespace
}  // namespace rmem::test
