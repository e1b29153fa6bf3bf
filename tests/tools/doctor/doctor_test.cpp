// SPDX-License-Identifier: Apache-2.0
// `rmem doctor` and `rmem profiles`.

#include "rmem/wire/timing.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <set>
#include <string>
#include <utility>

namespace rmem::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsSupersetOf;
using ::testing::Not;

nlohmann::json finding_in(const nlohmann::json& report, const std::string& name) {
    for (const auto& finding : report["findings"]) {
        if (finding["name"] == name) return finding;
    }
    return {};
}

TEST(Doctor, looks_at_everything_that_rings_need) {
    const Ran ran = run_tool({"doctor", "--json"});
    const auto report = ran.json();
    std::set<std::string> names;
    for (const auto& finding : report["findings"]) {
        names.insert(finding["name"].get<std::string>());
        EXPECT_THAT((std::set<std::string>{"ok", "warn", "fail"}),
                    Contains(finding["verdict"].get<std::string>()));
        EXPECT_NE(finding["found"], "") << finding["name"];
        if (finding["verdict"] != "ok") {
            EXPECT_NE(finding["advice"], "") << finding["name"];
        }
    }
    EXPECT_THAT(names, IsSupersetOf({"shared-memory", "ring", "stale-rings", "memory-limit",
                                     "huge-pages", "processors", "spinning", "wake-ups",
                                     "real-time", "clock", "host-gaps"}));
    EXPECT_EQ(ran.code, report["failures"] == 0 ? 0 : 1);
}

TEST(Doctor, lists_the_limits_of_its_process_that_are_in_the_way) {
    Child limited([] {
        for (const auto& [which, most] :
             {std::pair{RLIMIT_FSIZE, rlim_t{1} << 20}, std::pair{RLIMIT_CPU, rlim_t{600}}}) {
            const rlimit limit{most, most};
            ASSERT_EQ(::setrlimit(which, &limit), 0);
        }
        const auto finding = finding_in(run_tool({"doctor", "--json"}).json(), "limits");
        EXPECT_EQ(finding["verdict"], "fail");
        EXPECT_THAT(finding["found"].get<std::string>(), HasSubstr("600 seconds"));
        EXPECT_THAT(finding["advice"].get<std::string>(), HasSubstr("ulimit -f"));
        EXPECT_THAT(finding["advice"].get<std::string>(), HasSubstr("ulimit -t"));
    });
    EXPECT_EQ(limited.wait(), 0);
}

TEST(Doctor, finds_what_the_dead_have_left) {
    RingName name;
    name.may_be_left();
    leave_dead(name.config(), 0);
    const auto finding = finding_in(run_tool({"doctor", "--json"}).json(), "stale-rings");
    EXPECT_EQ(finding["verdict"], "warn");
    EXPECT_THAT(finding["found"].get<std::string>(), HasSubstr(name.get()));
    EXPECT_EQ(finding["advice"], "rmem clean");
}

TEST(Doctor, fails_when_the_shared_memory_is_too_small_for_the_job) {
    // 4 GiB in each of 256 banks is more than any host of tests has.
    ::setenv("NO_COLOR", "1", 1);
    const std::string command =
        "RMEM_LINK=ring RMEM_SIZE=4G RMEM_GONE=1 " RMEM_TOOL " doctor -n 256";
    FILE* pipe = ::popen(command.c_str(), "r");  // NOLINT(cert-env33-c): our own words
    std::string out;
    char buffer[256];
    while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) out += buffer;
    EXPECT_EQ(WEXITSTATUS(::pclose(pipe)), 1);
    for (const char* said : {"fail  shared-memory", "--shm-size", "nothing reads RMEM_GONE"})
        EXPECT_THAT(out, HasSubstr(said));
}

TEST(Doctor, leaves_nothing_behind) {
    Tool doctor({"doctor"});
    // Others may be at work at the same time, with rings of their own.
    const std::string ring = "doctor-" + std::to_string(doctor.pid());
    doctor.wait();
    EXPECT_THAT(Segment::list(), Not(Contains(ring)));
}

TEST(Profiles, lists_every_profile_with_its_figures) {
    const auto list = run_tool({"profiles", "--json"}).json();
    EXPECT_EQ(list.size(), timing_profile_names().size());
    bool seen = false;
    for (const auto& profile : list) {
        if (profile["profile"] != "scramnet-burst") continue;
        seen = true;
        EXPECT_EQ(profile["node_delay_ns"], 247);
        EXPECT_EQ(profile["word_pitch_ns"], 615);
    }
    EXPECT_TRUE(seen);
    EXPECT_THAT(run_tool({"profiles"}).out, HasSubstr("150 Mbit/s"));
}

TEST(Profiles, takes_options_and_refuses_what_is_none) {
    EXPECT_EQ(run_tool({"profiles", "scramnet-burst,cable=50m"}).code, 0);
    expect_err(run_tool({"profiles", "bogus"}), 1, {"[bad-profile]"});
}

}  // namespace
}  // namespace rmem::test
