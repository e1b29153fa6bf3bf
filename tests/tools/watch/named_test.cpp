// SPDX-License-Identifier: Apache-2.0
// The names of a map in `rmem run`, `make`, `peek`, `poke`, `dump` and `watch`.

#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

namespace rmem::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kMap = R"([ring]
nodes = 2
[[structure]]
name = "State"
[[structure.member]]
name = "speed"
type = "f32"
unit = "m/s"
[[structure.member]]
name = "position"
type = "f64[2]"
[[variable]]
name = "aircraft/altitude"
offset = 0x100
type = "f64"
unit = "m"
owner = 1
maximum = 20000
[[variable]]
name = "aircraft/state"
offset = 0x200
type = "State"
[[variable]]
name = "engine/temperature"
offset = 0x300
type = "i16"
scale = 0.1
bias = -50
unit = "degC"
[[variable]]
name = "engine/status"
offset = 0x302
type = "u16"
fields = { ready = 0, mode = [1, 3] }
[[variable]]
name = "title"
offset = 0x400
type = "text[8]"
)";

struct Names : ::testing::Test {
    RingName name;
    std::string folder = ::testing::TempDir() + "names-XXXXXX";
    std::string map;

    Names() {
        map = std::string(::mkdtemp(folder.data())) + "/rig.toml";
        std::ofstream(map) << kMap;
    }
    ~Names() override {
        run_tool({"clean", name.get()});
        std::filesystem::remove_all(folder);
    }

    void make(const Arguments& more = {}) const {
        const Ran made =
            run_tool(concat({"make", name.get(), "--link", "ring", "--map", map}, more));
        ASSERT_EQ(made.code, 0) << made.err;
    }
    Ran ask(const char* word, const Arguments& more) const {
        return run_tool(concat({word, name.get()}, more));
    }
    std::string peek(const char* what) const { return ask("peek", {what}).out; }
};

TEST_F(Names, are_read_and_written_in_units_and_types_of_the_map) {
    make();
    EXPECT_EQ(ask("poke", {"aircraft/altitude", "1234.5"}).code, 0);
    EXPECT_EQ(peek("aircraft/altitude"), "1234.5 m\n");
    EXPECT_EQ(ask("poke", {"engine/temperature", "21.5"}).code, 0);
    EXPECT_EQ(peek("engine/temperature"), "21.5 degC\n");
    EXPECT_EQ(ask("peek", {"engine/temperature", "--as", "i16"}).out, "715\n");
    EXPECT_EQ(ask("peek", {"0x300", "--as", "i16"}).out, "715\n") << "an offset as ever";
    EXPECT_EQ(ask("poke", {"title", "rig"}).code, 0);
    EXPECT_EQ(peek("title"), "rig\n");
    const auto json = ask("peek", {"engine/temperature", "--json"}).json();
    EXPECT_EQ(json["values"][0]["value"], 21.5);
    EXPECT_EQ(json["values"][0]["unit"], "degC");
    EXPECT_EQ(json["values"][0]["offset"], 0x300);
}

TEST_F(Names, are_shown_with_all_that_they_are_made_of) {
    make();
    EXPECT_EQ(ask("poke", {"aircraft/state", "1.5", "2", "3"}).code, 0);
    EXPECT_THAT(peek("aircraft/state"), AllOf(HasSubstr("aircraft/state.speed        1.5 m/s"),
                                              HasSubstr("aircraft/state.position[1]  3\n")));
    EXPECT_EQ(ask("poke", {"aircraft/state.position[0]", "7"}).code, 0);
    EXPECT_EQ(peek("aircraft/state.position[0]"), "7\n");
    EXPECT_EQ(peek("aircraft/state.speed"), "1.5 m/s\n") << "beside it nothing has changed";
    EXPECT_EQ(ask("poke", {"engine/status.mode", "5"}).code, 0);
    EXPECT_EQ(ask("poke", {"engine/status.ready", "true"}).code, 0);
    EXPECT_EQ(peek("engine/status.mode"), "5\n");
    EXPECT_THAT(peek("engine/status"), HasSubstr("engine/status.ready  1\n"));
    EXPECT_EQ(ask("peek", {"engine/status", "--as", "u16"}).out, "11\n");
}

