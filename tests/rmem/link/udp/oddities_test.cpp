// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/oddities.hpp"

#include "rmem/link/udp/engine_settings.hpp"
#include "rmem/ring/notice.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>

namespace rmem::udp {
namespace {

constexpr Ip kOther = 0x0a000002;  // 10.0.0.2
const std::string kHere = "ring 'rig': RMEM_NODES 2";

Oddities heard(Odd odd, unsigned origin, std::string_view text = {}) {
    Oddities oddities("rig", 0, kHere);
    oddities.note(odd, origin, kOther, text, 1000);
    return oddities;
}

bool has(const std::string& text, std::string_view part) {
    return text.find(part) != std::string::npos;
}

TEST(Oddities, say_where_another_process_has_this_nodes_number) {
    EXPECT_TRUE(
        has(heard(Odd::namesake, 0).text(1000), "node 0 of ring 'rig' is at 10.0.0.2 already"));
    EXPECT_TRUE(has(heard(Odd::namesake, 1).text(1000), "node 1 at 10.0.0.2 says that node 0"));
}

TEST(Oddities, say_who_has_another_key_or_none) {
    EXPECT_TRUE(has(heard(Odd::wrong_key, 1).text(1000), "10.0.0.2 speaks with another key"));
    EXPECT_TRUE(has(heard(Odd::no_tag, 1).text(1000), "10.0.0.2 speaks without a key"));
    EXPECT_TRUE(has(heard(Odd::not_expected, 1).text(1000), "this node has none"));
}

TEST(Oddities, name_each_setting_that_differs_with_both_values) {
    RingConfig there, here;
    there.name = here.name = "rig";
    there.user_bytes = 1U << 20;
    here.user_bytes = 2U << 20;
    Oddities oddities("rig", 0, about(here));
    oddities.note(Odd::other_ring, 1, kOther, about(there), 1000);
    EXPECT_EQ(oddities.text(1000),
              "10.0.0.2 has other settings of ring 'rig': RMEM_SIZE is 1M (1048576 bytes) there "
              "and 2M (2097152 bytes) here; give all hosts the same");
    there.nodes = 3;
    there.system_hash = 0x12;
    oddities.note(Odd::other_ring, 1, kOther, about(there), 2000);
    const std::string text = oddities.text(2000);
    EXPECT_TRUE(has(text, "RMEM_NODES is 3 there and 1 here, RMEM_SIZE is 1M")) << text;
    EXPECT_TRUE(has(text, "RMEM_PARTITION is 0 bytes (0x12) there and 0 bytes (0x0) here")) << text;
    EXPECT_FALSE(has(text, "RMEM_TIMING"));
    EXPECT_TRUE(has(heard(Odd::other_ring, 1, "ring 'w': 3 nodes").text(1000), "another ring"));
    // Anybody may have written it.
    EXPECT_TRUE(has(heard(Odd::other_ring, 1, "ring 'rig'").text(1000), "is  there and"));
}

TEST(Oddities, keep_what_one_datagram_said_when_others_say_less) {
    Oddities oddities = heard(Odd::other_ring, 1, "ring 'rig': RMEM_NODES 3");
    oddities.note(Odd::other_ring, 1, kOther, {}, 2000);
    EXPECT_TRUE(has(oddities.text(2000), "RMEM_NODES is 3 there and 2 here"));
}

TEST(Oddities, are_forgotten_after_a_while) {
    Oddities oddities("rig", 0, kHere);
    EXPECT_FALSE(oddities.are_recent(0));
    oddities.note(Odd::wrong_key, 1, kOther, {}, 1000);
    oddities.note(Odd::wrong_key, 1, kOther, {}, 2000);
    EXPECT_TRUE(oddities.are_recent(2000 + Oddities::kRecentNs));
    EXPECT_FALSE(oddities.text(2000 + Oddities::kRecentNs).empty());
    EXPECT_FALSE(oddities.are_recent(2001 + Oddities::kRecentNs));
    EXPECT_TRUE(oddities.text(2001 + Oddities::kRecentNs).empty());
    EXPECT_EQ(oddities.namesakes(), 0U);
    oddities.note(Odd::namesake, 0, kOther, {}, 3000);
    EXPECT_EQ(oddities.namesakes(), 1U);
}

TEST(Oddities, show_nothing_that_a_terminal_would_not_print) {
    const std::string text = heard(Odd::other_ring, 1, "ring 'rig': \033[2J").text(1000);
    EXPECT_FALSE(has(text, "\033"));
}

TEST(Notice, is_read_as_it_was_said) {
    const auto notice = std::make_unique<Notice>();
    EXPECT_EQ(notice->text(), "");
    notice->say("10.0.0.2 speaks with another key");
    EXPECT_EQ(notice->text(), "10.0.0.2 speaks with another key");
    const std::uint32_t before = notice->count();
    notice->say("");
    EXPECT_EQ(notice->text(), "");
    EXPECT_NE(notice->count(), before);
}

}  // namespace
}  // namespace rmem::udp
