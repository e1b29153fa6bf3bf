// SPDX-License-Identifier: Apache-2.0
// Tables in the shape of the field's, with contents of our own.
#include "maps/formats/format.hpp"

#include "maps/check.hpp"
#include "maps/formats/parts.hpp"
#include "maps/pack.hpp"
#include "tests/maps/rigs.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace maps::test {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr const char* kBlocks =
    "BlockName, Block Offset (Doubles), Block Direction (Read or Write), Channel Relative Offset "
    "(Doubles), Channel Name, Channel Unit, Channel Default Value (for Write Channels Only)\n"
    "From the plant,0,Read,0,pressure,bar,\n"
    "From the plant,0,Read,2,\"flow, total\",l/s,\n"
    "To the plant,16,Write,0,valve,%,50\n"
    "To the plant,16,Write,1,\"the \"\"second\"\" valve\",%,12.5\n";

constexpr const char* kPoints =
    "ChannelName\tDefaultValue\tUnit\tAddress\tDirection\tDescription\n"
    "Plant/pressure\t0\tbar\t0\tRead\tat the inlet\n"
    "Plant/Valves/first\t50\t%\tA0\tWrite\t\n";

constexpr const char* kPartitions =
    "% number of actuators\n% heartbeat\nout(1).Address = '0x100';\nout(1).Type = 'uint32';\n"
    "out(1).Size = '1';\n% commands\nout(2).Type = 'single';\nout(2).Size = '[2 3]';\n"
    "out(3).Type = 'int8';\nout(3).Size = '5';\n% matrix\nout(4).Type = 'double';\n"
    "out(4).Size = '2';\nout(4).Alignment = '8';\n% back\nin(1).Type = 'boolean';\n"
    "in(1).Size = '1';\n";

constexpr const char* kDdf = R"(<?xml version="1.0"?>
<orchestra>
    <domain name="rig">
        <synchronous>no</synchronous>
        <states>no</states>
        <connection type="remote"><card>GE</card><pciindex>0</pciindex></connection>
        <set name="PUBLISH">
            <item name="aircraft">
                <type>bus</type>
                <item name="altitude"><type>float64</type><length>1</length></item>
                <item name="flags"><type>unsigned int8</type><length>4</length></item>
            </item>
        </set>
        <set name="SUBSCRIBE">
            <item name="gear down">
                <type>boolean</type><length>1</length><default>yes</default>
            </item>
            <item name="trim"><type>float32</type><length>1</length><default>0.5</default></item>
        </set>
    </domain>
</orchestra>
)";

constexpr const char* kIpc =
    "# of the site\n[T1:SUS-DAMP_IPC]\nipcType=RFM0\nipcRate=16384\nipcHost=t1sus\n"
    "ipcModel=t1susx\nipcNum=0\ndesc=made by a generator\n\n[T1:LSC-ARM_IPC]\nipcType=SHMEM\n"
    "ipcRate=65536\nipcHost=t1lsc\nipcModel=t1lsc\nipcNum=1\n";

struct Table {
    const char* name;
    Format format;
    const char* text;
};
void PrintTo(const Table& table, std::ostream* out) {
    *out << table.name;
}

class Tables : public ::testing::TestWithParam<Table> {
protected:
    static Map read(const std::string& text, unsigned node = 2) {
        return import_map(GetParam().format, text, "a table", node);
    }
    static Exported write(const Map& map, unsigned node = 2) {
        return export_map(GetParam().format, map, node);
    }
};
INSTANTIATE_TEST_SUITE_P(Of, Tables,
                         ::testing::Values(Table{"blocks", Format::veristand_blocks, kBlocks},
                                           Table{"points", Format::veristand_points, kPoints},
                                           Table{"partitions", Format::partitions, kPartitions},
                                           Table{"ddf", Format::ddf, kDdf},
                                           Table{"ipc", Format::ipc, kIpc}),
                         [](const auto& one) { return std::string(one.param.name); });

TEST_P(Tables, come_back_whole_as_a_map_too) {
    EXPECT_EQ(format_of(GetParam().text), GetParam().format);
    const Map map = read(GetParam().text);
    EXPECT_GE(map.variables().size(), 2U);
    const Exported once = write(map);
    EXPECT_THAT(once.lost, IsEmpty());
    EXPECT_EQ(file_of(read(once.text)), file_of(map));
    EXPECT_EQ(write(read(once.text)).text, once.text);
    const Map by_file = map_of_text(file_of(map));
    EXPECT_EQ(write(by_file).text, once.text) << "all of it is in the map's file";
}

TEST_P(Tables, say_what_they_cannot_of_a_map) {
    const Exported exported = write(map_of_text(kRig), 0);
    EXPECT_THAT(exported.lost, Contains(HasSubstr("'aircraft/state'")));
    EXPECT_THAT(exported.lost, Contains(HasSubstr("'aircraft/altitude': its limits are lost")));
    EXPECT_EQ(
        read(exported.text, 0).variables().size(),
        GetParam().format == Format::partitions || GetParam().format == Format::ddf ? 2U : 1U);
}

