// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The course of ring-restarts: all ranks talk; again and again some processes are killed and
/// started again, by the seed; in the end all are in one ring, everybody has heard the present
/// incarnation of everybody, and has had each message; there is a barrier, and banks are equal.
/// Thread safety: one thread. Errors: `CheckFailed`, which says who did not do what.

#include "rmem/base/clock.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/support/checks.hpp"
#include "tests/support/patterns.hpp"
#include "tests/support/programs/growth.hpp"
#include "tests/support/programs/restart_processes.hpp"
#include "tests/support/programs/restart_record.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace rmem::test {

inline constexpr std::int64_t kSecondNs = 1'000'000'000;
inline constexpr std::int64_t kLongestNs = 40 * kSecondNs;
inline constexpr auto kPoll = std::chrono::milliseconds(1);
inline constexpr std::uint64_t kMoreMessages = 20;  // after a kill, of each survivor to each

inline std::uint32_t word_at(const std::byte* bank, std::size_t offset) {
    const auto* word = reinterpret_cast<const std::uint32_t*>(bank + offset);
    return std::atomic_ref(*const_cast<std::uint32_t*>(word)).load(std::memory_order_acquire);
}

struct Course {
    RestartSettings settings;
    std::string ring;
    unsigned kills = 0;       ///< times that some are killed, evenly over the time
    unsigned seconds = 0;     ///< they talk for this long, at least
    unsigned messages = 100;  ///< of each pair, at least
    std::uint64_t seed = 1;
    bool watches_growth = false;
    bool no_incarnation_may_end = false;  ///< but by a kill
};

class RestartScenario {
public:
    RestartScenario(Course course, RestartRecord& record, const std::string& record_file)
        : course_(std::move(course)),
          record_(record),
          processes_(course_.settings, course_.ring, record_file),
          growth_(course_.ring),
          state_(course_.seed) {}

    void run() {
        if (course_.settings.daemons) {
            for (unsigned node = 0; node < course_.settings.nodes; ++node) start_daemon(node);
        }
        for (unsigned r = 0; r < course_.settings.ranks; ++r) start_rank(r);
        await_settled();
        talk();
        await_settled();
        end();
        report();
    }

private:
    using Ranks = std::set<unsigned>;
    /// A rank that has heard an incarnation which now ends, and must be told.
    struct Witness {
        unsigned rank = 0, of = 0;
        std::uint32_t told_before = 0;
    };

    void talk() {
        const std::int64_t begin = now_ns();
        const std::int64_t time = course_.seconds * kSecondNs;
        for (unsigned done = 0; done < course_.kills || now_ns() < begin + time;) {
            if (done < course_.kills && now_ns() >= begin + time * done / course_.kills) {
                kill_some();
                ++done;
            } else {
                look_after();
            }
        }
        for (unsigned r = 0; r < course_.settings.ranks; ++r) {
            for (unsigned from = 0; from < course_.settings.ranks; ++from) {
                if (from == r) continue;
                await([&] { return rank(r).received[from] >= course_.messages; },
                      fmt::format("rank {} to have {} messages of rank {}", r, course_.messages,
                                  from));
            }
        }
    }

    void kill_some() {
        std::set<unsigned> daemons;
        const Ranks victims = choose_victims(daemons);
        Ranks survivors;
        for (unsigned r = 0; r < course_.settings.ranks; ++r) {
            if (!victims.contains(r) && !daemons.contains(course_.settings.node_of(r)))
                survivors.insert(r);
        }
        // The moment: after some more messages of one of them, or while it is not yet in the ring.
        if (!victims.empty() && random(4) != 0) {
            RestartsOfRank& victim = rank(*victims.begin());
            const std::uint64_t enough = victim.received_in_all() + random(2000);
            passes_within(kSecondNs, [&] { return victim.received_in_all() >= enough; });
        }
        const std::vector<Witness> witnesses = witnesses_of(victims, survivors);
        for (const unsigned node : daemons) processes_.kill_daemon(node);
        for (const unsigned r : victims) {
            processes_.kill_rank(r);
            rank(r).incarnation = 0;
        }
        daemons_killed_ += static_cast<unsigned>(daemons.size());
        ranks_killed_ += static_cast<unsigned>(victims.size());
        // A rank that is not yet in the ring may need all others for that.
        const std::uint64_t when = settled_ ? random(3) : 0;
        if (when == 0) restart(victims, daemons);
        expect_others_go_on(survivors);
        if (when == 1) restart(victims, daemons);
        expect_told(witnesses);
        if (when == 2) restart(victims, daemons);
        settled_ = random(3) != 0;  // else some may be killed while they join
        if (settled_) await_settled();
    }

