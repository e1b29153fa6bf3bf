// SPDX-License-Identifier: Apache-2.0

/// Variables by their names and types, on every link.

#include "maps/names.hpp"

#include "maps/pack.hpp"
#include "tests/maps/rigs.hpp"
#include "tests/support/checks.hpp"
#include "tests/support/link_nodes.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>

#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <string>

namespace rmem::test {

/// As `rmem map header` writes one.
struct Flight {
    float time;
    unsigned char unused_0[4];
    double position[3];
};

}  // namespace rmem::test

template <>
struct maps::Described<rmem::test::Flight> {
    static constexpr std::string_view name = "FlightState";
    static constexpr std::uint64_t layout = 0xb98f23683a439a93;
};

namespace rmem::test {
namespace {

using maps::bit_place_of;
using maps::Map;
using maps::wanted;
using maps::test::map_of_text;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kTypes = R"(
[[structure]]
name = "FlightState"
[[structure.member]]
name = "time"
type = "f32"
[[structure.member]]
name = "position"
type = "f64[3]"
[[variable]]
name = "on"
type = "bool"
[[variable]]
name = "small"
type = "i8"
[[variable]]
name = "half"
type = "u16"
[[variable]]
name = "word"
type = "i32"
[[variable]]
name = "shown"
type = "x32"
[[variable]]
name = "real"
type = "f32"
[[variable]]
name = "long"
type = "u64"
[[variable]]
name = "double"
type = "f64"
[[variable]]
name = "big"
type = "u32be"
[[variable]]
name = "bigs"
type = "i16be[3]"
[[variable]]
name = "many"
type = "f32[4]"
[[variable]]
name = "title"
type = "text[12]"
[[variable]]
name = "flight"
type = "FlightState"
[[variable]]
name = "flights"
type = "FlightState[2]"
[[variable]]
name = "status"
type = "u16"
fields = { ready = 0, mode = [1, 3] }
[[variable]]
name = "wide"
type = "u64"
fields = { high = [40, 8], across = [30, 4] }
)";

std::shared_ptr<const Map> types() {
    Map map = map_of_text(kTypes);
    maps::pack(map);
    return std::make_shared<const Map>(std::move(map));
}

class Variables : public LinkConformance {};

TEST_P(Variables, are_stored_at_one_node_and_loaded_at_the_other_in_each_type) {
    run(2, [&](Self& self) {
        const Names names(self.node, types());
        const Variable<bool> on(names, "on");
        const Variable<std::int8_t> small(names, "small");
        const Variable<std::uint16_t> half(names, "half");
        const Variable<std::int32_t> word(names, "word");
        const Variable<std::uint32_t> shown(names, "shown");
        const Variable<float> real(names, "real");
        const Variable<std::uint64_t> long_one(names, "long");
        const Variable<double> double_one(names, "double");
        const Variable<std::uint32_t, std::endian::big> big(names, "big");
        const Variable<std::array<std::int16_t, 3>, std::endian::big> bigs(names, "bigs");
        const Variable<std::array<float, 4>> many(names, "many");
        const Variable<std::array<char, 12>> title(names, "title");
        const Variable<Flight> flight(names, "flight");
        const Bits mode(names, "status.mode"), ready(names, "status.ready");
        const Bits high(names, "wide.high");
        if (self.id == 0) {
            on = true;
            small = std::int8_t{-5};
            half = std::uint16_t{0xabcd};
            word = -7;
            shown = 0xdeadbeefU;
            real = 1.5F;
            long_one = 0x1234'5678'9abc'def0U;
            double_one = -0.125;
            big = 0x01020304U;
            bigs = std::array<std::int16_t, 3>{1, -2, 3};
            many = std::array<float, 4>{1, 2, 3, 4};
            title = std::array<char, 12>{"a rig"};
            flight = Flight{2.5F, {}, {1, 2, 3}};
            mode = 5;
            ready = 1;
            mode = 6;
            high = 0x7f;
            check(self.node.flush(Deadline::in(kPatienceNs)), "the other has all");
        }
        self.await([&] { return high.load() == 0x7f; });
        check(on, "bool");
        check(small == -5 && half == 0xabcd && word == -7 && shown == 0xdeadbeefU, "whole");
        check(real == 1.5F && double_one == -0.125, "real");
        check(long_one == 0x1234'5678'9abc'def0U, "long");
        check(big == 0x01020304U && self.node.load(big.offset()) == 0x04030201U, "big");
        check(bigs.load() == std::array<std::int16_t, 3>{1, -2, 3}, "elements of the other order");
        check(many.load()[3] == 4, "array");
        check(std::string(title.load().data()) == "a rig", "text");
        check(flight.load().position[2] == 3 && flight.load().time == 2.5F, "structure");
        check(mode == 6U && ready == 1U, "bits");
        self.meet(0);
    });
}

TEST_P(Variables, have_bits_that_leave_the_number_beside_them_alone) {
    run(2, [&](Self& self) {
        Map map = map_of_text(R"([[variable]]
name = "left"
offset = 0
type = "u16"
fields = { first = 0 }
[[variable]]
name = "right"
offset = 2
type = "u16"
)");
        const Names names(self.node, std::make_shared<const Map>(std::move(map)));
        const Bits first(names, "left.first");
        const Variable<std::uint16_t> right(names, "right");
        // Each is its own node's. A word that went along would take the other's back.
        for (std::uint16_t i = 1; i <= 200; ++i) {
            if (self.id == 0) {
                first = i & 1U;
            } else {
                right = i;
            }
            Self::rest();
        }
        check(self.node.flush(Deadline::in(kPatienceNs)), "the other has all");
        self.meet(0);
        self.await([&] { return right == 200 && first == 0U; });
        self.meet(1);
    });
}

INSTANTIATE_TEST_SUITE_P(EachLink, Variables,
                         conformance_on({{LinkKind::direct, {"none"}},
                                         {LinkKind::ring, {"gt200"}},
                                         {LinkKind::udp, {"none"}},
                                         {LinkKind::sim, {"gt200"}}}),
                         conformance_case_name);

// ---- What is refused

struct VariableLookups : ::testing::Test {
    const std::shared_ptr<const Map> map = types();

    template <class T, std::endian kOrder = std::endian::native>
    std::string refused_as(const char* path) const {
        return refused(Errc::bad_map, [&] { maps::offset_of(*map, path, wanted<T, kOrder>()); });
    }
};

TEST_F(VariableLookups, refuse_another_type_than_the_maps) {
    EXPECT_THAT(refused_as<float>("double"),
                AllOf(HasSubstr("'double' is f64 in the map"), HasSubstr("takes it for f32")));
    refused_as<std::uint32_t>("word");
    refused_as<std::int64_t>("long");
    refused_as<std::uint32_t>("big");
    refused_as<std::uint32_t>("many[0]");
    EXPECT_THAT((refused_as<std::array<float, 3>>("many")), HasSubstr("takes it for f32[3]"));
    refused_as<std::array<char, 13>>("title");
    refused_as<float>("flight");
    refused_as<Flight>("flights");
    refused_as<Flight>("many");
    EXPECT_THAT(refused_as<std::uint16_t>("status.mode"), HasSubstr("take it for bits"));
}

TEST_F(VariableLookups, take_the_types_that_are_the_maps_by_another_name) {
    EXPECT_EQ(maps::offset_of(*map, "shown", wanted<std::uint32_t, std::endian::native>()),
              map->find("shown")->offset);
    EXPECT_EQ(maps::offset_of(*map, "flights[1]", wanted<Flight, std::endian::native>()),
              map->find("flights")->offset + sizeof(Flight));
    EXPECT_EQ(maps::offset_of(*map, "flight.position[1]", wanted<double, std::endian::native>()),
              map->find("flight")->offset + 16);
}

TEST_F(VariableLookups, refuse_a_structure_that_lies_otherwise) {
    Map other = map_of_text(R"([[structure]]
name = "FlightState"
[[structure.member]]
name = "position"
type = "f64[3]"
[[structure.member]]
name = "time"
type = "f32"
[[variable]]
name = "flight"
offset = 0
type = "FlightState"
)");
    EXPECT_THAT(
        refused(Errc::bad_map,
                [&] { maps::offset_of(other, "flight", wanted<Flight, std::endian::native>()); }),
        HasSubstr("make its header from this map"));
}

TEST_F(VariableLookups, name_the_nearest_to_what_is_not_there) {
    EXPECT_THAT(refused_as<double>("duoble"), HasSubstr("did you mean 'double'?"));
}

TEST_F(VariableLookups, find_bits_only_in_a_word_of_the_hosts_order) {
    const auto at = bit_place_of(*map->find("wide.high"));
    ASSERT_TRUE(at);
    EXPECT_EQ(at->word, map->find("wide")->offset + 4);
    EXPECT_EQ(at->shift, 8U);
    EXPECT_EQ(at->mask, 0xff00U);
    EXPECT_EQ(at->part, kWholeWord);
    EXPECT_FALSE(bit_place_of(*map->find("wide.across")));
    EXPECT_FALSE(bit_place_of(*map->find("wide")));
    const Map swapped =
        map_of_text("[[variable]]\nname = 'a'\noffset = 0\ntype = 'u32be'\nfields = { b = 1 }\n");
    EXPECT_FALSE(bit_place_of(*swapped.find("a.b")));
}

}  // namespace
}  // namespace rmem::test
