// SPDX-License-Identifier: Apache-2.0
// ctest: check
// libgamma.h, function by function: start, ports, messages, semaphores, barrier, time.
#include "ports/gamma/libgamma.h"

#include "tests/support/child.hpp"
#include "tests/support/gamma_ranks.hpp"
#include "tests/support/sanitizers.hpp"

#include <csignal>
#include <cstring>
#include <string>

namespace rmem::test::gamma {
namespace {

class Gamma : public GammaTest {};
RMEM_ON_ALL_RINGS(Gamma);

// ---- Life cycle

TEST_P(Gamma, without_gamma_init_every_call_is_refused_with_a_sentence) {
    run(1, [](Rank&) {
        char byte = 0;
        check_code(gamma_my_node(), GAMMA_EINVAL);
        check_code(gamma_send(5, &byte, 1), GAMMA_EINVAL);
        check_code(gamma_wait(5, 1), GAMMA_EINVAL);
        check_code(gamma_sync(), GAMMA_EINVAL);
        check(std::strstr(gamma_last_error(), "gamma_init") != nullptr, "the sentence helps");
        check_code(gamma_exit(), GAMMA_EINVAL);
    });
}

TEST_P(Gamma, a_forked_child_is_no_process_of_it) {
    RMEM_SKIP_IF_SIMULATED("its processes cannot fork");
    run_group(1, [](Rank&) {
        Child child([] {
            char byte = 0;
            check_code(gamma_send(5, &byte, 1), GAMMA_EINVAL);
            check_code(gamma_test(5, 1), GAMMA_EINVAL);
            check_code(gamma_my_node(), GAMMA_EINVAL);
            check_code(gamma_exit(), GAMMA_EINVAL);
            check(std::string(gamma_last_error()).find("fork()ed child") != std::string::npos,
                  gamma_last_error());
        });
        check_equal(child.wait(), 0, "how the child ends");
    });
}

TEST_P(Gamma, a_process_is_in_one_virtual_gamma_and_may_join_again_after_it_has_left) {
    run(2, [](Rank&) {
        for (int incarnation = 0; incarnation < 2; ++incarnation) {
            start(2);
            check_code(gamma_init(2, 0, nullptr), GAMMA_EINVAL);
            bind_to(1 - gamma_my_node());
            check_ok(gamma_sync());
            check_ok(send_pattern(5, 100, static_cast<std::uint64_t>(incarnation)));
            check_ok(gamma_wait(5, 1));
            check_came(100, static_cast<std::uint64_t>(incarnation));
            check_ok(gamma_sync());
            check_ok(gamma_exit());
            check_ok(bbp_barrier());
        }
    });
}

// ---- Binding

TEST_P(Gamma, what_cannot_be_bound_is_refused) {
    run_group(1, [](Rank&) {
        char in[8];
        const auto bind = [&](unsigned short port, unsigned short node, unsigned char pid,
                              unsigned short to, unsigned short semaphore, unsigned char kind,
                              void* buffer) {
            return gamma_set_active_port(port, node, pid, to, note_message, semaphore, kind, buffer,
                                         sizeof in);
        };
        check_code(bind(255, 0, 0, 5, 5, GO_BACK, in), GAMMA_EPORT);
        check_code(bind(5, 0, 0, 255, 5, GO_BACK, in), GAMMA_EPORT);
        check_code(bind(5, 0, 0, 5, 256, GO_BACK, in), GAMMA_EPORT);
        check_code(bind(5, 1, 0, 5, 5, GO_BACK, in), GAMMA_ENODE);
        check_code(bind(5, 0, 7, 5, 5, GO_BACK, in), GAMMA_ENODE);
        check_code(bind(5, BROADCAST, 7, 5, 5, GO_BACK, in), GAMMA_ENODE);
        check_code(bind(5, 0, 0, 5, 5, 77, in), GAMMA_EINVAL);
        check_code(bind(5, 0, 0, 5, 5, GO_BACK, nullptr), GAMMA_EINVAL);
        check_code(gamma_set_active_port(5, 0, 0, 5, nullptr, 5, GO_BACK, in, sizeof in),
                   GAMMA_EINVAL);
        check_code(gamma_setport(5, 0, -1, 5, nullptr, nullptr, in, sizeof in), GAMMA_ENODE);
        check_code(gamma_setport(5, 0, 0, 5, nullptr, nullptr, in, -1), GAMMA_EINVAL);
        check_code(gamma_post_recv(5, in, sizeof in), GAMMA_EPORT);
        check_code(gamma_set_error_handler(5, note_error), GAMMA_EPORT);
        check_ok(bind(254, 0, 0, 254, 255, GO_BACK, in));
        check_code(gamma_post_recv(254, nullptr, 1), GAMMA_EINVAL);
    });
}

TEST_P(Gamma, a_send_without_a_bound_port_or_with_a_null_pointer_is_refused) {
    run_group(1, [](Rank&) {
        char byte = 0;
        check_code(gamma_send(5, &byte, 1), GAMMA_EPORT);
        check_code(gamma_send(255, &byte, 1), GAMMA_EPORT);
        check_code(gamma_send(60000, &byte, 1), GAMMA_EPORT);
        bind_to(0);
        check_code(gamma_send(5, nullptr, 1), GAMMA_EINVAL);
        check_code(gamma_send_2p(5, &byte, 1, nullptr, 1), GAMMA_EINVAL);
        check_code(gamma_send(5, &byte, 0x100000000UL), GAMMA_ESIZE);
    });
}

// ---- Messages

TEST_P(Gamma, a_message_of_each_length_arrives_intact_in_the_bound_buffer) {
    run_group(2, [](Rank& me) {
        // Around what goes beside the flag word, into a slot, into a frame, and into several.
        for (const std::size_t size : Sizes({0, 1, 8, 19, 20, 21, 51, 52, 53, 1000, 1499, 1500,
                                             1501, 2999, 3000, 3001, 20000, 65536})) {
            if (me.rank == 0) check_ok(send_pattern(5, size, size));
            check_ok(gamma_wait(5, 1));
            check_came(size, size);
            if (me.rank == 1) check_ok(send_pattern(5, size, size));
        }
        check_equal(seen().errors.load(), 0, "errors");
    });
}

TEST_P(Gamma, two_pieces_arrive_as_one_message) {
    run_group(2, [](Rank& me) {
        for (const std::size_t size : Sizes({6, 40, 1400, 5000})) {
            auto bytes = pattern(size, size);
            for (const std::size_t first : {std::size_t{0}, std::size_t{3}, size / 2, size}) {
                if (me.rank == 0) {
                    check_ok(gamma_send_2p_flowctl(5, bytes.data(), first, bytes.data() + first,
                                                   size - first));
                } else {
                    check_ok(gamma_wait(5, 1));
                    check_came(size, size);
                }
                check_ok(gamma_sync());
            }
        }
    });
}

TEST_P(Gamma, a_process_may_send_to_itself) {
    run_group(1, [](Rank&) {
        bind_to(0, {.to_port = 6});
        bind_to(0, {.port = 6});
        for (const std::size_t size : Sizes({8, 1000, 10000})) {
            check_ok(send_pattern(5, size, size));
            check_ok(gamma_wait(6, 1));
            check_came(size, size);
        }
    });
}

TEST_P(Gamma, a_passive_port_signals_its_semaphore_at_each_arrival) {
    run_group(2, [](Rank&) {
        int in = 0, out = 77;
        check_ok(gamma_set_passive_port(9, static_cast<unsigned short>(1 - gamma_my_node()), 0, 9,
                                        100, GO_BACK, &in, sizeof in));
        check_ok(gamma_sync());
        check_ok(gamma_send(9, &out, sizeof out));
        check_ok(gamma_wait(100, 1));
        check_equal(in, 77, "what came");
        check_equal(gamma_msglen, 4, "gamma_msglen");
        check_equal(gamma_active_port, 9, "gamma_active_port");
    });
}

TEST_P(Gamma, setport_binds_both_handlers_and_the_semaphore_of_the_ports_number) {
    run_group(2, [](Rank& me) {
        check_ok(gamma_setport(7, 0, 1 - gamma_my_node(), 7, count_and_signal,
                               note_error_and_signal, seen().buffer.data(), 10));
        check_ok(gamma_sync());
        if (me.rank == 0) {
            check_ok(send_pattern(7, 10, 1));
            check_ok(send_pattern(7, 11, 2));
        } else {
            check_ok(gamma_wait(7, 1));
            check_came(10, 1);
            check_code(gamma_wait(7, 1), GAMMA_ESIGNAL);
            check_equal(seen().last_error.load(), GAMMA_EOVERLONG, "the error");
        }
    });
}

// ---- Handlers

TEST_P(Gamma, a_handler_may_bind_a_fresh_buffer_so_that_messages_do_not_overlap) {
    run_group(2, [](Rank& me) {
        const auto rotate = [] {
            Seen& mine = seen();
            const int next = (mine.messages++ + 1) % 4;
            gamma_post_recv(gamma_active_port, mine.buffer.data() + next * 3000, 3000);
            gamma_signal(gamma_active_port);
        };
        bind_to(1 - gamma_my_node(), {.on_message = rotate, .size = 3000});
        check_ok(gamma_sync());
        if (me.rank == 0) {
            for (std::uint64_t i = 0; i < 4; ++i) check_ok(send_pattern(5, 2000, i));
        } else {
            check_ok(gamma_wait(5, 4));
            for (std::uint64_t i = 0; i < 4; ++i) {
                check_bytes(seen().buffer.data() + i * 3000, 2000, i);
            }
        }
    });
}

TEST_P(Gamma, in_gamma_atomic_no_handler_runs) {
    run_group(2, [](Rank& me) {
        if (me.rank == 0) {
            me.await_word(0);
            check_ok(send_pattern(5, 8, 1));
            me.raise(1);
        } else {
            static Rank* rank;
            static int found;
            rank = &me;
            found = 0;
            const auto section = [] {
                Rank& here = *rank;
                here.raise(0);
                here.await_word(1);
                rest(std::chrono::milliseconds(5));
                found = gamma_wait(5, 1);
                check_equal(gamma_test(5, 1), 0, "gamma_test in gamma_atomic");
                check_equal(seen().messages.load(), 0, "handlers in gamma_atomic");
            };
            check_ok(gamma_atomic(section));
            check_code(found, GAMMA_EAGAIN, "gamma_wait in gamma_atomic");
            check_ok(gamma_wait(5, 1));
            check_came(8, 1);
        }
        check_code(gamma_atomic(nullptr), GAMMA_EINVAL);
    });
}

// ---- Semaphores

TEST_P(Gamma, a_semaphore_counts_signals_and_wait_takes_as_many_as_it_is_told) {
    run_group(1, [](Rank&) {
        check_equal(gamma_test(3, 1), 0, "no signal");
        for (int i = 0; i < 5; ++i) check_ok(gamma_signal(3));
        check_equal(gamma_test(3, 6), 0, "too few");
        check_ok(gamma_wait(3, 2));
        check_equal(gamma_test(3, 3), 1, "the rest");
        check_equal(gamma_test(3, 1), 0, "none left");
        check_ok(gamma_wait(3, 0));
        check_code(gamma_wait(256, 1), GAMMA_EPORT);
        check_code(gamma_wait(3, -1), GAMMA_EINVAL);
        check_code(gamma_signal(300), GAMMA_EPORT);
    });
}

TEST_P(Gamma, sigerr_ends_the_wait_with_an_error_once_and_after_the_signals) {
    run_group(1, [](Rank&) {
        check_ok(gamma_signal(3));
        check_ok(gamma_sigerr(3));
        check_ok(gamma_wait(3, 1));
        check_code(gamma_wait(3, 1), GAMMA_ESIGNAL);
        check_equal(gamma_test(3, 1), 0, "told once");
        check_ok(gamma_sigerr(3));
        check_code(gamma_test(3, 1), GAMMA_ESIGNAL);
        check_code(gamma_sigerr(300), GAMMA_EPORT);
    });
}

// ---- Barrier, time, memory

TEST_P(Gamma, nobody_leaves_the_barrier_before_all_have_come) {
    run_group(5, [](Rank& me) {
        const auto rounds = static_cast<std::uint32_t>(thrifty(40));
        for (std::uint32_t i = 1; i <= rounds; ++i) {
            me.raise(0);
            check_ok(gamma_sync());
            check(me.shared[0] >= i * 5, "all have come");
            check_ok(gamma_sync());
        }
        check_equal(counted("barriers"), 1 + 2 * rounds, "barriers");
    });
}

TEST_P(Gamma, time_goes_on_and_its_difference_is_in_microseconds) {
    run_group(1, [](Rank&) {
        const gamma_time_t before = gamma_time();
        rest(std::chrono::milliseconds(3));
        const double passed = gamma_time_diff(before, gamma_time());
        check(passed >= 2900, "three milliseconds");
    });
}

TEST(GammaMemory, is_locked_and_unlocked) {
    std::vector<char> bytes(4096);
    if (gamma_mlock(bytes.data(), bytes.size()) == GAMMA_ENOMEM) GTEST_SKIP() << gamma_last_error();
    EXPECT_EQ(gamma_munlock(bytes.data(), bytes.size()), 0);
    EXPECT_EQ(gamma_munlockall(), 0);
    if (kSanitized) return;  // which locks nothing, and refuses nothing
    EXPECT_LT(gamma_mlock(reinterpret_cast<void*>(8), 4096), 0);
}

TEST(GammaAbort, ends_the_process_at_once) {
    EXPECT_EXIT(gamma_abort(), ::testing::KilledBySignal(SIGABRT), "");
}

TEST(GammaErrors, have_a_name_each) {
    for (int code = GAMMA_ESIGNAL; code < 0; ++code) {
        EXPECT_STRNE(gamma_strerror(code), gamma_strerror(-1000)) << code;
    }
}

}  // namespace
}  // namespace rmem::test::gamma
