// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/rounds.hpp"

#include "bench/ports/progress.hpp"

#include <fmt/format.h>

namespace bench {

namespace {

Series live(const Subject& subject, const GroupOptions& options) {
    Results results;
    subject.session(options, results);
    return results.all();
}

}  // namespace

void report(RankContext& rank, const Series& series) {
    if (rank.rank != 0) return;
    for (const auto& [name, values] : series) rank.results.put(name, values);
}

Subject on_ring(const std::string& name, std::function<void(RankContext&)> body) {
    return {name, [body = std::move(body)](const GroupOptions& options, Results& results) {
                run_ranks(options, results, body);
            }};
}

Spread spread_of(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    return {quantile(values, 0.1), quantile(values, 0.5), quantile(values, 0.9), values.size()};
}

void put(Row& row, const std::string& name, const Spread& spread) {
    row[name + "_p10"] = spread.p10;
    row[name] = spread.p50;
    row[name + "_p90"] = spread.p90;
}

Rounds::Rounds(const char* what, const GroupOptions& options, const std::vector<Subject>& subjects,
               unsigned rounds) {
    Progress progress(what);
    for (unsigned round = 0; round < rounds; ++round) {
        for (std::size_t i = 0; i < subjects.size(); ++i) {
            const Subject& subject = subjects[round % 2 == 0 ? i : subjects.size() - 1 - i];
            progress.tell(fmt::format("round {} of {}, {}", round + 1, rounds, subject.name));
            try {
                all_[subject.name].push_back(live(subject, options));
            } catch (const rmem::Error& once) {
                fmt::print(stderr, "{}: {}: {}; once more\n", what, subject.name, once.what());
                all_[subject.name].push_back(live(subject, options));
            }
        }
    }
}

bool Rounds::has(const std::string& subject, const std::string& series) const {
    const auto found = all_.find(subject);
    return found != all_.end() && !found->second.empty() &&
           found->second.front().count(series) != 0;
}

Spread Rounds::of(const std::string& subject, const std::string& series) const {
    std::vector<double> values;
    for (const auto& round : each(subject, series))
        values.insert(values.end(), round.begin(), round.end());
    return spread_of(std::move(values));
}

std::vector<double> Rounds::medians(const std::string& subject, const std::string& series) const {
    std::vector<double> result;
    for (auto& round : each(subject, series)) result.push_back(median(std::move(round)));
    return result;
}

std::vector<std::vector<double>> Rounds::each(const std::string& subject,
                                              const std::string& series) const {
    std::vector<std::vector<double>> result;
    for (const Series& round : all_.at(subject)) result.push_back(round.at(series));
    return result;
}

std::vector<double> quotients(const std::vector<double>& above, const std::vector<double>& below) {
    std::vector<double> result;
    for (std::size_t i = 0; i < above.size() && i < below.size(); ++i)
        result.push_back(above[i] / below[i]);
    return result;
}

}  // namespace bench
