// SPDX-License-Identifier: Apache-2.0
// ctest: check
// What comes in: overlong, damaged, out of number, to ports that are in use or not bound; dead
// senders.
#include "tests/support/gamma_ranks.hpp"

#include "billboard/process/process_endpoint.hpp"
#include "ports/gamma/frame.hpp"

#include <functional>

namespace rmem::test::gamma {
namespace {

using ports::gamma::both_words;
using ports::gamma::Header;
using ports::gamma::Kind;

class GammaReceiving : public Conformance {};
RMEM_ON_ALL_RINGS(GammaReceiving);

enum Word : std::size_t { kSent, kRead, kDone };

/// A frame as a hostile process may write it, to a rank.
void send_raw(int rank, const std::vector<std::byte>& frame, Place place = Place::here()) {
    check_code(billboard::ProcessEndpoint::open()->guarded().send(rank, frame.data(), frame.size(),
                                                                  {}, billboard::Class::gamma),
               BBP_OK, "a raw frame", place);
}

std::vector<std::byte> raw(const Header& header, std::uint32_t number, std::size_t payload) {
    std::vector<std::byte> frame(8 + payload, std::byte{0x5a});
    const std::uint64_t words = both_words(header.word(), number);
    std::memcpy(frame.data(), &words, sizeof words);
    return frame;
}

std::vector<std::byte> part(std::uint32_t number, std::uint32_t total, std::uint32_t offset,
                            std::size_t payload) {
    auto frame = raw({Kind::message, ports::gamma::kParts, 5, 0, 5}, number, 8 + payload);
    ports::gamma::put_word(frame.data(), 8, total);
    ports::gamma::put_word(frame.data(), 12, offset);
    return frame;
}

Header message(unsigned port) {
    return {Kind::message, 0, port, 0, 5};
}

/// Rank 0 writes frames by `hostile`, rank 1 takes in until `enough`, and is then sound.
void attack(const RingSetup& setup, const std::function<void()>& hostile,
            const std::function<bool()>& enough, const std::function<void()>& then) {
    RankProcesses ring(setup);
    ring.start_all([&](Rank& me) {
        start(me, 2);
        bind_to(1 - gamma_my_node());
        check_ok(gamma_sync());
        if (me.rank == 0) {
            hostile();
        } else {
            await(
                [&] {
                    gamma_test(5, 1);
                    return enough();
                },
                "the frames");
            then();
        }
        check_ok(gamma_sync());
        if (me.rank == 1) check_ok(send_pattern(5, 100, 3));
        if (me.rank == 0) {
            check_ok(gamma_wait(5, 1));
            check_came(100, 3);
        }
        check_ok(gamma_sync());
        check_ok(gamma_exit());
    });
    ring.finish();
}

TEST_P(GammaReceiving, a_message_longer_than_the_buffer_is_not_delivered_and_told) {
    for (const std::size_t size : Sizes({17, 1000, 20000})) {
        RankProcesses ring(setup(2));
        ring.start_all([size](Rank& me) {
            start(me, 2);
            bind_to(1 - gamma_my_node(), {.on_error = note_error, .size = size - 1});
            seen().buffer.fill(std::byte{7});
            check_ok(gamma_sync());
            if (me.rank == 0) {
                check_ok(send_pattern(5, size, 1));
                check_ok(send_pattern(5, size - 1, 2));
            } else {
                check_ok(gamma_wait(5, 1));
                check_equal(seen().messages.load(), 1, "messages");
                check_equal(seen().errors.load(), 1, "errors");
                check_equal(seen().last_error.load(), GAMMA_EOVERLONG, "the error");
                check_came(size - 1, 2);
                check(seen().buffer[size - 1] == std::byte{7}, "nothing behind the buffer");
                check_equal(counted("messages_overlong"), 1, "counted");
            }
            check_ok(gamma_sync());
            check_ok(gamma_exit());
        });
        ring.finish();
    }
}

TEST_P(GammaReceiving, an_error_at_a_port_without_error_handler_is_told_to_the_waiting_call) {
    run(2, [](Rank& me) {
        start(me, 2);
        bind_to(1 - gamma_my_node(), {.on_error = nullptr, .size = 8});
        check_ok(gamma_sync());
        if (me.rank == 0) check_ok(send_pattern(5, 9, 1));
        if (me.rank == 1) check_code(gamma_wait(5, 1), GAMMA_EOVERLONG);
        check_ok(gamma_sync());
        check_ok(gamma_exit());
    });
}

TEST_P(GammaReceiving, what_comes_to_an_unbound_port_is_counted_and_dropped) {
    run(2, [](Rank& me) {
        start(me, 2);
        bind_to(1 - gamma_my_node());
        if (me.rank == 0) bind_to(1, {.port = 6, .to_port = 200});
        check_ok(gamma_sync());
        if (me.rank == 0) {
            check_ok(send_pattern(6, 8, 1));
            check_ok(send_pattern(6, 5000, 1));
            check_ok(send_pattern(5, 8, 2));
        } else {
            check_ok(gamma_wait(5, 1));
            check_came(8, 2);
            check_equal(counted("frames_unbound"), 1 + 4, "frames");
        }
        check_ok(gamma_sync());
        check_ok(gamma_exit());
    });
}

TEST_P(GammaReceiving, a_gap_in_the_numbers_is_a_loss_and_what_comes_after_it_is_delivered) {
    attack(
        setup(2),
        [] {
            send_raw(1, raw(message(5), 0, 8));
            send_raw(1, raw(message(5), 4, 9));  // 1 to 3 are missing
        },
        [] { return seen().messages == 2; },
        [] {
            check_equal(counted("frames_lost"), 3, "frames lost");
            check_equal(seen().errors.load(), 1, "errors");
            check_equal(seen().last_error.load(), GAMMA_ELOST, "the error");
            check_equal(seen().last_length.load(), 9, "what came after");
        });
}

TEST_P(GammaReceiving, a_frame_that_comes_again_is_refused) {
    attack(
        setup(2),
        [] {
            send_raw(1, raw(message(5), 0, 8));
            send_raw(1, raw(message(5), 0, 8));
            send_raw(1, raw(message(5), 1, 8));
        },
        [] { return seen().messages == 2; },
        [] { check_equal(counted("frames_refused"), 1, "frames refused"); });
}

TEST_P(GammaReceiving, frames_that_no_process_writes_are_refused_one_and_all) {
    static constexpr int kFrames = 16;
    attack(
        setup(2),
        [] {
            const Header good = message(5);
            send_raw(1, {});
            send_raw(1, std::vector<std::byte>(7));
            send_raw(1, raw({static_cast<Kind>(0), 0, 5, 0, 5}, 0, 8));
            send_raw(1, raw({static_cast<Kind>(15), 0, 5, 0, 5}, 0, 8));
            send_raw(1, raw({Kind::message, 0, 255, 0, 5}, 0, 8));
            send_raw(1, raw({Kind::message, 0, 5, 9, 5}, 0, 8));   // another group's
            send_raw(1, raw({Kind::message, 12, 5, 0, 5}, 0, 8));  // unknown flags
            send_raw(1, raw({Kind::message, ports::gamma::kParts, 5, 0, 5}, 0, 8));  // no payload
            send_raw(1, raw({Kind::message, ports::gamma::kParts, 5, 0, 5}, 0, 3));
            send_raw(1, raw({Kind::lost, 0, 255, 0, 5}, 9, 0));
            send_raw(1, raw({Kind::lost, 0, 5, 0, 5}, 9, 1));
            send_raw(1, raw({Kind::barrier, 0, 255, 0, 8}, 9, 0));
            send_raw(1, raw({Kind::barrier, 0, 5, 0, 0}, 9, 0));
            send_raw(1, raw({Kind::hello, 0, 0, 0, 0}, 0, 0));
            send_raw(1, raw({Kind::hello, 0, 0, 0, 0}, 0, 9));
            send_raw(1, raw({Kind::hello, 1, 0, 0, 0}, 0, 8));
            send_raw(1, raw(good, 0, 8));
        },
        [] { return seen().messages == 1; },
        [] {
            check_equal(counted("frames_refused"), kFrames, "frames refused");
            check_equal(seen().errors.load(), 0, "errors");
        });
}

TEST_P(GammaReceiving, parts_that_do_not_fit_together_break_their_message_alone) {
    attack(
        setup(2),
        [] {
            std::uint32_t n = 0;
            send_raw(1, part(n++, 100, 0, 50));
            send_raw(1, part(n++, 100, 60, 40));  // another offset
            send_raw(1, part(n++, 100, 0, 50));
            send_raw(1, part(n++, 200, 50, 50));  // another size
            send_raw(1, part(n++, 100, 0, 50));
            send_raw(1, part(n++, 100, 50, 51));  // too long
            send_raw(1, part(n++, 10, 0, 11));    // too long from its beginning
            send_raw(1, part(n++, 0xffffffff, 0xfffffff0, 100));
            send_raw(1, part(n++, 100, 0, 50));
            send_raw(1, raw(message(5), n++, 8));  // breaks off
            send_raw(1, raw(message(5), n++, 9));
        },
        [] { return seen().messages == 1; },
        [] {
            check_equal(counted("messages_broken"), 4, "broken messages");
            check_equal(seen().errors.load(), 4, "errors");
            check_equal(counted("frames_refused"), 1, "refused");
            check_equal(counted("frames_skipped"), 1, "skipped");
            check_equal(seen().last_length.load(), 9, "the sound message");
        });
}

TEST_P(GammaReceiving, random_frames_do_no_harm) {
    attack(
        setup(2),
        [] {
            std::uint64_t random = 12345;
            for (int i = 0; i < 300; ++i) {
                const std::size_t size = next_random(random) % 100;
                auto frame = pattern(size, next_random(random));
                // Mostly of a kind that there is, to ports that are bound or nearly; no hello,
                // which begins again.
                if (size >= 8 && i % 4 != 0) {
                    const Header header{static_cast<Kind>(1 + next_random(random) % 3),
                                        static_cast<unsigned>(next_random(random) % 4),
                                        static_cast<unsigned>(5 + next_random(random) % 2), 0, 5};
                    ports::gamma::put_word(frame.data(), 0, header.word());
                    ports::gamma::put_word(frame.data(), 4,
                                           static_cast<std::uint32_t>(next_random(random) % 400));
                } else if (size >= 4) {
                    frame[0] = std::byte{0xff};
                }
                send_raw(1, frame);
            }
            send_raw(1, raw(message(5), 0x7000, 8));
        },
        [] { return seen().last_length == 8 && counted("frames_refused") > 50; }, [] {});
}

// ---- Ports in use

TEST_P(GammaReceiving, other_senders_to_a_port_wait_while_a_longer_message_comes_in) {
    run(3, [](Rank& me) {
        start(me, 3);
        bind_to(2);
        check_ok(gamma_sync());
        if (me.rank == 0) {
            const auto bytes = pattern(100, 1);
            auto begin = part(0, 100, 0, 50), end = part(1, 100, 50, 50);
            std::memcpy(begin.data() + 16, bytes.data(), 50);
            std::memcpy(end.data() + 16, bytes.data() + 50, 50);
            send_raw(2, begin);
            for (int i = 0; i < 2; ++i) check_ok(gamma_sync());
            me.await_word(kRead);
            send_raw(2, end);
        } else if (me.rank == 1) {
            // A node that has come out of the second barrier knows that node 2 was in it, behind
            // the first part.
            for (int i = 0; i < 2; ++i) check_ok(gamma_sync());
            for (std::uint64_t i = 0; i < 30; ++i) check_ok(send_pattern(5, 40, 2));
        } else {
            for (int i = 0; i < 2; ++i) check_ok(gamma_sync());
            await([] { return gamma_test(5, 1) == 0 && counted("sources_stalled") > 0; },
                  "the other sender is stalled");
            check_equal(seen().messages.load(), 0, "messages");
            me.raise(kRead);
            check_ok(gamma_wait(5, 1));
            check_ok(gamma_wait(5, 30));
            check_came(40, 2);
            check_equal(seen().errors.load(), 0, "errors");
        }
        check_ok(gamma_sync());
        check_ok(gamma_exit());
    });
}

TEST_P(GammaReceiving, a_port_whose_handler_runs_takes_nothing_in_until_it_returns_or_binds_again) {
    run(2, [](Rank& me) {
        start(me, 2);
        static std::array<std::array<int, 2>, 2> found;
        found = {};
        // Takes in while it runs: nothing of its own port, until it has bound it again.
        const auto handler = [] {
            Seen& mine = seen();
            if (++mine.messages != 1) return;
            for (int i = 0; i < 50; ++i) gamma_test(100, 1);
            found[0][0] = mine.messages;
            gamma_post_recv(gamma_active_port, mine.buffer.data() + 4000, 4000);
            await([&] { return gamma_test(100, 1), mine.messages != 1; }, "the other message");
            found[0][1] = mine.messages;
        };
        bind_to(1 - gamma_my_node(), {.on_message = me.rank == 1 ? +handler : count_and_signal});
        check_ok(gamma_sync());
        if (me.rank == 0) {
            check_ok(send_pattern(5, 2000, 1));
            check_ok(send_pattern(5, 2000, 2));
            me.raise(kSent);
        } else {
            me.await_word(kSent);
            await([] { return gamma_test(5, 1) == 0 && seen().messages == 2; }, "both messages");
            check_equal(found[0][0], 1, "messages while the buffer is in use");
            check_equal(found[0][1], 2, "messages once it is another");
            check_bytes(seen().buffer.data(), 2000, 1);
            check_bytes(seen().buffer.data() + 4000, 2000, 2);
        }
        check_ok(gamma_sync());
        check_ok(gamma_exit());
    });
}

TEST_P(GammaReceiving, a_message_that_is_coming_in_goes_on_in_the_buffer_bound_meanwhile) {
    run(2, [](Rank& me) {
        start(me, 2);
        bind_to(1 - gamma_my_node(), {.on_error = note_error, .size = 1000});
        check_ok(gamma_sync());
        const auto bytes = pattern(100, 1);
        for (std::uint32_t round = 0; round < 2; ++round) {
            if (me.rank == 0) {
                auto begin = part(2 * round, 100, 0, 50), end = part(2 * round + 1, 100, 50, 50);
                std::memcpy(begin.data() + 16, bytes.data(), 50);
                std::memcpy(end.data() + 16, bytes.data() + 50, 50);
                send_raw(1, begin);
                check_ok(gamma_sync());
                me.await_word(kRead, round + 1);
                send_raw(1, end);
            } else {
                check_ok(gamma_sync());  // behind the first part
                std::byte* fresh = seen().buffer.data() + 2000;
                check_ok(gamma_post_recv(5, fresh, round == 0 ? 100 : 99));
                me.raise(kRead);
                if (round == 0) {
                    check_ok(gamma_wait(5, 1));
                    check_bytes(fresh, 100, 1);
                    check_ok(gamma_post_recv(5, seen().buffer.data(), 1000));
                } else {
                    check_equal(seen().last_error.load(), GAMMA_EOVERLONG, "it does not fit");
                }
            }
            check_ok(gamma_sync());
        }
        check_ok(gamma_exit());
    });
}

// ---- Watchdog

TEST_P(GammaReceiving, a_handler_that_does_not_return_can_be_seen_by_others) {
    RMEM_SKIP_IF_SIMULATED("a process sees its own counters alone");
    if (is_remote(parse_link(GetParam().link))) GTEST_SKIP() << "counters are a host's own node's";
    run(2, [](Rank& me) {
        start(me, 2);
        static Rank* rank;
        rank = &me;
        const auto stuck = [] {
            rank->raise(kRead);
            rank->await_word(kDone);
            gamma_signal(5);
        };
        bind_to(1 - gamma_my_node(), {.on_message = stuck});
        check_ok(gamma_sync());
        const auto running = [] {
            return gamma_counter(0, 1, "handlers_begun") - gamma_counter(0, 1, "handlers_ended");
        };
        if (me.rank == 0) {
            check_equal(running(), 0, "handlers that run before");
            check_ok(send_pattern(5, 8, 1));
            me.await_word(kRead);
            check_equal(running(), 1, "handlers that run");
            me.raise(kDone);
            await([&] { return running() == 0; }, "its return");
        } else {
            check_ok(gamma_wait(5, 1));
        }
        check_code(static_cast<int>(gamma_counter(0, 5, "handlers_begun")), GAMMA_ENODE);
        check_code(static_cast<int>(gamma_counter(0, 0, "no such")), GAMMA_EINVAL);
        check_ok(gamma_sync());
        check_ok(gamma_exit());
    });
}

// ---- Dead senders

TEST_P(GammaReceiving, a_process_that_waits_for_the_dead_is_told_and_does_not_hang) {
    RankProcesses ring(setup(3));
    ring.start_all([](Rank& me) {
        start(me, 3);
        bind_to(me.rank == 0 ? 1 : 0, {.on_error = note_error});
        check_ok(gamma_sync());
        me.raise(kSent);
        if (me.rank == 1) me.await_word(kDone, 99);
        if (me.rank == 0) {
            check_code(gamma_wait(5, 1), GAMMA_EPEER);
            check_code(gamma_wait(5, 1), GAMMA_EPEER, "again");
            check_equal(seen().errors.load(), 1, "errors");
            bind_to(2);
            me.raise(kRead);
            check_ok(gamma_wait(5, 1));  // bound again, it can be waited on
        } else {
            me.await_word(kRead);
            check_ok(send_pattern(5, 8, 1));
        }
        check_ok(gamma_exit());
    });
    ring.await_word(kSent, 3);
    ring.kill(1);
    ring.finish();
}

TEST_P(GammaReceiving,
       a_message_whose_sender_dies_in_the_middle_of_it_is_an_error_and_frees_the_port) {
    RankProcesses ring(setup(3));
    ring.start_all([](Rank& me) {
        start(me, 3);
        bind_to(me.rank == 2 ? 0 : 2, {.on_error = note_error});
        check_ok(gamma_sync());
        if (me.rank == 1) send_raw(2, part(0, 100, 0, 50));
        // A node that has come out of the second barrier knows that node 2 was in it, behind the
        // part.
        for (int i = 0; i < 2; ++i) check_ok(gamma_sync());
        if (me.rank == 1) {
            me.raise(kSent);
            me.await_word(kDone, 99);
        }
        if (me.rank == 0) {
            me.await_word(kRead);
            check_ok(send_pattern(5, 8, 1));
        } else {
            await([] { return gamma_test(5, 1) == 0 && seen().errors == 1; }, "the error");
            check_equal(seen().last_error.load(), GAMMA_EPEER, "the error");
            check_equal(counted("messages_broken"), 1, "broken");
            me.raise(kRead);
            check_ok(gamma_wait(5, 1));
            check_came(8, 1);
        }
        me.raise(kDone);
        me.await_word(kDone, 2);
        check_ok(gamma_exit());
    });
    ring.await_word(kSent);
    ring.kill(1);
    ring.finish();
}

}  // namespace
}  // namespace rmem::test::gamma
