// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The ranks of one ring, each a process with its own environment: a forked one, or on link `sim`
/// one of a simulated world.
///
///     RankProcesses ring({.ranks = 2});
///     ring.start_all([](Rank& me) {
///         if (me.rank == 0) check_ok(bbp_send(1, "hello", 6));
///         if (me.rank == 1) check_code(bbp_recv(0, text, sizeof text, &size), 0);
///     });
///     ring.finish();
///
/// A body runs between bbp_init and bbp_finalize, both checked, once all ranks have come out of
/// bbp_init (`start_bare`: only in the ring's environment, without any of that). A check that fails
/// in it, an exception, a crash and a rank that does not end before the deadline fail the test with
/// one sentence each. Once a rank has failed, the others have a short grace, so that one fault does
/// not cost the whole deadline. Ring names hold the test's pid; `finish` fails if the ring has left
/// anything in /dev/shm.
///
/// Ranks and test coordinate through `Shared`, words in a mapping of their own, so that a check of
/// the ring never depends on the ring. Fork only from a test without threads.
///
/// Time is the host's, and on `sim` virtual: ranks wait with `await` and `rest` and tests with the
/// members of RankProcesses, never by themselves, and a simulated world goes on only in these
/// members. There, too, word from process to process takes a while, in which the ring brings what
/// was sent before. Tests that need real processes are skipped there.
/// Thread safety: one thread. Errors: gtest failures; `CheckFailed` from `await`.

