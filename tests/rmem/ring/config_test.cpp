// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/config.hpp"

#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace rmem::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::HasSubstr;

/// An environment without any variable that rmem reads.
class EnvironmentTest : public ::testing::Test {
protected:
    EnvironmentTest() { clear(); }
    ~EnvironmentTest() override { clear(); }

    static void clear() {
        constexpr std::array kPrefixes = {"RMEM_", "PMI", "MPI_", "OMPI_", "SLURM_"};
        for (char** at = environ; *at != nullptr;) {
            const std::string name(*at, std::strcspn(*at, "="));
            const bool is_read = std::any_of(kPrefixes.begin(), kPrefixes.end(), [&](auto* prefix) {
                return name.starts_with(prefix);
            });
            if (!is_read) ++at;
            if (is_read) ::unsetenv(name.c_str());
        }
    }
    static void set(const char* name, const std::string& value) {
        ::setenv(name, value.c_str(), 1);
    }
    static void set(const std::vector<std::pair<const char*, const char*>>& settings) {
        for (const auto& [name, value] : settings) set(name, value);
    }
    static RingConfig config() { return Environment::read().ring_config(); }
    static Member member() {
        const Environment environment = Environment::read();
        return environment.member(environment.ring_config());
    }
};

TEST_F(EnvironmentTest, nothing_set_is_one_rank_on_one_node_of_this_users_default_ring) {
    const RingConfig found = config();
    EXPECT_EQ(found.name, "default-" + std::to_string(::getuid()));
    EXPECT_EQ(found.nodes, 1U);
    EXPECT_EQ(found.ranks, 1U);
    EXPECT_EQ(found.link, LinkKind::direct);
    EXPECT_EQ(found.user_bytes, kDefaultUserBytes);
    EXPECT_EQ(member().rank, 0U);
    EXPECT_EQ(member().node, 0U);
}

TEST_F(EnvironmentTest, an_empty_variable_counts_as_unset) {
    set({{"RMEM_NODES", ""}, {"RMEM_LINK", ""}});
    EXPECT_EQ(config().nodes, 1U);
    EXPECT_EQ(config().link, LinkKind::direct);
}

