// SPDX-License-Identifier: Apache-2.0
// ctest: check
// Several virtual GAMMAs on one ring: who is in which, and messages across.
#include "ports/gamma/groups.hpp"

#include "tests/support/broken.hpp"
#include "tests/support/gamma_ranks.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>

#include <tuple>

namespace rmem::test::gamma {
namespace {

using ports::gamma::form_groups;
using ports::gamma::Group;
using ports::gamma::Request;

TEST(Groups, are_formed_of_what_ranks_ask_for) {
    const struct {
        const char* what;
        std::vector<Request> ranks;
        std::vector<Group> groups;
    } cases[] = {{"consecutive ranks, in the order of ranks",
                  {{2, {}}, {2, {}}, {1, {}}, {3, {}}, {3, {}}, {3, {}}},
                  {{0, 1}, {2}, {3, 4, 5}}},
                 {"those that are named keep their number, and the others go round them",
                  {{2, 0}, {2, {}}, {2, 2}, {2, {}}, {2, 2}, {2, 0}, {1, {}}},
                  {{0, 5}, {1, 3}, {2, 4}, {6}}},
                 {"ranks that are no processes are left out",
                  {{0, {}}, {2, {}}, {0, 3}, {0, {}}, {2, {}}, {1, 3}, {0, {}}},
                  {{1, 4}, {}, {}, {5}}},
                 {"none", {{0, {}}}, {}}};
    for (const auto& one : cases) EXPECT_EQ(form_groups(one.ranks), one.groups) << one.what;
    const std::vector<Request> most(256, Request{1, {}});
    EXPECT_EQ(form_groups(most).size(), 256U);
    EXPECT_EQ(form_groups(most).back(), Group{255});
}

TEST(Groups, groups_that_contradict_each_other_are_refused_by_name) {
    const auto expect_refused = [](const std::vector<Request>& ranks, const char* words) {
        EXPECT_THAT(refused(Errc::bad_environment, [&] { std::ignore = form_groups(ranks); }),
                    ::testing::HasSubstr(words));
    };
    expect_refused({{2, {}}, {3, {}}, {3, {}}}, "rank 1 asks for 3 nodes, and rank 0");
    expect_refused({{2, {}}, {2, {}}, {2, {}}}, "rank 2 asks for 2 nodes, and the ring has only 1");
    expect_refused({{2, 7}, {1, {}}}, "rank 0 asks for 2 nodes of parallel PID 7, which 1");
}

TEST(GroupsDeathTest, are_checked_to_be_no_more_than_there_are_PIDs) {
    const std::vector<Request> ranks(257, Request{1, {}});
    EXPECT_BROKEN(static_cast<void>(form_groups(ranks)));
}

class GammaGroups : public GammaTest {};
RMEM_ON_ALL_RINGS(GammaGroups);

TEST_P(GammaGroups, share_one_ring_and_send_to_each_other) {
    run_group(2, {.ranks = 4}, [](Rank& me) {
        check_equal(gamma_my_par_pid(), me.rank / 2, "parallel PID");
        check_equal(gamma_my_node(), me.rank % 2, "node");
        check_equal(gamma_how_many_nodes(), 2, "nodes");
        // Port 5 within the group, port 6 to the same node of the other.
        bind_to(gamma_my_node(), {.port = 6, .to_port = 6, .par_pid = 1 - gamma_my_par_pid()});
        check_ok(bbp_barrier());
        check_ok(send_pattern(5, 3000, static_cast<std::uint64_t>(me.rank)));
        check_ok(gamma_wait(5, 1));
        check_came(3000, static_cast<std::uint64_t>(me.rank ^ 1));
        check_ok(bbp_barrier());
        check_ok(send_pattern(6, 3000, static_cast<std::uint64_t>(me.rank)));
        check_ok(gamma_wait(6, 1));
        check_came(3000, static_cast<std::uint64_t>(me.rank ^ 2));
        check_ok(bbp_barrier());
    });
}

TEST_P(GammaGroups, a_broadcast_to_another_group_reaches_all_of_it_and_none_of_the_own) {
    run_group(2, {.to = BROADCAST, .bound = {.par_pid = 1}, .ranks = 4}, [](Rank& me) {
        check_ok(bbp_barrier());
        if (me.rank == 0) check_ok(send_pattern(5, 2000, 1));
        if (gamma_my_par_pid() == 1) {
            check_ok(gamma_wait(5, 1));
            check_came(2000, 1);
        }
        check_ok(bbp_barrier());
        check_equal(seen().messages.load(), gamma_my_par_pid(), "messages");
        check_ok(bbp_barrier());
    });
}

TEST_P(GammaGroups, have_barriers_of_their_own) {
    run_group(2, {.ranks = 4}, [](Rank& me) {
        if (gamma_my_par_pid() == 0) {
            check_ok(gamma_sync());
            me.raise(0);
        } else {
            me.await_word(0, 2);  // the other group's is over before this one's begins
            check_ok(gamma_sync());
        }
    });
}

TEST_P(GammaGroups, may_be_named_in_the_environment) {
    run(3, [](Rank& me) {
        if (me.rank != 1) set_variable("RMEM_GAMMA", "pid=1");
        start(me.rank == 1 ? 1 : 2);
        check_equal(gamma_my_par_pid(), me.rank == 1 ? 0 : 1, "parallel PID");
        check_equal(gamma_my_node(), me.rank == 2 ? 1 : 0, "node");
        check_ok(gamma_sync());
        check_ok(gamma_exit());
    });
}

TEST_P(GammaGroups, groups_that_cannot_be_are_refused_by_every_rank) {
    run(3, [](Rank& me) {
        check_code(gamma_init(static_cast<unsigned char>(me.rank == 0 ? 2 : 3), 0, nullptr),
                   GAMMA_EINVAL);
        check(std::strstr(gamma_last_error(), "rank 1 asks for 3 nodes") != nullptr,
              gamma_last_error());
        check_code(gamma_my_node(), GAMMA_EINVAL, "it is in none");
    });
}

TEST_P(GammaGroups, settings_that_mean_nothing_are_refused_by_name) {
    run(1, [](Rank&) {
        const std::vector<std::pair<const char*, const char*>> wrong = {
            {"pid=256", "RMEM_GAMMA: pid is '256'; give a whole number from 0 to 255"},
            {"progress=maybe", "RMEM_GAMMA: progress is 'maybe'; give on or off"},
            {"pid=1,patience=x", "RMEM_GAMMA: patience is 'x'; give a time"},
            {"patients=1s", "RMEM_GAMMA has 'patients=1s' (did you mean 'patience'?); give"}};
        for (const auto& [value, sentence] : wrong) {
            set_variable("RMEM_GAMMA", value);
            check_code(gamma_init(1, 0, nullptr), GAMMA_EINVAL, value);
            check(std::strstr(gamma_last_error(), sentence) != nullptr, gamma_last_error());
        }
    });
}

TEST_P(GammaGroups, a_rank_that_waits_for_absent_others_is_told_for_whom) {
    run(2, [](Rank& me) {
        if (me.rank == 1) {
            me.await_word(0);
            return;
        }
        set_variable("RMEM_JOIN_TIMEOUT", "50ms");
        check_code(gamma_init(2, 0, nullptr), GAMMA_ETIMEDOUT);
        check(std::strstr(gamma_last_error(), "rank 1 has not called gamma_init") != nullptr,
              gamma_last_error());
        me.raise(0);
    });
}

// ---- Incarnations

TEST_P(GammaGroups, a_killed_process_may_come_back_and_is_missed_once) {
    enum Word : std::size_t { kBound, kBack, kDone };
    const auto bind_both = [](Rank& me, const Bound& bound) {
        start(3);
        bind_to(me.rank == 2 ? 0 : 2, bound);
        bind_to(BROADCAST, {.port = 6, .to_port = 6});
    };
    const Body survivor = [&](Rank& me) {
        bind_both(me, {.on_error = note_error});
        check_ok(gamma_sync());
        if (me.rank == 0) {
            check_ok(send_pattern(5, 8, 1));  // so that numbers differ from a new incarnation's
            check_ok(send_pattern(6, 8, 1));
        }
        me.raise(kBound);
        serve_until(me, kBack, 1);
        if (me.rank == 0) {
            check_code(send_pattern(5, 8, 2), GAMMA_EPEER);
            check_equal(seen().errors.load(), 1, "errors");
            check_ok(send_pattern(5, 8, 3));
            check_ok(send_pattern(6, 3000, 4));
        } else {
            check_ok(gamma_wait(6, 2));
        }
        serve_until(me, kDone, 1);
        check_ok(gamma_exit());
    };
    run({survivor, survivor,
         [&](Rank& me) {
             bind_both(me, {});
             check_ok(gamma_sync());
             check_ok(gamma_wait(5, 1));
             check_ok(gamma_wait(6, 1));
             me.raise(kBound);
             me.await_word(kDone);
         }},
        {.rank = 2, .posted = 3, .next = [&](Rank& me) {
             bind_both(me, {});
             me.raise(kBack);
             check_ok(gamma_wait(5, 1));
             check_ok(gamma_wait(6, 1));
             check_came(3000, 4);
             check_equal(seen().errors.load(), 0, "errors");
             check_equal(counted("frames_lost"), 0, "lost");
             me.raise(kDone);
             check_ok(gamma_exit());
         }});
}

}  // namespace
}  // namespace rmem::test::gamma
