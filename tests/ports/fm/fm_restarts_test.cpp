// SPDX-License-Identifier: Apache-2.0
// ctest: check apart
// Fast Messages and nodes that die, leave and come back, on a network that loses, and beside the
// billboard's own calls.
#include "tests/ports/fm/fm_support.hpp"
#include "tests/support/child.hpp"

#include <unistd.h>
#include <csignal>

namespace rmem::test {
namespace {

class FmRestarts : public Conformance {
protected:
    /// Node 1, which does `doomed` first, is killed once node 0 has raised word 0; then word 1 is
    /// raised.
    static void run_while_1_dies(const Body& survivor, const Body& doomed = {}) {
        run({[&](Rank& me) {
                 FM_set_parameter(FM_QUIET);
                 survivor(me);
             },
             [&](Rank& me) {
                 const FmSession session;
                 if (doomed) doomed(me);
                 me.await_word(2);  // never
             }},
            {.rank = 1});
    }
};
RMEM_ON_ALL_RINGS(FmRestarts);

struct Seen {
    int count = 0, error = 0, sum = 0;
};
Seen& seen() {
    return seen_by_node<Seen>();
}
using Session = FreshSession<Seen>;

void note(int i0, int, int, int) {
    ++seen().count;
    seen().sum += i0;
}
int note_stream(FM_stream* s, unsigned) {
    std::vector<char> bytes(5000);
    errno = 0;
    FM_receive(bytes.data(), s, 5000);
    seen().error = errno;
    ++seen().count;
    return FM_CONTINUE;
}
std::vector<std::byte> some_bytes(std::size_t size = 5000) {
    return std::vector<std::byte>(size);
}

TEST_P(FmRestarts, a_forked_child_takes_no_part) {
    RMEM_SKIP_IF_SIMULATED("its processes cannot fork");
    run(1, [](Rank&) {
        Session session;
        Child child([] {
            check_errno(ENOTCONN, [] { FM_send_4(0, note, 1, 0, 0, 0); });
            check_errno(ENOTCONN, [] { FM_extract(); });
            check_errno(ENOTCONN, [] { FM_begin_message(0, 1, 0); });
            check_errno(ENOTCONN, [] { FM_finalize(); });
            check(std::string(billboard::last_error()).find("fork()ed child") != std::string::npos,
                  billboard::last_error());
        });
        check_equal(child.wait(), 0, "how the child ends");
        FM_send_4(0, note, 1, 0, 0, 0);
        extract_both_until([] { return seen().count == 1; }, "the parent's message");
    });
}

TEST_P(FmRestarts, a_dead_node_gives_its_slots_back_and_is_told_once) {
    run_while_1_dies([](Rank& me) {
        FM_set_parameter(FM_REJECT_QUEUE, 4);
        Session session;
        for (int i = 0; i < 4; ++i) FM_send_4(1, note, i, 0, 0, 0);  // all slots
        me.raise(0);
        me.await_word(1);
        errno = 0;
        await([] { return FM_extract() == -1; }, "word of the death");
        check_equal(errno, EHOSTDOWN, "errno");
        check_equal(count_of(FM_FRAMES_LOST), 4LL, "frames lost");
        check_equal(count_of(FM_NODES_LOST), 1LL, "nodes lost");
        check_errno(EHOSTDOWN, [] { FM_send_4(1, note, 0, 0, 0, 0); });
        check(FM_begin_message(1, 8, 0) == nullptr, "no message to the dead");
        check_equal(count_of(FM_NODES_LOST), 1LL, "nodes lost, told once");
        for (int i = 0; i < 8; ++i) FM_send_4(0, note, 1, 0, 0, 0);  // with four slots again
        extract_both_until([] { return seen().count == 8; }, "messages to itself");
    });
}

TEST_P(FmRestarts, the_end_of_a_node_is_told_by_sends_to_it_alone) {
    run(3, [](Rank& me) {
        FM_set_parameter(FM_QUIET);
        if (me.rank != 0) {
            await([] { return bbp_probe(0, nullptr) == BBP_EPEER; }, "node 0 to finish and leave");
        }
        const Session session;
        if (me.rank == 0) return;
        check_errno(EHOSTDOWN, [] { FM_send_4(0, note, 0, 0, 0, 0); });
        for (int i = 0; i < 1000; ++i) check(FM_extract() >= 0, "an extract has news");
        check_equal(count_of(FM_NODES_LOST), 0LL, "nodes lost");
    });
}

TEST_P(FmRestarts, a_send_that_waits_for_a_node_ends_when_that_dies) {
    run_while_1_dies([](Rank& me) {
        FM_set_parameter(FM_REJECT_QUEUE, 4);
        Session session;
        for (int i = 0; i < 4; ++i) FM_send_4(1, note, i, 0, 0, 0);
        me.raise(0);
        check_errno(EHOSTDOWN, [] { FM_send_4(1, note, 4, 0, 0, 0); });
    });
}

TEST_P(FmRestarts, a_message_whose_sender_dies_in_the_middle_of_it_ends_short) {
    const Body survivor = [](Rank& me) {
        FM_register_handler(0, note_stream);
        Session session;
        extract_both_until([] { return count_of(FM_HANDLERS_SUSPENDED) > 0; },
                           "a suspended handler");
        me.raise(0);
        extract_both_until([] { return seen().count == 1; }, "the handler to go on");
        check_equal(seen().error, ENODATA, "errno of FM_receive");
        check_equal(count_of(FM_MESSAGES_CUT), 1LL, "messages cut");
        check_equal(count_of(FM_HANDLERS_LEFT), 1LL, "handlers left");
    };
    run_while_1_dies(survivor, [](Rank&) {
        auto bytes = some_bytes(3000);
        FM_stream* const s = FM_begin_message(0, 5000, 0);
        FM_send_piece(s, bytes.data(), bytes.size());
    });
}

TEST_P(FmRestarts, a_node_that_comes_back_is_a_new_one_to_both_versions) {
    RankProcesses ring(setup(2));
    const Body body = [](Rank& me) {
        FM_set_parameter(FM_QUIET);
        FM_register_handler(0, note_stream);
        Session session;
        if (me.rank == 1) {
            for (int i = 0; i < 3; ++i) FM_send_4(0, note, 1, 0, 0, 0);
            send_stream(0, 0, some_bytes());
            me.raise(0);
            extract_both_until([] { return seen().count >= 2; }, "an answer in both versions");
            me.raise(1);
            if (me.shared[1] == 1) me.await_word(100);  // never: the first one is killed
            return;
        }
        for (unsigned incarnation_of_1 = 1; incarnation_of_1 <= 2; ++incarnation_of_1) {
            extract_both_until(
                [&] { return seen().count >= static_cast<int>(4 * incarnation_of_1); }, "messages");
            // The first send may be told of the former incarnation's end.
            for (errno = EHOSTDOWN; errno == EHOSTDOWN;) {
                errno = 0;
                FM_send_4(1, note, 1, 0, 0, 0);
            }
            send_stream(1, 0, some_bytes());
            extract_both_until([&] { return me.shared[1] >= incarnation_of_1; },
                               "word of the answers");
        }
    };
    ring.start_all(body);
    ring.await_word(1, 1);
    ring.kill(1);
    ring.start(1, body);
    ring.finish();
}

TEST_P(FmRestarts, all_nodes_may_finalize_and_initialize_again) {
    run(2, [](Rank& me) {
        for (int session = 0; session < 3; ++session) {
            {
                Session joined;
                FM_send_4(1 - me.rank, note, 1, 0, 0, 0);
                extract_both_until([] { return seen().count >= 1; },
                                   "a message of this incarnation");
            }
            check_ok(bbp_barrier(),
                     "or the next incarnation's first message could come in this one");
        }
    });
}

/// To each other, by both.
void speak_in_both_versions(const Rank& me, int messages) {
    FM_register_handler(0, note_stream);
    const int other = 1 - me.rank;
    for (int i = 0; i < messages; ++i) {
        FM_send_4(other, note, 1, 0, 0, 0);
        send_stream(static_cast<ULONG>(other), 0, some_bytes());
    }
    extract_both_until([&] { return seen().count == 2 * messages; });
    check_equal(seen().sum, messages, "messages of 1.0");
    check_equal(count_of(FM_CORRUPT), 0LL, "corrupt frames");
}

TEST_P(FmRestarts, both_versions_and_the_billboard_speak_on_one_ring) {
    run(2, [](Rank& me) {
        Session session;
        speak_in_both_versions(me, thrifty(100));
        send(1 - me.rank, 100, 7);
        receive(1 - me.rank, 100, 7);
    });
}

TEST(FmLoss, messages_arrive_once_where_datagrams_are_lost) {
    RingSetup setup;
    setup.link = "udp";
    setup.extra["RMEM_FAULTS"] = "drop:share=5%";
    run_members(setup, [](Rank& me) {
        FM_set_parameter(FM_HOST_RECEIVE_QUEUE, 8);
        Session session;
        speak_in_both_versions(me, 60);
    });
}

}  // namespace
}  // namespace rmem::test
