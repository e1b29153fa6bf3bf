// SPDX-License-Identifier: Apache-2.0
// ctest: check apart
// The row of each property for GAMMA, from gamma/libgamma.h and gamma(7) alone;
// docs/design/ports.md has the table.
#include "tests/support/gamma_ranks.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace rmem::test {
namespace {

using namespace gamma;

class Gamma : public GammaTest {};
RMEM_ON_ALL_RINGS_AND_LOSS(Gamma);

constexpr unsigned short kPort = 5;

void note_number() {
    std::uint32_t number = 0;
    std::memcpy(&number, seen().buffer.data(), sizeof number);
    seen().numbers.push_back(number);
    note_message();
}
/// A message of at least four bytes, which begins with its number.
int send_numbered(std::uint32_t number, std::size_t size, bool flow_controlled) {
    std::vector<std::byte> bytes(size);
    std::memcpy(bytes.data(), &number, sizeof number);
    return flow_controlled ? gamma_send_flowctl(kPort, bytes.data(), size)
                           : gamma_send(kPort, bytes.data(), size);
}

// ---- Reliable: assumes a LAN; may overrun

TEST_P(Gamma, is_reliable_but_for_overrun) {
    for (const std::size_t size : Sizes({8, 300, 700})) {
        const Begin begin{.bound = {.on_message = note_number, .on_error = note_error},
                          .gamma = "progress=off,patience=2ms"};
        run_group(2, begin, [size](Rank& me) {
            enum { received, sent, overrun };
            constexpr std::uint32_t kTakenIn = 30;
            if (me.rank == 0) {
                std::uint32_t number = 0;
                for (; number < kTakenIn; ++number) {
                    check_ok(send_numbered(number, size, false), "gamma_send");
                    serve_until(me, received, number + 1);
                }
                check_equal(counted("frames_overrun"), 0, "frames lost while the receiver reads");
                for (; counted("frames_overrun") < 5; ++number) {
                    check(number < 2000, "messages nobody reads are lost some time");
                    check_ok(send_numbered(number, size, false), "gamma_send");
                }
                me.shared[overrun] = static_cast<std::uint32_t>(counted("frames_overrun"));
                me.shared[sent] = number + 1;
                return check_ok(send_numbered(number, size, true), "and it goes on");
            }
            for (std::uint32_t i = 0; i < kTakenIn; ++i) {
                take_in_until([&] { return seen().numbers.size() > i; }, "a message");
                me.raise(received);
            }
            me.await_word(sent);  // without a call
            const std::size_t come = me.shared[sent] - me.shared[overrun];
            take_in_until(
                [&] {
                    return seen().numbers.size() == come &&
                           counted("frames_lost") == me.shared[overrun];
                },
                "what was not lost, and news of what was");
            check(seen().errors > 0, "the error handler was called");
            check_equal(seen().last_error.load(), GAMMA_ELOST, "gamma_errno");
            check_equal(counted("messages_received"), come, "messages received");
            check(std::is_sorted(seen().numbers.begin(), seen().numbers.end()),
                  "in order, with gaps");
            check_equal(seen().numbers.back(), me.shared[sent] - 1, "the last one's number");
        });
    }
}

// ---- Ordered: yes

TEST_P(Gamma, is_ordered) {
    run_group(2, {.bound = {.on_message = note_number}}, [](Rank&) {
        const auto messages = static_cast<std::uint32_t>(std::max(thrifty(300), 20));
        for (std::uint32_t i = 0; i < messages; ++i) {
            const std::size_t size = i % 5 == 4 ? 5000 : i % 5 == 2 ? 700 : 4 + i % 100;
            check_ok(send_numbered(i, size, true), "gamma_send_flowctl");
        }
        take_in_until([&] { return seen().numbers.size() == messages; }, "messages");
        for (std::uint32_t i = 0; i < messages; ++i) check_equal(seen().numbers[i], i, "the next");
        check_equal(counted("frames_lost"), 0, "frames lost");
    });
}

// ---- Flow control: none

TEST_P(Gamma, has_no_flow_control) {
    const Begin begin{.bound = {.on_error = note_error}, .gamma = "progress=off,patience=2ms"};
    run_group(2, begin, [](Rank& me) {
        if (me.rank == 0) {
            // More than there is room for, to one who takes nothing in.
            const std::size_t messages = 4 * me.partition / 1000;
            for (std::size_t i = 0; i < messages; ++i) {
                check_ok(send_pattern(kPort, 1000, i, false), "gamma_send to a deaf receiver");
            }
            check(counted("frames_overrun") > 0, "frames overrun");
            return me.raise(0);
        }
        me.await_word(0);
        check_equal(seen().messages.load(), 0, "messages taken in, handlers outside of calls");
        take_in_until([] { return seen().messages > 0; }, "what was not lost, in a call");
    });
}

// ---- Max message: segmented at 1500 bytes, bound by the buffer

TEST_P(Gamma, max_message_is_bound_by_the_buffer_and_cut_at_1500_bytes) {
    constexpr std::size_t kBuffer = 5 * 1500;
    run_group(2, {.bound = {.on_error = note_error, .size = kBuffer}}, [](Rank& me) {
        enum { first, second };
        if (me.rank == 0) {
            const long long before = counted("frames_sent");
            check_ok(send_pattern(kPort, kBuffer, 1), "as long as the buffer");
            check_equal(counted("frames_sent") - before, 5, "frames of 7500 bytes");
            serve_until(me, first, 1);
            check_ok(send_pattern(kPort, kBuffer + 1, 2), "longer than the buffer");
            serve_until(me, second, 1);
            std::byte byte{};
            return check_equal(gamma_send(kPort, &byte, std::size_t{5} << 30), GAMMA_ESIZE,
                               "5 GiB");
        }
        check_ok(gamma_wait(kPort, 1), "gamma_wait");
        check_came(kBuffer, 1);
        me.raise(first);
        take_in_until([] { return seen().errors == 1; }, "the error");
        check_equal(seen().last_error.load(), GAMMA_EOVERLONG, "gamma_errno");
        check_equal(counted("messages_overlong"), 1, "messages longer than the buffer");
        check_equal(seen().messages.load(), 1, "messages delivered");
        me.raise(second);
    });
}

// ---- Receive style: handler at arrival, and semaphore

void signal_and_answer() {
    count_and_signal();
    gamma_send(gamma_active_port, seen().buffer.data(), 100);
}

TEST_P(Gamma, receives_by_handler_at_arrival_and_semaphore) {
    RMEM_SKIP_IF_SIMULATED("handlers run in calls alone");
    run_group(2, [](Rank& me) {
        constexpr int kMessages = 20;
        bind_to(1 - me.rank, {.on_message = me.rank == 1 ? signal_and_answer : count_and_signal});
        check_ok(gamma_sync());
        if (me.rank == 0) {
            for (std::uint64_t i = 0; i < kMessages; ++i) {
                check_ok(send_pattern(kPort, 100, i), "sent");
                check_ok(gamma_wait(kPort, 1), "gamma_wait for its answer");
                check_came(100, i);
            }
            return;
        }
        await([] { return seen().messages == kMessages; },
              "handlers, without a call of the library");
        check_ok(gamma_wait(kPort, kMessages), "gamma_wait for what the handler has signalled");
        check_equal(gamma_test(kPort, 1), 0, "further signals");
    });
}

// ---- Broadcast: hardware

TEST_P(Gamma, broadcasts_by_one_multicast) {
    run_group(4, [](Rank& me) {
        bind_to(me.rank == 0 ? BROADCAST : 0);
        check_ok(gamma_sync());
        if (me.rank == 0) {
            const long long before = counted("frames_sent");
            check_ok(send_pattern(kPort, 500, 7), "gamma_send_flowctl");
            check_equal(counted("frames_sent") - before, 1, "frames sent");
        } else {
            check_ok(gamma_wait(kPort, 1), "gamma_wait");
            check_came(500, 7);
        }
        check_ok(gamma_sync());
        check_equal(counted("messages_received"), me.rank == 0 ? 0 : 1, "messages received");
    });
}

// ---- Protection: kernel

TEST_P(Gamma, protection_is_by_what_a_process_has_bound) {
    constexpr std::size_t kBuffer = 64;
    const Begin begin{.bound = {.to_port = 6, .on_error = note_error, .size = kBuffer}};
    run_group(2, begin, [](Rank& me) {
        const auto too_long = Sizes({kBuffer + 1, 100, 1000, 2000, 20'000});
        std::fill(seen().buffer.begin(), seen().buffer.end(), std::byte{0xee});
        check_ok(gamma_sync(), "gamma_sync");
        if (me.rank == 0) {
            check_ok(send_pattern(kPort, 100, 1), "to a port that is not bound");
            check_ok(send_pattern(kPort, 5000, 1), "the same");
            bind_to(1, {.on_error = note_error, .size = kBuffer});
            for (const std::size_t size : too_long) check_ok(send_pattern(kPort, size, 2));
            return check_ok(send_pattern(kPort, 10, 3), "into the buffer");
        }
        check_ok(gamma_wait(kPort, 1), "gamma_wait");
        check_equal(counted("frames_unbound"), 1 + 4, "frames to a port that is not bound");
        check_equal(counted("messages_overlong"), too_long.size(), "longer than the buffer");
        check_equal(seen().errors.load(), too_long.size(), "errors");
        check_equal(seen().messages.load(), 1, "messages delivered");
        check_came(10, 3);
        for (std::size_t i = kBuffer; i < seen().buffer.size(); ++i) {
            check(seen().buffer[i] == std::byte{0xee}, "nothing beyond the bound buffer");
        }
    });
}

// ---- Send can block: yes

Shared* shared = nullptr;  // the same in all processes
constexpr std::size_t kBegun = 900, kPoked = 901, kAlike = 902, kBound = 903;
std::uint32_t begun_when_poked = 0;

/// The program of node 0 stands still if several of these have met the same number of sends begun.
void on_poke() {
    const std::uint32_t begun = (*shared)[kBegun];
    if (begun != 0 && begun == begun_when_poked) ++(*shared)[kAlike];
    begun_when_poked = begun;
    ++(*shared)[kPoked];
}

TEST_P(Gamma, send_can_block) {
    run_group(3, {.gamma = "progress=off,patience=20s"}, [](Rank& me) {
        shared = &me.shared;
        constexpr unsigned short kPokePort = 9;
        constexpr std::uint32_t kEnough = 4;
        const auto messages = static_cast<std::uint32_t>(4 * me.partition / 1000);
        begun_when_poked = 0;
        bind_to(me.rank == 0 ? 1 : 0, {.on_message = note_number});
        bind_to(0, {.port = kPokePort, .to_port = kPokePort, .on_message = on_poke});
        check_ok(gamma_sync(), "gamma_sync");
        me.raise(kBound);
        me.await_word(kBound, 3);
        if (me.rank == 0) {
            for (std::uint32_t i = 0; i < messages; ++i) {
                ++me.shared[kBegun];
                check_ok(send_numbered(i, 1000, i % 2 == 0), "a send that waits");
            }
            check(counted("send_waits") > 0, "frames waited for room");
            check_equal(counted("frames_overrun"), 0, "frames overrun");
        }
        if (me.rank == 1) {
            me.await_word(kAlike, kEnough);  // without a call
            check(me.shared[kBegun] < messages, "the sender does not go on by itself");
            take_in_until([&] { return seen().numbers.size() == messages; }, "messages");
        }
        if (me.rank == 2) {
            for (std::uint32_t i = 1; me.shared[kAlike] < kEnough; ++i) {
                check_ok(gamma_send_flowctl(kPokePort, nullptr, 0), "a poke");
                await([&] { return me.shared[kPoked] >= i; }, "its handler");
            }
        }
    });
}

}  // namespace
}  // namespace rmem::test
