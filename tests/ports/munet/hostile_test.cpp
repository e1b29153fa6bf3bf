// SPDX-License-Identifier: Apache-2.0

/// Whatever a program writes into its own endpoint, and a broken node into its frames, honest
/// programs' messages arrive as they were sent, and the relay touches nothing but endpoints.
/// Seeded; fuzz/fuzz_relay.cpp searches further.

#include "tests/support/munet_hostile.hpp"

#include <gtest/gtest.h>

namespace rmem::test {
namespace {

TEST(MunetLiar, harms_no_honest_program) {
    for (std::uint64_t seed = 0; seed < fuzz_seeds(); ++seed) {
        ASSERT_EQ(run_beside_a_liar(Choices(seed), 2000), "") << "seed " << seed;
    }
}

}  // namespace
}  // namespace rmem::test
