// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan
#include "billboard/process/progress_thread.hpp"

#include "billboard/errors.hpp"
#include "tests/support/child.hpp"
#include "tests/support/endpoint_pair.hpp"

#include <gtest/gtest.h>

#include <array>
#include <thread>

namespace billboard {
namespace {

using test::patience;

/// Adds up the numbers that come in class gamma, and sends each back in class dp.
class Echo final : public Attendant {
public:
    explicit Echo(ProcessEndpoint& process) : process_(process) {}

    bool attend() noexcept override {
        std::uint64_t number = 0;
        bool something = false;
        while (process_.endpoint().recv(0, &number, sizeof number, nullptr, Deadline::now(),
                                        Class::gamma) == 0) {
            sum += number;
            const int sent =
                process_.endpoint().send(0, &number, sizeof number, patience(), Class::dp);
            EXPECT_EQ(sent, BBP_OK) << last_error();
            something = true;
        }
        return something;
    }
    std::uint64_t sum = 0;  ///< read while it is held

private:
    ProcessEndpoint& process_;
};

struct ProgressThreadTest : ::testing::Test {
    rmem::test::RingName name;
    test::EndpointPair pair = test::open_pair(name.get(), 65536);
    ProcessEndpoint process{std::move(pair.receiver)};
};

TEST_F(ProgressThreadTest, attends_to_what_comes_while_the_program_does_other_things) {
    Echo echo(process);
    process.attend(echo);
    for (std::uint64_t i = 1; i <= 500; ++i) {
        ASSERT_EQ(pair.sender->send(1, &i, sizeof i, patience(), Class::gamma), BBP_OK);
        std::uint64_t back = 0;
        ASSERT_EQ(pair.sender->recv(1, &back, sizeof back, nullptr, patience(), Class::dp), 1);
        ASSERT_EQ(back, i);
    }
    {
        const auto held = process.hold();
        EXPECT_EQ(echo.sum, 500U * 501 / 2);
    }
    process.dismiss(echo);
}

TEST_F(ProgressThreadTest, shares_the_endpoint_with_a_program_that_polls_and_waits_by_itself) {
    Echo echo(process);
    process.attend(echo);
    constexpr std::uint64_t kRounds = 2000;
    std::thread peer([&] {
        for (std::uint64_t i = 0; i < kRounds; ++i) {
            std::uint64_t back = 0;
            for (const Class cls : {Class::gamma, Class::user})
                EXPECT_EQ(pair.sender->send(1, &i, sizeof i, patience(), cls), BBP_OK);
            EXPECT_EQ(pair.sender->recv(1, &back, sizeof back, nullptr, patience(), Class::dp), 1);
        }
    });
    std::uint64_t in_order = 0;
    for (std::uint64_t i = 0; i < kRounds; ++i) {
        std::uint64_t number = 0;
        if (i % 3 == 0) {  // some of them by its own polls
            const auto held = process.hold();
            echo.attend();
            echo.polled();
        }
        ASSERT_EQ(process.guarded().recv(0, &number, sizeof number, nullptr, patience()), 0);
        in_order += number == i;
    }
    peer.join();
    EXPECT_EQ(in_order, kRounds);
    process.dismiss(echo);
    EXPECT_EQ(echo.sum, kRounds * (kRounds - 1) / 2);
}

TEST_F(ProgressThreadTest, is_the_same_for_several_attendants_and_ends_with_the_last) {
    for (int round = 0; round < 20; ++round) {
        Echo first(process), second(process);
        process.attend(first);
        process.attend(second);
        const std::uint64_t one = 1;
        ASSERT_EQ(pair.sender->send(1, &one, sizeof one, patience(), Class::gamma), BBP_OK);
        std::uint64_t back = 0;
        ASSERT_EQ(pair.sender->recv(1, &back, sizeof back, nullptr, patience(), Class::dp), 1);
        process.dismiss(first);
        process.dismiss(second);
        process.dismiss(second);
        EXPECT_EQ(first.sum + second.sum, 1U);
    }
}

/// Holds the endpoint twice at once, as a handler does that sends.
TEST_F(ProgressThreadTest, lets_a_handler_hold_the_endpoint_once_more) {
    process.share();
    const auto held = process.hold();
    const std::uint64_t one = 1;
    EXPECT_EQ(process.guarded().send(0, &one, sizeof one, patience()), BBP_OK);
}

}  // namespace
}  // namespace billboard
