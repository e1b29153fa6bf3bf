// SPDX-License-Identifier: Apache-2.0
// ctest: check apart

/// Conformance: bbp_init joins the ring of the environment (or of a launcher) once all ranks have
/// come, and refuses invalid settings with a code and a sentence of its own. (billboard/bbp.h: life
/// cycle, codes; design §5: environment; issue "what bad input gets".)

#include "tests/support/conformance.hpp"

#include <signal.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <fstream>

namespace rmem::test {
namespace {

constexpr const char* kOfTheWorld = "ring and place are the world's, not the environment's";
constexpr const char* kNoProcesses = "ranks are no processes of the system";

class Joining : public Conformance {
protected:
    using Changes = std::map<std::string, std::string>;

    /// A ring of one rank whose environment has these changes is refused with `code`, and the
    /// sentence holds `words`. Then the process corrects its environment and gets in.
    static void refused(const Changes& changes, int code, const std::vector<std::string>& words) {
        // All else is the world's.
        if (is_simulated() && !changes.contains("RMEM_LAYOUT") &&
            !changes.contains("RMEM_PARTITION"))
            return;
        run_ranks(
            setup(1),
            [&](Rank&) {
                int rank = -7;
                int ranks = -7;
                check_code(bbp_init(&rank, &ranks), code, "bbp_init");
                for (const std::string& word : words) check_said(word);
                correct(setup(1), changes);
                check_ok(bbp_init(&rank, &ranks), "bbp_init after the correction");
                check_equal(rank, 0, "rank");
                check_equal(ranks, 1, "ranks");
                check_ok(bbp_finalize());
            },
            changes);
    }

    /// A full ring of two meets a third process with these changes, which must be refused with
    /// `code`; the two must not notice.
    static void refused_at_a_running_ring(unsigned rank, const Changes& changes, int code,
                                          const std::string& word) {
        enum Word : std::size_t { kGo, kDone };
        RankProcesses ring(setup(2));
        ring.start_all([](Rank& me) {
            me.await_word(kGo);
            send(1 - me.rank, 800, 1);
            receive(1 - me.rank, 800, 1);
            check_ok(bbp_barrier());
        });
        ring.await_all_joined();
        ring.start_bare(
            rank,
            [&](Rank& me) {
                check_code(bbp_init(nullptr, nullptr), code);
                check_said(word);
                me.raise(kDone);
            },
            changes);
        ring.await_word(kDone);
        ++ring.shared()[kGo];
        ring.finish();
    }

