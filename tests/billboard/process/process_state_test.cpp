// SPDX-License-Identifier: Apache-2.0

/// The state that the C functions keep of a process can be exchanged for another process's: the
/// endpoint and the sentence of the last failure (rmem/base/process_state.hpp).

#include "rmem/base/process_state.hpp"
#include "billboard/bbp.h"
#include "tests/support/child.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <vector>

namespace billboard {
namespace {

using ::testing::HasSubstr;

/// The libraries' state of another process.
class OtherProcess {
public:
    template <class Body>
    void run(Body&& body) {
        exchange();
        body();
        exchange();  // undoes it
    }

private:
    void exchange() {
        for (const auto& state : states_) state->exchange();
    }

    std::vector<std::unique_ptr<rmem::sim::ProcessState>> states_ =
        rmem::sim::make_process_states();
};

class ProcessStateTest : public ::testing::Test {
protected:
    ProcessStateTest() {
        ::setenv("RMEM_RING", name_.get().c_str(), 1);
        ::setenv("RMEM_LINK", "direct", 1);
        ::setenv("RMEM_RANKS", "1", 1);
        ::setenv("RMEM_NODES", "1", 1);
        ::setenv("RMEM_RANK", "0", 1);
    }
    static void join() { ASSERT_EQ(bbp_init(nullptr, nullptr), BBP_OK) << bbp_last_error(); }
    static void is_in_no_ring() {
        EXPECT_EQ(bbp_msgavail(BBP_ANY), BBP_EINVAL);
        EXPECT_THAT(bbp_last_error(), HasSubstr("in no ring"));
    }

    rmem::test::RingName name_;
};

TEST_F(ProcessStateTest, a_fresh_process_is_in_no_ring_and_has_not_failed) {
    join();
    EXPECT_EQ(bbp_send(7, "", 1), BBP_ERANK);
    OtherProcess processes[2];
    for (OtherProcess& process : processes) {
        process.run([] {
            EXPECT_STREQ(bbp_last_error(), "");
            is_in_no_ring();
        });
    }
    EXPECT_EQ(bbp_finalize(), BBP_OK);
}

TEST_F(ProcessStateTest, each_process_finds_its_own_ring_and_failure_again) {
    join();
    EXPECT_EQ(bbp_send(0, "mine", 5), BBP_OK);
    EXPECT_EQ(bbp_send(7, "", 1), BBP_ERANK);
    const char* const sentence = bbp_last_error();
    OtherProcess other;
    other.run(is_in_no_ring);
    EXPECT_EQ(bbp_last_error(), sentence) << "who holds the address must find the sentence there";
    EXPECT_THAT(sentence, HasSubstr("no rank 7"));
    EXPECT_EQ(bbp_msgavail(0), 1);
    other.run([] { EXPECT_THAT(bbp_last_error(), HasSubstr("in no ring")); });
    char text[8] = {};
    EXPECT_EQ(bbp_recv(0, text, sizeof text, nullptr), 0);
    EXPECT_STREQ(text, "mine");
    EXPECT_EQ(bbp_finalize(), BBP_OK);
    is_in_no_ring();
}

TEST_F(ProcessStateTest, a_process_that_ends_inside_a_ring_leaves_it) {
    {
        OtherProcess other;
        other.run(join);
        EXPECT_TRUE(name_.exists());
        is_in_no_ring();
    }
    EXPECT_FALSE(name_.exists()) << "the last rank that leaves a ring removes it";
    join();
    EXPECT_EQ(bbp_finalize(), BBP_OK);
}

}  // namespace
}  // namespace billboard
