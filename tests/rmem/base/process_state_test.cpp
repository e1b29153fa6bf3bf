// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/process_state.hpp"

#include <gtest/gtest.h>

#include <string>

namespace rmem::sim {
namespace {

int number = 0;
std::string text;
[[maybe_unused]] const bool registered = exchanges<number, text>();

void exchange(std::vector<std::unique_ptr<ProcessState>>& states) {
    for (const auto& state : states) state->exchange();
}

TEST(ProcessState, gives_each_process_its_own_variables) {
    auto one = make_process_states(), other = make_process_states();
    number = 7;
    text = "of nobody";
    exchange(one);
    EXPECT_EQ(number, 0);
    EXPECT_EQ(text, "");
    text = "of the one";
    exchange(one);
    EXPECT_EQ(number, 7);
    exchange(other);
    EXPECT_EQ(text, "");
    exchange(other);
    exchange(one);
    EXPECT_EQ(text, "of the one");
    exchange(one);
    EXPECT_EQ(text, "of nobody");
}

}  // namespace
}  // namespace rmem::sim