TEST_F(EnvironmentTest, every_setting_reaches_the_configuration) {
    set({{"RMEM_RING", "rig"},
         {"RMEM_NODES", "3"},
         {"RMEM_RANKS", "6"},
         {"RMEM_RANK", "5"},
         {"RMEM_LINK", "ring"},
         {"RMEM_SIZE", "64K"},
         {"RMEM_TIMING", "scramnet-burst"},
         {"RMEM_BOUND", "10us"},
         {"RMEM_UNIX_GROUP", "rigs"},
         {"RMEM_JOIN_TIMEOUT", "2s"}});
    const RingConfig found = config();
    EXPECT_EQ(found.name, "rig");
    EXPECT_EQ(found.nodes, 3U);
    EXPECT_EQ(found.ranks, 6U);
    EXPECT_EQ(found.link, LinkKind::ring);
    EXPECT_EQ(found.user_bytes, 64U * 1024);
    EXPECT_EQ(found.timing, parse_timing("scramnet-burst"));
    EXPECT_EQ(found.bound_ns, 10'000);
    EXPECT_EQ(found.unix_group, "rigs");
    EXPECT_EQ(Environment::read().join_timeout_ns, 2'000'000'000);
    EXPECT_EQ(member().rank, 5U);
    EXPECT_EQ(member().node, 2U);
}

TEST_F(EnvironmentTest, ranks_default_to_nodes_and_nodes_to_ranks) {
    set("RMEM_NODES", "4");
    EXPECT_EQ(config().ranks, 4U);
    ::unsetenv("RMEM_NODES");
    set("RMEM_RANKS", "7");
    EXPECT_EQ(config().nodes, 7U);
}

TEST_F(EnvironmentTest, ranks_lie_on_nodes_in_blocks_unless_a_node_is_named) {
    set({{"RMEM_NODES", "2"}, {"RMEM_RANKS", "5"}});
    const unsigned nodes_of_ranks[] = {0, 0, 0, 1, 1};
    for (unsigned rank = 0; rank < 5; ++rank) {
        set("RMEM_RANK", std::to_string(rank));
        EXPECT_EQ(member().node, nodes_of_ranks[rank]) << rank;
    }
    set("RMEM_NODE", "0");
    EXPECT_EQ(member().node, 0U);
}

TEST_F(EnvironmentTest, a_node_alone_is_a_rank_where_each_node_has_one) {
    set({{"RMEM_NODES", "4"}, {"RMEM_NODE", "2"}});
    EXPECT_EQ(member().rank, 2U);
    EXPECT_EQ(member().node, 2U);
    set("RMEM_RANKS", "8");
    refused(Errc::bad_environment, [] { member(); });
}

TEST_F(EnvironmentTest, a_ring_of_many_does_not_guess_who_this_process_is) {
    set("RMEM_NODES", "4");
    EXPECT_THAT(refused(Errc::bad_environment, [] { member(); }), HasSubstr("RMEM_RANK"));
}

TEST_F(EnvironmentTest, each_malformed_variable_is_named_with_what_was_found) {
    const struct {
        const char* variable;
        const char* value;
        Errc code;
        const char* says = "";
    } kCases[] = {
        {"RMEM_NODES", "four", Errc::bad_environment},
        {"RMEM_NODES", "-1", Errc::bad_environment},
        {"RMEM_NODES", "257", Errc::bad_node_count},
        {"RMEM_RANKS", "300", Errc::bad_node_count, "1 to 256"},
        {"RMEM_RANKS", "many", Errc::bad_environment, "1 to 256"},
        {"RMEM_RANKS", "99999999999999999999", Errc::bad_environment},
        {"RMEM_NODES", "4 ", Errc::bad_environment},
        {"RMEM_NODES", "0", Errc::bad_node_count},
        {"RMEM_RANKS", "0", Errc::bad_node_count, "1 to 256"},
        {"RMEM_RANKS", "1e3", Errc::bad_environment},
        {"RMEM_NODE", "256", Errc::bad_environment},
        {"RMEM_RANK", "0x1", Errc::bad_environment},
        {"RMEM_LINK", "carrier-pigeon", Errc::unknown_link},
        {"RMEM_SIZE", "10", Errc::bad_size},
        {"RMEM_SIZE", "0", Errc::bad_size},
        {"RMEM_SIZE", "5G", Errc::bad_size},
        {"RMEM_SIZE", "1T", Errc::bad_environment},
        {"RMEM_SIZE", "18446744073709551615G", Errc::bad_environment},
        {"RMEM_TIMING", "warp-9", Errc::bad_profile},
        {"RMEM_BOUND", "10", Errc::bad_environment},
        {"RMEM_BOUND", "-5us", Errc::bad_environment},
        {"RMEM_JOIN_TIMEOUT", "soon", Errc::bad_environment},
        {"RMEM_RING", "a/b", Errc::invalid_argument},
        {"RMEM_RING", "0123456789012345678901234567890123456789012345678901234567890123",
         Errc::invalid_argument},
        {"PMI_RANK", "first", Errc::bad_environment},
        {"OMPI_COMM_WORLD_RANK", "1.0", Errc::bad_environment},
    };
    for (const auto& bad : kCases) {
        set(bad.variable, bad.value);
        EXPECT_THAT(
            refused(bad.code, [] { config(); }),
            AllOf(AnyOf(HasSubstr(bad.variable), HasSubstr(bad.value)), HasSubstr(bad.says)));
        ::unsetenv(bad.variable);
    }
}

TEST_F(EnvironmentTest, a_guest_is_at_a_node_and_no_rank) {
    set({{"RMEM_RANK", "guest"}, {"RMEM_RANKS", "4"}, {"RMEM_NODE", "3"}});
    EXPECT_EQ(member().rank, Member::kGuest);
    EXPECT_EQ(member().node, 3U);
    ::unsetenv("RMEM_NODE");
    EXPECT_THAT(refused(Errc::bad_environment, [] { member(); }), HasSubstr("set RMEM_NODE"));
    set({{"RMEM_RANKS", "4"}, {"RMEM_NODES", "1"}});
    EXPECT_EQ(member().node, 0U);
}

TEST_F(EnvironmentTest, a_rank_outside_the_ring_is_refused) {
    set({{"RMEM_RANKS", "4"}, {"RMEM_RANK", "4"}});
    refused(Errc::bad_rank, [] { member(); });
}

TEST_F(EnvironmentTest, a_rank_without_a_count_is_told_that_the_count_is_missing) {
    set({{"RMEM_RING", "rig"}, {"RMEM_RANK", "2"}});
    EXPECT_THAT(refused(Errc::bad_rank, [] { member(); }),
                AllOf(HasSubstr("RMEM_RANK is 2"), HasSubstr("RMEM_RANKS is not set"),
                      HasSubstr("no ring 'rig'")));
}

TEST_F(EnvironmentTest, a_setting_that_has_no_effect_on_its_link_is_refused) {
    const struct {
        const char* link;
        const char* variable;
        const char* value;
        Errc code;
    } kCases[] = {
        {"direct", "RMEM_TIMING", "scramnet-burst", Errc::bad_profile},
        {"direct", "RMEM_FAULTS", "seed=1", Errc::bad_fault},
        {"direct", "RMEM_CHECK", "writers", Errc::bad_environment},
        {"udp", "RMEM_CHECK", "writers", Errc::bad_environment},
    };
    for (const auto& idle : kCases) {
        set("RMEM_LINK", idle.link);
        set(idle.variable, idle.value);
        EXPECT_THAT(
            refused(idle.code, [] { config(); }),
            AllOf(HasSubstr(std::string(idle.variable) + " is '" + idle.value + "'"),
                  HasSubstr(std::string("link ") + idle.link), HasSubstr("RMEM_LINK=ring")));
        ::unsetenv(idle.variable);
    }
}

TEST_F(EnvironmentTest, a_setting_that_has_an_effect_on_its_link_is_taken) {
    set("RMEM_TIMING", "none");
    EXPECT_NO_THROW(config());
    set("RMEM_TIMING", "scramnet-burst");
    for (const char* link : {"ring", "udp"}) {
        set("RMEM_LINK", link);
        set("RMEM_FAULTS", "seed=1");
        EXPECT_NO_THROW(config()) << link;
    }
    set({{"RMEM_LINK", "ring"}, {"RMEM_CHECK", "writers"}});
    EXPECT_NO_THROW(config());
}

TEST_F(EnvironmentTest, a_misspelt_variable_is_refused_with_the_one_that_was_meant) {
    for (const auto& [misspelt, meant] :
         {std::pair{"RMEM_LIKN", "RMEM_LINK"}, std::pair{"RMEM_TIMIMG", "RMEM_TIMING"},
          std::pair{"RMEM_SIZES", "RMEM_SIZE"}}) {
        set(misspelt, "x");
        EXPECT_THAT(refused(Errc::bad_environment, [] { Environment::read(); }),
                    AllOf(HasSubstr(misspelt), HasSubstr(std::string("did you mean ") + meant)));
        set(misspelt, "");
        EXPECT_NO_THROW(Environment::read()) << "an empty one counts as unset";
        ::unsetenv(misspelt);
    }
    set("RMEM_OF_SOMEBODY_ELSE", "x");
    EXPECT_NO_THROW(Environment::read()) << "what is like none is another's";
    ::unsetenv("RMEM_OF_SOMEBODY_ELSE");
}

// ---- Launchers

TEST_F(EnvironmentTest, a_launcher_gives_rank_and_count_where_own_variables_do_not) {
    const struct {
        std::vector<std::pair<const char*, const char*>> settings;
        unsigned ranks, rank;
    } kCases[] = {
        {{{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}}, 4, 2},
        {{{"OMPI_COMM_WORLD_RANK", "1"}, {"OMPI_COMM_WORLD_SIZE", "2"}, {"PMIX_RANK", "1"}}, 2, 1},
        {{{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"RMEM_RANK", "0"}, {"RMEM_RANKS", "2"}}, 2, 0},
    };
    for (const auto& launched : kCases) {
        clear();
        set(launched.settings);
        EXPECT_EQ(config().ranks, launched.ranks);
        EXPECT_EQ(config().nodes, launched.ranks);
        EXPECT_EQ(member().rank, launched.rank);
    }
}

TEST_F(EnvironmentTest, slurm_gives_rank_and_count_to_what_srun_starts) {
    set({{"SLURM_PROCID", "3"}, {"SLURM_NTASKS", "8"}, {"SLURM_JOB_ID", "71"}});
    // A job's script and its interactive shell have a rank and a count, too.
    for (const char* none : {"", "4294967290", "4294967291"}) {
        set("SLURM_STEP_ID", none);
        EXPECT_EQ(config().ranks, 1U);
    }
    set("SLURM_STEP_ID", "0");
    EXPECT_EQ(config().ranks, 8U);
    EXPECT_EQ(member().rank, 3U);
    // By srun --mpi=pmix.
    set({{"PMIX_RANK", "3"}, {"PMIX_NAMESPACE", "slurm.pmix.71.0"}});
    EXPECT_EQ(config().ranks, 8U);
    // By another launcher, whose daemon srun has started as rank 3.
    set({{"PMIX_RANK", "5"}, {"PMIX_NAMESPACE", "prterun-host-71@1"}, {"RMEM_RANKS", "16"}});
    EXPECT_EQ(member().rank, 5U);
    EXPECT_EQ(config().ranks, 16U);
}

TEST_F(EnvironmentTest, ranks_on_several_hosts_meet_by_datagrams) {
    set({{"PMI_RANK", "2"}, {"PMI_SIZE", "4"}, {"MPI_LOCALNRANKS", "4"}});
    EXPECT_EQ(config().link, LinkKind::direct);
    set("MPI_LOCALNRANKS", "2");
    EXPECT_EQ(config().link, LinkKind::udp);
    // Told by the launcher, in any step.
    set({{"SLURM_STEP_NUM_NODES", "2"}, {"MPI_LOCALNRANKS", "4"}});
    EXPECT_EQ(config().link, LinkKind::direct);
    ::unsetenv("MPI_LOCALNRANKS");
    EXPECT_EQ(config().link, LinkKind::udp);
    ::unsetenv("PMI_RANK");
    set({{"OMPI_COMM_WORLD_RANK", "1"},
         {"OMPI_COMM_WORLD_SIZE", "2"},
         {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}});
    EXPECT_EQ(config().link, LinkKind::udp);
}

TEST_F(EnvironmentTest, a_link_of_one_host_is_refused_where_ranks_are_on_several) {
    set({{"SLURM_PROCID", "0"},
         {"SLURM_NTASKS", "2"},
         {"SLURM_STEP_ID", "0"},
         {"SLURM_STEP_NUM_NODES", "2"}});
    for (const char* link : {"direct", "ring"}) {
        set("RMEM_LINK", link);
        EXPECT_THAT(refused(Errc::bad_environment, [] { config(); }),
                    HasSubstr(std::string("RMEM_LINK is ") + link));
    }
    set("RMEM_LINK", "udp");
    EXPECT_EQ(config().link, LinkKind::udp);
}

TEST_F(EnvironmentTest, a_launcher_without_a_count_needs_one) {
    set("PMIX_RANK", "1");
    EXPECT_THAT(refused(Errc::bad_environment, [] { config(); }), HasSubstr("RMEM_RANKS"));
    set("RMEM_RANKS", "2");
    EXPECT_EQ(member().rank, 1U);
}

TEST_F(EnvironmentTest, two_jobs_of_a_launcher_do_not_meet) {
    set({{"SLURM_PROCID", "0"},
         {"SLURM_NTASKS", "2"},
         {"SLURM_STEP_ID", "1"},
         {"SLURM_JOB_ID", "71"}});
    const std::string one = config().name;
    set("SLURM_JOB_ID", "72");
    const std::string step = config().name;
    EXPECT_NE(step, one);
    set("SLURM_STEP_ID", "2");
    EXPECT_NE(config().name, step);
    EXPECT_THAT(step, HasSubstr(std::to_string(::getuid())));
}

TEST_F(EnvironmentTest, the_ranks_of_one_job_meet_even_where_the_launcher_names_no_job) {
    set({{"PMI_RANK", "0"}, {"PMI_SIZE", "2"}});
    const std::string first = config().name;
    set("PMI_RANK", "1");
    EXPECT_EQ(config().name, first);
}

TEST_F(EnvironmentTest, a_jobs_name_always_makes_a_ring_name) {
    set({{"PMIX_RANK", "0"}, {"RMEM_RANKS", "1"}});
    set("PMIX_NAMESPACE", std::string(200, '/') + "job@host.1");
    EXPECT_NO_THROW(config());
}

// ---- Numbers

TEST(ParseTest, sizes_are_taken_as_people_write_them_in_binary_units) {
    EXPECT_EQ(parse_size("x", "4096"), 4096U);
    for (const char* text : {"64K", "64k", "64KB", "64kb", "64KiB", "64Kib"}) {
        EXPECT_EQ(parse_size("x", text), 65536U) << text;
    }
    EXPECT_EQ(parse_size("x", "8M"), 8U << 20);
    EXPECT_EQ(parse_size("x", "1MB"), 1U << 20);
    for (const char* text : {"1G", "1g"}) EXPECT_EQ(parse_size("x", text), 1U << 30);
    EXPECT_EQ(parse_size("x", "512B"), 512U);
    EXPECT_EQ(parse_size("x", "0x100"), 256U);
    EXPECT_EQ(parse_size("x", "0X1fK"), 31U << 10);
    for (const char* text : {"", "K", "1Q", "0x", "0xg", "0x-1", "1KBB", "1iB", "64 K", "-1"}) {
        SCOPED_TRACE(text);
        refused(Errc::bad_environment, [&] { parse_size("x", text); });
    }
}

TEST(ParseTest, what_a_setting_is_written_as_reads_back) {
    EXPECT_EQ(size_setting(8U << 20), "8M");
    EXPECT_EQ(size_setting(1500), "1500");
    EXPECT_EQ(size_setting(0), "0");
    EXPECT_EQ(duration_setting(10'000), "10us");
    EXPECT_EQ(duration_setting(1'234), "1234ns");
    for (const std::size_t bytes : {4U, 4096U, 65540U, 1U << 30}) {
        EXPECT_EQ(parse_size("x", size_setting(bytes)), bytes);
    }
    for (const std::int64_t ns : {1L, 5'000L, 30'000'000'000L}) {
        EXPECT_EQ(parse_duration_ns("x", duration_setting(ns)), ns);
    }
}

TEST(ParseTest, a_link_that_is_nearly_one_is_told_which) {
    EXPECT_THAT(refused(Errc::unknown_link, [] { parse_link("rnig"); }),
                HasSubstr("did you mean 'ring'?"));
}

TEST(ParseTest, times_need_a_unit) {
    EXPECT_EQ(parse_duration_ns("x", "250ns"), 250);
    EXPECT_EQ(parse_duration_ns("x", "10us"), 10'000);
    EXPECT_EQ(parse_duration_ns("x", "5ms"), 5'000'000);
    EXPECT_EQ(parse_duration_ns("x", "2s"), 2'000'000'000);
    refused(Errc::bad_environment, [] { parse_duration_ns("x", "5"); });
    refused(Errc::bad_environment, [] { parse_duration_ns("x", "9999999999999s"); });
}

TEST(ParseTest, link_names_read_back) {
    for (const LinkKind link : {LinkKind::direct, LinkKind::ring, LinkKind::udp, LinkKind::sim}) {
        EXPECT_EQ(parse_link(name_of(link)), link);
    }
}

// ---- Check and hash

TEST(RingConfigTest, a_profile_that_nobody_could_have_parsed_is_refused) {
    RingConfig config;
    config.timing = parse_timing("scramnet-burst");
    EXPECT_NO_THROW(config.check());
    config.timing.pitch_ps = 0;
    refused(Errc::bad_profile, [&] { config.check(); });
    for (char& c : config.timing.name) c = 'x';
    refused(Errc::bad_profile, [&] { config.check(); });
}

TEST(RingConfigTest, a_link_of_no_name_is_refused) {
    RingConfig config;
    config.link = static_cast<LinkKind>(9);
    refused(Errc::unknown_link, [&] { config.check(); });
}

TEST(RingConfigTest, the_hash_tells_every_setting_apart_but_the_name) {
    RingConfig plain;
    std::set<std::uint64_t> hashes = {plain.hash()};
    const auto differs = [&](const std::function<void(RingConfig&)>& change) {
        RingConfig changed;
        change(changed);
        return hashes.insert(changed.hash()).second;
    };
    EXPECT_TRUE(differs([](auto& c) { c.nodes = 2; }));
    EXPECT_TRUE(differs([](auto& c) { c.ranks = 2; }));
    EXPECT_TRUE(differs([](auto& c) { c.link = LinkKind::ring; }));
    EXPECT_TRUE(differs([](auto& c) { c.user_bytes *= 2; }));
    EXPECT_TRUE(differs([](auto& c) { c.timing = parse_timing("scramnet-burst"); }));
    EXPECT_TRUE(differs([](auto& c) { c.timing = parse_timing("scramnet-burst,fifo=lose"); }));
    EXPECT_TRUE(differs([](auto& c) { c.bound_ns = 1; }));
    EXPECT_TRUE(differs([](auto& c) { c.system_bytes = 4096; }));
    EXPECT_TRUE(differs([](auto& c) { c.system_hash = 1; }));
    EXPECT_FALSE(differs([](RingConfig& c) { c.name = "another"; }));
    EXPECT_FALSE(differs([](RingConfig& c) { c.unix_group = "another"; }));
}

}  // namespace
}  // namespace rmem::test
