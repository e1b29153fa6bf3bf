// SPDX-License-Identifier: Apache-2.0

/// The map that a ring has in it.

#include "maps/ring_map.hpp"

#include "maps/difference.hpp"
#include "maps/maps.h"
#include "maps/pack.hpp"
#include "rmem/ring/map_text.hpp"
#include "rmem/ring/segment.hpp"
#include "tests/maps/rigs.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <stdlib.h>

#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

namespace maps::test {
namespace {

using rmem::Errc;
using rmem::test::refused;
using ::testing::AllOf;
using ::testing::HasSubstr;

struct RingMaps : ::testing::Test {
    rmem::test::RingName name;
    std::string file = ::testing::TempDir() + "map-XXXXXX";

    RingMaps() { ::close(::mkstemp(file.data())); }
    ~RingMaps() override {
        ::unsetenv("RMEM_MAP");
        std::filesystem::remove(file);
    }

    std::shared_ptr<rmem::Ring> open(std::size_t bytes = 0x10000, unsigned nodes = 2) const {
        return rmem::Ring::open(name.config(nodes, rmem::LinkKind::ring, bytes),
                                rmem::Deadline::in(rmem::test::kPatienceNs));
    }
    void set(const std::string& text) const {
        std::ofstream(file) << text;
        ::setenv("RMEM_MAP", file.c_str(), 1);
    }
    static rmem::SegmentHeader& header_of(const rmem::Ring& ring) {
        return *reinterpret_cast<rmem::SegmentHeader*>(ring.segment().data());
    }
};

constexpr const char* kSmall = "[[variable]]\nname = 'gear'\noffset = 8\ntype = 'u32'\n";

TEST_F(RingMaps, are_given_by_the_first_and_found_by_the_others_without_a_file) {
    const auto ring = open(0x10000, 4);
    EXPECT_EQ(map_of(*ring), nullptr);
    const Map rig = map_of_text(kRig);
    give_map(*ring, rig);
    const auto elsewhere = rmem::Ring::observe(name.get());
    const SharedMap found = map_of(*elsewhere);
    ASSERT_NE(found, nullptr);
    EXPECT_THAT(differences(rig, *found), ::testing::IsEmpty());
    EXPECT_EQ(map_of(*elsewhere), found) << "read once";
}

TEST_F(RingMaps, are_given_twice_where_they_are_the_same_and_refused_where_not) {
    const auto ring = open();
    give_map(*ring, map_of_text(kSmall));
    give_map(*ring, map_of_text(std::string(kSmall) + "unit = 'm'\ndescription = 'another'\n"));
    EXPECT_THAT(
        refused(Errc::bad_map,
                [&] {
                    give_map(*ring, map_of_text("[[variable]]\nname = 'gear'\n"
                                                "offset = 12\ntype = 'u32'\n"));
                }),
        AllOf(HasSubstr(name.get()), HasSubstr("'gear': its place is 0x8 there, 0xc here")));
}

TEST_F(RingMaps, are_refused_where_the_ring_is_too_small) {
    const auto ring = open(0x1000);
    EXPECT_THAT(refused(Errc::bad_map,
                        [&] {
                            give_map(*ring, map_of_text("[[variable]]\nname = 'a'\n"
                                                        "offset = 0x0ffc\ntype = 'f64'\n"));
                        }),
                HasSubstr("needs 0x1004"));
    EXPECT_THAT(
        refused(Errc::bad_map, [&] { give_map(*ring, map_of_text("[ring]\nnodes = 3\n")); }),
        HasSubstr("has 2 nodes"));
    EXPECT_EQ(map_of(*ring), nullptr);
}

TEST_F(RingMaps, come_from_the_setting_packed) {
    const auto ring = open();
    set("[[variable]]\nname = 'gear'\ntype = 'u32'\n");
    const SharedMap agreed = agreed_map(*ring);
    ASSERT_NE(agreed, nullptr);
    EXPECT_TRUE(agreed->find("gear")->variable->is_placed());
    ::unsetenv("RMEM_MAP");
    EXPECT_TRUE(agreed_map(*ring)->find("gear"));
    set(kSmall);
    EXPECT_THAT(refused(Errc::bad_map, [&] { agreed_map(*ring); }), HasSubstr("another map"));
}

TEST_F(RingMaps, are_read_again_when_the_file_has_changed) {
    set(kSmall);
    EXPECT_TRUE(map_setting()->find("gear"));
    EXPECT_EQ(map_setting(), map_setting());
    set("[[variable]]\nname = 'flaps'\noffset = 8\ntype = 'u32'\n");
    EXPECT_TRUE(map_setting()->find("flaps"));
}

TEST_F(RingMaps, are_known_by_their_hash_where_they_have_no_room) {
    const auto ring = open();
    const Map rig = map_of_text(kRig);
    ASSERT_TRUE(rmem::put_map(*ring, rig.hash(), std::string(rmem::kMaxMapBytes + 1, ' ')));
    EXPECT_EQ(rmem::map_text(*ring), "");
    EXPECT_THAT(refused(Errc::bad_map, [&] { map_of(*ring); }), HasSubstr("set RMEM_MAP"));
    set(kRig);
    EXPECT_EQ(map_of(*ring)->hash(), rig.hash());
    EXPECT_THAT(refused(Errc::bad_map, [&] { give_map(*ring, map_of_text(kSmall)); }),
                HasSubstr("another map"));
}

TEST_F(RingMaps, are_refused_where_others_have_damaged_them) {
    const auto ring = open();
    give_map(*ring, map_of_text(kSmall));
    rmem::SegmentHeader& header = header_of(*ring);
    std::byte* const text = ring->segment().data() + rmem::SegmentLayout(ring->config()).map;
    header.map_bytes = ~std::uint64_t{0};
    EXPECT_EQ(rmem::map_text(*ring).size(), 4096U) << "as far as there is memory";
    header.map_bytes = 20;
    refused(Errc::bad_map, [&] { map_of(*ring); });
    const std::string other = "[[variable]]\nname = 'a'\noffset = 8\ntype = 'u32'\n";
    std::memcpy(text, other.data(), other.size());
    header.map_bytes = other.size();
    EXPECT_THAT(refused(Errc::bad_map, [&] { map_of(*ring); }), HasSubstr("damaged"));
}

TEST_F(RingMaps, stay_with_a_ring_that_stays) {
    {
        const auto ring = open();
        give_map(*ring, map_of_text(kSmall));
        ring->set_stays(true);
    }
    const auto again = open();
    EXPECT_TRUE(map_of(*again)->find("gear"));
    again->set_stays(false);
}

TEST_F(RingMaps, are_put_there_by_one_of_many_who_come_at_once) {
    const auto ring = open();
    std::vector<std::unique_ptr<rmem::test::Child>> children;
    rmem::test::SharedValue<std::atomic<unsigned>> put;
    for (std::uint64_t i = 1; i <= 8; ++i) {
        children.push_back(std::make_unique<rmem::test::Child>([&, i] {
            const auto own = rmem::Ring::attach(name.get());
            if (rmem::put_map(*own, i, std::string(100'000, static_cast<char>('a' + i)))) ++*put;
        }));
    }
    for (const auto& child : children) EXPECT_EQ(child->wait(), 0);
    EXPECT_EQ(put->load(), 1U);
    const auto hash = rmem::map_hash(*ring);
    EXPECT_EQ(rmem::map_text(*ring), std::string(100'000, static_cast<char>('a' + hash)));
}

// ---- In C

struct NamesInC : RingMaps {
    rmem_node* node = nullptr;

    NamesInC() {
        set(kRig);
        rmem_options options = RMEM_OPTIONS;
        options.ring = name.get().c_str();
        options.node = options.rank = 0;
        options.nodes = 4;
        options.ranks = 5;
        options.memory_bytes = 0x10000;
        EXPECT_EQ(rmem_open_with(&node, &options), RMEM_OK) << rmem_last_error();
    }
    ~NamesInC() override { rmem_close(node); }
};

TEST_F(NamesInC, are_stored_and_loaded_by_handles) {
    rmem_f64 altitude{};
    ASSERT_EQ(rmem_find_f64(node, "aircraft/altitude", &altitude), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(rmem_store_f64(altitude, 1000.25), RMEM_OK);
    EXPECT_EQ(rmem_load_f64(altitude), 1000.25);
    rmem_f32 time{};
    ASSERT_EQ(rmem_find_f32(node, "aircraft/state[1].time", &time), RMEM_OK);
    EXPECT_EQ(rmem_store_f32(time, 2.5F), RMEM_OK);
    EXPECT_EQ(rmem_load_f32(time), 2.5F);
    rmem_block name_of_it{};
    ASSERT_EQ(rmem_find_block(node, "log.name", 16, &name_of_it), RMEM_OK) << rmem_last_error();
    char text[16] = "rig";
    EXPECT_EQ(rmem_store_block(name_of_it, text), RMEM_OK);
    text[0] = 'x';
    EXPECT_EQ(rmem_load_block(name_of_it, text), RMEM_OK);
    EXPECT_STREQ(text, "rig");
    rmem_place place{};
    ASSERT_EQ(rmem_find(node, "aircraft/state[1].position", &place), RMEM_OK);
    EXPECT_EQ(place.offset, 544U + 8);
    EXPECT_EQ(place.bytes, 24U);
    EXPECT_STREQ(place.type, "f64[3]");
    EXPECT_STREQ(place.unit, "m");
    EXPECT_STREQ(place.owner, "node 1");
}

TEST_F(NamesInC, are_refused_with_a_sentence) {
    rmem_f32 wrong{};
    EXPECT_EQ(rmem_find_f32(node, "aircraft/altitude", &wrong), RMEM_EINVAL);
    EXPECT_THAT(rmem_last_error(), HasSubstr("is f64 in the map"));
    EXPECT_EQ(rmem_find_f32(node, "aircraft/altitud", &wrong), RMEM_EINVAL);
    EXPECT_THAT(rmem_last_error(), HasSubstr("did you mean 'aircraft/altitude'?"));
    EXPECT_EQ(rmem_find_f32(nullptr, "a", &wrong), RMEM_EINVAL);
    EXPECT_EQ(rmem_find_f32(node, nullptr, &wrong), RMEM_EINVAL);
    EXPECT_EQ(rmem_find_f32(node, "a", nullptr), RMEM_EINVAL);
    rmem_block block{};
    EXPECT_EQ(rmem_find_block(node, "aircraft/altitude", 4, &block), RMEM_EINVAL);
    rmem_bits bits{};
    EXPECT_EQ(rmem_find_bits(node, "aircraft/status.mode", &bits), RMEM_EINVAL) << "big-endian";
    EXPECT_EQ(rmem_expect_map(node, map_of_text(kRig).hash()), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(rmem_expect_map(node, 1), RMEM_EINVAL);
    EXPECT_THAT(rmem_last_error(), HasSubstr("rmem map header"));
}

TEST(NamesWithoutAMap, are_refused_with_what_to_do) {
    const rmem::test::RingName name;
    rmem_options options = RMEM_OPTIONS;
    options.ring = name.get().c_str();
    options.node = 0;
    rmem_node* node = nullptr;
    ASSERT_EQ(rmem_open_with(&node, &options), RMEM_OK) << rmem_last_error();
    rmem_f32 any{};
    EXPECT_EQ(rmem_find_f32(node, "a", &any), RMEM_EINVAL);
    EXPECT_THAT(rmem_last_error(), AllOf(HasSubstr("has no map"), HasSubstr("--map")));
    EXPECT_EQ(rmem_close(node), RMEM_OK);
}

}  // namespace
}  // namespace maps::test
