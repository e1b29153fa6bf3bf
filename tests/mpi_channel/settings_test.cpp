// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/settings.hpp"

#include "rmem/error.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

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
    ::setenv("RMEM_MPI_GET", "2M-16K", 1);
    EXPECT_THROW(Settings::read(), rmem::Error);
    ::setenv("RMEM_MPI_GET", "8K-1M", 1);
    EXPECT_EQ(Settings::read().get_least, std::size_t{8} << 10);
    EXPECT_EQ(Settings::read().get_most, std::size_t{1} << 20);
    ::unsetenv("RMEM_MPI_GET");
    EXPECT_EQ(Settings::read().get_least, kNoGets) << "the channel's bulk is faster";
    ::setenv("RMEM_MPI_TRANSPORT", "fm", 1);
    EXPECT_EQ(Settings::read().get_most, kGetMost);
    EXPECT_EQ(Settings::read().get_least, kGetLeast);
    ::unsetenv("RMEM_MPI_TRANSPORT");
}

TEST(MpiSettings, transports_are_known_by_name) {
    for (const auto kind : {TransportKind::channel, TransportKind::fm}) {
        ::setenv("RMEM_MPI_TRANSPORT", name_of(kind), 1);
        EXPECT_EQ(Settings::read().transport, kind);
    }
    for (const char* bad : {"gamma", "FM", "fm "}) {
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

/// What Settings::read() says is wrong.
std::string complaint() {
    try {
        Settings::read();
        return {};
    } catch (const rmem::Error& error) {
        return error.sentence();
    }
}

TEST(MpiSettings, say_which_variable_is_wrong_what_it_is_and_what_it_may_be) {
    struct Case {
        const char *name, *value, *allowed;
    };
    for (const Case& c :
         {Case{"RMEM_MPI_TRANSPORT", "foo", "channel, fm"}, Case{"RMEM_MPI_GET", "foo", "off"},
          Case{"RMEM_MPI_GET", "2M-1K", "16K-2M"}, Case{"RMEM_MPI_COLLECTIVES", "foo", "off, all"},
          Case{"RMEM_MPI_LOCK", "yes", "0 or 1"}}) {
        ::setenv(c.name, c.value, 1);
        const std::string said = complaint();
        ::unsetenv(c.name);
        for (const char* part : {c.name, c.value, c.allowed})
            EXPECT_NE(said.find(part), std::string::npos) << part << " is not in: " << said;
    }
    EXPECT_EQ(complaint(), "");
}

TEST(MpiSettings, refuse_a_name_that_nobody_reads) {
    ::setenv("RMEM_MPI_COLECTIVES", "off", 1);
    const std::string said = complaint();
    ::unsetenv("RMEM_MPI_COLECTIVES");
    EXPECT_NE(said.find("RMEM_MPI_COLECTIVES"), std::string::npos) << said;
    EXPECT_NE(said.find("RMEM_MPI_COLLECTIVES"), std::string::npos) << said;
}

}  // namespace
}  // namespace mpi_channel
