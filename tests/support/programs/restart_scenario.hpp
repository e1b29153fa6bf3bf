// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The course of ring-restarts: all ranks talk; again and again some processes are killed and
/// started again, by the seed; in the end all are in one ring, everybody has heard the present
/// incarnation of everybody, and has had each message; there is a barrier, and banks are equal.
/// Thread safety: one thread. Errors: `CheckFailed`, which says who did not do what.

#include "rmem/ring/ring.hpp"
#include "tests/support/programs/growth.hpp"
#include "tests/support/programs/restart_processes.hpp"
#include "tests/support/programs/restart_record.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

namespace rmem::test {

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
    RestartScenario(Course course, RestartRecord& record, const std::string& record_file);

    void run();

private:
    using Ranks = std::set<unsigned>;
    /// A rank that has heard an incarnation which now ends, and must be told.
    struct Witness {
        unsigned rank = 0, of = 0;
        std::uint32_t told_before = 0;
    };

    void talk();
    void kill_some();
    std::set<unsigned> choose_victims(std::set<unsigned>& daemons);
    void restart(const Ranks& ranks, const std::set<unsigned>& daemons);
    void expect_others_go_on(const Ranks& survivors);
    void expect_told(const std::vector<Witness>& witnesses);
    std::vector<Witness> witnesses_of(const Ranks& victims, const Ranks& survivors);
    void start_rank(unsigned rank);
    void start_daemon(unsigned node);
    void await_settled();
    void end();
    void expect_equal_banks();
    void report() const;

    /// Waits, while the processes are looked after; fails when it takes too long.
    void await(const std::function<bool()>& holds, const std::string& what);
    bool passes_within(std::int64_t ns, const std::function<bool()>& holds);
    void look_after();
    std::string state() const;

    RestartsOfRank& rank(unsigned r) { return record_.ranks.at(r); }
    std::uint64_t random(std::uint64_t below);

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