    /// Sets the variables of `changes` to the values of the ring's setup.
    static void correct(const RingSetup& setup, const Changes& changes) {
        const Changes right = {{"RMEM_RANK", "0"},
                               {"RMEM_RANKS", std::to_string(setup.ranks)},
                               {"RMEM_LINK", setup.link},
                               {"RMEM_TIMING", setup.timing},
                               {"RMEM_LAYOUT", setup.layout},
                               {"RMEM_PARTITION", std::to_string(setup.partition)},
                               {"RMEM_JOIN_TIMEOUT", setup.join_timeout}};
        for (const auto& change : changes) {
            const auto found = right.find(change.first);
            set_variable(change.first,
                         found == right.end() ? std::nullopt : std::optional(found->second));
        }
    }
};
RMEM_ON_ALL_RINGS(Joining);

enum Word : std::size_t { kPosted, kGo, kDone };

/// A body that joins, meets the others and leaves.
void come_and_go(Rank& me) {
    int rank = -1;
    int ranks = -1;
    check_ok(bbp_init(&rank, &ranks), "bbp_init");
    check_equal(rank, me.rank, "rank");
    check_equal(ranks, me.ranks, "ranks");
    check_ok(bbp_barrier());
    check_ok(bbp_finalize());
}

// ---- What works

TEST_P(Joining, waits_for_the_last_rank) {
    RankProcesses ring(setup(3));
    for (const unsigned rank : {2U, 0U}) {
        ring.start_bare(rank, [](Rank& me) {
            check_ok(bbp_init(nullptr, nullptr));
            check_equal(me.shared[kGo].load(), 1U, "whether the last rank had been started");
            check_ok(bbp_barrier());
            check_ok(bbp_finalize());
        });
    }
    ring.let_pass(std::chrono::milliseconds(50));
    ++ring.shared()[kGo];
    ring.start_bare(1, come_and_go);
    ring.finish();
}

TEST_P(Joining, does_not_ask_for_the_pointers) {
    run_ranks(setup(2), [](Rank& me) {
        int number = -1;
        check_ok(me.rank == 0 ? bbp_init(nullptr, &number) : bbp_init(&number, nullptr));
        check_equal(number, me.rank == 0 ? 2 : 1, "what bbp_init told");
        check_ok(bbp_finalize());
    });
}

TEST_P(Joining, works_for_ranks_that_leave_at_once) {
    for (int i = 0; i < 10; ++i) {
        run_ranks(setup(3), [](Rank&) {
            check_ok(bbp_init(nullptr, nullptr), "bbp_init");
            check_ok(bbp_finalize(), "bbp_finalize");
        });
    }
}

TEST_P(Joining, keeps_what_was_sent_to_a_rank_that_is_slow_to_come_out_of_init) {
    for (int i = 0; i < 10; ++i) {
        run_ranks(setup(2), [](Rank& me) {
            check_ok(bbp_init(nullptr, nullptr));
            for (const std::size_t size : {30U, 3000U}) {
                if (me.rank == 0) send(1, size, size);
                if (me.rank == 1) receive(0, size, size);
            }
            check_ok(bbp_finalize());
        });
    }
}

TEST_P(Joining, understands_launchers) {
    RMEM_SKIP_IF_SIMULATED(kOfTheWorld);
    // PMIx puts the rank into the environment, but not how many there are.
    const std::pair<const char*, const char*> launchers[] = {
        {"PMI_RANK", "PMI_SIZE"},
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
        {"SLURM_PROCID", "SLURM_NTASKS"},
        {"PMIX_RANK", nullptr}};
    for (const auto& [rank_variable, size_variable] : launchers) {
        SCOPED_TRACE(rank_variable);
        RankProcesses ring(setup(3));
        for (const unsigned rank : {0U, 1U, 2U}) {
            Changes changes = {{"RMEM_RANK", ""}, {"SLURM_STEP_ID", "0"}};
            changes[rank_variable] = std::to_string(rank);
            if (size_variable != nullptr) changes["RMEM_RANKS"] = "";
            if (size_variable != nullptr) changes[size_variable] = "3";
            ring.start_bare(rank, come_and_go, changes);
        }
        ring.finish();
    }
    refused({{"RMEM_RANK", ""}, {"RMEM_RANKS", ""}, {"PMIX_RANK", "0"}}, BBP_EINVAL,
            {"PMIX_RANK", "RMEM_RANKS"});
}

TEST_P(Joining, takes_empty_settings_for_unset_ones) {
    RMEM_SKIP_IF_SIMULATED("the world has settings already");
    run_ranks(setup(2), [](Rank& me) {
        // "" unsets what the harness is told to change, so they are set here.
        for (const char* name : {"RMEM_LAYOUT", "RMEM_PARTITION", "RMEM_BARRIER"})
            set_variable(name, "");
        come_and_go(me);
    });
}

TEST_P(Joining, believes_its_own_variables_before_a_launchers) {
    RMEM_SKIP_IF_SIMULATED(kOfTheWorld);
    run_ranks(setup(2), come_and_go, {{"PMI_RANK", "5"}, {"PMI_SIZE", "9"}});
}

TEST_P(Joining, keeps_rings_of_different_names_apart) {
    RankProcesses one(setup(2));
    RankProcesses other(setup(2));
    const auto body = [](std::uint64_t seed) {
        return [seed](Rank& me) {
            for (std::uint64_t i = 0; i < 50; ++i) {
                send(1 - me.rank, 100, seed + i);
                receive(BBP_ANY, 100, seed + i);
            }
        };
    };
    one.start_all(body(1000));
    other.start_all(body(2000));
    one.finish();
    other.finish();
}

TEST_P(Joining, can_be_done_again_after_finalize) {
    run_ranks(setup(1), [](Rank& me) {
        for (int i = 0; i < 5; ++i) come_and_go(me);
    });
}

/// Which signals a thread of this process has blocked, a bit each.
std::uint64_t blocked_signals(const std::filesystem::path& task) {
    std::ifstream status(task / "status");
    for (std::string word; status >> word;) {
        if (word != "SigBlk:") continue;
        std::uint64_t mask = 0;
        status >> std::hex >> mask;
        return mask;
    }
    fail("no signal mask in " + task.string());
}

TEST_P(Joining, starts_threads_that_take_no_signals_but_those_of_their_own_faults) {
    RMEM_SKIP_IF_SIMULATED(kNoProcesses);
    run(1, [](Rank&) {
        check(bbp_fd() >= 0, "bbp_fd");
        int helpers = 0;
        for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) {
            if (task.path().filename() == std::to_string(::getpid())) continue;
            ++helpers;
            const auto is_blocked = [&](int signal) {
                return (blocked_signals(task.path()) >> (signal - 1) & 1) != 0;
            };
            // While a thread starts, the system keeps all away from it.
            for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT})
                await([&] { return !is_blocked(fault); }, fmt::format("signal {} to open", fault));
            for (const int of_the_program : {SIGTERM, SIGINT, SIGALRM, SIGUSR1})
                check(is_blocked(of_the_program), fmt::format("open: {}", of_the_program));
        }
        check(helpers >= 1, "bbp_fd without a thread");
    });
}

