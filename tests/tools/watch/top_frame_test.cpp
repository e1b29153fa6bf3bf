// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/top_frame.hpp"

#include "tools/output.hpp"
#include "tools/watch/screen.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

RingView ring_of(unsigned nodes) {
    RingView view;
    view.exists = view.has_members = true;
    view.name = "rig";
    view.link = "udp";
    view.is_remote = true;
    view.timing = "none";
    view.elapsed_ns = 1'000'000'000;
    view.has_wire = true;
    view.ranks = view.ranks_alive = view.nodes_up = nodes;
    for (unsigned n = 0; n < nodes; ++n) {
        NodeView node;
        node.node = n;
        node.state = NodeState::up;
        node.is_here = node.has_traffic = true;
        node.ranks = node.ranks_alive = 1;
        node.writes = 10;
        view.nodes.push_back(node);
    }
    return view;
}

std::string text_of(const std::vector<Line>& lines) {
    std::string text;
    for (const Line& line : lines) text += line.text + "\n";
    return text;
}

std::string frame_text(const RingView& view, std::size_t width = 200, std::size_t height = 0) {
    return text_of(frame_of(view, {}, {width, height}).lines);
}

TEST(TopFrame, shows_who_is_there_and_in_which_order) {
    RingView view = ring_of(3);
    view.nodes[1].state = NodeState::down;
    view.nodes_up = 2;
    const std::string text = frame_text(view);
    EXPECT_THAT(text, HasSubstr("ring rig: alive, link udp"));
    EXPECT_THAT(text, HasSubstr("2 of 3 nodes up"));
    EXPECT_THAT(text, HasSubstr("0 → (1) → 2 → 0"));
    view.has_wire = false;
    EXPECT_THAT(frame_text(view), HasSubstr("all nodes share one bank"));
}