    /// Ranks; and of the daemons, into `daemons`. At least two ranks live on.
    std::set<unsigned> choose_victims(std::set<unsigned>& daemons) {
        const RestartSettings& settings = course_.settings;
        std::set<unsigned> ranks;
        if (settings.daemons && random(2) == 0)
            daemons.insert(static_cast<unsigned>(random(settings.nodes)));
        if (daemons.empty() || random(3) == 0)
            ranks.insert(static_cast<unsigned>(random(settings.ranks)));
        if (settings.ranks > 3 && random(3) == 0)
            ranks.insert(static_cast<unsigned>(random(settings.ranks)));
        return ranks;
    }

    void restart(const Ranks& ranks, const std::set<unsigned>& daemons) {
        const bool ranks_first = random(2) == 0;
        for (const unsigned r : ranks) {
            if (ranks_first) start_rank(r);
        }
        for (const unsigned node : daemons) start_daemon(node);
        for (const unsigned r : ranks) {
            if (!ranks_first) start_rank(r);
        }
    }

    /// Except for a rank that loses its node meanwhile.
    void expect_others_go_on(const Ranks& survivors) {
        for (const unsigned r : survivors) {
            for (const unsigned from : survivors) {
                if (from == r) continue;
                const std::uint64_t enough = rank(r).received[from] + kMoreMessages;
                const std::uint32_t reopens = rank(r).reopens + rank(from).reopens;
                await(
                    [&] {
                        return rank(r).received[from] >= enough ||
                               rank(r).reopens + rank(from).reopens != reopens;
                    },
                    fmt::format("rank {} to go on with rank {}, which both survive", r, from));
            }
        }
    }

    void expect_told(const std::vector<Witness>& witnesses) {
        for (const auto& [r, victim, before] : witnesses) {
            await(
                [&, who = r, of = victim, than = before] {
                    return rank(who).incarnation == 0 || rank(who).told[of] > than;
                },
                fmt::format("rank {} to be told that rank {} has died", r, victim));
        }
    }

    std::vector<Witness> witnesses_of(const Ranks& victims, const Ranks& survivors) {
        std::vector<Witness> witnesses;
        for (const unsigned victim : victims) {
            for (const unsigned r : survivors) {
                const std::uint32_t incarnation = rank(victim).incarnation;
                if (incarnation == 0 || rank(r).incarnation == 0 ||
                    rank(r).heard[victim] != incarnation)
                    continue;
                witnesses.push_back({r, victim, rank(r).told[victim]});
            }
        }
        return witnesses;
    }

    void start_rank(unsigned rank) { processes_.start_rank(rank, course_.seed + ++starts_); }

    /// Its programs must not come first: they would run the node themselves. Where it was run by a
    /// daemon before, they wait.
    void start_daemon(unsigned node) {
        processes_.start_daemon(node);
        if (daemons_killed_ != 0) return;
        const std::string segment = fmt::format("{}@{}", course_.ring, node);
        await(
            [&] {
                try {
                    return Ring::observe(segment)->has_engine();
                } catch (const std::exception&) {
                    return false;  // not there yet
                }
            },
            fmt::format("daemon {} to run its node", node));
        held_.push_back(Ring::attach(segment));
    }

    /// All are in the ring, and each has heard the present incarnation of each.
    void await_settled() {
        const unsigned ranks = course_.settings.ranks;
        await(
            [&] {
                for (unsigned r = 0; r < ranks; ++r) {
                    for (unsigned from = 0; from < ranks; ++from) {
                        const std::uint32_t incarnation = rank(from).incarnation;
                        if (incarnation == 0 || (from != r && rank(r).heard[from] != incarnation))
                            return false;
                    }
                }
                return true;
            },
            "all to hear all");
    }

    void end() {
        const auto all = [this](const std::function<bool(const RestartsOfRank&)>& holds) {
            for (unsigned r = 0; r < course_.settings.ranks; ++r) {
                if (rank(r).incarnation == 0 || !holds(rank(r))) return false;
            }
            return true;
        };
        record_.phase = Phase::ending;
        await([&] { return all([](const RestartsOfRank& r) { return r.done == r.incarnation; }); },
              "all to have the last message of all");
        record_.phase = Phase::meeting;
        await([&] { return all([](const RestartsOfRank& r) { return r.met == r.incarnation; }); },
              "all to come out of the barrier");
        expect_equal_banks();
        record_.phase = Phase::leaving;
        held_.clear();
        processes_.finish();
    }

