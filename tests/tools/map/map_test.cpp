// SPDX-License-Identifier: Apache-2.0
// `rmem map`.

#include "tests/maps/rigs.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace rmem::test {
namespace {

struct MapCommand : ::testing::Test {
    std::string folder = ::testing::TempDir() + "map-XXXXXX";
    std::string rig;

    MapCommand() {
        rig = std::string(::mkdtemp(folder.data())) + "/rig.toml";
        write(rig, maps::test::kRig);
    }
    ~MapCommand() override { std::filesystem::remove_all(folder); }

    static void write(const std::string& path, const std::string& text) {
        std::ofstream(path) << text;
    }
    static std::string read(const std::string& path) {
        std::ifstream file(path);
        return {std::istreambuf_iterator<char>(file), {}};
    }
    std::string in_folder(const char* name) const { return folder + "/" + name; }
};

TEST_F(MapCommand, checks_a_map_and_fails_where_it_finds_errors) {
    expect_out(run_tool({"map", "check", rig}), 0,
               {rig + ": note: 2 values are larger", "4 variables, 0 errors, 2 notes"});
    write(rig, std::string(maps::test::kRig) +
                   "[[variable]]\nname = 'gear'\noffset = 0x104\ntype = 'u32'\n");
    const Ran ran = run_tool({"map", "check", rig});
    EXPECT_EQ(ran.code, 1);
    EXPECT_TRUE(ran.says(rig + ":18 and 47: error: 'aircraft/altitude'")) << ran.out;
    const auto json = run_tool({"map", "check", rig, "--json"}).json();
    EXPECT_EQ(json["variables"], 5);
    EXPECT_EQ(json["findings"][0]["weight"], "error");
    EXPECT_EQ(json["findings"][0]["lines"][1], 47);
}

TEST_F(MapCommand, says_the_line_of_what_it_cannot_read) {
    write(rig, "[[variable]]\nname = 'a'\ntype = 'f23'\n");
    expect_err(run_tool({"map", "check", rig}), 1, {rig + ":3: there is no type 'f23'"});
}

TEST_F(MapCommand, shows_all_by_their_places_or_one_with_what_it_is_made_of) {
    const std::string all = run_tool({"map", "show", rig}).out;
    EXPECT_LT(all.find("aircraft/altitude"), all.find("aircraft/status"));
    EXPECT_LT(all.find("aircraft/status"), all.find("aircraft/state "));
    expect_out(run_tool({"map", "show", rig, "aircraft/state[1]", "aircraft/status"}), 0,
               {"0x00000228  aircraft/state[1].position  f64[3]",
                "aircraft/status.mode        bits 1 to 3"});
    expect_err(run_tool({"map", "show", rig, "aircraft/stat"}), 1,
               {"there is no 'aircraft/stat' in the map (did you mean 'aircraft/state'?)"});
    const auto json = run_tool({"map", "show", rig, "--json"}).json();
    EXPECT_EQ(json["variables"][0]["offset"], 0x100);
    EXPECT_EQ(json["hash"].get<std::string>().size(), 16U);
}

TEST_F(MapCommand, packs_and_tells_what_differs) {
    write(rig, "[[variable]]\nname = 'a'\ntype = 'f32'\nowner = 1\n");
    const std::string packed = in_folder("packed.toml");
    EXPECT_EQ(run_tool({"map", "pack", rig, "-o", packed}).code, 0);
    EXPECT_EQ(read(packed), run_tool({"map", "pack", rig}).out);
    expect_out(run_tool({"map", "diff", rig, packed}), 1,
               {"'a': its place is no place in the first, 0x0 in the second"});
    EXPECT_EQ(run_tool({"map", "diff", packed, packed}).code, 0);
    EXPECT_EQ(run_tool({"map", "diff", rig, packed, "--json"}).json()["differences"].size(), 1U);
}

TEST_F(MapCommand, takes_another_programs_table_and_gives_it_back) {
    const std::string table = in_folder("points.txt"), map = in_folder("points.toml");
    const std::string text =
        "ChannelName\tDefaultValue\tUnit\tAddress\tDirection\tDescription\n"
        "Plant/valve\t50\t%\tA0\tWrite\tat the inlet\n";
    write(table, text);
    EXPECT_EQ(run_tool({"map", "import", table, "--node", "3", "-o", map}).code, 0);
    EXPECT_THAT(read(map), ::testing::HasSubstr("owner = 3"));
    EXPECT_EQ(run_tool({"map", "export", map, "--format", "veristand-points", "--node", "3"}).out,
              text);
    expect_err(run_tool({"map", "export", rig, "--format", "ipc"}), 0,
               {"rmem map: 'aircraft/altitude': its place is lost"});
    expect_err(run_tool({"map", "export", rig, "--format", "csv"}), 2, {"there is no 'csv'"});
    write(table, "a;b\n");
    expect_err(run_tool({"map", "import", table}), 2, {"begins like no table that is known"});
}

}  // namespace
}  // namespace rmem::test
