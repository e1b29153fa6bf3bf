// SPDX-License-Identifier: Apache-2.0
// That the checks of an endpoint bite. A program of its own: a child of it, as a rank of other
// tests is, would be one that has inherited descriptors.
#include "ports/dp/service.hpp"
#include "tests/support/broken.hpp"
#include "tests/support/child.hpp"

namespace ports::dp {
namespace {

TEST(EndpointDeathTest, checks_that_what_is_offered_is_an_unread_message) {
    const rmem::test::RingName name;
    ::setenv("RMEM_RING", name.get().c_str(), 1);
    const int fd = dp_open(1);
    ::unsetenv("RMEM_RING");
    ASSERT_GE(fd, 0) << dp_last_error();
    Endpoint* const endpoint = Descriptors::find(fd);
    EXPECT_BROKEN(endpoint->offer());
    dp_close(fd);
}

}  // namespace
}  // namespace ports::dp
