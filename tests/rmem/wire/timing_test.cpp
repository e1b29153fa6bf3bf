// SPDX-License-Identifier: Apache-2.0
#include "rmem/wire/timing.hpp"

#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

namespace rmem {
namespace {

std::string refusal(const std::string& spec) {
    return test::refused(Errc::bad_profile, [&] { parse_timing(spec); });
}

void expect_refused(const std::string& spec, const std::string& sentence) {
    EXPECT_THAT(refusal(spec), ::testing::HasSubstr(sentence)) << spec;
}

TEST(Timing, every_listed_name_is_read_and_written_back) {
    for (const std::string& name : timing_profile_names()) {
        EXPECT_EQ(to_string(parse_timing(name)), name);
        EXPECT_NE(timing_source(name), "") << name;
        EXPECT_EQ(parse_timing(name).overflow, FifoPolicy::hold_off)
            << name << ": nothing is lost unless that is asked for";
    }
    EXPECT_EQ(timing_profile_names().size(), 9u);
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

TEST(Timing, rfm5565_moves_what_its_data_sheets_say) {
    const TimingProfile p = parse_timing("rfm5565");
    EXPECT_EQ(4'000'000 / (p.pitch_ps / 100), 4711u) << "47.1 MB/s of words";
    const std::uint64_t full = packet_ps(p, 16) + gap_ps(p);
    EXPECT_EQ(64'000'000 / full, 174u) << "MB/s of packets of 64 B";
    EXPECT_EQ((p.insertion_ps + packet_ps(p, 1)) / 1000, 699u) << "ns from node to node";
    EXPECT_EQ((p.insertion_ps + 2 * p.node_delay_ps + packet_ps(p, 16)) / 1000, 2100u)
        << "ns until 64 B are in the last of four nodes";
}

TEST(Timing, options_make_a_card_of_ones_own) {
    const TimingProfile p = parse_timing("custom,line=1000000000,delay=300ns,header=60,packet=32");
    EXPECT_EQ(p.bits_per_s, 1'000'000'000u);
    EXPECT_EQ(p.node_delay_ps, 300'000u);
    EXPECT_EQ(p.packets, PacketMode::variable);
    EXPECT_EQ(packet_ps(p, 1), 92'000u);
    EXPECT_EQ(p.pitch_ps, 92'000u) << "one word after the other, if nothing else is said";
    EXPECT_EQ(parse_timing(to_string(p)), p);
    EXPECT_EQ(to_string(parse_timing("gt200,delay=500ns")), "gt200,delay=500000ps");
    for (const char* other : {"gt200,delay=500ns", "gt200,fifo=lose", "platinum"})
        EXPECT_NE(hash_of(parse_timing(other)), hash_of(parse_timing("gt200"))) << other;
    EXPECT_EQ(hash_of(parse_timing("gt200")), hash_of(parse_timing("gt200")));
}

TEST(Timing, scramnet_sends_whole_words_and_the_others_bytes) {
    for (const char* name : {"scramnet-burst", "scramnet-burst-plus-1k", "platinum"})
        EXPECT_EQ(parse_timing(name).whole_words, 1) << name;
    for (const char* name : {"none", "gt200", "rfm5565"})
        EXPECT_EQ(parse_timing(name).whole_words, 0) << name;
    EXPECT_EQ(to_string(parse_timing("gt200,words=whole")), "gt200,words=whole");
    EXPECT_NE(hash_of(parse_timing("gt200,words=whole")), hash_of(parse_timing("gt200")));
}

TEST(Timing, a_card_that_cannot_be_is_refused) {
    expect_refused("custom", "has no line rate");
    expect_refused("custom,line=9", "whole bits a second");
    expect_refused("custom,line=1000000000,delay=3", "a time such as 450ns");
    expect_refused("custom,line=1000000000,delay=2000ms", "at most a second");
    expect_refused("custom,line=1000000000,delay=99999999999999999999ns", "at most a second");
    expect_refused("custom,line=1000000000,packet=6", "a multiple of 4 to 4096");
    expect_refused("custom,line=1000000000,packet=64,packets=fixed", "hold one word");
    expect_refused("custom,line=1000000000,resend=maybe", "valid: yes, no");
    expect_refused("scramnet-burst,line=1000000", "give pitch= at least that");
    expect_refused("none,line=1000000", "does not exist");
}

class TimingFileTest : public ::testing::Test {
protected:
    ~TimingFileTest() override { std::remove(path_.c_str()); }
    std::string write(const std::string& text) const {
        std::ofstream(path_) << text;
        return path_;
    }
    std::string refusal_of(const std::string& text) const { return refusal(write(text)); }

    const std::string path_ =
        (std::filesystem::temp_directory_path() / ("card-" + std::to_string(::getpid()) + ".toml"))
            .string();
};

TEST_F(TimingFileTest, gives_what_the_same_options_give) {
    EXPECT_EQ(parse_timing(write("base = \"rfm5565\"\ndelay = \"450ns\"\npacket = 32\n")),
              parse_timing("rfm5565,delay=450ns,packet=32"));
    EXPECT_EQ(parse_timing(write("line = 1000000000\nheader = 60\n") + ",fifo=lose"),
              parse_timing("custom,line=1000000000,header=60,fifo=lose"));
    EXPECT_EQ(to_string(parse_timing(write("base = \"gt200\""))), "gt200")
        << "the file's name is no part of it";
}

TEST_F(TimingFileTest, names_the_line_of_what_is_wrong) {
    EXPECT_TRUE(refusal_of("base = \"rfm\"").starts_with(path_ + ":1: timing profile \"rfm\""));
    EXPECT_TRUE(refusal_of("\nlien = 5").starts_with(path_ + ":2: timing option \"lien=5\""));
    EXPECT_TRUE(refusal_of("line = 5").starts_with(path_ + ":1: timing option \"line\" is \"5\""));
    EXPECT_TRUE(refusal_of("line = [5]").starts_with(path_ + ":1: 'line' is neither"));
    EXPECT_TRUE(refusal_of("line = ").starts_with(path_ + ":1: "));
    EXPECT_TRUE(refusal_of("header = 5").starts_with(path_ + ": timing profile \"custom\" has no"));
    expect_refused("./no-such.toml", "cannot be read");
    EXPECT_FALSE(names_timing_file("gt200,cable=5m"));
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

TEST(Timing, an_unknown_profile_is_refused_with_the_list) {
    expect_refused("scramnet", "\"scramnet\" does not exist");
    for (const std::string& name : timing_profile_names()) expect_refused("scramnet", name);
}

TEST(Timing, a_bad_option_is_refused_with_what_was_found_and_what_is_valid) {
    expect_refused("gt200,age=3", "\"age=3\" does not exist");
    expect_refused("gt200,", "valid ones: fifo=hold|lose");
    expect_refused("platinum,fifo=drop", "\"drop\"; valid: hold, lose");
    expect_refused("platinum-plus,packet=512", "valid: 256, 1024");
    expect_refused("platinum,packet=256", "plus profiles only");
    expect_refused("platinum,cable=5", "whole metres");
    expect_refused("platinum,cable=-5m", "whole metres");
    expect_refused("platinum,cable=99999999999999999999m", "whole");
    expect_refused("platinum,bound=5", "ns, us or ms");
    expect_refused("platinum,bound=0us", "ns, us or ms");
    expect_refused("", "\"\" does not exist");
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

}  // namespace
}  // namespace rmem
