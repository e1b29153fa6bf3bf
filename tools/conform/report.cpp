// SPDX-License-Identifier: Apache-2.0
#include "tools/conform/report.hpp"

#include "rmem/base/check.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace tools::conform {

namespace {

/// Of the first member that has one.
struct Break {
    unsigned member;
    const Finding* finding;
};

Break break_of(const Result& result) {
    unsigned member = 0;
    while (member < result.findings.size() && result.findings[member].breaks == 0) ++member;
    RMEM_CHECK(member < result.findings.size());
    return {member, &result.findings[member]};
}

std::size_t offset_of(const Result& result, const Counterexample& one) {
    return result.at + one.line * kLineBytes;
}

std::string sentence_of(const Result& result) {
    const auto [member, finding] = break_of(result);
    const Counterexample& one = finding->first;
    const std::string what =
        fmt::format(fmt::runtime(result.litmus->breaks[one.how]),
                    fmt::arg("place", offset_text(offset_of(result, one))),
                    fmt::arg("writer", one.writer), fmt::arg("round", one.round),
                    fmt::arg("seen", one.seen), fmt::arg("expected", one.expected));
    return fmt::format("at member {}: {} ({} times)", member, what, finding->breaks);
}

std::uint64_t noted_in(const Result& result) {
    std::uint64_t sum = 0;
    for (const Finding& one : result.findings) sum += one.noted;
    return *result.litmus->note == 0 ? 0 : sum;
}

unsigned rounds_of(const Result& result) {
    unsigned most = 0;
    for (const Finding& one : result.findings) most = std::max(most, one.rounds);
    return most;
}

std::string why_undecided(const Result& result) {
    return fmt::format(
        "{} {}, and {} are needed; make more --rounds, or give each member a "
        "processor",
        result.observations(), result.litmus->observation, result.litmus->enough);
}

std::string rules_text(const Report& report) {
    Table table({"rule", "verdict", ">rounds", ">observations", "what it says"});
    for (const Result& one : report.results) {
        const bool was_run = one.outcome != Outcome::not_offered;
        table.add({one.litmus->name, name_of(one.outcome),
                   was_run ? std::to_string(rounds_of(one)) : "",
                   was_run ? std::to_string(one.observations()) : "", one.litmus->rule});
    }
    return table.text();
}

std::string details_text(const Report& report) {
    std::string text;
    for (const Result& one : report.results) {
        if (one.outcome == Outcome::broken)
            text += fmt::format("\n{} is broken {}\n", one.litmus->name, sentence_of(one));
        if (one.outcome == Outcome::undecided)
            text += fmt::format("\n{} is not decided: {}\n", one.litmus->name, why_undecided(one));
    }
    for (const Result& one : report.results) {
        if (const std::uint64_t noted = noted_in(one); noted != 0)
            text += fmt::format("\n{}: {} {}\n", one.litmus->name, noted, one.litmus->note);
    }
    return text;
}

std::string times_text(const Report& report) {
    Table table({"ns, one way", "members", ">samples", ">least", ">p50", ">p99", ">p99.9", ">max",
                 ">jitter p50", ">p99", ">max"});
    const auto members = static_cast<unsigned>(report.plan.members);
    for (const Result& one : report.results) {
        for (unsigned member = 0; member < one.findings.size(); ++member) {
            const auto& [samples, least, p50, p99, p999, max] = one.findings[member].times;
            if (samples == 0) continue;
            const Times& jitter = one.findings[member].jitter;
            table.add({one.litmus->name, fmt::format("{}, {}", member, (member + 1) % members),
                       std::to_string(samples), std::to_string(least), std::to_string(p50),
                       std::to_string(p99), std::to_string(p999), std::to_string(max),
                       std::to_string(jitter.p50), std::to_string(jitter.p99),
                       std::to_string(jitter.max)});
        }
    }
    return table.empty() ? "" : "\n" + table.text();
}

nlohmann::json json_of(const Times& times) {
    return {{"samples", times.samples}, {"least_ns", times.least}, {"p50_ns", times.p50},
            {"p99_ns", times.p99},      {"p999_ns", times.p999},   {"max_ns", times.max}};
}

nlohmann::json json_of(const Result& result) {
    nlohmann::json members = nlohmann::json::array();
    for (const Finding& one : result.findings) {
        nlohmann::json member = {{"rounds", one.rounds},
                                 {"observations", one.observations},
                                 {"noted", one.noted},
                                 {"breaks", one.breaks}};
        if (one.breaks != 0) {
            member["first"] = {{"writer", one.first.writer},
                               {"round", one.first.round},
                               {"offset", offset_of(result, one.first)},
                               {"seen", one.first.seen},
                               {"expected", one.first.expected}};
        }
        if (one.times.samples != 0) {
            member["times"] = json_of(one.times);
            member["jitter"] = json_of(one.jitter);
        }
        members.push_back(std::move(member));
    }
    nlohmann::json rule = {
        {"name", result.litmus->name},           {"rule", result.litmus->rule},
        {"verdict", name_of(result.outcome)},    {"observation", result.litmus->observation},
        {"observations", result.observations()}, {"needed", result.litmus->enough},
        {"members", std::move(members)}};
    if (*result.litmus->note != 0)
        rule["noted"] = {{"count", noted_in(result)}, {"what", result.litmus->note}};
    if (result.outcome == Outcome::broken) rule["broken"] = sentence_of(result);
    return rule;
}

}  // namespace

bool Report::is_broken() const noexcept {
    return std::any_of(results.begin(), results.end(),
                       [](const Result& one) { return one.outcome == Outcome::broken; });
}

std::string Report::verdict() const {
    const auto count = [&](Outcome outcome) {
        return std::count_if(results.begin(), results.end(),
                             [&](const Result& one) { return one.outcome == outcome; });
    };
    std::string text = fmt::format("{}: of {} rules {} hold", is_broken() ? "broken" : "conforms",
                                   results.size(), count(Outcome::holds));
    for (const Outcome outcome : {Outcome::measured, Outcome::not_offered, Outcome::undecided}) {
        if (const auto some = count(outcome); some != 0)
            text += fmt::format(", {} {} {}", some, some == 1 ? "is" : "are", name_of(outcome));
    }
    std::string broken;
    for (const Result& one : results) {
        if (one.outcome == Outcome::broken)
            broken += fmt::format("{}{}", broken.empty() ? "" : ", ", one.litmus->name);
    }
    return broken.empty() ? text : fmt::format("{}; broken: {}", text, broken);
}

std::string Report::text() const {
    return fmt::format("{}\n{}, {} members, {} bytes at {}\n\n{}{}{}", verdict(), card,
                       plan.members, bytes, offset_text(plan.at), rules_text(*this),
                       details_text(*this), times_text(*this));
}

nlohmann::json Report::json() const {
    nlohmann::json rules = nlohmann::json::array();
    for (const Result& one : results) rules.push_back(json_of(one));
    return {{"verdict", is_broken() ? "broken" : "conforms"},
            {"card", card},
            {"members", plan.members},
            {"at", plan.at},
            {"bytes", bytes},
            {"floor_ns", plan.floor_ns},
            {"rules", std::move(rules)}};
}

}  // namespace tools::conform
