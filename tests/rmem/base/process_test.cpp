// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/process.hpp"

#include "tests/support/child.hpp"

#include <unistd.h>

namespace rmem::test {
namespace {

unsigned own_pid() {
    return static_cast<unsigned>(::getpid());
}

TEST(ProcessTest, a_process_has_a_start_time_and_a_parent) {
    EXPECT_NE(process_start_time(own_pid()), 0U);
    EXPECT_EQ(process_parent(own_pid()), static_cast<unsigned>(::getppid()));
}

TEST(ProcessTest, a_child_names_its_parent_and_starts_no_earlier) {
    const unsigned parent = own_pid();
    run_in_child([&] {
        EXPECT_EQ(process_parent(own_pid()), parent);
        EXPECT_GE(process_start_time(own_pid()), process_start_time(parent));
    });
}

TEST(ProcessTest, one_that_does_not_exist_has_neither) {
    EXPECT_EQ(process_start_time(0x7fffffff), 0U);
    EXPECT_EQ(process_parent(0x7fffffff), 0U);
}

}  // namespace
}  // namespace rmem::test
