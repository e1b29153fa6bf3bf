// SPDX-License-Identifier: Apache-2.0
// ctest: full

/// As soak_test.cpp, with ten million messages (RMEM_SOAK_MESSAGES: another number) on `direct` and
/// on an instant `ring`, fewer where the ring keeps time, each message is a system call, or all ranks
/// share one thread; and through a partition that is always full.

#include "tests/support/conformance.hpp"
#include "tests/support/soak.hpp"

#include <string_view>

namespace rmem::test {
namespace {

constexpr std::uint64_t kMessages = 10'000'000;

class SoakFull : public Conformance {};
RMEM_ON_ALL_RINGS(SoakFull);

TEST_P(SoakFull, delivers_millions_of_messages_once_in_order_intact) {
    RingSetup ranks = setup(4);
    ranks.deadline = std::chrono::seconds(580);
    const bool is_slow = std::string_view(GetParam().timing) != "none" ||
                         std::string_view(GetParam().link) == "udp" || is_simulated();
    run_soak(ranks, soak_messages(kMessages) / (is_slow ? GetParam().thrift : 1), soak_seed() + 1);
}

TEST_P(SoakFull, delivers_through_a_partition_that_is_always_full) {
    RingSetup ranks = setup(5);
    ranks.partition = 2048;
    ranks.deadline = std::chrono::seconds(580);
    run_soak(ranks, soak_messages(kMessages) / 20 / GetParam().thrift, soak_seed() + 2);
}

}  // namespace
}  // namespace rmem::test
