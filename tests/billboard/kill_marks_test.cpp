// SPDX-License-Identifier: Apache-2.0
// ctest: check marked

/// A rank is killed (SIGKILL) at each RMEM_MARK of the billboard's sources, during traffic
/// of every kind. The survivors get each of its messages whole and in order, or BBP_EPEER; they go
/// on among themselves; and the rank, started again, talks to them as before.
///
/// The marks are read from the sources when the test runs, so a new one is killed at without being
/// named here; one that the traffic does not pass fails the suite.

#include "billboard/endpoint.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/support/conformance.hpp"
#include "tests/support/kill_traffic.hpp"
#include "tests/support/marks.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>

namespace rmem::test {
namespace {

// ---- The marks

std::set<std::string> marks_of(const std::string& folder) {
    const auto marks = marks_in(RMEM_SOURCE_DIR, sources_of(RMEM_SOURCE_DIR, folder));
    return {marks.begin(), marks.end()};
}

struct Kind {
    const char* name;
    const char* link;
    const char* layout;
    unsigned ranks;
};
constexpr Kind kKinds[] = {{"direct_inline", "direct", "inline", 3},
                           {"direct_paper", "direct", "paper", 3},
                           {"ring_inline", "ring", "inline", 3},
                           {"direct_bells", "direct", "inline", 18}};

/// Marks that only some kinds of ring pass; the others are passed by all but direct_bells.
const std::map<std::string, std::set<std::string>> kOnlyOn = {
    {"mcast.described", {"direct_paper", "ring_inline"}},
    {"post.before-bell", {"direct_bells"}},
    {"post.described", {"direct_paper"}},
    {"post.line-posted", {"direct_inline"}},
    {"post.line-written", {"direct_inline"}},
    {"post.slot-written", {"direct_inline", "ring_inline"}},
    {"receive.inline-copied", {"direct_inline", "ring_inline"}},
    {"send.announced-unfilled", {"direct_inline"}},
    {"send.before-wake", {"direct_inline", "ring_inline"}},
    {"send.piece-filled", {"direct_inline"}},
    {"tell.before", {"direct_inline", "ring_inline"}},
    {"tell.before-wake", {"direct_inline", "ring_inline"}},
};

bool passes(const Kind& kind, const std::string& mark) {
    const auto only = kOnlyOn.find(mark);
    if (only != kOnlyOn.end()) return only->second.count(kind.name) != 0;
    return std::string(kind.name) != "direct_bells";
}

bool starts_with_any(const std::string& mark, std::initializer_list<const char*> words) {
    return std::any_of(words.begin(), words.end(),
                       [&](const char* word) { return mark.rfind(word, 0) == 0; });
}

struct Case {
    std::string mark;
    Kind kind;
    unsigned pass;  ///< killed when it comes there for this time
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
    return out << c.mark << ':' << c.pass << " on " << c.kind.name;
}

/// At the marks that only a rank passes which meets the next incarnation of another, or at those
/// that others do. Some are passed more than once.
std::vector<Case> cases(bool are_of_returns) {
    std::vector<Case> all;
    for (const std::string& mark : marks_of("billboard")) {
        if (starts_with_any(mark, {"return."}) != are_of_returns) continue;
        const bool is_passed_often = are_of_returns ? mark == "return.one-taken-over"
                                                    : !starts_with_any(mark, {"join.", "leave."});
        for (const Kind& kind : kKinds) {
            if (!passes(kind, mark)) continue;
            all.push_back({mark, kind, 1});
            if (is_passed_often) all.push_back({mark, kind, 3});
        }
    }
    return all;
}

std::vector<Case> joining_cases() {
    std::vector<Case> some = cases(false);
    std::erase_if(some, [](const Case& c) {
        return !starts_with_any(c.mark, {"join.", "connect."});
    });
    return some;
}

std::string case_name(const ::testing::TestParamInfo<Case>& info) {
    return test_name_of_mark(info.param.mark) + "_" + std::to_string(info.param.pass) + "_on_" +
           info.param.kind.name;
}

// ---- The scenarios

constexpr unsigned kVictimRounds = 2;

void init(Rank& me) {
    check_ok(bbp_init(nullptr, nullptr), "bbp_init");
    me.joined = true;
}

RingSetup setup_of(const Kind& kind) {
    RingSetup setup;
    setup.ranks = kind.ranks;
    setup.link = kind.link;
    setup.layout = kind.layout;
    setup.partition = kPlace;
    return setup;
}

/// Ranks beyond the talkers make the ring large. They must look up now and then, or a rank that
/// returns cannot know that they read nothing of its former incarnation.
void start_silent_ranks(RankProcesses& ring) {
    for (unsigned rank = kTalkers; rank < ring.setup().ranks; ++rank) {
        ring.start_bare(rank, [](Rank& me) {
            init(me);
            while (me.shared[kDone] < kTalkers) {
                check_code(bbp_recv_for(BBP_ANY, nullptr, 0, nullptr, kMillisecond), BBP_ETIMEDOUT,
                           "a silent rank's bbp_recv_for");
            }
        });
    }
}

/// Waits until all but the victim take part: a ring whose only member has died is made again, and
/// then nobody has died in it. Passes no mark, which the children must do first.
void await_the_others(RankProcesses& ring) {
    await(
        [&] {
            try {
                return Ring::observe(ring.name())->joined_ranks() + 1 >= ring.setup().ranks;
            } catch (const Error&) {  // not made yet
                return false;
            }
        },
        "all but the victim to take part");
}

/// All three talk as if nothing had happened, and leave.
void talk_again(Rank& me, Talker& talker) {
    talker.victim_is_back();
    talker.round(9, 0, false);
    if (me.ranks == kTalkers) {
        check_ok(bbp_group_join("again"));
        check_ok(bbp_barrier());
        for (int turn = 0; turn < kTalkers; ++turn) {
            char text[8] = {};
            if (turn == me.rank) {
                check_code(bbp_mcast_group("again", "again", 6), 2, "bbp_mcast_group");
            } else {
                check_code(bbp_recv(turn, text, sizeof text, nullptr), turn);
            }
        }
    }
    me.raise(kDone);
}

void talk_again(Rank& me) {
    Talker talker(me);
    talk_again(me, talker);
}

/// The same, once this many ranks have come here.
void settle_and_talk(Rank& me, std::uint32_t ranks) {
    me.raise(kSettled);
    me.await_word(kSettled, ranks);
    talk_again(me);
}

void come_back(Rank& me) {
    init(me);
    me.raise(kUp);
    talk_again(me);
}

class KillMarks : public ::testing::TestWithParam<Case> {
protected:
    static std::string mark() { return GetParam().mark + ":" + std::to_string(GetParam().pass); }
};

TEST_P(KillMarks, a_rank_killed_there_is_survived_and_can_return) {
    const bool was_seen = GetParam().mark != "join.words-written";  // by the others, as joined
    RankProcesses ring(setup_of(GetParam().kind));
    const auto survivor = [was_seen](Rank& me) {
        init(me);
        Talker talker(me);
        for (unsigned round = 0; was_seen && !talker.victim_is_gone(); ++round) {
            check(round <= kVictimRounds, "the victim's death went unnoticed");
            talker.round(1, round, true);
        }
        if (was_seen) talker.round(2, 0, true);
        me.raise(kSurvived);
        me.await_word(kUp);
        talk_again(me, talker);
    };
    start_silent_ranks(ring);
    for (const unsigned rank : {0U, 2U}) ring.start_bare(rank, survivor);
    await_the_others(ring);
    ring.start_doomed(
        kVictim,
        [](Rank& me) {
            init(me);
            Talker talker(me);
            for (unsigned round = 0; round < kVictimRounds; ++round) talker.round(1, round, false);
        },
        mark());
    ring.wait(kVictim);
    ++ring.shared()[kDead];
    if (was_seen) ring.await_word(kSurvived, 2);
    ring.start_bare(kVictim, come_back);
    ring.finish();
}
INSTANTIATE_TEST_SUITE_P(At, KillMarks, ::testing::ValuesIn(cases(false)), case_name);

class KillMarksOfJoining : public KillMarks {};

TEST_P(KillMarksOfJoining, a_rank_killed_there_in_a_later_incarnation_can_return_too) {
    RankProcesses ring(setup_of(GetParam().kind));
    const auto survivor = [](Rank& me) {
        init(me);
        me.raise(kBorn);
        // Greetings of any incarnation, and deaths, until the last one greets.
        char incarnation = 0;
        await(
            [&] {
                const int code = bbp_tryrecv(kVictim, &incarnation, 1, nullptr);
                check(code == kVictim || code == BBP_EAGAIN || code == BBP_EPEER, code_name(code));
                return code == kVictim && incarnation == 3;
            },
            "the third incarnation's greeting");
        // The second incarnation's end, if noticed at all, may still have to be told.
        const int code = bbp_tryrecv(kVictim, &incarnation, 1, nullptr);
        check(code == BBP_EAGAIN || code == BBP_EPEER, code_name(code));
        settle_and_talk(me, 2);
    };
    const auto greet = [](char incarnation) {
        for (const int d : {0, 2}) check_ok(bbp_send(d, &incarnation, 1), "greeting");
    };
    for (const unsigned rank : {0U, 2U}) ring.start_bare(rank, survivor);
    ring.start_bare(kVictim, [](Rank& me) {
        init(me);
        me.raise(kBorn);
        me.await_word(kDone);
    });
    ring.await_word(kBorn, 3);
    ring.kill(kVictim);
    ring.start_doomed(
        kVictim,
        [&](Rank& me) {
            init(me);
            greet(2);
        },
        mark());
    ring.wait(kVictim);
    ring.start_bare(kVictim, [&](Rank& me) {
        init(me);
        greet(3);
        me.await_word(kSettled, 2);
        talk_again(me);
    });
    ring.finish();
}
INSTANTIATE_TEST_SUITE_P(At, KillMarksOfJoining, ::testing::ValuesIn(joining_cases()), case_name);

class KillMarksOfReturns : public KillMarks {};

/// Rank 0 is killed while it takes over the messages of rank 1's former incarnation; rank 2 gets
/// all of them, misses both, and goes on with the next incarnations of both.
TEST_P(KillMarksOfReturns, a_rank_killed_while_it_meets_another_again_is_survived_and_can_return) {
    constexpr std::size_t kPosted[] = {20, 600, 40, 3000};
    RankProcesses ring(setup_of(GetParam().kind));
    // Within the billboard, so that the fate of others is noticed.
    const auto look_on_until = [](Rank& me, KillWord word, std::uint32_t value) {
        await(
            [&] {
                check_code(bbp_recv_for(me.rank, nullptr, 0, nullptr, kMillisecond), BBP_ETIMEDOUT);
                return me.shared[word] >= value;
            },
            "a word of the test");
    };
    ring.start_doomed(
        0,
        [&](Rank& me) {
            init(me);
            me.raise(kBorn);
            look_on_until(me, kDone, 1);  // that is, until it meets the returned one
        },
        mark());
    ring.start_bare(2, [&](Rank& me) {
        init(me);
        me.raise(kBorn);
        look_on_until(me, kUp, 2);
        for (std::uint64_t i = 0; i < std::size(kPosted); ++i) receive(kVictim, kPosted[i], i);
        for (const int back : {kVictim, 0}) {
            check_code(bbp_recv(back, nullptr, 0, nullptr), BBP_EPEER, "of the dead");
        }
        receive(0, 1, 9);
        settle_and_talk(me, 3);
    });
    ring.start_bare(kVictim, [&](Rank& me) {
        init(me);
        for (std::uint64_t i = 0; i < std::size(kPosted); ++i) {
            for (const int d : {0, 2}) send(d, kPosted[i], i);
        }
        me.raise(kBorn);
        me.await_word(kDone);
    });
    ring.await_word(kBorn, 3);
    ring.kill(kVictim);
    ring.start_bare(kVictim, [&](Rank& me) {
        init(me);
        me.raise(kUp);
        // It may have met rank 0's former incarnation or not, and is told before it hears of the
        // new one.
        std::byte greeting[1];
        int code = BBP_EPEER;
        await(
            [&] {
                code = bbp_recv_for(0, greeting, 1, nullptr, kLong);
                return code != BBP_EPEER;  // which it goes on saying until rank 0 is back
            },
            "rank 0 to come back");
        check_code(code, 0, "rank 0's greeting");
        settle_and_talk(me, 3);
    });
    ring.wait(0);
    ring.start_bare(0, [&](Rank& me) {
        init(me);
        me.raise(kUp);
        for (const int d : {kVictim, 2}) send(d, 1, 9);
        settle_and_talk(me, 3);
    });
    ring.finish();
}
INSTANTIATE_TEST_SUITE_P(At, KillMarksOfReturns, ::testing::ValuesIn(cases(true)), case_name);

/// The receiver sees no dead rank in between: only that a half-filled message has lost its sender.
TEST(KillMarksAlone, a_sender_that_died_while_filling_and_is_back_already_is_missed_once) {
    RankProcesses ring(setup_of(kKinds[0]));
    for (const unsigned rank : {0U, 2U}) {
        ring.start_bare(rank, [rank](Rank& me) {
            init(me);
            me.raise(kBorn);
            me.await_word(kUp);
            if (rank == 0) {
                std::vector<std::byte> buffer(kPlace);
                check_code(bbp_recv_for(kVictim, buffer.data(), buffer.size(), nullptr, kLong),
                           BBP_EPEER, "receiving what was half filled");
            } else {
                const void* data = nullptr;
                std::size_t size = 0;
                check_code(bbp_view(kVictim, &data, &size), BBP_EPEER, "viewing the same");
            }
            talk_again(me);
        });
    }
    ring.start_doomed(
        kVictim,
        [](Rank& me) {
            init(me);
            me.await_word(kBorn, 2);
            const auto bytes = pattern(70000, 1);
            for (const int d : {0, 2}) bbp_send(d, bytes.data(), bytes.size());
        },
        "send.piece-filled:1");
    ring.wait(kVictim);
    ring.start_bare(kVictim, come_back);
    ring.finish();
}

/// Neither taken nor found by a probe forever: a rank that waits by trying both, as the MPI device
/// does, would never miss its sender.
TEST(KillMarksAlone, a_sender_that_died_while_filling_is_missed_by_a_receiver_that_only_tries) {
    RingSetup setup;
    setup.partition = kPlace;
    RankProcesses ring(setup);
    ring.start_bare(0, [](Rank& me) {
        init(me);
        me.raise(kBorn);
        me.await_word(kDead);
        auto& endpoint = *billboard::Endpoint::of_bbp_init();
        std::array<std::byte, billboard::kTakenBytes> small{};
        await(
            [&] {
                const void* data = nullptr;
                std::size_t size = 0;
                check(endpoint.take(small, &data, &size) < 0, "half a message is taken");
                return endpoint.probe(kVictim, nullptr) == BBP_EPEER;
            },
            "the end of the sender");
    });
    ring.start_doomed(
        kVictim,
        [](Rank& me) {
            init(me);
            me.await_word(kBorn);
            const auto bytes = pattern(70000, 1);
            bbp_send(0, bytes.data(), bytes.size());
        },
        "send.piece-filled:1");
    ring.wait(kVictim);
    ++ring.shared()[kDead];
    ring.finish();
}

TEST(KillMarksAlone, are_found_in_the_sources) {
    EXPECT_GT(marks_of("billboard").size(), 20U);
    for (const auto& [mark, kinds] : kOnlyOn) {
        EXPECT_EQ(marks_of("billboard").count(mark), 1U) << mark << " is no mark any more";
    }
}

TEST(KillMarksAlone, marks_of_the_memory_are_read_by_its_own_tests) {
    std::string tests;
    const auto folder = std::filesystem::path(RMEM_SOURCE_DIR) / "tests" / "rmem";
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
        if (entry.path().filename().string().find("_marks_test.cpp") == std::string::npos) continue;
        std::ifstream file(entry.path());
        tests.append(std::istreambuf_iterator<char>(file), {});
    }
    for (const std::string& source : sources_of(RMEM_SOURCE_DIR, "rmem")) {
        if (marks_in(RMEM_SOURCE_DIR, {source}).empty()) continue;
        EXPECT_NE(tests.find('"' + source + '"'), std::string::npos)
            << "no _marks_test.cpp in tests/rmem kills at the marks of " << source;
    }
}

}  // namespace
}  // namespace rmem::test