/// Joins, talks with everybody in all sizes, and leaves.
void come_and_talk(Rank& me) {
    check_ok(bbp_init(nullptr, nullptr), "bbp_init");
    for (const std::size_t size :
         {std::size_t{0}, std::size_t{20}, std::size_t{700}, 2 * kPartition}) {
        for (int from = 0; from < me.ranks; ++from) {
            if (me.rank == from) {
                for (const int to : everyone_but(from, me.ranks)) send(to, size, size);
                multicast(everyone_but(from, me.ranks), size, size + 1);
            } else {
                receive(from, size, size);
                receive(from, size, size + 1);
            }
        }
        check_ok(bbp_barrier());
    }
    check_ok(bbp_finalize());
}

TEST_P(Joining, works_for_several_ranks_on_a_node_and_nodes_without_a_rank) {
    for (const auto& [ranks, nodes] :
         {std::pair{4U, 1U}, std::pair{4U, 2U}, std::pair{4U, 3U}, std::pair{2U, 5U}}) {
        SCOPED_TRACE(nodes);
        RingSetup shared = setup(ranks);
        shared.extra["RMEM_NODES"] = std::to_string(nodes);
        RankProcesses ring(shared);
        for (unsigned rank = 0; rank < ranks; ++rank) {
            // A simulated world places them itself.
            const unsigned node = nodes > ranks ? 3 * rank + 1 : rank * nodes / ranks;
            ring.start_bare(rank, come_and_talk, {{"RMEM_NODE", std::to_string(node)}});
        }
        ring.finish();
    }
}

// ---- What is refused

TEST_P(Joining, is_refused_with_settings_that_cannot_be_meant) {
    struct Refusal {
        const char *variable, *value;
        int code = BBP_EINVAL;
        std::vector<std::string> words = {};  ///< further ones that the sentence holds
    };
    const Refusal refusals[] = {
        {"RMEM_RANKS", "0"},           {"RMEM_RANKS", "257", BBP_EINVAL, {"256"}},
        {"RMEM_RANKS", "1x"},          {"RMEM_RANKS", "99999999999999999999"},
        {"RMEM_RANK", "1", BBP_ERANK}, {"RMEM_RANK", "255", BBP_ERANK},
        {"RMEM_RANK", "first"},        {"RMEM_RANK", "-1"},
        {"RMEM_PARTITION", "big"},     {"RMEM_PARTITION", "0"},
        {"RMEM_SIZE", "1Q"},           {"RMEM_SIZE", "10", BBP_EINVAL, {"4"}},
        {"RMEM_JOIN_TIMEOUT", "soon"}, {"RMEM_LINK", "ethernet", BBP_EINVAL, {"direct"}},
        {"RMEM_TIMING", "warp-speed"}, {"RMEM_LAYOUT", "glossy", BBP_EINVAL, {"paper"}},
        {"RMEM_FAULTS", "gremlins"}};
    for (auto [variable, value, code, words] : refusals) {
        SCOPED_TRACE(testing::Message() << variable << '=' << value);
        words.emplace_back(value);
        if (code == BBP_EINVAL) words.emplace_back(variable);
        refused({{variable, value}}, code, words);
    }
}

