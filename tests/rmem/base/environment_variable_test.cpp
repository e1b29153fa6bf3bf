// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/environment_variable.hpp"

#include "rmem/ring/config.hpp"
#include "rmem/sim/world.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace rmem {
namespace {

constexpr const char* kName = "RMEM_JOIN_TIMEOUT";

/// The value of the variable, or "(unset)".
std::string value_of(const char* name) {
    const char* value = environment_variable(name);
    return value == nullptr ? "(unset)" : value;
}

sim::WorldConfig small_world() {
    sim::WorldConfig config;
    config.ring.name = "simulated";
    config.ring.user_bytes = 4096;
    return config;
}

TEST(EnvironmentVariable, is_the_process_own_outside_of_a_simulation) {
    ::setenv(kName, "7s", 1);
    EXPECT_EQ(value_of(kName), "7s");
    ::unsetenv(kName);
    EXPECT_EQ(value_of(kName), "(unset)");
}

TEST(EnvironmentVariable, is_what_a_call_was_given_before_what_the_process_has) {
    ::setenv(kName, "7s", 1);
    {
        const GivenSettings outer(GivenSettings::List{{kName, "8s"}, {"RMEM_RING", "outer"}});
        EXPECT_EQ(value_of(kName), "8s");
        {
            const GivenSettings inner(
                GivenSettings::List{{"RMEM_RING", "inner"}, {"RMEM_LINK", ""}});
            EXPECT_EQ(value_of(kName), "8s") << "of the call around it";
            EXPECT_EQ(value_of("RMEM_RING"), "inner");
            EXPECT_EQ(environment_setting("RMEM_LINK"), nullptr);
        }
        EXPECT_EQ(value_of("RMEM_RING"), "outer");
    }
    EXPECT_EQ(value_of(kName), "7s");
    ::unsetenv(kName);
    EXPECT_THROW(GivenSettings(GivenSettings::List{{"RMEM_RINGS", "x"}}), Error);
    EXPECT_EQ(value_of("RMEM_RING"), "(unset)");
}

TEST(EnvironmentVariable, a_variable_of_which_the_manual_speaks_is_known) {
    std::ifstream manual(RMEM_SOURCE_DIR "/docs/man/rmem.7");
    const std::vector<std::string>& known = setting_names();
    unsigned found = 0;
    for (std::string word; manual >> word;) {
        if (!word.starts_with("RMEM_")) continue;
        word = word.substr(0, word.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789"));
        ++found;
        EXPECT_TRUE(std::find(known.begin(), known.end(), word) != known.end()) << word;
    }
    EXPECT_GT(found, 20U);
}

TEST(EnvironmentVariable, a_variable_that_is_empty_counts_as_unset_where_it_is_a_setting) {
    ::setenv(kName, "", 1);
    EXPECT_EQ(value_of(kName), "");
    EXPECT_EQ(environment_setting(kName), nullptr);
    ::setenv(kName, "7s", 1);
    EXPECT_STREQ(environment_setting(kName), "7s");
    ::unsetenv(kName);
    EXPECT_EQ(environment_setting(kName), nullptr);
    auto config = small_world();
    config.environment[kName] = "";
    config.environment["RMEM_BOUND"] = "1ms";
    sim::World world(config);
    world.start(0, [](sim::Process&) {
        EXPECT_EQ(environment_setting(kName), nullptr);
        EXPECT_STREQ(environment_setting("RMEM_BOUND"), "1ms");
    });
    EXPECT_EQ(world.run(), sim::RunEnd::all_ended);
}

TEST(EnvironmentVariable, is_the_worlds_in_a_simulated_process_and_the_hosts_never) {
    ::setenv(kName, "7s", 1);
    ::setenv("RMEM_BOUND", "1ms", 1);
    auto config = small_world();
    config.environment[kName] = "3s";
    sim::World world(config);
    world.start(0, [](sim::Process& process) {
        EXPECT_EQ(value_of(kName), "3s");
        EXPECT_EQ(value_of("RMEM_BOUND"), "(unset)");
        process.sleep(1000);
        EXPECT_EQ(Environment::read().join_timeout_ns, 3'000'000'000);
        EXPECT_FALSE(Environment::read().bound_ns);
    });
    EXPECT_EQ(value_of(kName), "7s");
    EXPECT_EQ(world.run(), sim::RunEnd::all_ended);
    EXPECT_EQ(value_of(kName), "7s");
}

}  // namespace
}  // namespace rmem