    /// Where each has its own. Each word has one writer. Of a program that shares its node with
    /// others, its death may leave words in that node's bank that had not left.
    void expect_equal_banks() {
        const RestartSettings& settings = course_.settings;
        if (settings.link == "direct" || (settings.daemons && ranks_killed_ != 0)) return;
        std::vector<std::shared_ptr<Ring>> rings;
        for (unsigned node = 0; node < settings.nodes; ++node) {
            rings.push_back(Ring::observe(settings.is_several_hosts()
                                              ? fmt::format("{}@{}", course_.ring, node)
                                              : course_.ring));
        }
        const std::size_t bytes = rings[0]->config().bank_bytes();
        for (unsigned node = 1; node < settings.nodes; ++node) {
            std::size_t at = 0;  // all before it is equal, or was
            const auto are_equal = [&] {
                for (at = 0; at < bytes; at += 4) {
                    if (word_at(rings[0]->bank(0), at) != word_at(rings[node]->bank(node), at))
                        return false;
                }
                return true;
            };
            if (passes_within(kLongestNs / 4, are_equal)) continue;
            fail(fmt::format("banks 0 and {} differ at {:#x} of {:#x}: {:#x} and {:#x}", node, at,
                             bytes, word_at(rings[0]->bank(0), at),
                             word_at(rings[node]->bank(node), at)));
        }
    }

    void report() const {
        std::uint64_t messages = 0;
        unsigned reopens = 0;
        for (const RestartsOfRank& r : record_.ranks) {
            messages += r.received_in_all();
            reopens += r.reopens;
        }
        fmt::print(
            "{} messages in order; {} ranks and {} daemons were killed, {} ranks had lost their "
            "node\n",
            messages, ranks_killed_, daemons_killed_, reopens);
        if (course_.no_incarnation_may_end)
            check_equal(reopens, 0, "ranks that had lost their node");
        if (!course_.watches_growth) return;
        for (const std::string& line : growth_.summary()) fmt::print("{}\n", line);
        const auto complaints = growth_.complaints();
        for (const std::string& line : complaints) fmt::print("{}\n", line);
        check(complaints.empty(), "something grew");
    }

    /// Waits, while the processes are looked after; fails when it takes too long.
    void await(const std::function<bool()>& holds, const std::string& what) {
        if (passes_within(kLongestNs, holds)) return;
        fail(fmt::format("waited too long for {}\n{}", what, state()));
    }

    bool passes_within(std::int64_t ns, const std::function<bool()>& holds) {
        const std::int64_t deadline = now_ns() + ns;
        while (!holds()) {
            if (now_ns() > deadline) return false;
            look_after();
        }
        return true;
    }

    void look_after() {
        processes_.check_running();
        if (course_.watches_growth && now_ns() >= next_sample_ns_) {
            next_sample_ns_ = now_ns() + kSecondNs;
            growth_.sample(processes_.names());
        }
        std::this_thread::sleep_for(kPoll);
    }

    /// For people who look for the failure.
    std::string state() const {
        std::string text;
        for (unsigned r = 0; r < course_.settings.ranks; ++r) {
            const RestartsOfRank& of = record_.ranks.at(r);
            text += fmt::format("rank {}: incarnation {}, done {}, met {}; of each: heard", r,
                                of.incarnation.load(), of.done.load(), of.met.load());
            for (unsigned s = 0; s < course_.settings.ranks; ++s) {
                text += fmt::format(" {} ({} messages, told {})", of.heard[s].load(),
                                    of.received[s].load(), of.told[s].load());
            }
            text += "\n";
        }
        return text;
    }

    RestartsOfRank& rank(unsigned r) { return record_.ranks.at(r); }

    std::uint64_t random(std::uint64_t below) { return next_random(state_) % below; }

    Course course_;
    RestartRecord& record_;
    RestartProcesses processes_;
    Growth growth_;
    std::uint64_t state_;
    /// Of daemons: where all of a node are dead or have left, its next program would not wait for
    /// the daemon.
    std::vector<std::shared_ptr<Ring>> held_;
    std::int64_t next_sample_ns_ = 0;
    bool settled_ = true;  ///< all were in the ring after the last kill
    unsigned starts_ = 0, ranks_killed_ = 0, daemons_killed_ = 0;
};

}  // namespace rmem::test
