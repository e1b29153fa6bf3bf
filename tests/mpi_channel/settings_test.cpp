// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/settings.hpp"

#include "rmem/error.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace mpi_channel {
namespace {

/// With RMEM_MPI set to that.
Settings given(const std::string& value) {
    ::setenv("RMEM_MPI", value.c_str(), 1);
    struct Unset {
        ~Unset() { ::unsetenv("RMEM_MPI"); }
    } const unset;
    return Settings::read();
}

TEST(MpiSettings, messages_are_read_from_a_size_on_between_two_by_default_or_never) {
    struct Case {
        const char* value;
        std::size_t least, most;
    };
    for (const Case& c : {Case{"get=off", kNoGets, kNoGets},
                          {"get=1M", std::size_t{1} << 20, kNoGets},
                          {"get=8K-1M", std::size_t{8} << 10, std::size_t{1} << 20},
                          {"transport=fm", kGetLeast, kGetMost}}) {
        EXPECT_EQ(given(c.value).get_least, c.least) << c.value;
        EXPECT_EQ(given(c.value).get_most, c.most) << c.value;
    }
    EXPECT_EQ(Settings::read().get_least, kNoGets) << "the channel's bulk is faster";
    for (const char* bad : {"get=often", "get=8K-", "get=2M-16K"})
        EXPECT_THROW(given(bad), rmem::Error) << bad;
}

TEST(MpiSettings, transports_are_known_by_name) {
    for (const auto kind : {TransportKind::channel, TransportKind::fm})
        EXPECT_EQ(given(std::string("transport=") + name_of(kind)).transport, kind);
    for (const char* bad : {"gamma", "FM", "fm "})
        EXPECT_THROW(given(std::string("transport=") + bad), rmem::Error) << bad;
    EXPECT_EQ(Settings::read().transport, TransportKind::channel);
}

TEST(MpiSettings, collectives_are_known_by_name) {
    for (const char* good : {"off", "all", "bcast", "barrier+reduce", "allreduce+allgather"})
        EXPECT_NO_THROW(given(std::string("collectives=") + good)) << good;
    for (const char* bad : {"none", "bcast+", "bcast;reduce", "+bcast", "barrier off"})
        EXPECT_THROW(given(std::string("collectives=") + bad), rmem::Error) << bad;
}

/// The sentence with which a call is refused.
template <class Call>
std::string complaint(Call&& call) {
    try {
        call();
    } catch (const rmem::Error& error) {
        return error.sentence();
    }
    return {};
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
        const std::string said = complaint([&] { given(c.given); });
        EXPECT_TRUE(said.starts_with(c.said)) << c.said << " does not begin: " << said;
    }
    const Settings twice = given("get=8K,transport=fm,get=off,collectives=barrier");
    EXPECT_EQ(twice.get_least, kNoGets) << "the last holds";
    EXPECT_EQ(twice.transport, TransportKind::fm);
}

TEST(MpiSettings, refuse_a_name_that_nobody_reads) {
    ::setenv("RMEM_MPI_GET", "off", 1);
    const std::string said = complaint([] { Settings::read(); });
    ::unsetenv("RMEM_MPI_GET");
    EXPECT_TRUE(
        said.starts_with("RMEM_MPI_GET is set, and nothing reads it; did you mean RMEM_MPI?"))
        << said;
}

}  // namespace
}  // namespace mpi_channel