TEST_F(Names, are_written_by_their_owner) {
    make();
    EXPECT_EQ(ask("poke", {"aircraft/altitude", "1", "--json"}).json()["node"], 1);
    EXPECT_EQ(ask("poke", {"aircraft/altitude", "1", "--node", "0", "--json"}).json()["node"], 0);
}

TEST_F(Names, are_refused_with_what_is_wrong) {
    make();
    expect_err(ask("peek", {"aircraft/altitud"}), 1, {"did you mean 'aircraft/altitude'?"});
    expect_err(ask("poke", {"aircraft/altitude", "30000"}), 2, {"outside of its limits"});
    expect_err(ask("poke", {"aircraft/altitude", "high"}), 2, {"'high' is not a number"});
    expect_err(ask("poke", {"aircraft/altitude", "1", "2"}), 2, {"has 1 value, and 2 are given"});
    expect_err(ask("dump", {"--from", "aircraft"}), 1, {"there is no 'aircraft'"});
    ASSERT_EQ(run_tool({"clean", name.get()}).code, 0);
    ASSERT_EQ(run_tool({"make", name.get()}).code, 0);
    expect_err(ask("peek", {"aircraft/altitude"}), 2, {"is no offset", "has no map"});
}

TEST_F(Names, leave_offsets_with_as_many_values_as_there_are) {
    make();
    const std::string bytes = ask("peek", {"0", "1000000", "--as", "u8"}).out;
    EXPECT_EQ(std::count(bytes.begin(), bytes.end(), '\n'), 1'000'000);
    expect_err(ask("peek", {"8", "18446744073709551615", "--as", "f64"}), 1, {});
}

TEST_F(Names, are_places_for_dump_and_watch) {
    make();
    ASSERT_EQ(ask("poke", {"engine/temperature", "0"}).code, 0);
    EXPECT_THAT(ask("dump", {"--from", "engine/temperature", "--to", "title"}).out,
                HasSubstr("00000300  f4 01"));
    const Ran watched =
        ask("watch", {"engine/temperature", "--changes", "--for", "1ms", "--interval", "1ms"});
    EXPECT_EQ(watched.code, 0) << watched.err;
    EXPECT_THAT(watched.out, HasSubstr("engine/temperature  0 degC"));
    const Ran json = ask("watch", {"aircraft/state", "--json", "--for", "1ms"});
    EXPECT_THAT(json.out, HasSubstr(R"("name":"aircraft/state.position[1]")"));
}

TEST_F(Names, make_a_ring_as_large_as_its_map_needs) {
    std::ofstream(map, std::ios::app)
        << "[[variable]]\nname = 'far'\noffset = 0x200000\ntype = 'u32'\n";
    make();
    const auto info = run_tool({"info", name.get(), "--json"}).json();
    EXPECT_EQ(info["user_bytes"], 0x200004);
}

TEST_F(Names, are_refused_to_a_job_that_has_another_map) {
    make({"-n", "2"});
    EXPECT_EQ(run_tool({"map", "diff", name.get(), map}).out, "");
    std::ofstream(map) << "[[variable]]\nname = 'title'\noffset = 0x404\ntype = 'text[8]'\n";
    expect_err(run_tool({"run", "-n", "2", "--ring", name.get(), "--map", map, "--", "true"}), 125,
               {"has another map: 'aircraft/altitude' is there alone"});
}

TEST_F(Names, are_a_job_s_by_the_rig_s_file) {
    std::ofstream(folder + "/job.toml")
        << "[ring]\nname = \"" << name.get()
        << "\"\nmap = \"rig.toml\"\n[[rank]]\nprogram = \"sh\"\narguments = [\"-c\", \"exec '"
        << RMEM_TOOL << "' map show $RMEM_RING title\"]\n[[rank]]\nprogram = \"true\"\n";
    const Ran ran = run_tool({"run", "--rig", folder + "/job.toml"});
    EXPECT_EQ(ran.code, 0) << ran.err;
    EXPECT_THAT(ran.out, HasSubstr("text[8]"));
}

}  // namespace
}  // namespace rmem::test
