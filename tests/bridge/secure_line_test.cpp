// SPDX-License-Identifier: Apache-2.0

/// What passes between two sites: only what the other site has sent, whole and in order, and
/// nothing that others can read.

#include "bridge/secure_line.hpp"

#include "tests/support/broken.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <string_view>

namespace bridge {
namespace {

using rmem::udp::MasterKey;
using ::testing::HasSubstr;

using Bytes = std::vector<std::byte>;

MasterKey key(unsigned char value) {
    std::array<std::byte, MasterKey::kBytes> bytes;
    bytes.fill(std::byte{value});
    return MasterKey(bytes);
}

Bytes bytes_of(std::string_view text) {
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
}

Bytes taken(SecureLine& line) {
    const auto left = line.out().left();
    Bytes bytes(left.begin(), left.end());
    line.out().sent(bytes.size());
    return bytes;
}

struct Lines {
    explicit Lines(unsigned char of_caller = 1, unsigned char of_listener = 1)
        : caller(key(of_caller), SecureLine::Side::caller),
          listener(key(of_listener), SecureLine::Side::listener) {}
    void meet() {
        const Bytes greeting = taken(caller);
        caller.receive(taken(listener));
        listener.receive(greeting);
        const Bytes first = taken(caller);
        caller.receive(taken(listener));
        listener.receive(first);
    }
    SecureLine caller, listener;
};

TEST(SecureLine, carries_both_ways_in_any_pieces_and_shows_nothing) {
    Lines lines;
    lines.meet();
    ASSERT_TRUE(lines.caller.is_ready());
    ASSERT_TRUE(lines.listener.is_ready());
    const Bytes said(3 * SecureLine::kMaxPlainBytes, std::byte{'a'});
    lines.caller.send(said);
    const Bytes sealed = taken(lines.caller);
    const Bytes shown(16, std::byte{'a'});
    EXPECT_EQ(std::search(sealed.begin(), sealed.end(), shown.begin(), shown.end()), sealed.end());
    for (std::size_t at = 0; at < sealed.size(); at += 7000)
        lines.listener.receive(
            std::span(sealed).subspan(at, std::min<std::size_t>(7000, sealed.size() - at)));
    EXPECT_EQ(lines.listener.take_plain(), said);
    lines.listener.send(bytes_of("answer"));
    lines.listener.send_last();
    lines.caller.receive(taken(lines.listener));
    EXPECT_EQ(lines.caller.take_plain(), bytes_of("answer"));
    EXPECT_TRUE(lines.caller.has_ended());
    EXPECT_FALSE(lines.listener.has_ended());
}

TEST(SecureLine, tells_another_key_another_version_and_another_program) {
    Lines others(1, 2);
    others.meet();
    EXPECT_THAT(others.caller.problem(), HasSubstr("has another key"));
    EXPECT_THAT(others.listener.problem(), HasSubstr("has another key"));
    EXPECT_FALSE(others.caller.is_ready());

    Lines lines;
    Bytes old = taken(lines.caller);
    old[4] = std::byte{2};
    lines.listener.receive(old);
    EXPECT_THAT(lines.listener.problem(), HasSubstr("speaks version 2 of the line and this one 1"));
    lines.caller.receive(bytes_of("G"));
    EXPECT_THAT(lines.caller.problem(), HasSubstr("is of no `rmem bridge`"));

    Lines weak;  // a fresh key with which everybody would know the result
    Bytes greeting = taken(weak.caller);
    std::fill(greeting.begin() + 8, greeting.end(), std::byte{0});
    weak.listener.receive(greeting);
    EXPECT_THAT(weak.listener.problem(), HasSubstr("fresh key is none"));
}

/// Nor one of the greeting: that a fresh key was changed in between is found out.
TEST(SecureLine, takes_no_byte_that_was_changed) {
    const std::size_t bits = 8 * (SecureLine::kGreetingBytes + 24 + 4 + 17 + 4 + 6 + 17);
    for (std::size_t i = 0; i < 2 * bits; i += 5) {
        const std::size_t bit = i % bits;
        Lines lines;
        SecureLine& from = i < bits ? lines.caller : lines.listener;
        SecureLine& to = i < bits ? lines.listener : lines.caller;
        from.receive(taken(to));
        from.send(bytes_of("secret"));
        Bytes sealed = taken(from);
        ASSERT_EQ(8 * sealed.size(), bits);
        sealed[bit / 8] ^= std::byte{1} << bit % 8;
        to.receive(sealed);
        EXPECT_TRUE(to.take_plain().empty()) << i;
        // A longer message would be waited for.
        const bool waits = to.problem().empty();
        to.receive(Bytes(SecureLine::kMaxPlainBytes + 64));
        EXPECT_FALSE(to.problem().empty()) << i << waits;
        EXPECT_TRUE(to.take_plain().empty()) << i;
    }
}

TEST(SecureLine, takes_no_message_twice_out_of_order_or_from_another_connection) {
    const auto meet_and_send = [](Lines& lines) {
        lines.meet();
        lines.caller.send(bytes_of("one"));
        const Bytes one = taken(lines.caller);
        lines.caller.send(bytes_of("two"));
        return std::pair(one, taken(lines.caller));
    };
    Lines twice;
    const auto [one, two] = meet_and_send(twice);
    twice.listener.receive(one);
    EXPECT_EQ(twice.listener.take_plain(), bytes_of("one"));
    twice.listener.receive(one);
    EXPECT_THAT(twice.listener.problem(), HasSubstr("changed on its way"));
    twice.listener.receive(two);
    EXPECT_TRUE(twice.listener.take_plain().empty());

    Lines swapped;
    swapped.listener.receive(meet_and_send(swapped).second);
    EXPECT_FALSE(swapped.listener.problem().empty());

    Lines replayed;
    replayed.meet();
    replayed.listener.receive(one);
    EXPECT_TRUE(replayed.listener.take_plain().empty());
    EXPECT_FALSE(replayed.listener.problem().empty());
}

TEST(SecureLine, does_not_take_a_cut_for_an_end) {
    Lines lines;
    lines.meet();
    lines.caller.send(bytes_of("most of it"));
    lines.caller.send_last();
    const Bytes sealed = taken(lines.caller);
    lines.listener.receive(std::span(sealed).first(sealed.size() - 1));
    EXPECT_FALSE(lines.listener.has_ended());
    lines.listener.receive(std::span(sealed).last(1));
    EXPECT_TRUE(lines.listener.has_ended());
}

TEST(SecureLineInvariants, nothing_is_sent_before_there_are_keys) {
    Lines lines;
    EXPECT_BROKEN(lines.caller.send(bytes_of("too soon")));
}

}  // namespace
}  // namespace bridge
