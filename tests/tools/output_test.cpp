// SPDX-License-Identifier: Apache-2.0
#include "tools/output.hpp"

#include "rmem/error.hpp"
#include "tests/support/tool.hpp"
#include "tools/commands.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <csignal>

namespace tools {
namespace {

using rmem::test::with_stdout;

TEST(Output, output_that_finds_the_disk_full_is_an_error) {
    const int full = ::open("/dev/full", O_WRONLY);
    with_stdout(full, [] {
        try {
            show("text");
            ADD_FAILURE() << "nothing was thrown";
        } catch (const rmem::Error& error) {
            EXPECT_EQ(error.code(), rmem::Errc::no_space);
        }
    });
    ::close(full);
}

TEST(Output, into_a_closed_pipe_ends_the_command_without_a_word) {
    struct sigaction before {};
    struct sigaction ignored {};
    ignored.sa_handler = SIG_IGN;
    ::sigaction(SIGPIPE, &ignored, &before);
    std::array<int, 2> ends{};
    ASSERT_EQ(::pipe(ends.data()), 0);
    ::close(ends[0]);
    with_stdout(ends[1], [] {
        try {
            show("text");
            ADD_FAILURE() << "nothing was thrown";
        } catch (const Ended& ended) {
            EXPECT_EQ(ended.exit_code, 128 + SIGPIPE);
        }
    });
    ::close(ends[1]);
    ::sigaction(SIGPIPE, &before, nullptr);
}

}  // namespace
}  // namespace tools
