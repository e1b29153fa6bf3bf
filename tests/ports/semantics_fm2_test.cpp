// SPDX-License-Identifier: Apache-2.0
// ctest: check apart
// The row of each property for Fast Messages 2.x, from fm/fm2.h alone; docs/design/ports.md has the
// table.
#include "tests/ports/fm/fm_support.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <vector>

namespace rmem::test {
namespace {

class Fm2 : public Conformance {};
RMEM_ON_ALL_RINGS_AND_LOSS(Fm2);

struct Seen {
    std::vector<int> begun;     ///< numbers of messages, as their handlers began
    std::vector<int> received;  ///< of those that were received whole
    std::vector<unsigned> senders;
    int damaged = 0;
};
Seen& seen() {
    return seen_by_node<Seen>();
}

struct Head {
    int number;
    unsigned size;
};

int on_message(FM_stream* stream, unsigned sender) {
    Head head{};
    FM_receive(&head, stream, sizeof head);
    seen().begun.push_back(head.number);
    std::vector<std::byte> bytes(head.size);
    FM_receive(bytes.data(), stream, head.size);
    const bool intact = first_difference(bytes, static_cast<unsigned>(head.number)) == head.size;
    if (!intact) ++seen().damaged;
    seen().received.push_back(head.number);
    seen().senders.push_back(sender);
    return FM_CONTINUE;
}

constexpr ULONG kMessage = 1, kAction = 2;

/// A node with two handlers: of messages, and of what a test does in handlers.
struct Node : FmSession {
    explicit Node(FM_handler* action = on_message) {
        seen() = {};
        check_equal(FM_register_handler(kMessage, on_message), kMessage, "FM_register_handler");
        check_equal(FM_register_handler(kAction, action), kAction, "FM_register_handler");
    }
};

void send_message(int dest, unsigned size, int number, Place place = Place::here()) {
    auto bytes = pattern(size, static_cast<unsigned>(number));
    Head head{number, size};
    check_errno(
        0,
        [&] {
            FM_stream* s = FM_begin_message(static_cast<ULONG>(dest), sizeof head + size, kMessage);
            check(s != nullptr, "FM_begin_message", place);
            FM_send_piece(s, &head, sizeof head);
            FM_send_piece(s, bytes.data(), size);
            FM_end_message(s);
        },
        place);
}
/// An empty message for the action of a node.
void poke(ULONG dest, Place place = Place::here()) {
    send_stream(dest, kAction, {}, 1, place);
}

void extract_messages(std::size_t messages, Place place = Place::here()) {
    extract2_until([&] { return seen().received.size() >= messages; }, "messages", place);
}
void serve_until(Rank& me, std::size_t word, std::uint32_t value, Place place = Place::here()) {
    extract2_until([&] { return me.shared[word] >= value; }, "the others", place);
}
/// Whole, once each, and in the order of their numbers.
void check_all_in_order(int messages, Place place = Place::here()) {
    check_equal(seen().damaged, 0, "damaged messages", place);
    for (const auto* numbers : {&seen().begun, &seen().received}) {
        check_equal(numbers->size(), static_cast<std::size_t>(messages), "messages", place);
        for (int i = 0; i < messages; ++i) {
            check_equal((*numbers)[static_cast<std::size_t>(i)], i, "the next message", place);
        }
    }
}

Shared* shared = nullptr;  // the same in all processes
constexpr std::size_t kPoked = 900;
int raise_poked(FM_stream*, unsigned) {
    ++(*shared)[kPoked];
    return FM_CONTINUE;
}

// ---- Reliable: yes

TEST_P(Fm2, is_reliable) {
    run(2, [](Rank& me) {
        enum { poked, done };
        shared = &me.shared;
        const Node node(raise_poked);
        constexpr int kMessages = 100;
        if (me.rank == 0) {
            me.await_word(poked);
            for (int i = 0; i < kMessages; ++i) {
                send_message(1, static_cast<unsigned>(i % 7 * 90), i);
            }
            check(count_of(FM_SENDS_WAITING) > 0, "sends waited instead of losing");
            return serve_until(me, done, 1);
        }
        // Nothing is received before a send waits: the handler of this can run nowhere else.
        poke(0);
        me.raise(poked);
        me.await_word(kPoked);
        extract_messages(kMessages);
        check_all_in_order(kMessages);
        me.raise(done);
    });
}

// ---- Ordered: yes

TEST_P(Fm2, is_ordered) {
    run(3, [](Rank& me) {
        const Node node;
        const int messages = std::max(thrifty(120), 8);
        if (me.rank != 0) {
            for (int i = 0; i < messages; ++i) {
                send_message(0, i % 4 == 3 ? 9000U : static_cast<unsigned>(i % 50), i);
            }
            return serve_until(me, 0, 1);
        }
        extract_messages(2 * static_cast<std::size_t>(messages));
        for (unsigned sender : {1U, 2U}) {
            int next = 0;
            for (std::size_t i = 0; i < seen().received.size(); ++i) {
                if (seen().senders[i] != sender) continue;
                check_equal(seen().received[i], next++, "the next of a sender");
            }
            check_equal(next, messages, "messages of a sender");
        }
        check_equal(seen().damaged, 0, "damaged messages");
        check(count_of(FM_HANDLERS_SUSPENDED) > 0, "messages of several packets were under way");
        me.raise(0);
    });
}

// ---- Flow control: credits

constexpr std::size_t kBegun = 910;  // messages that a node has begun, counted from this word on
std::uint32_t begun_when_poked = 0;  // of node 1
std::uint32_t pokes_alike = 0;
int note_begun(FM_stream*, unsigned) {
    const std::uint32_t begun = (*shared)[kBegun + 1];
    pokes_alike = begun == begun_when_poked ? pokes_alike + 1 : 0;
    begun_when_poked = begun;
    ++(*shared)[kPoked];
    return FM_CONTINUE;
}

TEST_P(Fm2, flow_control_is_credits_divided_among_the_senders) {
    run(3, [](Rank& me) {
        enum { used_up, second_sent, done };
        constexpr int kMessages = 600, kSecond = 5;
        constexpr std::uint32_t kAlike = 4;
        shared = &me.shared;
        const Node node(note_begun);
        pokes_alike = 0;
        if (me.rank == 1) {
            for (int i = 0; i < kMessages; ++i) {
                send_message(0, 4, i);
                ++me.shared[kBegun + 1];
                if (pokes_alike >= kAlike) me.shared[used_up] = 1;
            }
            check(count_of(FM_SENDS_WAITING) > 0, "sends that waited");
            return serve_until(me, done, 1);
        }
        if (me.rank == 2) {
            me.await_word(kPoked, kAlike + 1);
            for (int i = 0; i < kSecond; ++i) send_message(0, 4, i);
            check_equal(count_of(FM_SENDS_WAITING), 0, "sends of the other sender that waited");
            me.raise(second_sent);
            return serve_until(me, done, 1);
        }
        // A call of 1.0 takes everything over and processes nothing of 2.x: what stops the sender
        // is its credit, not the network. A handler of its own runs only in a send that waits;
        // several have met the same number of messages begun.
        for (std::uint32_t i = 1; i <= kAlike + 1; ++i) {
            poke(1);
            await([&] { return FM1_extract() >= 0 && me.shared[kPoked] >= i; },
                  "a send that waits");
        }
        const std::uint32_t begun = me.shared[kBegun + 1];
        check(begun > 0 && begun < kMessages, fmt::format("{} messages begun", begun));
        check_equal(count_of(FM_HANDLERS_ENTERED), 0, "handlers called");
        await([&] { return FM1_extract() >= 0 && me.shared[second_sent] == 1; },
              "the other sender");
        extract_messages(kMessages + kSecond);
        check(count_of(FM_CREDITS_ALONE) > 0, "credit went back");
        me.raise(done);
    });
}

// ---- Max message: what is announced

TEST_P(Fm2, max_message_is_what_is_announced) {
    run(2, [](Rank& me) {
        const Node node;
        const unsigned size = static_cast<unsigned>(std::max(thrifty(64), 4)) * 16384;
        check(size > me.partition, "larger than a partition");
        if (me.rank == 0) {
            send_message(1, size, 0);
            FM_stream* s = FM_begin_message(1, sizeof(Head), kMessage);
            Head head{1, 0};
            std::byte more[sizeof head + 1] = {};
            check_errno(EMSGSIZE, [&] { FM_send_piece(s, more, sizeof more); });
            check_errno(0, [&] { FM_send_piece(s, &head, sizeof head); });
            check_errno(EMSGSIZE, [&] { FM_send_piece(s, more, 1); });
            FM_end_message(s);
            return serve_until(me, 0, 1);
        }
        extract_messages(2);
        check_all_in_order(2);
        me.raise(0);
    });
}

// ---- Receive style: streaming handler on poll

std::size_t pieces_by[kMaxTestRanks];
constexpr std::size_t kPiece = 8192;
int in_two_pieces(FM_stream* stream, unsigned) {
    std::vector<std::byte> bytes(kPiece);
    for (std::uint64_t piece = 0; piece < 2; ++piece) {
        FM_receive(bytes.data(), stream, kPiece);
        if (first_difference(bytes, piece) == kPiece) ++pieces_by[FM_nodeid];
    }
    return FM_CONTINUE;
}

TEST_P(Fm2, receives_by_streaming_handlers_on_poll) {
    run(2, [](Rank& me) {
        enum { first_sent, first_received, done };
        const Node node(in_two_pieces);
        pieces_by[FM_nodeid] = 0;
        if (me.rank == 0) {
            FM_stream* s = FM_begin_message(1, 3 * kPiece, kAction);
            auto first = pattern(kPiece, 0), second = pattern(kPiece, 1);
            FM_send_piece(s, first.data(), kPiece);
            // What has not filled a packet yet leaves with the next piece.
            FM_send_piece(s, second.data(), kPiece - 1);
            me.raise(first_sent);
            me.await_word(first_received);
            FM_send_piece(s, second.data() + kPiece - 1, 1);
            FM_end_message(s);
            return serve_until(me, done, 1);
        }
        const auto pieces = [] { return pieces_by[FM_nodeid]; };
        extract2_until([&] { return pieces() == 1; });
        check_equal(count_of(FM_HANDLERS_ENTERED), 1, "handlers called");
        check_equal(count_of(FM_HANDLERS_LEFT), 0, "handlers that have returned");
        check(count_of(FM_HANDLERS_SUSPENDED) > 0, "the handler is suspended");
        me.raise(first_received);
        extract2_until([&] { return pieces() == 2; });
        check_equal(count_of(FM_HANDLERS_LEFT), 1, "handlers that have returned");
        me.raise(done);
    });
}

// ---- Broadcast: no

TEST_P(Fm2, has_no_broadcast) {
    run(3, [](Rank& me) {
        const Node node;
        for (const ULONG nobody : {3UL, 255UL, 0xffffUL, ~0UL}) {
            check_errno(EINVAL, [&] {
                check(FM_begin_message(nobody, 0, kMessage) == nullptr, "no such node");
            });
        }
        send_message((me.rank + 1) % 3, 10, me.rank);
        extract_messages(1);
        me.raise(0);
        serve_until(me, 0, 3);
        check_equal(seen().received, std::vector{(me.rank + 2) % 3}, "the one that was sent here");
    });
}

// ---- Protection: per process

int acted_by[kMaxTestRanks];
int act_as_even(FM_stream*, unsigned) {
    acted_by[FM_nodeid] += 10;
    return FM_CONTINUE;
}
int act_as_odd(FM_stream*, unsigned) {
    acted_by[FM_nodeid] += 1;
    return FM_CONTINUE;
}

TEST_P(Fm2, protection_is_per_process_by_the_handlers_that_each_has_registered) {
    run(2, [](Rank& me) {
        FM_set_parameter(FM_QUIET);
        const Node node(me.rank == 0 ? act_as_even : act_as_odd);
        acted_by[FM_nodeid] = 0;
        // To the same id, and to two that are registered nowhere.
        const auto other = static_cast<ULONG>(1 - me.rank);
        send_stream(other, 77, {});
        send_stream(other, 900, pattern(9000, 1), 1000);
        poke(other);
        extract2_until([] { return acted_by[FM_nodeid] != 0; });
        check_equal(acted_by[FM_nodeid], me.rank == 0 ? 10 : 1, "what the own handler does");
        check_equal(count_of(FM_INVALID_HANDLERS), 2, "messages to handlers that there are not");
        check_equal(count_of(FM_HANDLERS_ENTERED), 1, "handlers called");
        me.raise(0);
        serve_until(me, 0, 2);
    });
}

// ---- Send can block: NULL in handlers

int sent_in_handler = 0, error_in_handler = 0;
int send_until_null(FM_stream*, unsigned sender) {
    errno = 0;
    while (FM_stream* s = FM_begin_message(sender, sizeof(Head), kMessage)) {
        Head head{sent_in_handler++, 0};
        FM_send_piece(s, &head, sizeof head);
        FM_end_message(s);
    }
    error_in_handler = errno;
    return FM_CONTINUE;
}

TEST_P(Fm2, send_can_block_but_gives_NULL_in_handlers) {
    run(2, [](Rank& me) {
        enum { poked, refused, done };
        shared = &me.shared;
        constexpr int kMore = 400;
        const Node node(me.rank == 0 ? send_until_null : raise_poked);
        if (me.rank == 0) {
            sent_in_handler = error_in_handler = 0;
            extract2_until([] { return error_in_handler != 0; });
            check_equal(error_in_handler, EAGAIN, "errno of the NULL");
            check(sent_in_handler > 0, "messages sent in the handler");
            check_equal(count_of(FM_SENDS_WAITING), 0, "sends that waited in the handler");
            const int first = sent_in_handler;
            me.shared[refused] = static_cast<std::uint32_t>(first);
            for (int i = 0; i < kMore; ++i) send_message(1, 4, first + i);
            check(count_of(FM_SENDS_WAITING) > 0, "sends that waited outside of it");
            return serve_until(me, done, 1);
        }
        poke(0);
        await([&] { return me.shared[refused] != 0; }, "the NULL");
        const int messages = static_cast<int>(me.shared[refused]) + kMore;
        extract_messages(static_cast<std::size_t>(messages));
        check_all_in_order(messages);
        me.raise(done);
    });
}

}  // namespace
}  // namespace rmem::test
