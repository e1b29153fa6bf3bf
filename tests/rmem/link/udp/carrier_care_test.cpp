// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/carrier_care.hpp"

#include "tests/rmem/link/udp/fake_carrier.hpp"
#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <cerrno>

namespace rmem::udp {
namespace {

class CarrierCareTest : public ::testing::Test {
protected:
    /// Half a second in which as many were sent and refused.
    const std::string& after(std::uint64_t sent, std::uint64_t refused) {
        carrier.all.sent += sent;
        carrier.all.refused += refused;
        return care.keep(now += CarrierCare::kRefusedNs);
    }

    FakeCarrier carrier;
    CarrierCare care{carrier};
    std::int64_t now = 0;
};

TEST_F(CarrierCareTest, finds_nothing_wrong_while_some_of_what_is_sent_leaves) {
    EXPECT_EQ(after(0, 0), "");
    EXPECT_EQ(after(1, 7), "");
    EXPECT_EQ(after(0, 0), "");
    EXPECT_EQ(carrier.mended_refused, 0U);
}

TEST_F(CarrierCareTest, says_what_the_host_says_when_all_is_refused_until_it_is_not) {
    carrier.all.last_error = ENETUNREACH;
    EXPECT_NE(after(0, 3).find("the host refuses"), std::string::npos);
    EXPECT_EQ(carrier.mended_refused, 1U);
    EXPECT_NE(care.keep(now + 1), "") << "it looks only now and then";
    EXPECT_EQ(carrier.mended_refused, 1U);
    EXPECT_EQ(after(1, 0), "");
    EXPECT_EQ(carrier.mended_refused, 2U) << "the problem was there still";
}

TEST_F(CarrierCareTest, takes_no_refusal_of_a_reliable_carrier_for_a_problem) {
    carrier.reliable = true;
    EXPECT_EQ(after(0, 3), "");
}

TEST_F(CarrierCareTest, says_what_the_carrier_knows_itself) {
    carrier.trouble = "no interface";
    EXPECT_EQ(after(1, 0), "no interface");
    carrier.trouble = "";
    EXPECT_EQ(after(1, 0), "");
}

TEST_F(CarrierCareTest, checks_that_counters_do_not_go_back) {
    after(2, 0);
    carrier.all.sent = 1;
    EXPECT_BROKEN(after(0, 0));
}

}  // namespace
}  // namespace rmem::udp
