// SPDX-License-Identifier: Apache-2.0
// ctest: check plain
// Where the fitted constants come from.

#include "simulator/paper/calibration.hpp"
#include "simulator/paper/experiments.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace simulator {
namespace {

TEST(Calibration, gives_the_constants_of_the_profile) {
    Testbed testbed;
    testbed.host.load_ns = testbed.host.call_ns = 1;  // the starting point does not matter
    const HostFit fit = fit_host(testbed);
    EXPECT_EQ(fit.load_ns, rmem::sim::parse_host("pentium-ii").load_ns);
    EXPECT_EQ(fit.call_ns, rmem::sim::parse_host("pentium-ii").call_ns);
    EXPECT_TRUE(fit.fits());
}

TEST(Calibration, gives_the_constant_of_the_mpi) {
    // A hundredth of the message that was fitted: the device's own looks for packets move it a
    // little.
    EXPECT_NEAR(static_cast<double>(fit_mpi(Testbed{}).message_ns),
                static_cast<double>(MpiHost{}.message_ns), 440);
}

TEST(Calibration, leaves_the_store_at_five_clocks_of_the_bus) {
    EXPECT_EQ(rmem::sim::parse_host("pentium-ii").store_ns, 150);
}

TEST(Calibration, cannot_tell_a_shorter_call_from_the_one_it_takes) {
    for (const std::int64_t call_ns : {1, 100, 200, 300, 400}) {
        const HostFit fit = fit_load(Testbed{}, call_ns);
        EXPECT_TRUE(fit.fits()) << call_ns;
        EXPECT_LE(std::abs(fit.load_ns - Testbed{}.host.load_ns), 10) << call_ns;
    }
}

TEST(Calibration, says_of_a_call_that_is_too_long_that_it_does_not_fit) {
    EXPECT_FALSE(fit_load(Testbed{}, 1000).fits());
}

}  // namespace
}  // namespace simulator
