// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The compared systems, in turn, round by round.
///
/// In each round each subject has a ring of its own and two fresh processes, on the same two
/// processors, one subject after the other, every second round in the opposite order. A subject
/// with threads thus costs the others nothing, and no subject keeps the memory that happens to be
/// the fastest. Ratios are taken between the medians of one round, which the same moments of the
/// machine have made.
/// Errors: `rmem::Error` when a subject fails twice in the same round; the first time is told on
/// stderr.
/// Thread safety: none is needed; it forks.

#include "bench/ports/table.hpp"
#include "tools/measure/rank_group.hpp"
#include "tools/measure/samples.hpp"

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace bench {

/// Samples by name.
using Series = std::map<std::string, std::vector<double>>;
/// By rank 0, of its turn; by others without effect.
void report(RankContext& rank, const Series& series);

struct Subject {
    std::string name;
    std::function<void(const GroupOptions&, Results&)> session;
};
/// One that joins a ring; `body` is called by each rank.
Subject on_ring(const std::string& name, std::function<void(RankContext&)> body);

/// 10th, 50th and 90th percentile.
struct Spread {
    double p10 = 0, p50 = 0, p90 = 0;
    std::size_t samples = 0;
};
Spread spread_of(std::vector<double> values);
/// As the fields <name>_p10, <name>, <name>_p90.
void put(Row& row, const std::string& name, const Spread& spread);

class Rounds {
public:
    Rounds(const char* what, const GroupOptions& options, const std::vector<Subject>& subjects,
           unsigned rounds);

    bool has(const std::string& subject, const std::string& series) const;
    /// Of all samples of all rounds.
    Spread of(const std::string& subject, const std::string& series) const;
    /// Each round's median.
    std::vector<double> medians(const std::string& subject, const std::string& series) const;

    /// Each round's samples.
    std::vector<std::vector<double>> each(const std::string& subject,
                                          const std::string& series) const;

private:
    std::map<std::string, std::vector<Series>> all_;  ///< of each subject, by round
};

/// One value of each round over another's.
std::vector<double> quotients(const std::vector<double>& above, const std::vector<double>& below);

}  // namespace bench
