// SPDX-License-Identifier: Apache-2.0
// ctest: check apart
// The row of each property for GAMMA, from gamma/libgamma.h and gamma(7) alone;
// docs/design/ports.md has the table.
#include "tests/support/gamma_ranks.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <vector>

namespace rmem::test {
namespace {

using namespace gamma;

class Gamma : public Conformance {
protected:
    /// Each with the body and further variables of its environment.
    static void run_with(unsigned ranks, const std::map<std::string, std::string>& extra,
                         const Body& body) {
        RingSetup setup = Conformance::setup(ranks);
        setup.extra.insert(extra.begin(), extra.end());
        RankProcesses ring(setup);
        ring.start_all(body);
        ring.finish();
    }
};
RMEM_ON_ALL_RINGS_AND_LOSS(Gamma);

/// Nothing is taken in but in calls, and a sender soon gives up.
const std::map<std::string, std::string> kDeafAndHasty = {{"RMEM_GAMMA_PROGRESS", "off"},
                                                          {"RMEM_GAMMA_PATIENCE", "2ms"}};
const std::map<std::string, std::string> kDeaf = {{"RMEM_GAMMA_PROGRESS", "off"},
                                                  {"RMEM_GAMMA_PATIENCE", "20s"}};

constexpr unsigned short kPort = 5;

/// Numbers of messages, as the handlers of a process met them in its buffer.
std::vector<std::uint32_t> numbers_by[8];
std::vector<std::uint32_t>& numbers() {
    return numbers_by[gamma_my_node()];
}
void note_number() {
    std::uint32_t number = 0;
    std::memcpy(&number, seen().buffer.data(), sizeof number);
    numbers().push_back(number);
    note_message();
}
/// A message of at least four bytes, which begins with its number.
int send_numbered(std::uint32_t number, std::size_t size, bool flow_controlled) {
    std::vector<std::byte> bytes(size);
    std::memcpy(bytes.data(), &number, sizeof number);
    return flow_controlled ? gamma_send_flowctl(kPort, bytes.data(), size)
                           : gamma_send(kPort, bytes.data(), size);
}

/// Waits until all have bound what they bind, and nobody is in a call any more.
void all_are_bound(Rank& me) {
    constexpr std::size_t kBound = 899;
    check_ok(gamma_sync(), "gamma_sync");
    me.raise(kBound);
    me.await_word(kBound, static_cast<std::uint32_t>(me.ranks));
}
/// Joins, binds the port to a node, and waits for the others.
void begin(Rank& me, int to, const Bound& bound = {}) {
    start(me, static_cast<unsigned>(me.ranks));
    numbers().clear();
    bind_to(to, bound);
    all_are_bound(me);
}
/// Takes in what comes, by a semaphore that nobody signals.
void take_in_until(const std::function<bool()>& holds, const char* what,
                   Place place = Place::here()) {
    await([&] { return gamma_test(200, 1) == 0 && holds(); }, what, place);
}
void serve_until(Rank& me, std::size_t word, std::uint32_t value, Place place = Place::here()) {
    take_in_until([&] { return me.shared[word] >= value; }, "the others", place);
}
void end(Rank& me, std::size_t word) {
    me.raise(word);
    serve_until(me, word, static_cast<std::uint32_t>(me.ranks));
    check_ok(gamma_exit(), "gamma_exit");
}

// ---- Reliable: assumes a LAN; may overrun

TEST_P(Gamma, is_reliable_but_for_overrun) {
    run_with(2, kDeafAndHasty, [](Rank& me) {
        enum { received, sent, overrun, done };
        constexpr std::uint32_t kTakenIn = 30;
        begin(me, 1 - me.rank, {.on_message = note_number, .on_error = note_error});
        if (me.rank == 0) {
            std::uint32_t number = 0;
            for (; number < kTakenIn; ++number) {
                check_ok(send_numbered(number, 300, false), "gamma_send");
                serve_until(me, received, number + 1);
            }
            check_equal(counted("frames_overrun"), 0, "frames lost while the receiver reads");
            for (; counted("frames_overrun") < 5; ++number) {
                check_ok(send_numbered(number, 300, false), "gamma_send");
            }
            me.shared[overrun] = static_cast<std::uint32_t>(counted("frames_overrun"));
            me.shared[sent] = number;
            return end(me, done);
        }
        for (std::uint32_t i = 0; i < kTakenIn; ++i) {
            take_in_until([&] { return numbers().size() > i; }, "a message");
            me.raise(received);
        }
        me.await_word(sent);  // without a call
        const std::size_t come = me.shared[sent] - me.shared[overrun];
        take_in_until(
            [&] {
                return numbers().size() == come && counted("frames_lost") == me.shared[overrun];
            },
            "what was not lost, and news of what was");
        check(seen().errors > 0, "the error handler was called");
        check_equal(seen().last_error.load(), GAMMA_ELOST, "gamma_errno");
        check_equal(counted("messages_received"), come, "messages received");
        check(std::is_sorted(numbers().begin(), numbers().end()), "in order, with gaps");
        end(me, done);
    });
}

// ---- Ordered: yes

TEST_P(Gamma, is_ordered) {
    run_with(2, {}, [](Rank& me) {
        begin(me, 1 - me.rank, {.on_message = note_number});
        const auto messages = static_cast<std::uint32_t>(std::max(thrifty(200), 20));
        for (std::uint32_t i = 0; i < messages; ++i) {
            check_ok(send_numbered(i, i % 5 == 4 ? 5000 : 4 + i % 100, true), "gamma_send_flowctl");
        }
        take_in_until([&] { return numbers().size() == messages; }, "messages");
        for (std::uint32_t i = 0; i < messages; ++i) check_equal(numbers()[i], i, "the next");
        check_equal(counted("frames_lost"), 0, "frames lost");
        end(me, 0);
    });
}

// ---- Flow control: none

TEST_P(Gamma, has_no_flow_control) {
    run_with(2, kDeafAndHasty, [](Rank& me) {
        enum { sent, done };
        begin(me, 1 - me.rank, {.on_error = note_error});
        if (me.rank == 0) {
            // More than there is room for, to one who takes nothing in.
            const std::size_t messages = 4 * me.partition / 1000;
            for (std::size_t i = 0; i < messages; ++i) {
                check_ok(send_pattern(kPort, 1000, i, false), "gamma_send to a deaf receiver");
            }
            check(counted("frames_overrun") > 0, "frames overrun");
            me.raise(sent);
            return end(me, done);
        }
        me.await_word(sent);
        check_equal(seen().messages.load(), 0, "messages taken in");
        end(me, done);
    });
}

// ---- Max message: segmented at 1500 bytes, bound by the buffer

TEST_P(Gamma, max_message_is_bound_by_the_buffer_and_cut_at_1500_bytes) {
    run_with(2, {}, [](Rank& me) {
        enum { first, second, done };
        constexpr std::size_t kBuffer = 5 * 1500;
        begin(me, 1 - me.rank, {.on_error = note_error, .size = kBuffer});
        if (me.rank == 0) {
            const long long before = counted("frames_sent");
            check_ok(send_pattern(kPort, kBuffer, 1), "as long as the buffer");
            check_equal(counted("frames_sent") - before, 5, "frames of 7500 bytes");
            serve_until(me, first, 1);
            check_ok(send_pattern(kPort, kBuffer + 1, 2), "longer than the buffer");
            serve_until(me, second, 1);
            std::byte byte{};
            check_equal(gamma_send(kPort, &byte, std::size_t{5} << 30), GAMMA_ESIZE, "5 GiB");
            return end(me, done);
        }
        check_ok(gamma_wait(kPort, 1), "gamma_wait");
        check_came(kBuffer, 1);
        me.raise(first);
        take_in_until([] { return seen().errors == 1; }, "the error");
        check_equal(seen().last_error.load(), GAMMA_EOVERLONG, "gamma_errno");
        check_equal(counted("messages_overlong"), 1, "messages longer than the buffer");
        check_equal(seen().messages.load(), 1, "messages delivered");
        me.raise(second);
        end(me, done);
    });
}

// ---- Receive style: handler at arrival, and semaphore

TEST_P(Gamma, receives_by_handler_at_arrival_and_semaphore) {
    RMEM_SKIP_IF_SIMULATED("handlers run in calls alone");
    run_with(2, {}, [](Rank& me) {
        enum { arrived, done };
        begin(me, 1 - me.rank);
        constexpr int kMessages = 3;
        if (me.rank == 0) {
            for (int i = 0; i < kMessages; ++i) check_ok(send_pattern(kPort, 100, 1), "sent");
            me.await_word(arrived);
            return end(me, done);
        }
        await([] { return seen().messages == kMessages; },
              "handlers, without a call of the library");
        me.raise(arrived);
        check_ok(gamma_wait(kPort, kMessages), "gamma_wait for what the handler has signalled");
        check_equal(gamma_test(kPort, 1), 0, "further signals");
        check_came(100, 1);
        end(me, done);
    });
}

// ---- Broadcast: hardware

TEST_P(Gamma, broadcasts_by_one_multicast) {
    run_with(4, {}, [](Rank& me) {
        begin(me, me.rank == 0 ? BROADCAST : 0);
        if (me.rank == 0) {
            const long long before = counted("frames_sent");
            check_ok(send_pattern(kPort, 500, 7), "gamma_send_flowctl");
            check_equal(counted("frames_sent") - before, 1, "frames sent");
        } else {
            check_ok(gamma_wait(kPort, 1), "gamma_wait");
            check_came(500, 7);
        }
        me.raise(0);
        serve_until(me, 0, 4);
        check_equal(counted("messages_received"), me.rank == 0 ? 0 : 1, "messages received");
        end(me, 1);
    });
}

// ---- Protection: kernel

TEST_P(Gamma, protection_is_by_what_a_process_has_bound) {
    run_with(2, {}, [](Rank& me) {
        enum { dropped, done };
        constexpr std::size_t kBuffer = 64;
        begin(me, 1 - me.rank, {.to_port = 6, .on_error = note_error, .size = kBuffer});
        std::fill(seen().buffer.begin(), seen().buffer.end(), std::byte{0xee});
        check_ok(gamma_sync(), "gamma_sync");
        if (me.rank == 0) {
            check_ok(send_pattern(kPort, 100, 1), "to a port that is not bound");
            bind_to(1, {.on_error = note_error, .size = kBuffer});
            check_ok(send_pattern(kPort, 2000, 2), "larger than the buffer");
            check_ok(send_pattern(kPort, 10, 3), "into the buffer");
            return end(me, done);
        }
        check_ok(gamma_wait(kPort, 1), "gamma_wait");
        check_equal(counted("frames_unbound"), 1, "frames to a port that is not bound");
        check_equal(counted("messages_overlong"), 1, "messages longer than the buffer");
        check_came(10, 3);
        for (std::size_t i = kBuffer; i < seen().buffer.size(); ++i) {
            check(seen().buffer[i] == std::byte{0xee}, "nothing beyond the bound buffer");
        }
        end(me, done);
    });
}

// ---- Send can block: yes

Shared* shared = nullptr;  // the same in all processes
constexpr std::size_t kBegun = 900, kPoked = 901, kAlike = 902;
std::uint32_t begun_when_poked = 0;

/// The program of node 0 stands still if several of these have met the same number of sends begun.
void on_poke() {
    const std::uint32_t begun = (*shared)[kBegun];
    if (begun != 0 && begun == begun_when_poked) ++(*shared)[kAlike];
    begun_when_poked = begun;
    ++(*shared)[kPoked];
}

TEST_P(Gamma, send_can_block) {
    run_with(3, kDeaf, [](Rank& me) {
        enum { done };
        shared = &me.shared;
        constexpr unsigned short kPokePort = 9;
        constexpr std::uint32_t kEnough = 4;
        const auto messages = static_cast<std::uint32_t>(4 * me.partition / 1000);
        start(me, 3);
        numbers().clear();
        bind_to(me.rank == 0 ? 1 : 0, {.on_message = note_number});
        bind_to(0, {.port = kPokePort, .to_port = kPokePort, .on_message = on_poke});
        all_are_bound(me);
        if (me.rank == 0) {
            begun_when_poked = 0;
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
            take_in_until([&] { return numbers().size() == messages; }, "messages");
        }
        if (me.rank == 2) {
            for (std::uint32_t i = 1; me.shared[kAlike] < kEnough; ++i) {
                check_ok(gamma_send_flowctl(kPokePort, nullptr, 0), "a poke");
                await([&] { return me.shared[kPoked] >= i; }, "its handler");
            }
        }
        end(me, done);
    });
}

}  // namespace
}  // namespace rmem::test
