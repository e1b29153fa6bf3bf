// SPDX-License-Identifier: Apache-2.0

/// Interrupts of SCRAMNet GT cards, from the call that sends one to those that take it.

#include "tests/support/scgt_cards.hpp"

#include <cstdint>
#include <thread>
#include <vector>

namespace rmem::test {
namespace {

constexpr uint32 kQueue = GtReader::kQueue;
using Reader = GtReader;

struct GtInterrupts : GtCardsOnLinks {
    GtCard a{0}, b{1};
    Reader to_a{a}, to_b{b};
};
CARDS_ON_ALL_LINKS(GtInterrupts);

TEST_P(GtInterrupts, a_broadcast_and_a_unicast_one_arrive_with_number_sender_and_value) {
    expect_done(send(a, SCGT_BROADCAST_INTR, 31, 5));
    expect_done(send(a, SCGT_UNICAST_INTR, 1, 0xFFFFFFFF));
    expect_done(scgtWriteNMR(a, 0x1000 + 7 * 4, 8));
    expect_done(scgtWriteNMR(a, 0x1800 + 1 * 4, 9));
    to_b.expect(SCGT_BROADCAST_INTR, 0, 31, 5);
    to_b.expect(SCGT_UNICAST_INTR, 0, 0, 0xFFFFFFFF);
    to_b.expect(SCGT_BROADCAST_INTR, 0, 7, 8);
    to_b.expect(SCGT_UNICAST_INTR, 0, 0, 9);
    EXPECT_EQ(to_b.look(), unsigned{SCGT_TIMEOUT});
}

TEST_P(GtInterrupts, an_interrupt_comes_after_the_data_of_its_call) {
    std::vector<uint32> words(kBytes / 4);
    for (uint32 round = 1; round <= 50; ++round) {
        words.assign(words.size(), round);
        scgtInterrupt interrupt{SCGT_BROADCAST_INTR, 0, 3, round, 0};
        uint32 moved = 0;
        expect_done(scgtWrite(a, 0, words.data(), kBytes, 0, &moved, &interrupt));
        EXPECT_EQ(moved, kBytes);
        to_b.expect(SCGT_BROADCAST_INTR, 0, 3, round);
        std::vector<uint32> read(words.size());
        expect_done(scgtRead(b, 0, read.data(), kBytes, 0, nullptr));
        ASSERT_EQ(read, words) << round;
    }
}

TEST_P(GtInterrupts, a_thread_that_waits_gets_each_as_it_comes) {
    std::thread other([&] {
        for (uint32 value = 1; value <= 100; ++value) {
            to_b.expect(SCGT_UNICAST_INTR, 0, 0, value);
            expect_done(send(b, SCGT_UNICAST_INTR, 0, value));
        }
    });
    for (uint32 value = 1; value <= 100; ++value) {
        expect_done(send(a, SCGT_UNICAST_INTR, 1, value));
        to_a.expect(SCGT_UNICAST_INTR, 1, 0, value);
    }
    other.join();
}

struct GtInterruptsHere : GtCards {
    GtInterruptsHere() : GtCards(LinkKind::direct) {}

