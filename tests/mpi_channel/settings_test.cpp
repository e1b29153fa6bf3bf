// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/settings.hpp"

#include "rmem/error.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace mpi_channel {
namespace {

void set(const std::string& key, const std::string& value) {
    ::setenv("RMEM_MPI", (key + "=" + value).c_str(), 1);
}

TEST(MpiSettings, messages_are_read_from_a_size_on_between_two_by_default_or_never) {
    ::setenv("RMEM_MPI", "get=off", 1);
    EXPECT_EQ(Settings::read().get_least, kNoGets);
    ::setenv("RMEM_MPI", "get=1M", 1);
    EXPECT_EQ(Settings::read().get_least, std::size_t{1} << 20);
    EXPECT_EQ(Settings::read().get_most, kNoGets);
    ::setenv("RMEM_MPI", "get=often", 1);
    EXPECT_THROW(Settings::read(), rmem::Error);
    ::setenv("RMEM_MPI", "get=8K-", 1);
    EXPECT_THROW(Settings::read(), rmem::Error);
    ::setenv("RMEM_MPI", "get=2M-16K", 1);
    EXPECT_THROW(Settings::read(), rmem::Error);
    ::setenv("RMEM_MPI", "get=8K-1M", 1);
    EXPECT_EQ(Settings::read().get_least, std::size_t{8} << 10);
    EXPECT_EQ(Settings::read().get_most, std::size_t{1} << 20);
    ::unsetenv("RMEM_MPI");
    EXPECT_EQ(Settings::read().get_least, kNoGets) << "the channel's bulk is faster";
    ::setenv("RMEM_MPI", "transport=fm", 1);
    EXPECT_EQ(Settings::read().get_most, kGetMost);
    EXPECT_EQ(Settings::read().get_least, kGetLeast);
    ::unsetenv("RMEM_MPI");
}

TEST(MpiSettings, transports_are_known_by_name) {
    for (const auto kind : {TransportKind::channel, TransportKind::fm}) {
        set("transport", name_of(kind));
        EXPECT_EQ(Settings::read().transport, kind);
    }
    for (const char* bad : {"gamma", "FM", "fm "}) {
        set("transport", bad);
        EXPECT_THROW(Settings::read(), rmem::Error) << bad;
    }
    ::unsetenv("RMEM_MPI");
    EXPECT_EQ(Settings::read().transport, TransportKind::channel);
}

TEST(MpiSettings, collectives_are_known_by_name) {
    for (const char* good : {"off", "all", "bcast", "barrier+reduce", "allreduce+allgather"}) {
        set("collectives", good);
        EXPECT_NO_THROW(Settings::read()) << good;
    }
    for (const char* bad : {"none", "bcast+", "bcast;reduce", "+bcast", "barrier off"}) {
        set("collectives", bad);
        EXPECT_THROW(Settings::read(), rmem::Error) << bad;
    }
    ::unsetenv("RMEM_MPI");
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

TEST(MpiSettings, say_which_one_is_wrong_what_it_is_and_what_it_may_be) {
    struct Case {
        const char *given, *said;
    };
    for (const Case& c :
         {Case{"transport=foo", "RMEM_MPI: transport is 'foo'; give channel or fm"},
          Case{"transport=fm,get=foo", "RMEM_MPI: get is 'foo'; give off, the least bytes"},
          Case{"get=2M-1K", "RMEM_MPI: get is '2M-1K'"},
          Case{"collectives=bcast+foo", "RMEM_MPI: collectives is 'bcast+foo'; give off, all, or"},
          Case{"colectives=off", "RMEM_MPI has 'colectives=off' (did you mean 'collectives'?)"},
          Case{"get", "RMEM_MPI has 'get'"}, Case{"get=", "RMEM_MPI has 'get='"},
          Case{"get=off,,", "RMEM_MPI has ''; give <key>=<value>"}}) {
        ::setenv("RMEM_MPI", c.given, 1);
        const std::string said = complaint();
        EXPECT_TRUE(said.starts_with(c.said)) << c.said << " does not begin: " << said;
    }
    ::setenv("RMEM_MPI", "get=8K,transport=fm,get=off,collectives=barrier", 1);
    EXPECT_EQ(complaint(), "");
    EXPECT_EQ(Settings::read().get_least, kNoGets) << "the last holds";
    EXPECT_EQ(Settings::read().transport, TransportKind::fm);
    ::unsetenv("RMEM_MPI");
}

TEST(MpiSettings, refuse_a_name_that_nobody_reads) {
    ::setenv("RMEM_MPI_GET", "off", 1);
    const std::string said = complaint();
    ::unsetenv("RMEM_MPI_GET");
    EXPECT_TRUE(
        said.starts_with("RMEM_MPI_GET is set, and nothing reads it; did you mean RMEM_MPI?"))
        << said;
}

}  // namespace
}  // namespace mpi_channel
