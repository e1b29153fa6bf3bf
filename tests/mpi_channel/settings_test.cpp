// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/settings.hpp"

#include "rmem/error.hpp"

#include <gtest/gtest.h>

#include <cstdlib>

namespace mpi_channel {
namespace {

TEST(MpiSettings, messages_are_read_from_a_size_on_between_two_by_default_or_never) {
    ::setenv("RMEM_MPI_GET", "off", 1);
    EXPECT_EQ(Settings::read().get_least, kNoGets);
    ::setenv("RMEM_MPI_GET", "1M", 1);
    EXPECT_EQ(Settings::read().get_least, std::size_t{1} << 20);
    EXPECT_EQ(Settings::read().get_most, kNoGets);
    ::setenv("RMEM_MPI_GET", "often", 1);
    EXPECT_THROW(Settings::read(), rmem::Error);
    ::setenv("RMEM_MPI_GET", "8K-", 1);
    EXPECT_THROW(Settings::read(), rmem::Error);
    ::setenv("RMEM_MPI_GET", "8K-1M", 1);
    EXPECT_EQ(Settings::read().get_least, std::size_t{8} << 10);
    EXPECT_EQ(Settings::read().get_most, std::size_t{1} << 20);
    ::unsetenv("RMEM_MPI_GET");
    EXPECT_EQ(Settings::read().get_most, kGetMost);
    EXPECT_EQ(Settings::read().get_least, kGetLeast);
}

}  // namespace
}  // namespace mpi_channel
