// SPDX-License-Identifier: Apache-2.0
// ctest: check
// Fast Messages 1.0: fm/fm1.h, in its order.
#include "tests/ports/fm/fm_support.hpp"

#include <cerrno>
#include <cstring>
#include <functional>
#include <string_view>

namespace rmem::test {
namespace {

class Fm1 : public Conformance {};
RMEM_ON_ALL_RINGS(Fm1);

struct Seen {
    std::vector<int> words;
    std::vector<std::byte> bytes;
    int count = 0;
};
Seen& seen() {
    return seen_by_node<Seen>();
}

using Session = FreshSession<Seen>;

void note(int i0, int i1, int i2, int i3) {
    seen().words.insert(seen().words.end(), {i0, i1, i2, i3});
    ++seen().count;
}
void note_first(int i0, int, int, int) {
    seen().words.push_back(i0);
    ++seen().count;
}
void note_bytes(void* buf, int size) {
    const auto* from = static_cast<const std::byte*>(buf);
    seen().bytes.assign(from, from + size);
    ++seen().count;
}
void extract_until(int count, Place place = Place::here()) {
    extract1_until([&] { return seen().count >= count; }, "messages", place);
    check_equal(seen().count, count, "messages", place);
}

TEST_P(Fm1, up_to_32_words_come_to_their_handler_whatever_their_number) {
    run(2, [](Rank& me) {
        Session session;
        constexpr int kSizes[] = {0, 1, 4, 15, 16, 17, 48, 49, 64, 127, 128};
        for (const int size : kSizes) {
            auto bytes = pattern(static_cast<std::size_t>(size), static_cast<unsigned>(size));
            if (me.rank == 0) {
                FM_send(1, note_bytes, size == 0 ? nullptr : bytes.data(), size);
                me.await_word(static_cast<std::size_t>(size));
                continue;
            }
            seen().count = 0;
            extract_until(1);
            check(seen().bytes == bytes, fmt::format("the bytes of {}", size));
            me.raise(static_cast<std::size_t>(size));
        }
    });
}

TEST_P(Fm1, four_words_come_to_their_handler_at_another_node_and_at_the_own) {
    run(2, [](Rank& me) {
        Session session;
        check_equal(FM_nodeid, static_cast<ULONG>(me.rank), "FM_nodeid");
        check_equal(FM_numnodes, ULONG{2}, "FM_numnodes");
        FM_send_4(1, note, 1, -2, 0x7fffffff, 4);
        if (me.rank == 0) return;
        extract_until(2);
        const std::vector<int> twice = {1, -2, 0x7fffffff, 4, 1, -2, 0x7fffffff, 4};
        check_equal(seen().words, twice, "words");
        std::array<char, 128> large{};
        for (int i = 0; i < 300; ++i) FM_send(1, note_bytes, large.data(), 128);
        extract_until(302);
    });
}

TEST_P(Fm1, every_message_of_all_nodes_to_all_arrives_once_also_through_queues_of_two) {
    for (const int queue : {0, 2}) {  // 0: as long as by default
        run(3, [queue](Rank& me) {
            if (queue != 0) FM_set_parameter(FM_HOST_RECEIVE_QUEUE, queue);
            if (queue != 0) FM_set_parameter(FM_REJECT_QUEUE, 16);
            Session session;
            const int messages = thrifty(queue != 0 ? 400 : 1200);
            for (int i = 0; i < messages; ++i) {
                for (int to = 0; to < me.ranks; ++to) FM_send_4(to, note_first, i, 0, 0, 0);
            }
            extract_until(messages * me.ranks);
            std::vector<int> found(static_cast<std::size_t>(messages));
            for (const int i : seen().words) ++found.at(static_cast<std::size_t>(i));
            check(std::all_of(found.begin(), found.end(), [&](int n) { return n == me.ranks; }),
                  "each message of each node once");
        });
    }
}

TEST_P(Fm1, acknowledgements_ride_on_data_and_go_alone_only_where_nothing_is_sent) {
    run(2, [](Rank& me) {
        Session session;
        const int messages = thrifty(200);
        const int other = 1 - me.rank;
        for (int i = 1; i <= messages; ++i) {
            if (me.rank == 0) FM_send_4(other, note_first, i, 0, 0, 0);
            extract_until(i);
            if (me.rank == 1) FM_send_4(other, note_first, i, 0, 0, 0);
        }
        const auto alone = count_of(FM_ACKS_ALONE);
        check(alone <= messages / 8,
              fmt::format("{} acks alone for {} answered messages", alone, messages));
        me.raise(static_cast<std::size_t>(me.rank));
        me.await_word(static_cast<std::size_t>(other));
        for (int i = 0; i < messages && me.rank == 0; ++i) FM_send_4(1, note_first, i, 0, 0, 0);
        if (me.rank == 1) {
            extract_until(2 * messages);
            await([&] { return FM_extract() == 0 && count_of(FM_ACKS_ALONE) > alone; },
                  "acks alone");
        }
    });
}

/// Sends more than the reject queue holds, so that it waits inside the handler.
void flood(int to, int messages, int, int) {
    for (int i = 0; i < messages; ++i) FM_send_4(to, note_first, i, 0, 0, 0);
}

TEST_P(Fm1, a_handler_that_waits_takes_over_what_comes_without_processing_it) {
    run(2, [](Rank& me) {
        FM_set_parameter(FM_REJECT_QUEUE, 8);
        Session session;
        constexpr int kMessages = 60;
        if (me.rank == 0) {
            FM_send_4(1, flood, 0, kMessages, 0, 0);
            for (int i = 0; i < kMessages; ++i) FM_send_4(1, note_first, i, 0, 0, 0);
            extract_until(kMessages);
            return;
        }
        extract1_until([] { return seen().count >= kMessages; }, "messages");
        check(count_of(FM_SENDS_WAITING) > 0, "the handler has waited");
    });
}

/// Waits for the test's word.
std::function<void()> wait_in_handler;
void stays(int, int, int, int) {
    wait_in_handler();
}

TEST_P(Fm1, a_handler_that_does_not_return_is_seen_by_others) {
    RMEM_SKIP_IF_SIMULATED("each node counts for itself there");
    if (is_remote(parse_link(GetParam().link)))
        GTEST_SKIP() << "the other node has a segment of its own";
    run(2, [](Rank& me) {
        Session session;
        wait_in_handler = [&] { me.await_word(0); };
        if (me.rank == 1) {
            await([] { return FM_extract() != 0; }, "the handler");
            return;
        }
        FM_send_4(1, stays, 0, 0, 0, 0);
        await([] { return FM_count(1, FM_HANDLERS_ENTERED) == 1; }, "a handler entered at node 1");
        check_equal(FM_count(1, FM_HANDLERS_LEFT), 0LL, "handlers left");
        me.raise(0);
        await([] { return FM_count(1, FM_HANDLERS_LEFT) == 1; }, "the handler to return");
    });
}

TEST_P(Fm1, bad_arguments_are_refused) {
    run(1, [](Rank&) {
        check_errno(ENOTCONN, [] { FM_send_4(0, note, 1, 2, 3, 4); });
        check_errno(ENOTCONN, [] { check_equal(FM_extract(), -1, "FM_extract"); });
        check_errno(ENOTCONN, [] { FM_finalize(); });
        check_errno(EINVAL, [] { FM_set_parameter(FM_REJECT_QUEUE, 257); });
        check_errno(EINVAL, [] { FM_set_parameter(FM_HOST_RECEIVE_QUEUE, 0); });
        Session session;
        char bytes[200] = {};
        check_errno(EINVAL, [] { FM_send_4(0, nullptr, 1, 2, 3, 4); });
        check_errno(EINVAL, [&] { FM_send(0, reinterpret_cast<FM_handlerN>(&bytes), bytes, 1); });
        check_errno(EINVAL, [] { FM_send(0, note_bytes, nullptr, 1); });
        check_errno(EMSGSIZE, [&] { FM_send(0, note_bytes, bytes, -1); });
        check_equal(FM_extract(), 0, "messages");
        check_equal(FM_count(1, FM_CORRUPT), -1LL, "a counter of no node");
        check_errno(0, [] { FM_send_4(0, note, 1, 2, 3, 4); });
        extract_until(1);
    });
}

void finalizes(int, int, int, int) {
    check_errno(EBUSY, [] { FM_finalize(); });
    ++seen().count;
}

TEST_P(Fm1, a_handler_cannot_end_what_has_called_it) {
    run(1, [](Rank&) {
        Session session;
        FM_send_4(0, finalizes, 0, 0, 0, 0);
        extract_until(1);
    });
}

}  // namespace
}  // namespace rmem::test