TEST(TopFrame, shows_propagation_against_the_bound) {
    RingView view = ring_of(2);
    EXPECT_THAT(frame_text(view), HasSubstr("bound        none"));
    view.bound_ns = 50'000;
    view.now = {100, 11'000, 20'000, 30'000};
    EXPECT_THAT(frame_text(view), HasSubstr("50 µs: kept by all"));
    EXPECT_THAT(frame_text(view), HasSubstr("now: p50 11 µs, p99 20 µs, max 30 µs, of 100 writes"));
    view.broken = 3;
    view.broken_more = 2;
    EXPECT_THAT(frame_text(view), HasSubstr("broken by 3 writes (+2)"));
}

TEST(TopFrame, alarms_where_something_is_down_or_just_broke_the_bound) {
    RingView view = ring_of(2);
    const auto alarms = [&] {
        int count = 0;
        for (const Line& line : frame_of(view, {}, {}).lines) {
            count += line.style == LineStyle::alarm ? 1 : 0;
        }
        return count;
    };
    EXPECT_EQ(alarms(), 0);
    view.nodes[1].state = NodeState::stopped;
    EXPECT_EQ(alarms(), 1);
    view.bound_ns = 1;
    view.broken = view.broken_more = view.nodes[0].broken_more = 1;
    EXPECT_EQ(alarms(), 3);
}

TEST(TopFrame, is_not_alarmed_by_a_host_that_is_late) {
    RingView view = ring_of(2);
    view.bound_ns = 5'000;
    view.late = 900;
    view.late_more = view.nodes[0].late = view.nodes[0].late_more = 90;
    for (const Line& line : frame_of(view, {}, {}).lines) EXPECT_NE(line.style, LineStyle::alarm);
    EXPECT_THAT(frame_text(view), HasSubstr("5 µs: kept by the wire, 900 late by this host (+90)"));
    view.broken = 2;
    EXPECT_THAT(frame_text(view), HasSubstr("broken by 2 writes, 900 late by this host (+90)"));
    view.has_wire = false;
    view.broken = 0;
    EXPECT_THAT(frame_text(view), HasSubstr("5 µs: 900 late by this host (+90)"));
}

TEST(TopFrame, shows_messages_where_they_are_counted_and_that_some_are_samples) {
    RingView view = ring_of(2);
    EXPECT_THAT(frame_text(view), Not(HasSubstr("msgs/s")));
    view.has_messages = true;
    view.nodes[1].messages = 1'500'000;
    EXPECT_THAT(frame_text(view), HasSubstr("  msgs/s"));
    EXPECT_THAT(frame_text(view), HasSubstr("1.5M"));
    view.link = "direct";
    view.has_wire = view.is_remote = false;
    for (NodeView& node : view.nodes) node.has_traffic = false;
    EXPECT_THAT(frame_text(view), HasSubstr("~msgs/s"));
    EXPECT_THAT(frame_text(view), Not(HasSubstr("writes/s"))) << "which nobody counts";
    EXPECT_EQ(frame_json(view, {})["nodes"][1]["messages_per_s"], 1'500'000.0);
}

TEST(TopFrame, cuts_between_numbers_and_marks_it) {
    RingView view = ring_of(4);
    view.bound_ns = 123'456;
    view.now = view.ever = {12'345, 11'111, 22'222, 33'333};
    view.events = {
        {"losses", "naks_sent", "gaps", "that this node has requested by NAK", 7, 2, {0}}};
    const auto whole = frame_of(view, {}, {400, 0}).lines;
    for (std::size_t width = 1; width < 120; ++width) {
        const auto lines = frame_of(view, {}, {width, 0}).lines;
        for (const Line& line : lines) {
            if (!line.text.ends_with("…")) continue;
            const std::string kept =
                line.text.substr(0, line.text.size() - std::string("…").size());
            if (kept.empty()) continue;
            EXPECT_NE(kept.back(), ' ');
            const auto begins = [&](const Line& one) { return one.text.starts_with(kept); };
            if (std::none_of(whole.begin(), whole.end(), begins)) continue;  // fewer columns
            // The full text after it is no part of the same number or word.
            EXPECT_TRUE(std::any_of(whole.begin(), whole.end(), [&](const Line& one) {
                return begins(one) && one.text[kept.size()] == ' ';
            })) << line.text;
        }
    }
    EXPECT_THAT(frame_text(view, 20), HasSubstr("\nnow: p50 11.1 µs,…\n"))
        << "the figure before all";
    EXPECT_THAT(frame_text(view, 20), HasSubstr("\norder 0 → 1 → 2 →…\n"));
    EXPECT_THAT(frame_text(view, 40), HasSubstr("ring rig: alive, link udp, 4 of 4 nodes…\n"));
}

TEST(TopFrame, scrolls_where_there_are_keys_and_says_so_in_its_last_line) {
    RingView view = ring_of(40);
    Viewport port{80, 24, 0, true, true};
    const auto all = frame_of(view, {}, {80, 0}).lines;
    Frame frame = frame_of(view, {}, port);
    ASSERT_EQ(frame.lines.size(), 24U);
    EXPECT_EQ(frame.lines[0].text, all[0].text);
    EXPECT_EQ(frame.lines.back().style, LineStyle::footer);
    EXPECT_THAT(frame.lines.back().text,
                HasSubstr("q end  lines 1-23 of " + std::to_string(all.size())));
    port.scroll = 5;
    frame = frame_of(view, {}, port);
    EXPECT_EQ(frame.lines[0].text, all[5].text);
    EXPECT_EQ(frame.scroll, 5U);
    port.scroll = 1000;
    frame = frame_of(view, {}, port);
    EXPECT_EQ(frame.scroll, all.size() - 23);
    EXPECT_EQ(frame.lines[22].text, all.back().text) << "the end, and no further";
    port = {80, 60, 9, false, true};
    frame = frame_of(ring_of(2), {}, port);
    EXPECT_EQ(frame.scroll, 0U) << "all of it fits";
    EXPECT_THAT(frame.lines.back().text, Not(HasSubstr("scroll")));
}

TEST(TopFrame, gives_the_map_more_cells_on_a_larger_screen) {
    EXPECT_EQ(map_cells({76, 0}), 256U) << "four lines of 64";
    EXPECT_GT(map_cells({120, 40}), map_cells({80, 24}));
    EXPECT_GT(map_cells({200, 60}), map_cells({120, 40}));
    std::vector<std::uint32_t> bank(1024);
    HeatMap map;
    map.look(std::as_bytes(std::span(bank)), 0x400, map_cells({200, 60}));
    const std::string text = text_of(frame_of(ring_of(1), {&map, 0}, {200, 60}).lines);
    EXPECT_THAT(text, HasSubstr("a character is 4 B, to 0x00001400"));
    EXPECT_THAT(text, HasSubstr("0x00000400  ····"));
    EXPECT_EQ(frame_json(ring_of(1), {&map, 0})["map"]["from"], 0x400);
}

TEST(DrawnFrame, erases_nothing_behind_a_line_that_may_fill_the_screen) {
    EXPECT_EQ(drawn({{"one"}, {"two", LineStyle::alarm}}, true),
              "\x1b[H\x1b[Jone\r\n\x1b[31mtwo\x1b[0m");
    EXPECT_EQ(drawn({{"two", LineStyle::alarm}}, false), "\x1b[H\x1b[Jtwo");
}

TEST(Keys, are_what_terminals_send_for_them) {
    EXPECT_EQ(keys_of("q"), "q");
    EXPECT_EQ(keys_of("\x1b[A\x1b[B\x1bOC\x1b[D"), "kjlh");
    EXPECT_EQ(keys_of("\x1b[5~+\x1b[6~-"), "b+f-");
    EXPECT_EQ(keys_of("\x1b[15~\x1b[1;5A0"), "0") << "others mean nothing";
    EXPECT_EQ(keys_of("\x1b"), "");
}

TEST(TopFrame, shows_events_with_their_meaning_and_says_which_kinds_there_are_none_of) {
    RingView view = ring_of(2);
    view.events = {
        {"refusals", "refused_tag", "datagrams", "refused: a tag by another key", 7, 2, {0, 1}}};
    const std::string text = frame_text(view);
    EXPECT_THAT(text, HasSubstr("refused_tag"));
    EXPECT_THAT(text, HasSubstr("a tag by another key"));
    EXPECT_THAT(text, HasSubstr("0-1"));
    EXPECT_THAT(text, HasSubstr("no losses, retransmissions, back-pressure, bound, members\n"));
}

TEST(TopFrame, shows_what_a_node_says_of_those_that_it_does_not_reach) {
    RingView view = ring_of(2);
    EXPECT_THAT(frame_text(view), Not(HasSubstr("remark")));
    view.nodes[1].remark = "the host has no route to 239.1.2.3";
    EXPECT_THAT(frame_text(view), HasSubstr("node 1: the host has no route to 239.1.2.3"));
    EXPECT_EQ(frame_json(view, {})["nodes"][1]["remark"], "the host has no route to 239.1.2.3");
}

TEST(TopFrame, shows_munet_daemons_and_alarms_where_one_has_ended) {
    RingView view = ring_of(2);
    EXPECT_THAT(frame_text(view), Not(HasSubstr("MU-Net")));
    EXPECT_FALSE(frame_json(view, {})["nodes"][1].contains("munet"));
    view.nodes[1].munet = {true, 123, 2, 7};
    EXPECT_THAT(frame_text(view),
                HasSubstr("MU-Net       node 1: 2 endpoints, 7 frames wait for a link\n"));
    EXPECT_EQ(frame_json(view, {})["nodes"][1]["munet"]["endpoints"], 2);
    view.nodes[1].munet->runs = false;
    const auto lines = frame_of(view, {}, {}).lines;
    EXPECT_THAT(lines[5].text, HasSubstr("its daemon 123 has ended"));
    EXPECT_EQ(lines[5].style, LineStyle::alarm);
}

TEST(TopFrame, is_never_wider_or_higher_than_told) {
    RingView view = ring_of(256);
    view.events = {
        {"losses", "naks_sent", "gaps", "that this node has requested by NAK", 7, 2, {0}}};
    HeatMap map;
    const std::vector<std::uint32_t> bank(1 << 18);
    map.look(std::as_bytes(std::span(bank)));
    for (const std::size_t width : {1U, 20U, 79U, 120U}) {
        for (const std::size_t height : {1U, 2U, 10U, 24U, 60U}) {
            const auto lines = frame_of(view, {&map, 0}, {width, height}).lines;
            EXPECT_LE(lines.size(), height);
            for (const Line& line : lines) EXPECT_LE(text_width(line.text), width) << line.text;
        }
    }
}

TEST(TopFrame, leaves_out_what_matters_least_where_there_is_little_room) {
    RingView view = ring_of(100);
    view.nodes[77].state = NodeState::down;
    const std::string text = frame_text(view, 80, 24);
    EXPECT_THAT(text, HasSubstr("\n  77  down"));
    EXPECT_THAT(text, HasSubstr("more\n")) << "what is left out is said";
    EXPECT_THAT(text, HasSubstr("p99"));
    EXPECT_THAT(text, Not(HasSubstr("round trip")));
    EXPECT_THAT(frame_text(view, 200, 24), HasSubstr("round trip"));
}

TEST(TopFrame, shades_the_parts_of_the_bank_that_change) {
    std::vector<std::uint32_t> bank(1 << 18);
    HeatMap map;
    map.look(std::as_bytes(std::span(bank)));
    for (std::size_t i = 0; i < map.cell_bytes() / 4; ++i) bank[i] = 1;
    map.look(std::as_bytes(std::span(bank)));
    const std::string text = text_of(frame_of(ring_of(1), {&map, 0}, {100, 0}).lines);
    EXPECT_THAT(text, HasSubstr("0x00000000  █···"));
    EXPECT_THAT(text, HasSubstr("a character is 4 KiB"));
}

TEST(TopFrame, shows_nothing_that_a_terminal_would_obey) {
    RingView view = ring_of(1);
    view.name = "a\x1b[2Jb";
    EXPECT_THAT(frame_text(view), Not(HasSubstr("\x1b")));
}

TEST(TopFrame, says_that_the_ring_has_gone) {
    EXPECT_THAT(frame_text({}), HasSubstr("no such ring"));
    EXPECT_EQ(frame_json({}, {})["exists"], false);
}

TEST(TopFrame, says_the_same_in_json) {
    RingView view = ring_of(2);
    view.nodes[1].state = NodeState::down;
    view.events = {
        {"losses", "naks_sent", "gaps", "that this node has requested by NAK", 7, 2, {0}}};
    const auto frame = frame_json(view, {});
    EXPECT_EQ(frame["nodes"][0]["writes_per_s"], 10.0);
    EXPECT_EQ(frame["nodes"][1]["state"], "down");
    EXPECT_EQ(frame["order"], nlohmann::json::parse("[0]"));
    EXPECT_EQ(frame["events"][0]["counter"], "naks_sent");
    EXPECT_EQ(frame["events"][0]["total"], 7);
}

TEST(TopFrame, writes_rates_in_five_characters) {
    EXPECT_EQ(rate_text(0), "0");
    EXPECT_EQ(rate_text(0.5), "0.5");
    EXPECT_EQ(rate_text(99.96), "100");
    EXPECT_EQ(rate_text(1500), "1.5k");
    EXPECT_EQ(rate_text(999.7), "1.0k");
    EXPECT_EQ(rate_text(20e6), "20.0M");
}

}  // namespace
}  // namespace tools
