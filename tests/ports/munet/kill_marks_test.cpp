// SPDX-License-Identifier: Apache-2.0
// ctest: check marked

/// A program is killed (SIGKILL) at each RMEM_MARK of MU-Net's library, at its first pass and at a
/// later one. The endpoint is destroyed, what it had sent whole arrives in order, its partner is
/// told, and two others go on.

#include "tests/support/marks.hpp"
#include "tests/support/munet_daemon.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

namespace rmem::test {
namespace {

using namespace ports::munet;

std::vector<Death> deaths() {
    return deaths_at_marks(RMEM_SOURCE_DIR, {"ports/munet/program.cpp"}, {1, 7});
}

class MunetKilled : public ::testing::TestWithParam<Death> {};

/// Numbered messages by all ways, as they come back from an echo, forever; and to an endpoint that
/// never sends, so that it returns credit by messages of its own.
void talk(mu_addr_t echo) {
    const MuEndpoint ep, quiet;
    std::vector<char> text(5000), back(5000);
    for (std::uint32_t i = 0;; ++i) {
        const std::size_t size = std::array{8UL, 300UL, 2500UL}[i % 3];
        std::memcpy(text.data(), &i, sizeof i);
        const auto send = i % 2 == 0 ? mu_send : mu_send_DMA;
        ASSERT_EQ(send(ep, echo, text.data(), size), 0) << mu_last_error();
        ASSERT_EQ(mu_await(ep, back.data(), back.size()), static_cast<int>(size));
        ASSERT_EQ(mu_send_number(ep, quiet.address(), i), 0) << mu_last_error();
        ASSERT_EQ(mu_number(quiet), i);
    }
}

TEST_P(MunetKilled, harms_nobody_else) {
    MunetDaemon daemon;
    daemon.enter();
    const MuEndpoint echo, a, b;
    const mu_addr_t there = echo.address();
    ::setenv("RMEM_AT_MARK",  // NOLINT(concurrency-mt-unsafe): one thread
             ("kill:" + GetParam().mark + ":" + std::to_string(GetParam().pass)).c_str(), 1);
    // The marks are counted by a process, and this one passes them too: only the child is to die.
    Child doomed([&] { talk(there); });
    ::unsetenv("RMEM_AT_MARK");  // NOLINT(concurrency-mt-unsafe)
    std::vector<char> text(5000);
    mu_addr_t from{};
    std::uint32_t next = 0;
    mu_set_timeout(echo, 1'000'000'000);
    bool ended = false;
    for (std::uint32_t i = 0; !ended || mu_wait(echo, 20'000'000) == 0; ++i) {
        const int size = mu_recv(echo, text.data(), text.size(), &from);
        if (size >= 0) {
            std::uint32_t number = 0;
            std::memcpy(&number, text.data(), sizeof number);
            ASSERT_EQ(number, next++) << "in order, each once";
            mu_send(echo, from, text.data(), static_cast<std::size_t>(size));  // it may be dead
        }
        ASSERT_EQ(mu_send_number(a, b.address(), i), 0) << mu_last_error();
        ASSERT_EQ(mu_number(b), i);
        ended = ended || has_ended(doomed.pid());
    }
    EXPECT_EQ(doomed.wait(), -SIGKILL) << "it passes the mark";
    EXPECT_TRUE(eventually([&] { return daemon.active() == 3; }));
    if (next != 0) {
        EXPECT_TRUE(eventually([&] {
            const int result = mu_send(echo, from, "x", 1);
            return result == -ECONNRESET || result == -ECONNREFUSED;
        }));
    }
}

INSTANTIATE_TEST_SUITE_P(At, MunetKilled, ::testing::ValuesIn(deaths()), name_of_death);

}  // namespace
}  // namespace rmem::test
