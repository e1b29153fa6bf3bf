// SPDX-License-Identifier: Apache-2.0
// ctest: check
// What comes in: overlong, damaged, out of number, to ports that are in use or not bound; dead
// senders.
#include "tests/support/gamma_ranks.hpp"

#include "billboard/process/process_endpoint.hpp"
#include "ports/gamma/frame.hpp"

#include <map>

namespace rmem::test::gamma {
namespace {

using ports::gamma::both_words;
using ports::gamma::Header;
using ports::gamma::Kind;

class GammaReceiving : public GammaTest {};
RMEM_ON_ALL_RINGS(GammaReceiving);

enum Word : std::size_t { kSent, kIsDead, kRead, kDone };

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

/// The two halves of a message of 100 bytes of the seed 1.
std::array<std::vector<std::byte>, 2> halves(std::uint32_t first) {
    const auto bytes = pattern(100, 1);
    std::array both{part(first, 100, 0, 50), part(first + 1, 100, 50, 50)};
    for (std::size_t i = 0; i < 2; ++i) std::memcpy(both[i].data() + 16, bytes.data() + 50 * i, 50);
    return both;
}

using Frames = std::vector<std::vector<std::byte>>;

/// What rank 0 writes, and what rank 1 then finds.
struct Attack {
    const char* what;
    Frames frames;
    int messages;  ///< taken in
    long last_length;
    int errors, last_error;  ///< 0: any
    std::map<const char*, long long> counted;
};

TEST_P(GammaReceiving, an_error_at_a_port_without_error_handler_is_told_to_the_waiting_call) {
    run_group(2, {.bound = {.on_error = nullptr, .size = 8}}, [](Rank& me) {
        if (me.rank == 0) check_ok(send_pattern(5, 9, 1));
        if (me.rank == 1) check_code(gamma_wait(5, 1), GAMMA_EOVERLONG);
    });
}

const std::vector<Attack>& attacks() {
    constexpr unsigned kParts = ports::gamma::kParts;
    const Header good = message(5);
    static const std::vector<Attack> all = {
        {"a gap in the numbers is a loss, and what comes after it is delivered",
         {raw(good, 0, 8), raw(good, 4, 9)},
         2,
         9,
         1,
         GAMMA_ELOST,
         {{"frames_lost", 3}}},
        {"a frame that comes again is refused",
         {raw(good, 0, 8), raw(good, 0, 8), raw(good, 1, 8)},
         2,
         8,
         0,
         0,
         {{"frames_refused", 1}}},
        {"frames that no process writes are refused, one and all",
         {{},
          std::vector<std::byte>(7),
          raw({static_cast<Kind>(0), 0, 5, 0, 5}, 0, 8),
          raw({static_cast<Kind>(15), 0, 5, 0, 5}, 0, 8),
          raw({Kind::message, 0, 255, 0, 5}, 0, 8),
          raw({Kind::message, 0, 5, 9, 5}, 0, 8),       // another group's
          raw({Kind::message, 12, 5, 0, 5}, 0, 8),      // unknown flags
          raw({Kind::message, kParts, 5, 0, 5}, 0, 8),  // no payload
          raw({Kind::message, kParts, 5, 0, 5}, 0, 3),
          raw({Kind::lost, 0, 255, 0, 5}, 9, 0),
          raw({Kind::lost, 0, 5, 0, 5}, 9, 1),
          raw({Kind::barrier, 0, 255, 0, 8}, 9, 0),
          raw({Kind::barrier, 0, 5, 0, 0}, 9, 0),
          raw({Kind::hello, 0, 0, 0, 0}, 0, 0),
          raw({Kind::hello, 0, 0, 0, 0}, 0, 9),
          raw({Kind::hello, 1, 0, 0, 0}, 0, 8),
          raw(good, 0, 8)},
         1,
         8,
         0,
         0,
         {{"frames_refused", 16}}},
        {"parts that do not fit together break their message alone",
         {part(0, 100, 0, 50), part(1, 100, 60, 40),  // another offset
          part(2, 100, 0, 50), part(3, 200, 50, 50),  // another size
          part(4, 100, 0, 50), part(5, 100, 50, 51),  // too long
          part(6, 10, 0, 11),                         // too long from its beginning
          part(7, 0xffffffff, 0xfffffff0, 100), part(8, 100, 0, 50), raw(good, 9, 8),  // breaks off
          raw(good, 10, 9)},
         1,
         9,
         4,
         0,
         {{"messages_broken", 4}, {"frames_refused", 1}, {"frames_skipped", 1}}}};
    return all;
}

TEST_P(GammaReceiving, frames_that_do_not_fit_are_counted_and_the_process_is_sound_afterwards) {
    for (const Attack& attack : attacks()) {
        run_group(2, [&](Rank& me) {
            if (me.rank == 0) {
                for (const auto& frame : attack.frames) send_raw(1, frame);
                check_ok(gamma_wait(5, 1));
                return check_came(100, 3);
            }
            take_in_until([&] { return seen().messages == attack.messages; }, attack.what);
            check_equal(seen().last_length.load(), attack.last_length, attack.what);
            check_equal(seen().errors.load(), attack.errors, attack.what);
            if (attack.last_error != 0)
                check_equal(seen().last_error.load(), attack.last_error, attack.what);
            for (const auto& [name, value] : attack.counted)
                check_equal(counted(name), value, fmt::format("{}: {}", attack.what, name));
            check_ok(send_pattern(5, 100, 3));
        });
    }
}

TEST_P(GammaReceiving, random_frames_do_no_harm) {
    run_group(2, [](Rank& me) {
        if (me.rank == 1) {
            take_in_until([] { return seen().last_length == 8 && counted("frames_refused") > 50; },
                          "the frames");
            return check_ok(send_pattern(5, 100, 3));
        }
        std::uint64_t random = 12345;
        for (int i = 0; i < 300; ++i) {
            const std::size_t size = next_random(random) % 100;
            auto frame = pattern(size, next_random(random));
            // Mostly of a kind that there is, to ports that are bound or nearly; no hello, which
            // begins again.
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
        check_ok(gamma_wait(5, 1));
        check_came(100, 3);
    });
}

// ---- Ports in use

TEST_P(GammaReceiving, other_senders_to_a_port_wait_while_a_longer_message_comes_in) {
    run_group(3, {.to = 2}, [](Rank& me) {
        if (me.rank == 0) {
            const auto [begin, end] = halves(0);
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
    });
}

TEST_P(GammaReceiving, a_port_whose_handler_runs_takes_nothing_in_until_it_returns_or_binds_again) {
    run_group(2, [](Rank& me) {
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
    });
}

TEST_P(GammaReceiving, a_message_that_is_coming_in_goes_on_in_the_buffer_bound_meanwhile) {
    run_group(2, {.bound = {.on_error = note_error, .size = 1000}}, [](Rank& me) {
        for (std::uint32_t round = 0; round < 2; ++round) {
            if (me.rank == 0) {
                const auto [begin, end] = halves(2 * round);
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
    });
}

// ---- Watchdog

TEST_P(GammaReceiving, a_handler_that_does_not_return_can_be_seen_by_others) {
    RMEM_SKIP_IF_SIMULATED("a process sees its own counters alone");
    if (is_remote(parse_link(GetParam().link))) GTEST_SKIP() << "counters are a host's own node's";
    run_group(2, [](Rank& me) {
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
    });
}

// ---- Dead senders

TEST_P(GammaReceiving, a_process_that_waits_for_the_dead_is_told_and_does_not_hang) {
    const Body body = [](Rank& me) {
        start(3);
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
    };
    run({body, body, body}, {.rank = 1, .posted = 3});
}

TEST_P(GammaReceiving,
       a_message_whose_sender_dies_in_the_middle_of_it_is_an_error_and_frees_the_port) {
    const Body body = [](Rank& me) {
        start(3);
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
    };
    run({body, body, body}, {.rank = 1});
}

}  // namespace
}  // namespace rmem::test::gamma
