// SPDX-License-Identifier: Apache-2.0
// ctest: check apart
//
// Fast Messages 2.x: fm/fm2.h, in its order.
#include "tests/ports/fm/fm_support.hpp"

#include <numeric>

namespace rmem::test {
namespace {

class Fm2 : public Conformance {};
RMEM_ON_ALL_RINGS(Fm2);

struct Seen {
    std::vector<std::vector<std::byte>> messages;
    std::vector<unsigned> senders;
    int count = 0;
    int error = 0;
    FM_stream* stream = nullptr;
};
Seen& seen() {
    return seen_by_node<Seen>();
}

using Session = FreshSession<Seen>;

/// A message that says its size first, then bytes of that seed.
std::vector<std::byte> message(std::uint32_t size, std::uint32_t seed) {
    std::vector<std::byte> bytes(8 + size);
    std::memcpy(bytes.data(), &size, 4);
    std::memcpy(bytes.data() + 4, &seed, 4);
    fill(std::span(bytes).subspan(8), seed);
    return bytes;
}
/// Receives one, in pieces of an odd size.
int receive_message(FM_stream* s, unsigned sender) {
    std::uint32_t head[2];
    FM_receive(head, s, sizeof head);
    std::vector<std::byte> bytes(head[0]);
    constexpr unsigned kPiece = 333;
    for (unsigned at = 0; at < head[0]; at += kPiece)
        FM_receive(bytes.data() + at, s, std::min(kPiece, head[0] - at));
    check_equal(first_difference(bytes, head[1]), bytes.size(), "the first wrong byte");
    seen().messages.push_back(std::move(bytes));
    seen().senders.push_back(sender);
    ++seen().count;
    return FM_CONTINUE;
}
void extract_until(int count, Place place = Place::here()) {
    extract2_until([&] { return seen().count >= count; }, "messages", place);
    check_equal(seen().count, count, "messages", place);
}

TEST_P(Fm2, ids_are_given_replaced_and_refused) {
    run(1, [](Rank&) {
        FM_set_parameter(FM_MAX_HANDLERS, 3);
        const ULONG any = FM_register_handler(FM_ANY_ID, receive_message);
        check_equal(any, 0UL, "the first id that is not in use");
        check_equal(FM_register_handler(2, receive_message), 2UL, "an id of choice");
        Session session;
        check_equal(FM_register_handler(FM_ANY_ID, receive_message), 1UL, "the next id");
        check_errno(EINVAL, [] {
            check_equal(FM_register_handler(FM_ANY_ID, receive_message), FM_ANY_ID, "no id left");
        });
        check_errno(EINVAL, [] {
            check_equal(FM_register_handler(3, receive_message), FM_ANY_ID, "too large an id");
        });
        check_errno(EINVAL, [] { FM_register_handler(0, nullptr); });
        static int replaced = 0;
        replaced = 0;
        FM_register_handler(2, [](FM_stream*, unsigned) -> int {
            ++replaced;
            return FM_CONTINUE;
        });
        send_stream(0, 2, {}, 1);
        await([] { return FM_extract(~0UL) != 0; }, "a message");
        check_equal(replaced, 1, "calls of the handler that replaced the former");
    });
}

TEST_P(Fm2, messages_of_all_sizes_arrive_whole_and_in_order) {
    run(2, [](Rank& me) {
        Session session;
        const ULONG id = FM_register_handler(FM_ANY_ID, receive_message);
        constexpr std::uint32_t kSizes[] = {0,   1,    8,    44,   45,   52,   53,
                                            200, 1007, 1008, 1016, 1017, 5000, 70'000};
        if (me.rank == 0) {
            std::uint32_t seed = 1;
            for (const std::size_t piece :
                 {std::size_t{1} << 20, std::size_t{7}, std::size_t{1024}}) {
                for (const std::uint32_t size : kSizes) {
                    if (size < 10'000 || piece > 10) send_stream(1, id, message(size, seed), piece);
                    ++seed;
                }
            }
            return;
        }
        extract_until(3 * static_cast<int>(std::size(kSizes)) - 1);
        std::size_t i = 0;
        for (const auto& bytes : seen().messages) {
            if (i == 2 * std::size(kSizes) - 1) ++i;  // the one left out
            check_equal(bytes.size(), kSizes[i++ % std::size(kSizes)], "size");
        }
    });
}

int receive_two_bytes(FM_stream* s, unsigned) {
    char bytes[2];
    FM_receive(bytes, s, 2);
    ++seen().count;
    return FM_CONTINUE;
}

TEST_P(Fm2, what_a_handler_does_not_receive_is_discarded) {
    run(2, [](Rank& me) {
        Session session;
        const ULONG two = FM_register_handler(FM_ANY_ID, receive_two_bytes);
        const ULONG all = FM_register_handler(FM_ANY_ID, receive_message);
        if (me.rank == 0) {
            for (const std::uint32_t size : {10U, 100U, 9000U}) {
                send_stream(1, two, message(size, 1), 100);
                send_stream(1, all, message(size, 2), 100);
            }
            return;
        }
        extract_until(6);
        check_equal(seen().messages.size(), std::size_t{3}, "messages received whole");
    });
}

int receive_too_much(FM_stream* s, unsigned) {
    char bytes[100];
    std::memset(bytes, 'x', sizeof bytes);
    errno = 0;
    FM_receive(bytes, s, sizeof bytes);
    seen().error = errno;
    check(bytes[9] == 'y' && bytes[10] == 'x', "the rest of the buffer is left alone");
    ++seen().count;
    return FM_CONTINUE;
}

TEST_P(Fm2, a_node_that_receives_more_than_there_is_is_told) {
    run(1, [](Rank&) {
        Session session;
        const ULONG id = FM_register_handler(FM_ANY_ID, receive_too_much);
        const std::vector<std::byte> bytes(10, std::byte{'y'});
        send_stream(0, id, bytes, 3);
        extract_until(1);
        check_equal(seen().error, ENODATA, "errno");
        check_errno(EINVAL, [] { FM_receive(nullptr, nullptr, 0); });
    });
}

TEST_P(Fm2, a_message_may_be_shorter_than_announced_but_not_longer) {
    run(1, [](Rank&) {
        Session session;
        const ULONG id = FM_register_handler(FM_ANY_ID, receive_message);
        auto bytes = message(100, 3);
        FM_stream* s = FM_begin_message(0, 50'000, id);
        FM_send_piece(s, bytes.data(), bytes.size());
        FM_end_message(s);
        s = FM_begin_message(0, 108, id);
        FM_send_piece(s, bytes.data(), 100);
        check_errno(EMSGSIZE, [&] { FM_send_piece(s, bytes.data(), 9); });
        FM_send_piece(s, bytes.data() + 100, 8);
        FM_end_message(s);
        check_errno(EINVAL, [&] { FM_end_message(s); });
        extract_until(2);
    });
}

int quits(FM_stream*, unsigned) {
    ++seen().count;
    return FM_QUIT;
}

TEST_P(Fm2, extract_stops_at_FM_QUIT_and_at_about_the_number_of_bytes_it_was_given) {
    run(1, [](Rank&) {
        Session session;
        const ULONG quit = FM_register_handler(FM_ANY_ID, quits);
        const ULONG go_on = FM_register_handler(FM_ANY_ID, receive_two_bytes);
        for (int i = 0; i < 3; ++i) send_stream(0, quit, message(2, 1), 10);
        for (int i = 1; i <= 3; ++i) {
            await([] { return FM_extract(~0UL) != 0; }, "a message");
            check_equal(seen().count, i, "messages until FM_QUIT");
        }
        for (int i = 0; i < 4; ++i) send_stream(0, go_on, message(2, 1), 10);
        int bytes = 0;
        await([&] { return (bytes = FM_extract(15)) != 0; }, "messages");
        check_equal(bytes, 20, "bytes of two messages of 10");
        check_equal(seen().count, 5, "messages within 15 bytes and the packet over it");
        check_equal(FM_extract(0), 0, "no bytes");
        extract_until(7);
    });
}

/// Sends back what it gets, as much as there is room for.
int answers(FM_stream* s, unsigned sender) {
    std::uint32_t size = 0;
    FM_receive(&size, s, 4);
    errno = 0;
    FM_stream* const back = FM_begin_message(sender, size + 8, 1);
    if (back == nullptr) {
        seen().error = errno;
        return FM_CONTINUE;
    }
    auto bytes = message(size, 77);
    FM_send_piece(back, bytes.data(), bytes.size());
    FM_end_message(back);
    ++seen().count;
    return FM_CONTINUE;
}

TEST_P(Fm2, a_handler_sends_what_has_room_and_gets_NULL_for_what_has_not) {
    run(2, [](Rank& me) {
        Session session;
        FM_register_handler(0, answers);
        FM_register_handler(1, receive_message);
        constexpr std::uint32_t kAnswers[] = {4, 3000, 50'000'000, 5000};
        if (me.rank == 0) {
            for (const std::uint32_t size : kAnswers) send_stream(1, 0, bytes_of(size), 4);
            extract_until(3);
            check_equal(seen().messages.at(2).size(), std::size_t{5000}, "the last answer");
            me.raise(0);
            return;
        }
        extract2_until([&] { return me.shared[0] != 0; }, "the answers");
        check_equal(seen().error, EAGAIN, "errno where there was no room");
        check_equal(seen().count, 3, "answers");
    });
}

TEST_P(Fm2, what_a_handler_sends_while_the_network_is_full_leaves_later_and_in_order) {
    run(2, [](Rank& me) {
        Session session;
        FM_register_handler(0, answers);
        FM_register_handler(1, receive_message);
        constexpr std::uint32_t kAnswer = 10;
        constexpr int kMessages = 25;  // more than the billboard's FIFO holds
        if (me.rank == 0) {
            for (int i = 0; i < kMessages; ++i) send_stream(1, 0, bytes_of(kAnswer), 4);
            me.await_word(0);  // all of them answered before the first answer is taken
            extract_until(kMessages);
            return;
        }
        extract2_until([&] { return seen().count >= kMessages; }, "what is to be answered");
        me.raise(0);
    });
}

TEST_P(Fm2, a_node_that_tries_to_begin_gets_NULL_instead_of_waiting_and_what_was_begun_arrives) {
    // On direct the lines of a pair of ranks hold all for which FM has credits.
    const bool network_is_short = std::string_view(GetParam().link) != "direct" ||
                                  std::string_view(GetParam().layout) == "paper";
    run(2, [network_is_short](Rank& me) {
        Session session;
        FM_register_handler(1, receive_message);
        const auto most = static_cast<std::uint32_t>(FM_packet_bytes());
        if (me.rank == 0) {
            std::uint32_t begun = 0;
            for (unsigned refused = 0; refused < 100;) {
                const auto bytes = message(most - 8, begun);
                FM_stream* const s = FM_try_begin_message(1, most, 1);
                if (s != nullptr) {
                    FM_send_piece(s, const_cast<std::byte*>(bytes.data()), bytes.size());
                    FM_end_message(s);
                    ++begun;
                    refused = 0;
                } else {
                    check_equal(errno, EAGAIN, "errno where there is no room");
                    ++refused;
                    rest(std::chrono::milliseconds(1));
                }
                check(begun < 100'000, "a node that takes nothing has no room forever");
            }
            if (network_is_short)
                check(FM_packets_kept() != 0, "packets for which the network had no room");
            me.shared[1] = begun;
            me.raise(0);
            extract2_until([&] { return FM_packets_kept() == 0; },
                           "the packets that were kept to leave");
            me.await_word(2);
            return;
        }
        me.await_word(0);
        extract_until(static_cast<int>(me.shared[1]));
        check_equal(seen().messages.back().size(), std::size_t{most - 8}, "the last message");
        me.raise(2);
    });
}

TEST_P(Fm2, credit_is_told_alone_where_nothing_carries_it_and_is_divided_again) {
    run(2, [](Rank& me) {
        Session session;
        const ULONG id = FM_register_handler(FM_ANY_ID, receive_message);
        const int messages = 400;  // more than the whole buffer
        if (me.rank == 0) {
            for (int i = 0; i < messages; ++i) send_stream(1, id, message(8, 1), 16);
            me.raise(0);
            return;
        }
        await([] { return FM_extract(1) != 0; }, "the first");
        FM_reallocate_credit();
        extract_until(messages);
        check(count_of(FM_CREDITS_ALONE) > 0, "credit that was told alone");
    });
}

TEST_P(Fm2, bad_arguments_are_refused) {
    run(1, [](Rank&) {
        check_errno(EINVAL, [] { FM_set_parameter(99); });
        check_errno(EINVAL, [] { FM_set_parameter(FM_MAX_HANDLERS, 0); });
        check_errno(ENOTCONN, [] { check(FM_begin_message(0, 1, 0) == nullptr, "no stream"); });
        check_errno(ENOTCONN, [] { check_equal(FM_extract(1), -1, "FM_extract"); });
        Session session;
        check_errno(EINVAL, [] { check(FM_begin_message(1, 1, 0) == nullptr, "no such node"); });
        check_errno(EINVAL,
                    [] { check(FM_begin_message(0, 1, 1UL << 20) == nullptr, "no such id"); });
        check_errno(EINVAL, [] { FM_send_piece(nullptr, nullptr, 0); });
        FM_stream* const s = FM_begin_message(0, 1, 0);
        check_errno(EINVAL, [&] { FM_send_piece(s, nullptr, 1); });
        FM_end_message(s);
        check_errno(EISCONN, [] { FM_set_parameter(FM_QUIET); });
        check_errno(EISCONN, [] { FM_initialize(); });
    });
}

}  // namespace
}  // namespace rmem::test