    /// Sends broadcast 0 with values from `first` on, and waits until they have come.
    static void send_many(scgtHandle* from, scgtHandle* to, uint32 first, uint32 count) {
        const uint32 before = scgtReadCR(to, 0x58);
        for (uint32 i = 0; i < count; ++i) {
            // Not faster than a node's own queue is emptied.
            ASSERT_TRUE(comes([&] { return scgtReadCR(to, 0x58) - before + 512 > i; }));
            expect_done(send(from, SCGT_BROADCAST_INTR, 0, first + i));
        }
        EXPECT_TRUE(comes([&] { return scgtReadCR(to, 0x58) - before == count; }));
    }
};

TEST_F(GtInterruptsHere, masks_let_in_what_they_say) {
    GtCard a(0), b(1);
    Reader to_b(b);
    EXPECT_EQ(scgtGetState(b, SCGT_BROADCAST_INT_MASK), 0xFFFFFFFF);
    EXPECT_EQ(scgtGetState(b, SCGT_UNICAST_INT_MASK), 1U);
    expect_done(scgtSetState(b, SCGT_BROADCAST_INT_MASK, 0x80000001));
    EXPECT_EQ(scgtGetState(b, SCGT_BROADCAST_INT_MASK), 0x80000001);
    for (uint32 number = 0; number < 32; ++number)
        expect_done(send(a, SCGT_BROADCAST_INTR, number, number));
    expect_done(send(a, SCGT_UNICAST_INTR, 1, 40));
    to_b.expect(SCGT_BROADCAST_INTR, 0, 0, 0);
    to_b.expect(SCGT_BROADCAST_INTR, 0, 31, 31);
    to_b.expect(SCGT_UNICAST_INTR, 0, 0, 40);

    expect_done(scgtSetState(b, SCGT_UNICAST_INT_MASK, 0));
    expect_done(send(a, SCGT_UNICAST_INTR, 1, 41));
    expect_done(send(a, SCGT_BROADCAST_INTR, 31, 42));
    to_b.expect(SCGT_BROADCAST_INTR, 0, 31, 42);
}

TEST_F(GtInterruptsHere, a_node_gets_its_own_ones_when_that_is_enabled) {
    GtCard a(0), b(1);
    Reader to_a(a);
    EXPECT_EQ(scgtGetState(a, SCGT_INT_SELF_ENABLE), 0U);
    expect_done(send(a, SCGT_BROADCAST_INTR, 1, 1));
    expect_done(send(a, SCGT_UNICAST_INTR, 0, 2));
    expect_done(scgtSetState(a, SCGT_INT_SELF_ENABLE, 1));
    expect_done(scgtSetState(a, SCGT_BROADCAST_INT_MASK, 2));
    expect_done(send(a, SCGT_BROADCAST_INTR, 0, 3));  // masked
    expect_done(send(a, SCGT_UNICAST_INTR, 1, 4));    // another's
    expect_done(send(a, SCGT_BROADCAST_INTR, 1, 5));
    expect_done(send(a, SCGT_UNICAST_INTR, 0, 6));
    to_a.expect(SCGT_BROADCAST_INTR, 0, 1, 5);
    to_a.expect(SCGT_UNICAST_INTR, 0, 0, 6);
    EXPECT_EQ(to_a.look(), unsigned{SCGT_TIMEOUT});
}

TEST_F(GtInterruptsHere, one_for_a_node_that_is_not_there_is_sent_and_taken_by_nobody) {
    GtCard a(0), b(1);
    Reader to_b(b);
    expect_done(send(a, SCGT_UNICAST_INTR, 255, 1));
    expect_done(send(a, SCGT_UNICAST_INTR, 1, 2));
    to_b.expect(SCGT_UNICAST_INTR, 0, 0, 2);
}

TEST_F(GtInterruptsHere, readers_are_independent_and_each_starts_when_it_comes) {
    GtCard a(0), b(1);
    Reader first(b);
    send_many(a, b, 100, 3);
    GtCard same(1);
    Reader second(same);
    send_many(a, b, 103, 2);
    EXPECT_EQ(first.look(), unsigned{SCGT_SUCCESS});
    ASSERT_EQ(first.got.size(), 5U);
    EXPECT_EQ(second.look(), unsigned{SCGT_SUCCESS});
    ASSERT_EQ(second.got.size(), 2U);
    for (uint32 i = 0; i < 5; ++i) {
        EXPECT_EQ(first.got[i].val, 100 + i);
        EXPECT_EQ(first.got[i].seqNum, first.got[0].seqNum + i);
    }
    EXPECT_EQ(second.got[1].seqNum, first.got[4].seqNum);
    EXPECT_EQ(second.next, first.next);
    // What was taken is there again for a reader that goes back.
    first.next -= 2;
    EXPECT_EQ(first.look(1), unsigned{SCGT_SUCCESS});
    EXPECT_EQ(first.got[0].val, 103U);
}

TEST_F(GtInterruptsHere, a_reader_that_is_too_slow_is_told_and_goes_on_at_the_oldest) {
    GtCard a(0), b(1);
    Reader slow(b);
    send_many(a, b, 0, kQueue);
    Reader full(b);
    full.next = slow.next;
    EXPECT_EQ(full.look(), unsigned{SCGT_SUCCESS});
    EXPECT_EQ(full.got.size(), kQueue);
    send_many(a, b, kQueue, 10);
    expect_refused(slow.look(4), SCGT_MISSED_INTERRUPTS, "behind");
    ASSERT_EQ(slow.got.size(), 4U);
    EXPECT_EQ(slow.got[0].val, 10U);
    EXPECT_EQ(slow.look(), unsigned{SCGT_SUCCESS});
    ASSERT_EQ(slow.got.size(), kQueue - 4);
    EXPECT_EQ(slow.got[0].val, 14U);
    EXPECT_EQ(slow.got.back().val, kQueue + 9);
    EXPECT_EQ(slow.look(), unsigned{SCGT_TIMEOUT});
}

TEST_F(GtInterruptsHere, what_came_before_the_first_reader_is_nobodys) {
    GtCard a(0);
    {
        GtCard b(1);
        const Reader to_b(b);
    }
    expect_done(send(a, SCGT_BROADCAST_INTR, 0, 1));
    GtCard b(1);
    Reader to_b(b);
    expect_done(send(a, SCGT_BROADCAST_INTR, 0, 2));
    to_b.expect(SCGT_BROADCAST_INTR, 0, 0, 2);
}

TEST_F(GtInterruptsHere, what_a_stopped_process_loses_it_is_told) {
    Child other([] {
        GtCard b(1);
        Reader to_b(b);
        expect_done(write_word(b, 0, 1));
        ::raise(SIGSTOP);
        bool is_told = false;
        while (!is_told) {
            const uint32 result = to_b.look(2 * kQueue, kPatienceMs);
            ASSERT_TRUE(result == SCGT_SUCCESS || result == SCGT_MISSED_INTERRUPTS) << result;
            for (const scgtInterrupt& i : to_b.got)
                is_told |= i.type == SCGT_ERROR_INTR && i.val == SCGT_DRIVER_MISSED_INTERRUPTS;
        }
    });
    other.await_stop();
    GtCard a(0);
    EXPECT_EQ(word(a, 0), 1U);
    for (uint32 i = 0; i < 3 * kQueue; ++i) expect_done(send(a, SCGT_BROADCAST_INTR, 0, i));
    other.resume();
    EXPECT_EQ(other.wait(), 0);
}

TEST_F(GtInterruptsHere, calls_that_make_no_sense_are_refused) {
    GtCard a(0);
    const unsigned bad = SCGT_BAD_PARAMETER;
    expect_refused(send(a, SCGT_BROADCAST_INTR, 32, 0), bad, "id 32");
    expect_refused(send(a, SCGT_UNICAST_INTR, 256, 0), bad, "id 256");
    expect_refused(send(a, SCGT_ERROR_INTR, 0, 0), bad, "type 2");
    expect_refused(send(a, SCGT_NO_INTR, 0, 0), bad, "no interrupt to send");
    expect_refused(send(a, 4, 0, 0), bad, "type 4");
    scgtInterrupt none{SCGT_NO_INTR, 0, 99, 0, 0};
    expect_done(write_word(a, 0, 1, &none));
    scgtInterrupt unknown{SCGT_ERROR_INTR, 0, 0, 0, 0};
    expect_refused(write_word(a, 4, 1, &unknown), bad, "type 2");
    EXPECT_EQ(word(a, 4), 0U);

    scgtIntrHandle next = 0x10000000;
    uint32 taken = 9;
    scgtInterrupt got;
    expect_refused(scgtGetInterrupt(a, &next, &got, 1, 0, &taken), bad, "no reader");
    EXPECT_EQ(taken, 0U);
    next = kNoValue;
    expect_refused(scgtGetInterrupt(a, &next, &got, 1, 1, &taken), SCGT_TIMEOUT, "within 1 ms");
    expect_refused(scgtGetInterrupt(a, nullptr, &got, 1, 0, &taken), bad, "null pointer");
    expect_refused(scgtGetInterrupt(a, &next, nullptr, 1, 0, &taken), bad, "null pointer");
    expect_refused(scgtGetInterrupt(a, &next, &got, 1, 0, nullptr), bad, "null pointer");
}

}  // namespace
}  // namespace rmem::test