#include "tests/support/checks.hpp"

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rmem::test {

inline constexpr std::chrono::seconds kTestDeadline{60};
inline constexpr std::chrono::seconds kAwaitDeadline{30};
inline constexpr std::chrono::seconds kGrace{3};
inline constexpr unsigned kMaxTestRanks = 64;

/// The environment of the ranks of a ring.
struct RingSetup {
    unsigned ranks = 2;
    std::string link = "direct";
    std::string timing = "none";
    std::string layout = "inline";
    std::size_t partition = 16384;
    std::string join_timeout = "20s";
    std::map<std::string, std::string> extra;  ///< further variables
    std::chrono::seconds deadline = kTestDeadline;
};

/// Memory that the test and all its ranks share, apart from the ring's.
struct Shared {
    std::array<std::atomic<std::uint32_t>, 1024> words;
    std::array<Place, kMaxTestRanks> places;  ///< the last check that each rank came to
    std::atomic<std::uint32_t> joined;        ///< processes that have come out of bbp_init
    std::atomic<std::uint32_t> dying;         ///< processes that RankProcesses::kill is ending

    std::atomic<std::uint32_t>& operator[](std::size_t i) { return words.at(i); }
};

/// Waits until `holds`; fails when it does not within kAwaitDeadline.
void await(const std::function<bool()>& holds, std::string_view what, Place place = Place::here());

/// Whether it is a simulated rank that asks.
bool is_simulated();

/// The clock that deadlines of this rank run by, from an unspecified beginning.
std::int64_t clock_ns();

/// Does nothing for this long.
void rest(std::chrono::nanoseconds time);

/// Sets an environment variable of this rank, or unsets it.
void set_variable(const std::string& name, const std::optional<std::string>& value);

/// A rank, as its body sees it.
struct Rank {
    int rank = 0;
    int ranks = 0;
    std::size_t partition = 0;
    Shared& shared;

    /// Raises a word by one, or waits until it has at least this value.
    void raise(std::size_t word) { ++shared[word]; }
    void await_word(std::size_t word, std::uint32_t value = 1, Place place = Place::here());

    /// bbp_finalize now instead of after the body. Waits first until nobody is dying at the test's
    /// hands: a killed process lets go of its locks one after the other, so it may be known as dead
    /// and still count as a member. A rank that leaves in between must let the segment stand.
    void leave(Place place = Place::here());

    bool joined = false;
};

using Body = std::function<void(Rank&)>;

/// One incarnation of a rank.
struct RankRun {
    unsigned rank = 0;
    Body body;
    bool joins = false;  ///< the body runs between bbp_init and bbp_finalize
    std::map<std::string, std::string> changes;  ///< of its environment; "": unset
    std::string doomed;                          ///< the mark at which it must be killed
};

/// A host for the ranks of a RankProcesses, which documents each function.
class RankHost {
public:
    RankHost() = default;
    virtual ~RankHost() = default;
    RankHost(const RankHost&) = delete;
    RankHost& operator=(const RankHost&) = delete;

    virtual Shared& shared() = 0;
    virtual void start(RankRun rank_run) = 0;
    virtual void kill(unsigned rank) = 0;
    virtual void stop(unsigned rank) = 0;
    virtual void resume(unsigned rank) = 0;
    virtual void await_value(const std::atomic<std::uint32_t>& word, std::uint32_t value,
                             std::string_view name, Place place) = 0;
    virtual void wait(unsigned rank) = 0;
    virtual void let_pass(std::chrono::nanoseconds time) = 0;
    virtual void finish() = 0;
};

/// Forked processes (forked_ranks.cpp), or simulated ones (simulated_ranks.cpp).
std::unique_ptr<RankHost> forked_ranks(const RingSetup& setup, const std::string& ring);
std::unique_ptr<RankHost> simulated_ranks(const RingSetup& setup, const std::string& ring);

/// At its end it kills what still runs and removes what is left of the ring.
class RankProcesses {
public:
    explicit RankProcesses(RingSetup setup);
    RankProcesses(const RankProcesses&) = delete;

    const RingSetup& setup() const { return setup_; }
    const std::string& name() const { return name_; }
    Shared& shared() { return host_->shared(); }

    void start_all(const Body& body) {
        for (unsigned rank = 0; rank < setup_.ranks; ++rank) start(rank, body);
    }
    /// Also starts a rank again that has ended or was killed.
    void start(unsigned rank, const Body& body) { host_->start({rank, body, true, {}, {}}); }
    /// Another process of the environment, with changes ("": unset), that calls bbp_init itself.
    void start_bare(unsigned rank, const Body& body,
                    const std::map<std::string, std::string>& changes = {}) {
        host_->start({rank, body, false, changes, {}});
    }

    /// As start_bare, of a process that must die at this RMEM_MARK ("<mark>[:<n>]"); only for tests
    /// that are `marked`.
    void start_doomed(unsigned rank, const Body& body, const std::string& mark) {
        host_->start({rank, body, false, {}, mark});
    }

    /// SIGKILL, and waits until it has ended.
    void kill(unsigned rank) { host_->kill(rank); }
    /// SIGSTOP, and waits until it has stopped.
    void stop(unsigned rank) { host_->stop(rank); }
    void resume(unsigned rank) { host_->resume(rank); }

    /// Waits until every rank has come out of bbp_init.
    void await_all_joined(Place place = Place::here()) {
        host_->await_value(shared().joined, setup_.ranks, "the number of joined ranks", place);
    }
    /// Waits until a shared word has at least this value; fails early when a rank has failed.
    void await_word(std::size_t word, std::uint32_t value = 1, Place place = Place::here()) {
        host_->await_value(shared()[word], value, fmt::format("shared word {}", word), place);
    }
    /// Waits until the latest process of this rank has ended.
    void wait(unsigned rank) { host_->wait(rank); }

    /// Time for the ranks.
    void let_pass(std::chrono::nanoseconds time) { host_->let_pass(time); }

    /// Waits for every rank, reports failures and the files that the ring has left over.
    void finish() { host_->finish(); }

private:
    RingSetup setup_;
    std::string name_;
    std::unique_ptr<RankHost> host_;  // which refers to both
};

/// Runs the body in all ranks, as start does, until they have ended.
inline void run_members(const RingSetup& setup, const Body& body) {
    RankProcesses ring(setup);
    ring.start_all(body);
    ring.finish();
}
/// The same, as start_bare does.
inline void run_ranks(const RingSetup& setup, const Body& body,
                      const std::map<std::string, std::string>& changes = {}) {
    RankProcesses ring(setup);
    for (unsigned r = 0; r < setup.ranks; ++r) ring.start_bare(r, body, changes);
    ring.finish();
}

// ---- What hosts share

/// All that a rank finds in its environment, "" where it must find nothing.
std::map<std::string, std::string> environment_of(const RingSetup& setup, const std::string& ring,
                                                  const RankRun& rank_run);

/// Runs the body, in the rank's process. Throws what the body does, and CheckFailed.
void live(const RankRun& rank_run, const RingSetup& setup, Shared& shared);

/// "at file:line", of the last check that a rank came to.
std::string describe(Place place);

}  // namespace rmem::test
