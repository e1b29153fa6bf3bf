// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// Conformance: nobody leaves a barrier before the last has entered, groups have their own barriers
/// at the same time, messages and barriers never meet, and groups by name know who is in them.
/// (billboard/bbp.h: Groups and barriers; dead members: tests/billboard/core/peers_test.cpp.)

#include "tests/support/conformance.hpp"

#include <algorithm>
#include <array>
#include <climits>
#include <functional>

namespace rmem::test {
namespace {

class Barriers : public Conformance {};
RMEM_ON_ALL_RINGS(Barriers);
class Groups : public Conformance {};
RMEM_ON_ALL_RINGS(Groups);

enum Word : std::size_t { kPosted, kGo, kDone, kLate, kEntered = 100 };

/// Enters a barrier of `members` many times; the shared word `entered` counts the entries, so a
/// rank that leaves round r must see at least r × members of them.
void check_rounds(Rank& me, std::size_t entered, int members, int rounds,
                  const std::function<int()>& barrier) {
    std::uint64_t state = static_cast<std::uint64_t>(me.rank) + 1;
    for (int round = 1; round <= rounds; ++round) {
        // Not all at the same time, and not always the same one last.
        for (std::uint64_t i = next_random(state) % 64 * (next_random(state) % 16); i > 0; --i) {
            asm volatile("");
        }
        ++me.shared[entered];
        check_ok(barrier());
        const std::uint32_t seen = me.shared[entered];
        check(seen >= static_cast<std::uint32_t>(round * members),
              fmt::format("left barrier {} when {} entries had been made, {} were due", round, seen,
                          round * members));
    }
}

TEST_P(Barriers, let_nobody_leave_before_the_last_has_entered) {
    for (const auto& [ranks, kind] : {std::pair{1U, "arrival"},
                                      {2U, "arrival"},
                                      {3U, "arrival"},
                                      {4U, "arrival"},
                                      {8U, "arrival"},
                                      {24U, "arrival"},
                                      {2U, "paper"},
                                      {5U, "paper"}}) {
        SCOPED_TRACE(testing::Message() << ranks << " ranks, " << kind);
        RingSetup with = setup(many(ranks));
        with.extra["RMEM_BARRIER"] = kind;
        const int rounds = thrifty(ranks > 8 ? 50 : 2000);
        run_members(with, [&](Rank& me) {
            check_rounds(me, kEntered, me.ranks, rounds, bbp_barrier);
            nothing_waits(BBP_ANY);
            check_ok(bbp_barrier());
        });
    }
}

TEST_P(Barriers, do_not_let_the_last_wait_for_others) {
    // The rank that enters last may leave at once and end: nobody has to answer it.
    run(3, [](Rank& me) {
        if (me.rank == 0) me.await_word(kPosted, 2);
        if (me.rank != 0) me.raise(kPosted);
        check_ok(bbp_barrier());
        me.leave();
    });
}

TEST_P(Barriers, neither_take_nor_disturb_messages_and_show_what_was_sent_before_them) {
    run(4, [](Rank& me) {
        const int rounds = thrifty(200);
        const int next = (me.rank + 1) % me.ranks;
        const int before = (me.rank + me.ranks - 1) % me.ranks;
        const auto seed = [](int round, int from) {
            return static_cast<std::uint64_t>(round * 8 + from);
        };
        for (int round = 0; round < rounds; ++round) {
            const auto size = static_cast<std::size_t>(round * 5);
            if (round % 2 == 0) send(next, size, seed(round, me.rank));
            if (round % 2 == 1) multicast({next}, size, seed(round, me.rank));
            check_ok(bbp_barrier());
            check_code(bbp_msgavail(before), 1, "bbp_msgavail after the barrier");
            // Null messages of a barrier must not be what anyone's next message is.
            check_equal(receive(BBP_ANY, size, seed(round, before)), before, "sender");
            nothing_waits(BBP_ANY);
            check_ok(bbp_barrier());
        }
    });
}

TEST_P(Barriers, pass_while_messages_fill_every_queue) {
    run(2, [](Rank& me) {
        const int other = 1 - me.rank;
        const int queued = send_until_full(other, 4, 0);
        me.shared[kEntered + static_cast<std::size_t>(me.rank)] =
            static_cast<std::uint32_t>(queued);
        for (int i = 0; i < 10; ++i) check_ok(bbp_barrier());
        const std::uint64_t theirs = me.shared[kEntered + static_cast<std::size_t>(other)];
        for (std::uint64_t i = 0; i < theirs; ++i) receive(other, 4, i);
        nothing_waits(BBP_ANY);
        check_ok(bbp_barrier());
    });
}

TEST_P(Barriers, barriers_of_disjoint_groups_go_on_independently) {
    run(6, [](Rank& me) {
        const int group = me.rank % 2;
        const int members[] = {group, group + 2, group + 4};
        // The groups need not be at the same barrier: one makes twice as many.
        check_rounds(
            me, kEntered + static_cast<std::size_t>(group), 3, thrifty(500 * (group + 1)),
            [&] { return bbp_barrier_group(members, 3, 10 + static_cast<unsigned>(group)); });
    });
}

TEST_P(Barriers, barriers_of_overlapping_groups_do_not_meet) {
    run(4, [](Rank& me) {
        const std::vector<std::vector<int>> groups = {{0, 1, 2}, {1, 2, 3}, {0, 3}, {0, 1, 2, 3}};
        for (int round = 1; round <= thrifty(300); ++round) {
            for (std::size_t g = 0; g < groups.size(); ++g) {
                const auto& members = groups[g];
                if (std::find(members.begin(), members.end(), me.rank) == members.end()) continue;
                ++me.shared[kEntered + g];
                check_ok(bbp_barrier_group(members.data(), static_cast<int>(members.size()),
                                           static_cast<unsigned>(g)));
                check(me.shared[kEntered + g] >= static_cast<std::uint32_t>(round) * members.size(),
                      fmt::format("left barrier {} of group {} before the last had entered", round,
                                  g));
            }
            if (round % 10 == 0) check_ok(bbp_barrier());
        }
    });
}

TEST_P(Barriers, barriers_of_groups_use_every_id_and_those_of_the_caller_alone_never_wait) {
    run(3, [](Rank& me) {
        const int members[] = {0, 2};
        for (unsigned id = 0; id < BBP_MAX_BARRIERS; ++id) {
            if (me.rank != 1) check_ok(bbp_barrier_group(members, 2, id));
            if (me.rank == 1) check_ok(bbp_barrier_group(&me.rank, 1, id));
        }
        check_ok(bbp_barrier());
    });
}

TEST_P(Barriers, barriers_with_arguments_that_cannot_be_right_are_refused) {
    run(3, [](Rank& me) {
        if (me.rank == 0) {
            const auto refused = [](std::vector<int> members, unsigned id, int code,
                                    const char* what) {
                check_code(bbp_barrier_group(members.data(), static_cast<int>(members.size()), id),
                           code, what);
            };
            refused({0, 1}, BBP_MAX_BARRIERS, BBP_EINVAL, "an id that is too large");
            refused({0, 1}, UINT_MAX, BBP_EINVAL, "the largest id");
            refused({1, 2}, 1, BBP_EINVAL, "a group without the caller");
            refused({0, 1, 1}, 1, BBP_EINVAL, "a member named twice");
            refused({0, 0}, 1, BBP_EINVAL, "the caller named twice");
            refused({0, 3}, 1, BBP_ERANK, "a rank that does not exist");
            refused({0, -1}, 1, BBP_ERANK, "a negative rank");
            check_code(bbp_barrier_group(nullptr, 2, 1), BBP_EINVAL, "null list");
            const int members[] = {0, 1};
            check_code(bbp_barrier_group(members, 0, 1), BBP_EINVAL, "no members");
            check_code(bbp_barrier_group(members, -1, 1), BBP_EINVAL, "negative number");
        }
        check_ok(bbp_barrier());
    });
}

TEST_P(Barriers, barriers_of_an_id_always_go_with_one_list) {
    run(3, [](Rank& me) {
        const int pair[] = {0, 1};
        const int all[] = {0, 1, 2};
        if (me.rank != 2) {
            check_ok(bbp_barrier_group(pair, 2, 7));
            check_code(bbp_barrier_group(all, 3, 7), BBP_EINVAL, "the id with another list");
            check_ok(bbp_barrier_group(pair, 2, 7), "the id with its own list again");
        }
        check_ok(bbp_barrier_group(all, 3, 8));
    });
}

// ---- Members that come late, never, or again

constexpr std::array kKinds = {"arrival", "paper"};
constexpr std::array kAll = {0, 1, 2};

/// Both barriers that a rank is in with all others.
const std::array<std::function<int(std::int64_t)>, 2> kBoth = {
    [](std::int64_t time) { return bbp_barrier_for(time); },
    [](std::int64_t time) { return bbp_barrier_group_for(kAll.data(), 3, 5, time); }};

TEST_P(Barriers, barriers_with_a_deadline_time_out_and_can_be_entered_again) {
    for (const auto& barrier : kBoth) {
        run(3, [&](Rank& me) {
            if (me.rank == 0) {
                check_code(barrier(kMillisecond), BBP_ETIMEDOUT);
                check_said("ranks 1, 2");
                for (const int passed : {0, -1}) check_code(barrier(passed), BBP_ETIMEDOUT);
                check_code(bbp_barrier_group_for(nullptr, 3, 4, 0), BBP_EINVAL);
                me.raise(kPosted);
            } else {
                me.await_word(kPosted);
            }
            for (int i = 0; i < 3; ++i) check_ok(barrier(kLong));
        });
    }
}

TEST_P(Barriers, are_not_complete_without_a_rank_that_has_not_come) {
    for (const char* kind : kKinds) {
        // A simulated rank that waits for a message is told of others' ends, not that they come.
        if (is_simulated() && kind == kKinds[1]) continue;
        SCOPED_TRACE(kind);
        RingSetup with = setup(3);
        with.extra = {{"RMEM_BARRIER", kind}, {"RMEM_AWAIT", "none"}};
        RankProcesses ring(with);
        const Body others = [](Rank& me) {
            check_ok(bbp_init(nullptr, nullptr));
            for (const auto& barrier : kBoth) {
                for (int i = 0; i < 2; ++i) {
                    check_code(barrier(20 * kMillisecond), BBP_ETIMEDOUT, "without rank 1");
                    const std::string said = bbp_last_error();
                    check(me.rank != 0 || said.find("rank") < said.rfind('1'), said);
                }
            }
            me.raise(kPosted);
            for (std::uint32_t round = 1; round <= 20; ++round) {
                for (const auto& barrier : kBoth) {
                    check_ok(barrier(kLong));
                    check(me.shared[kLate] >= round, "left before rank 1 has entered");
                }
            }
            nothing_waits(BBP_ANY);
            me.raise(kDone);
            me.await_word(kDone, 3);
            check_ok(bbp_finalize());
        };
        ring.start_bare(0, others);
        ring.start_bare(2, others);
        ring.await_word(kPosted, 2);
        ring.start_bare(1, [](Rank& me) {
            check_ok(bbp_init(nullptr, nullptr));
            for (int round = 0; round < 20; ++round) {
                me.raise(kLate);
                for (const auto& barrier : kBoth) check_ok(barrier(kLong));
            }
            me.raise(kDone);
            me.await_word(kDone, 3);
            check_ok(bbp_finalize());
        });
        ring.finish();
    }
}

TEST_P(Barriers, are_not_complete_by_what_a_former_incarnation_has_done) {
    // Counts wrap after 32 barriers.
    for (const auto& [kind, before] :
         {std::pair{kKinds[0], 31}, {kKinds[0], 32}, {kKinds[0], 33}, {kKinds[1], 3}}) {
        for (const auto& barrier : kBoth) {
            SCOPED_TRACE(testing::Message() << kind << " after " << before);
            RingSetup with = setup(3);
            with.extra["RMEM_BARRIER"] = kind;
            RankProcesses ring(with);
            const int times = before;
            const auto go_on = [&barrier](Rank& me) {
                for (std::uint32_t round = 1; round <= 20; ++round) {
                    ++me.shared[kEntered];
                    check_ok(barrier(kLong));
                    check(me.shared[kEntered] >= 3 * round, "left before the last has entered");
                }
            };
            const Body others = [&](Rank& me) {
                for (int i = 0; i < times; ++i) check_ok(barrier(kLong));
                me.raise(kPosted);
                int code = BBP_EPEER;
                while ((code = barrier(kLong)) == BBP_EPEER) me.raise(kGo);
                check_ok(code);
                check(me.shared[kLate] == 1, "left before the restarted rank has entered");
                go_on(me);
            };
            ring.start(0, others);
            ring.start(2, others);
            ring.start(1, [&](Rank& me) {
                for (int i = 0; i < times; ++i) check_ok(barrier(kLong));
                me.raise(kPosted);
                me.await_word(kDone);
            });
            ring.await_word(kPosted, 3);
            ring.kill(1);
            ring.start(1, [&](Rank& me) {
                me.await_word(kGo);  // the others are told of the former one
                me.raise(kLate);
                check_ok(barrier(kLong));
                go_on(me);
            });
            ring.finish();
        }
    }
}

TEST_P(Barriers, of_a_job_that_is_smaller_than_its_ring_wait_for_the_job) {
    RingSetup with = setup(3);
    with.extra["RMEM_AWAIT"] = "2";
    RankProcesses ring(with);
    for (const unsigned rank : {0U, 1U})
        ring.start_bare(rank, [](Rank& me) {
            int ranks = 0;
            check_ok(bbp_init(nullptr, &ranks), "without rank 2");
            check_equal(ranks, 2, "ranks of the job");
            for (int i = 0; i < 10; ++i) check_ok(bbp_barrier_for(kLong));
            me.raise(kDone);
            me.await_word(kDone, 2);
            check_ok(bbp_finalize());
        });
    ring.finish();
}

// ---- Groups by name

void expect_text(int from, const std::string& text, Place place = Place::here()) {
    char buffer[64] = {};
    std::size_t size = 0;
    check_code(bbp_recv(from, buffer, sizeof buffer, &size), from, "bbp_recv", place);
    check_equal(std::string(buffer, size), text, "text", place);
}

TEST_P(Groups, get_what_is_sent_to_their_name) {
    run(5, [](Rank& me) {
        if (me.rank != 2) check_ok(bbp_group_join("displays"));  // also the sender
        if (me.rank == 2 || me.rank == 3) check_ok(bbp_group_join("sound"));
        check_ok(bbp_barrier());
        if (me.rank == 0) {
            check_code(bbp_mcast_group("displays", "picture", 7), 3);
            check_code(bbp_mcast_group("sound", "tone", 4), 2);
            check_code(bbp_mcast_group("nobody", "lost", 4), 0);
        }
        if (me.rank == 1 || me.rank == 3 || me.rank == 4) expect_text(0, "picture");
        if (me.rank == 2 || me.rank == 3) expect_text(0, "tone");
        check_ok(bbp_barrier());
        nothing_waits(BBP_ANY);
    });
}

TEST_P(Groups, can_be_left_and_joined_again) {
    run(2, [](Rank& me) {
        for (int round = 0; round < 20; ++round) {
            if (me.rank == 1) check_ok(bbp_group_join("guests"));
            check_ok(bbp_barrier());
            if (me.rank == 0) check_code(bbp_mcast_group("guests", "in", 2), 1);
            if (me.rank == 1) expect_text(0, "in");
            check_ok(bbp_barrier());
            if (me.rank == 1) check_ok(bbp_group_leave("guests"));
            check_ok(bbp_barrier());
            if (me.rank == 0) check_code(bbp_mcast_group("guests", "out", 3), 0);
            check_ok(bbp_barrier());
            nothing_waits(BBP_ANY);
        }
    });
}

TEST_P(Groups, can_be_as_many_as_the_header_says) {
    run(2, [](Rank& me) {
        const auto name = [](int i) { return "group-" + std::to_string(i); };
        if (me.rank == 1) {
            for (int i = 0; i < BBP_MAX_JOINED; ++i) check_ok(bbp_group_join(name(i).c_str()));
            check_code(bbp_group_join("one too many"), BBP_ENOMEM, "one group more");
            check_ok(bbp_group_join(name(BBP_MAX_JOINED - 1).c_str()), "a group that it is in");
        }
        check_ok(bbp_barrier());
        if (me.rank == 0) {
            // Before the last message below, after which rank 1 joins that group.
            check_code(bbp_mcast_group("one too many", "x", 1), 0);
            for (int i = 0; i < BBP_MAX_JOINED; ++i) {
                check_code(bbp_mcast_group(name(i).c_str(), "x", 1), 1);
            }
        } else {
            for (int i = 0; i < BBP_MAX_JOINED; ++i) expect_text(0, "x");
            nothing_waits(BBP_ANY);
            check_ok(bbp_group_leave(name(3).c_str()));
            check_ok(bbp_group_join("one too many"));
        }
        check_ok(bbp_barrier());
        if (me.rank == 0) {
            check_code(bbp_mcast_group("one too many", "y", 1), 1);
            check_code(bbp_mcast_group(name(3).c_str(), "y", 1), 0);
        } else {
            expect_text(0, "y");
        }
        check_ok(bbp_barrier());
        nothing_waits(BBP_ANY);
    });
}

TEST_P(Groups, groups_with_names_that_cannot_be_right_are_refused) {
    run(2, [](Rank&) {
        check_code(bbp_group_join(nullptr), BBP_EINVAL, "join null");
        check_code(bbp_group_join(""), BBP_EINVAL, "join the empty name");
        check_code(bbp_group_leave(nullptr), BBP_EINVAL, "leave null");
        check_code(bbp_group_leave("never joined"), BBP_EINVAL, "leave what was not joined");
        check_code(bbp_mcast_group(nullptr, "x", 1), BBP_EINVAL, "send to null");
        check_code(bbp_mcast_group("g", nullptr, 1), BBP_EINVAL, "send from null");
        check_ok(bbp_barrier());
    });
}

}  // namespace
}  // namespace rmem::test
