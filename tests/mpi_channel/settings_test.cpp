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

TEST(MpiSettings, transports_are_known_by_name) {
    for (const auto kind : {TransportKind::channel, TransportKind::billboard, TransportKind::fm,
                            TransportKind::gamma, TransportKind::dp}) {
        ::setenv("RMEM_MPI_TRANSPORT", name_of(kind), 1);
        EXPECT_EQ(Settings::read().transport, kind);
    }
    for (const char* bad : {"munet", "FM", "fm "}) {
        ::setenv("RMEM_MPI_TRANSPORT", bad, 1);
        EXPECT_THROW(Settings::read(), rmem::Error) << bad;
    }
    ::unsetenv("RMEM_MPI_TRANSPORT");
    EXPECT_EQ(Settings::read().transport, TransportKind::channel);
}

TEST(MpiSettings, collectives_are_known_by_name) {
    for (const char* good : {"off", "all", "bcast", "barrier,reduce", "allreduce,allgather"}) {
        ::setenv("RMEM_MPI_COLLECTIVES", good, 1);
        EXPECT_NO_THROW(Settings::read()) << good;
    }
    for (const char* bad : {"none", "bcast,", "bcast;reduce", ",bcast", "barrier off"}) {
        ::setenv("RMEM_MPI_COLLECTIVES", bad, 1);
        EXPECT_THROW(Settings::read(), rmem::Error) << bad;
    }
    ::unsetenv("RMEM_MPI_COLLECTIVES");
}

}  // namespace
}  // namespace mpi_channel
