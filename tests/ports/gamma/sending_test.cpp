// SPDX-License-Identifier: Apache-2.0
// ctest: check apart
// Best effort and flow control, broadcast, groups' ports, and what happens when nobody reads.
#include "tests/support/gamma_ranks.hpp"

#include "billboard/core/counters.hpp"
#include "billboard/process/process_endpoint.hpp"
#include "rmem/ring/ring.hpp"

namespace rmem::test::gamma {
namespace {

class GammaSending : public GammaTest {};
RMEM_ON_ALL_RINGS(GammaSending);

enum Word : std::size_t { kSent, kRead, kTaken, kDone };

TEST_P(GammaSending, a_loss_at_the_end_is_told_though_nothing_comes_after_it) {
    run(2, [](Rank& me) {
        set_variable("RMEM_GAMMA", "progress=off,patience=50ms");
        start(2);
        bind_to(1 - gamma_my_node());
        check_ok(gamma_sync());
        if (me.rank == 0) {
            std::uint32_t sent = 0;
            while (counted("frames_overrun") < 3) {
                check(sent < 2000, "messages nobody reads are lost some time");
                check_ok(send_pattern(5, 700, sent++, false));
            }
            me.shared[kSent] = sent;
            return check_ok(gamma_exit());  // tells before it leaves
        }
        me.await_word(kSent);
        take_in_until(
            [&] {
                return seen().messages + counted("frames_lost") ==
                       static_cast<int>(me.shared[kSent]);
            },
            "each message, or its loss");
        check_ok(gamma_exit());
    });
}

TEST_P(GammaSending, a_message_in_parts_that_loses_one_is_not_delivered) {
    run_group(2, {.gamma = "progress=off,patience=2ms"}, [](Rank& me) {
        if (me.rank == 0) {
            check_ok(send_pattern(5, 65'000, 1, false));  // more than lies anywhere
            check(counted("frames_overrun") > 0, "frames are lost");
            me.raise(kSent);
            check_ok(send_pattern(5, 5000, 2, true));
        } else {
            me.await_word(kSent);
            int result = 0;
            while ((result = gamma_wait(5, 1)) == GAMMA_ESIGNAL) {
            }
            check_ok(result);
            check_came(5000, 2);
            check_equal(seen().messages.load(), 1, "messages");
            check(counted("messages_broken") == 1, "the broken one is counted");
        }
    });
}

TEST_P(GammaSending, a_process_that_tries_to_send_is_told_instead_of_waiting_and_loses_nothing) {
    run_group(2, [](Rank& me) {
        check_ok(gamma_set_progress(0));
        check_ok(gamma_sync());
        auto bytes = pattern(static_cast<std::size_t>(gamma_frame_bytes()), 3);
        const auto try_send = [&](std::size_t size) {
            return gamma_try_send_2p(5, bytes.data(), 100, bytes.data() + 100, size - 100);
        };
        if (me.rank == 0) {
            bytes.resize(bytes.size() + 1);
            check_code(try_send(bytes.size()), GAMMA_ESIZE);
            std::uint32_t sent = 0;
            for (unsigned refused = 0; refused < 100;) {
                const int result = try_send(bytes.size() - 1);
                check(result == 0 || result == GAMMA_EAGAIN, "sent, or no room");
                refused = result == 0 ? 0 : refused + 1;
                if (result == 0) ++sent;
                if (result != 0) rest(std::chrono::milliseconds(1));
                check(sent < 100'000, "a process that takes nothing has no room forever");
            }
            me.shared[kSent] = sent;
            me.raise(kRead);
            check_equal(counted("frames_overrun"), 0LL, "frames lost");
        } else {
            me.await_word(kRead);
            check_equal(seen().messages.load(), 0, "handlers outside of calls");
            check_ok(gamma_wait(5, static_cast<int>(me.shared[kSent])));
            check_came(bytes.size(), 3);
        }
    });
}

TEST_P(GammaSending, two_processes_that_only_send_to_each_other_do_not_wait_forever) {
    run_group(2, {.gamma = "progress=off"}, [](Rank&) {
        const int messages = thrifty(200);
        for (int i = 0; i < messages; ++i)
            check_ok(send_pattern(5, i % 2 == 0 ? 8 : 3000, static_cast<std::uint64_t>(i)));
        check_ok(gamma_wait(5, messages));
    });
}

TEST_P(GammaSending, a_handlers_message_does_not_come_into_the_middle_of_a_longer_one) {
    run_group(2, {.gamma = "progress=off"}, [](Rank& me) {
        static std::atomic<int> result;
        static Rank* self = nullptr;
        self = &me;
        const auto reply = [] {
            char byte = 1;
            result = gamma_send(5, &byte, 1);
            self->raise(kRead);
        };
        bind_to(1 - gamma_my_node(),
                {.port = 6, .to_port = 6, .on_message = reply, .on_error = note_error});
        check_ok(gamma_sync());
        if (me.rank == 0) {
            check_ok(send_pattern(5, 65'000, 1));  // waits, and takes in meanwhile
            check_code(result, GAMMA_EAGAIN, "what the handler's send returned");
        } else {
            // Not before it has begun: then the handler would be in no message's middle.
            const auto process = billboard::ProcessEndpoint::open();
            while (process->endpoint().available(BBP_ANY, billboard::Class::gamma) == 0)
                rest(std::chrono::milliseconds(1));
            check_ok(send_pattern(6, 8, 2));
            me.await_word(kRead);
            check_ok(gamma_wait(5, 1));
            check_came(65'000, 1);
        }
    });
}

TEST_P(GammaSending, a_broadcast_reaches_all_of_the_group_but_its_sender_in_one_multicast) {
    run_group(4, {.to = BROADCAST}, [](Rank& me) {
        for (const std::size_t size : Sizes({8, 40, 1000, 5000})) {
            if (me.rank == 1) check_ok(send_pattern(5, size, size));
            if (me.rank != 1) {
                check_ok(gamma_wait(5, 1));
                check_came(size, size);
            }
            check_ok(gamma_sync());
        }
        check_equal(seen().messages.load(), me.rank == 1 ? 0 : 4, "messages");
        check_equal(seen().errors.load(), 0, "errors");
        const auto process = billboard::ProcessEndpoint::open();
        Ring* ring = process->endpoint().ring();
        if (ring != nullptr && me.rank == 1) {
            // Longer ones are composed in place.
            const auto most = std::max(billboard::kInlineBytes, process->endpoint().short_bytes());
            int others = 0;
            for (const unsigned frame : {8U, 40U, 1000U, 1500U, 1500U, 1500U, 500U})
                if (frame < most) ++others;
            check_equal(ring->rank(1).protocol.get(billboard::Counter::multicasts), others,
                        "multicasts of frames that are not composed");
            check_equal(counted("frames_sent"), 1 + 4, "frames of 1000 and 5000 bytes");
        }
    });
}

TEST_P(GammaSending, a_broadcast_loses_at_who_does_not_read_and_comes_to_the_others) {
    // Without FIFOs the sender's buffers, which the one has not read, are missing for the other,
    // too.
    const bool has_fifos = std::string_view(GetParam().layout) == "inline";
    const Begin begin{.to = BROADCAST, .gamma = "progress=off,patience=1ms"};
    run_group(3, begin, [has_fifos](Rank& me) {
        constexpr int kMessages = 1200;  // more than lie anywhere
        if (me.rank == 0) {
            for (std::uint32_t i = 0; i < kMessages; ++i) {
                check_ok(send_pattern(5, 8, i, false));
                take_in_until([&] { return !has_fifos || me.shared[kTaken] > i; }, "who reads");
            }
            check(counted("frames_overrun") > 0, "some are lost");
            me.raise(kSent);
        } else {
            if (me.rank == 2) me.await_word(kSent);
            take_in_until(
                [&] {
                    const auto told = seen().messages + counted("frames_lost");
                    if (me.rank == 1) me.shared[kTaken] = static_cast<std::uint32_t>(told);
                    return told == kMessages;
                },
                "each message, or its loss");
            check(me.rank == 1 || seen().errors > 0, "who did not read is told");
            if (me.rank == 1 && has_fifos)
                check_equal(seen().errors.load(), 0, "errors of who reads");
        }
    });
}

/// Sends to the others in turn, and takes in what they send.
void exchange_with_all(const Rank& me, int messages) {
    static std::array<std::atomic<int>, 3> intact;
    intact.at(static_cast<std::size_t>(me.rank)) = 0;
    // Each source has a port of its own; a message's size is its seed.
    const auto look = [] {
        const auto node = static_cast<std::size_t>(gamma_my_node());
        const auto size = static_cast<std::size_t>(gamma_msglen);
        const std::byte* bytes = seen().buffer.data() + gamma_active_port * 10000;
        if (first_difference({bytes, size}, size) == size) ++intact.at(node);
        gamma_signal(100);
    };
    for (int other = 0; other < 3; ++other) {
        check_ok(gamma_set_active_port(static_cast<unsigned short>(other),
                                       static_cast<unsigned short>(other), 0,
                                       static_cast<unsigned short>(me.rank), look, 100, GO_BACK,
                                       seen().buffer.data() + other * 10000, 10000));
    }
    check_ok(gamma_sync());
    for (int i = 0; i < messages; ++i) {
        const int to = (me.rank + 1 + i % 2) % 3;
        const auto size = static_cast<std::size_t>(i) * 977 % 9000;
        check_ok(send_pattern(static_cast<unsigned short>(to), size, size));
    }
    check_ok(gamma_wait(100, messages));
    check_equal(intact.at(static_cast<std::size_t>(me.rank)).load(), messages, "messages intact");
    check_equal(counted("frames_lost") + counted("frames_refused"), 0, "lost or refused");
}

TEST_P(GammaSending, all_send_to_all_and_each_message_comes_intact) {
    const int messages = thrifty(400) / 2 * 2;
    run_group(3, [messages](Rank& me) { exchange_with_all(me, messages); });
}

TEST(GammaOverUdp, loses_no_message_where_datagrams_are_lost_or_late) {
    RingSetup setup;
    setup.ranks = 3;
    setup.link = "udp";
    setup.extra = {{"RMEM_FAULTS", "drop:share=3%; hold:by=200us,share=5%"}};
    run_members(setup, [](Rank& me) {
        start(3);
        exchange_with_all(me, 200);
        check_ok(gamma_sync());
        check_ok(gamma_exit());
    });
}

// ---- Dead peers

TEST_P(GammaSending, a_send_to_the_dead_is_an_error_and_tells_the_error_handler) {
    run({[](Rank& me) {
             start(2);
             bind_to(1, {.on_error = note_error});
             check_ok(gamma_sync());
             me.raise(kSent);
             me.await_word(kRead);
             int result = 0;
             await([&] { return (result = send_pattern(5, 8, 1)) != 0; }, "an error");
             check_code(result, GAMMA_EPEER);
             check_equal(seen().errors.load(), 1, "calls of the error handler");
             check_equal(seen().last_error.load(), GAMMA_EPEER, "gamma_errno");
             check_equal(seen().last_port.load(), 5, "gamma_active_port");
             check_code(send_pattern(5, 3000, 1), GAMMA_EPEER, "in parts");
             check_code(gamma_sync(), GAMMA_EPEER, "gamma_sync");
             check_ok(gamma_exit());
         },
         [](Rank& me) {
             start(2);
             bind_to(0);
             check_ok(gamma_sync());
             me.await_word(kDone);
         }},
        {.rank = 1});
}

TEST_P(GammaSending, a_send_that_waits_for_room_ends_when_its_receiver_dies) {
    run({[](Rank& me) {
             start(2);
             bind_to(1, {.on_error = note_error});
             check_ok(gamma_sync());
             me.raise(kSent);
             int result = 0;
             for (int i = 0; result == 0 && i < 10000; ++i) result = send_pattern(5, 3000, 1);
             check_code(result, GAMMA_EPEER);
             check_ok(gamma_exit());
         },
         [](Rank& me) {
             set_variable("RMEM_GAMMA", "progress=off");
             start(2);
             bind_to(0);
             check_ok(gamma_sync());
             me.await_word(kDone);
         }},
        {.rank = 1, .waits = true});
}

TEST_P(GammaSending, a_broadcast_reaches_the_living_and_says_that_some_are_dead) {
    const Body body = [](Rank& me) {
        start(3);
        bind_to(BROADCAST, {.on_error = note_error});
        check_ok(gamma_sync());
        me.raise(kSent);
        if (me.rank == 2) me.await_word(kDone, 99);
        if (me.rank == 0) {
            me.await_word(kRead);
            int result = 0;
            int sent = 0;
            await([&] { return ++sent, (result = send_pattern(5, 3000, 1)) != 0; }, "an error");
            check_code(result, GAMMA_EPEER);
            check_equal(seen().errors.load(), 1, "errors");
            me.shared[kDone] = static_cast<std::uint32_t>(sent);
        } else {
            await([&] { return gamma_test(100, 1) == 0 && me.shared[kDone] != 0; }, "the number");
            check_ok(gamma_wait(5, static_cast<int>(me.shared[kDone])));
            check_came(3000, 1);
        }
        check_ok(gamma_exit());
    };
    run({body, body, body}, {.rank = 2, .posted = 3});
}

}  // namespace
}  // namespace rmem::test::gamma