TEST_P(Joining, is_refused_for_names_that_are_none) {
    RMEM_SKIP_IF_SIMULATED(kOfTheWorld);
    for (const std::string bad : {"a/b", "../escape", "a b/", "/", ".", ".."}) {
        SCOPED_TRACE(bad);
        run_ranks(setup(1),
                  [&](Rank&) {
                      check_code(bbp_init(nullptr, nullptr), BBP_EINVAL);
                      check_said("'" + bad + "'");
                      check_said("RMEM_RING");
                  },
                  {{"RMEM_RING", bad}});
    }
    run_ranks(setup(1), [](Rank&) { check_code(bbp_init(nullptr, nullptr), BBP_EINVAL); },
              {{"RMEM_RING", std::string(300, 'x')}});
}

TEST_P(Joining, ends_when_a_rank_never_comes) {
    RingSetup patient = setup(3);
    patient.join_timeout = "300ms";
    RankProcesses ring(patient);
    for (const unsigned rank : {0U, 1U})
        ring.start_bare(rank, [](Rank&) {
            check_code(bbp_init(nullptr, nullptr), BBP_ETIMEDOUT);
            const std::string said = bbp_last_error();
            // On a busy host the time may be up before the two have heard of each other.
            check(said.find(" 2") != std::string::npos ||
                      said.find("no member answered") != std::string::npos,
                  "does not name the missing rank: " + said);
        });
    ring.finish();
}

TEST_P(Joining, joining_that_timed_out_leaves_the_ring_to_those_who_come_later) {
    RMEM_SKIP_IF_SIMULATED("the memory of a world outlives its processes");
    RingSetup patient = setup(2);
    patient.join_timeout = "200ms";
    RankProcesses ring(patient);
    ring.start_bare(0, [](Rank&) { check_code(bbp_init(nullptr, nullptr), BBP_ETIMEDOUT); });
    ring.wait(0);
    for (const unsigned rank : {0U, 1U}) {
        ring.start_bare(rank, come_and_go, {{"RMEM_JOIN_TIMEOUT", "20s"}});
    }
    ring.finish();
}

TEST_P(Joining, is_refused_at_a_running_ring_for_a_taken_rank_and_other_settings) {
    RMEM_SKIP_IF_SIMULATED("a rank is one process of its world");
    const std::string other = setup(2).layout == "paper" ? "inline" : "paper";
    refused_at_a_running_ring(1, {}, BBP_EBUSY, "1");
    refused_at_a_running_ring(0, {{"RMEM_LAYOUT", other}}, BBP_EVERSION, "RMEM_LAYOUT");
    refused_at_a_running_ring(0, {{"RMEM_PARTITION", "32768"}}, BBP_EVERSION, "RMEM_PARTITION");
}

TEST_P(Joining, joining_of_two_processes_as_one_rank_lets_exactly_one_in) {
    RMEM_SKIP_IF_SIMULATED("a rank is one process of its world");
    RankProcesses ring(setup(2));
    const auto rival = [](Rank& me) {
        const int code = bbp_init(nullptr, nullptr);
        if (code == BBP_EBUSY) return me.raise(kDone);
        check_ok(code);
        me.raise(kPosted);
        me.await_word(kDone);
        check_ok(bbp_barrier());
        check_ok(bbp_finalize());
    };
    ring.start_bare(0, rival);
    ring.start_bare(0, rival);
    ring.start_bare(1, come_and_go);
    ring.finish();
    EXPECT_EQ(ring.shared()[kPosted], 1U);
    EXPECT_EQ(ring.shared()[kDone], 1U);
}

TEST_P(Joining, does_not_trust_a_foreign_object_of_the_rings_name) {
    RMEM_SKIP_IF_SIMULATED(kOfTheWorld);
    RankProcesses ring(setup(1));
    const bool is_remote = std::string_view(GetParam().link) == "udp";
    const std::filesystem::path object = "/dev/shm/rmem." + ring.name() + (is_remote ? "@0" : "");
    std::ofstream(object) << "somebody's notes" << std::string(100'000, '.');
    ring.start_bare(0, [](Rank&) {
        check_refused(bbp_init(nullptr, nullptr), "bbp_init on a foreign object");
        check_said("rmem.test-");
    });
    ring.wait(0);
    EXPECT_TRUE(std::filesystem::exists(object)) << "what was somebody else's was removed";
    std::filesystem::remove(object);
    ring.finish();
}

}  // namespace
}  // namespace rmem::test