TEST_P(Tables, are_read_or_refused_where_they_are_cut_off) {
    const std::string text = GetParam().text;
    for (std::size_t end = 0; end <= text.size(); ++end) {
        try {
            const Map map = read(text.substr(0, end));
            EXPECT_LE(map.variables().size(), 5U);
        } catch (const rmem::Error& error) {
            EXPECT_EQ(error.code(), rmem::Errc::bad_map) << error.what();
            EXPECT_THAT(error.what(), HasSubstr("a table:")) << error.what();
        }
    }
}

Map read_as(Format format, const std::string& text, unsigned node = 0) {
    return import_map(format, text, "a table", node);
}
std::string refused_as(Format format, const std::string& text) {
    return rmem::test::refused(rmem::Errc::bad_map,
                               [&] { static_cast<void>(read_as(format, text)); });
}

TEST(VeristandTables, have_places_in_doubles_and_directions_of_a_node) {
    const Map map = read_as(Format::veristand_blocks, kBlocks, 3);
    EXPECT_EQ(map.variable("flow, total")->offset, 16U);
    EXPECT_EQ(map.variable("flow, total")->owner, Owner{});
    const Variable& second = *map.variable("the \"second\" valve");
    EXPECT_EQ(second.offset, 17 * 8U);
    EXPECT_EQ(second.owner, (Owner{Owner::Kind::node, 3}));
    EXPECT_EQ(second.initial, "12.5");
    EXPECT_EQ(read_as(Format::veristand_points, kPoints).variable("Plant/Valves/first")->offset,
              0xA0U);
}

/// What one of a pair writes, its partner writes as well.
TEST(VeristandTables, of_two_nodes_show_the_double_that_both_write) {
    const std::string heading = std::string(kBlocks).substr(0, std::string(kBlocks).find('\n') + 1);
    std::string a = heading, b = heading;
    for (int i = 0; i < 10; ++i) {
        a += fmt::format("A,9,Write,{},a{},V,0\n", i, i);
        b += fmt::format("B,0,Write,{},b{},V,0\n", i, i);
    }
    Map both = read_as(Format::veristand_blocks, a, 0);
    const Map second = read_as(Format::veristand_blocks, b, 1);
    for (const Variable& one : second.variables()) both.add(one);
    const auto findings = check(both);
    ASSERT_TRUE(has_errors(findings));
    EXPECT_EQ(findings[0].sentence,
              "'a0' (f64, 0x48 to 0x4f, node 0) and 'b9' (f64, 0x48 to 0x4f, "
              "node 1) overlap, and have two writers; move one of them");
}

TEST(VeristandTables, may_be_of_windows) {
    const Map map = read_as(Format::veristand_points,
                            "\xef\xbb\xbf"
                            "ChannelName\tDefaultValue\tUnit\t"
                            "Address\tDirection\tDescription\r\nheat\t0\t\xb0"
                            "C\t0\tRead\t\r\n");
    EXPECT_EQ(map.variable("heat")->unit, "°C");
}

TEST(Partitions, follow_one_another_at_their_alignments) {
    const Map map = read_as(Format::partitions, kPartitions);
    EXPECT_EQ(map.variable("out/heartbeat")->offset, 0x100U);
    EXPECT_EQ(map.variable("out/commands")->offset, 0x104U);
    EXPECT_EQ(map.name_of(map.variable("out/commands")->type), "f32[6]");
    EXPECT_EQ(map.variable("out/(3)")->offset, 0x11CU);
    EXPECT_EQ(map.variable("out/matrix")->offset, 0x128U);
    EXPECT_EQ(map.variable("in/back")->offset, 0U);
    EXPECT_THAT(refused_as(Format::partitions, "a(1).Type = 'single';\na(1).Size = num2str(n);"),
                HasSubstr("a table:2: Size is computed (num2str(n)); write what comes out"));
}

TEST(Ddf, has_names_of_sets_and_buses) {
    Map map = read_as(Format::ddf, kDdf, 1);
    EXPECT_EQ(map.name_of(map.variable("PUBLISH/aircraft/flags")->type), "u8[4]");
    EXPECT_EQ(map.variable("SUBSCRIBE/gear down")->initial, "true");
    EXPECT_EQ(map.variable("SUBSCRIBE/trim")->owner, (Owner{Owner::Kind::node, 1}));
    pack(map);
    EXPECT_FALSE(has_errors(check(map)));
    EXPECT_THAT(refused_as(Format::ddf, "<orchestra>\n<domain name='a'>\n<set></domain>"),
                HasSubstr("a table:3: "));
}

TEST(Ipc, has_rates_and_hosts) {
    const Map map = read_as(Format::ipc, kIpc);
    const Variable& arm = *map.variable("T1:LSC-ARM_IPC");
    EXPECT_EQ(arm.rate_hz, 65536);
    EXPECT_EQ(other_of(arm.other, "ipcHost"), "t1lsc");
    EXPECT_THAT(refused_as(Format::ipc, "[a]\nipcRate=often\n"), HasSubstr("a table:2: "));
}

TEST(Formats, are_found_by_their_names) {
    for (const char* name :
         {"map", "veristand-dma", "veristand-points", "partitions", "ddf", "ipc"})
        EXPECT_TRUE(parse_format(name)) << name;
    EXPECT_FALSE(parse_format("csv"));
    EXPECT_FALSE(format_of("a;b\n1;2\n"));
    EXPECT_EQ(format_of(kRig), Format::map);
}

}  // namespace
}  // namespace maps::test
