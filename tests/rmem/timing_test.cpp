// SPDX-License-Identifier: Apache-2.0
#include "rmem/timing.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <string>

namespace rmem {
namespace {

std::string sentence_of(const std::function<void()>& action) {
    try {
        action();
    } catch (const Error& error) {
        EXPECT_EQ(error.code(), Errc::bad_profile);
        return error.what();
    }
    return "no error";
}

std::string refusal(const char* spec) {
    return sentence_of([spec] { parse_timing(spec); });
}

TEST(Timing, every_listed_name_is_read_and_written_back) {
    for (const std::string& name : timing_profile_names()) {
        EXPECT_EQ(to_string(parse_timing(name)), name);
    }
    EXPECT_EQ(timing_profile_names().size(), 8u);
}

TEST(Timing, a_word_takes_82_bits_and_547_ns_on_scramnet) {
    const TimingProfile p = parse_timing("scramnet-burst");
    EXPECT_EQ(p.header_bits + 4 * p.bits_per_byte, 82u);
    EXPECT_EQ(packet_ps(p, 1), 546'667u);
    EXPECT_EQ(gap_ps(p), 615'000u - 546'667u);
}

TEST(Timing, a_million_words_are_off_by_less_than_a_microsecond) {
    const std::uint64_t exact_ps = 82'000'000ULL * 1'000'000 / 150;
    const std::uint64_t summed_ps = 1'000'000 * packet_ps(parse_timing("scramnet-burst"), 1);
    EXPECT_LT(summed_ps - exact_ps, 1'000'000u);
}

TEST(Timing, the_longest_node_delay_is_the_manuals) {
    EXPECT_EQ(max_node_delay_ps(parse_timing("scramnet-burst")) / 1000, 793u);
    const auto within_2_percent = [](const char* spec, std::uint64_t manual_ps) {
        const std::uint64_t ps = max_node_delay_ps(parse_timing(spec));
        return ps * 100 >= manual_ps * 98 && ps * 100 <= manual_ps * 102;
    };
    EXPECT_TRUE(within_2_percent("scramnet-burst-plus", 16'200'000));
    EXPECT_TRUE(within_2_percent("scramnet-burst-plus-1k", 61'800'000));
}

TEST(Timing, gt200_moves_33_megabytes_in_words_and_207_in_packets) {
    const TimingProfile p = parse_timing("gt200");
    EXPECT_EQ(4'000'000 / p.pitch_ps, 33u);
    const std::uint64_t full = packet_ps(p, 32) + gap_ps(p);
    EXPECT_GE(128'000'000 / full, 205u);
    EXPECT_LE(128'000'000 / full, 210u);
}

TEST(Timing, options_change_what_they_name) {
    const TimingProfile p =
        parse_timing("scramnet-burst-plus,fifo=lose,packet=1024,cable=5m,bound=50us");
    EXPECT_EQ(p.overflow, FifoPolicy::lose);
    EXPECT_EQ(p.packet_bytes, 1024u);
    EXPECT_EQ(p.cable_ps, 25'000u);
    EXPECT_EQ(bound_ns(p, 4), 50'000);
    EXPECT_EQ(to_string(p), "scramnet-burst-plus,fifo=lose,packet=1024,cable=5m,bound=50000ns");
    EXPECT_EQ(parse_timing(to_string(p)), p);
}

TEST(Timing, nothing_is_lost_unless_asked_for) {
    for (const std::string& name : timing_profile_names()) {
        EXPECT_EQ(parse_timing(name).overflow, FifoPolicy::hold_off) << name;
    }
}

TEST(Timing, an_unknown_profile_is_refused_with_the_list) {
    const std::string sentence = refusal("scramnet");
    EXPECT_NE(sentence.find("\"scramnet\" does not exist"), std::string::npos) << sentence;
    for (const std::string& name : timing_profile_names()) {
        EXPECT_NE(sentence.find(name), std::string::npos) << sentence;
    }
}

TEST(Timing, a_bad_option_is_refused_with_what_was_found_and_what_is_valid) {
    EXPECT_NE(refusal("gt200,age=3").find("\"age=3\" does not exist"), std::string::npos);
    EXPECT_NE(refusal("gt200,").find("valid ones: fifo=hold|lose"), std::string::npos);
    EXPECT_NE(refusal("platinum,fifo=drop").find("\"drop\"; valid: hold, lose"), std::string::npos);
    EXPECT_NE(refusal("platinum-plus,packet=512").find("valid: 256, 1024"), std::string::npos);
    EXPECT_NE(refusal("platinum,packet=256").find("plus profiles only"), std::string::npos);
    EXPECT_NE(refusal("platinum,cable=5").find("whole metres"), std::string::npos);
    EXPECT_NE(refusal("platinum,cable=-5m").find("whole metres"), std::string::npos);
    EXPECT_NE(refusal("platinum,cable=99999999999999999999m").find("whole"), std::string::npos);
    EXPECT_NE(refusal("platinum,bound=5").find("ns, us or ms"), std::string::npos);
    EXPECT_NE(refusal("platinum,bound=0us").find("ns, us or ms"), std::string::npos);
    EXPECT_NE(refusal("").find("\"\" does not exist"), std::string::npos);
}

TEST(Timing, the_bound_is_a_turn_and_a_longest_stay_for_each_node) {
    // 4 * 615 for the turns, 4 * 793.667 for the stays.
    EXPECT_EQ(bound_ns(parse_timing("scramnet-burst"), 4), 5635);
    EXPECT_EQ(bound_ns(parse_timing("scramnet-burst,cable=10m"), 4), 5635 + 4 * 50);
    // Fixed packets need a turn for each word, a PLUS packet holds them all.
    EXPECT_EQ(bound_ns(parse_timing("scramnet-burst"), 4, 16), 5635 + 15 * 4 * 615);
    const TimingProfile plus = parse_timing("scramnet-burst-plus");
    EXPECT_EQ(bound_ns(plus, 4, 64), bound_ns(plus, 4, 1));
    EXPECT_GT(bound_ns(plus, 4, 65), bound_ns(plus, 4, 64));
}

TEST(Timing, none_promises_nothing_unless_a_bound_is_given) {
    EXPECT_EQ(bound_ns(parse_timing("none"), 256), 0);
    EXPECT_EQ(bound_ns(parse_timing("none,bound=1ms"), 256), 1'000'000);
}

TEST(Timing, the_hash_tells_profiles_apart) {
    EXPECT_EQ(hash_of(parse_timing("gt200")), hash_of(parse_timing("gt200")));
    EXPECT_NE(hash_of(parse_timing("gt200")), hash_of(parse_timing("gt200,fifo=lose")));
    EXPECT_NE(hash_of(parse_timing("platinum")), hash_of(parse_timing("scramnet-burst")));
}

}  // namespace
}  // namespace rmem
