// SPDX-License-Identifier: Apache-2.0
// `rmem doctor`: is this host fit for rings, and if not, what to do?

#include "billboard/environment.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/ring/ring.hpp"
#include "tools/commands.hpp"
#include "tools/doctor/checks.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <memory>
#include <string>

namespace tools {

namespace {

constexpr const char* kDoctorExamples = R"(
Examples:
  rmem doctor                           for jobs of four ranks
  rmem doctor -n 16                     for jobs of sixteen
  RMEM_LINK=udp RMEM_INTERFACE=eth0 rmem doctor
                                        for a ring over several hosts
  rmem doctor --fabric                  providers of libfabric for link fabric: which, how fast
  rmem doctor --json | jq '.findings[] | select(.verdict != "ok")'

The settings of the environment (RMEM_LINK, RMEM_SIZE, …) decide the needs of a ring; without
RMEM_LINK=udp a fault of the network is a warning.
Exit codes: 0 no check failed (warnings cost speed, not function), 1 one did, 2 wrong command
line.)";

const char* verdict_text(Verdict verdict) {
    switch (verdict) {
        case Verdict::ok: return "ok";
        case Verdict::warn: return "warn";
        case Verdict::fail: return "fail";
    }
    return "?";
}

std::string coloured(Verdict verdict) {
    const int colour = verdict == Verdict::ok ? 32 : verdict == Verdict::warn ? 33 : 31;
    const std::string text = fmt::format("{:<4}", verdict_text(verdict));
    return is_colourful(STDOUT_FILENO) ? fmt::format("\x1b[{}m{}\x1b[0m", colour, text) : text;
}

std::string line_of(const Finding& finding) {
    std::string line =
        fmt::format("{}  {:<14} {}\n", coloured(finding.verdict), finding.name, finding.found);
    if (!finding.advice.empty()) line += fmt::format("{:21}-> {}\n", "", finding.advice);
    return line;
}

Finding check_settings() {
    const auto unread = rmem::unread_settings();
    if (unread.empty()) return {"settings", Verdict::ok, "something reads each RMEM_ variable", ""};
    return {"settings", Verdict::warn, fmt::format("nothing reads {}", fmt::join(unread, ", ")),
            "unset what is no other program's; rmem(7) has the names of all settings"};
}

CheckedJob job_of(unsigned ranks) {
    rmem::Environment environment = rmem::Environment::read();
    environment.ranks = ranks;
    environment.nodes.reset();
    return {ranks, rmem::SegmentLayout(billboard::ring_config(environment)).reserved};
}

std::vector<Finding> check_host(unsigned ranks) {
    const CheckedJob job = job_of(ranks);
    auto findings = check_memory(job);
    findings.push_back(check_settings());
    for (const auto& more : {check_processors(job), check_network()}) {
        findings.insert(findings.end(), more.begin(), more.end());
    }
    return findings;
}

void doctor(unsigned ranks, bool of_fabric, bool as_json) {
    const auto findings = of_fabric ? check_fabric() : check_host(ranks);

    nlohmann::json report = nlohmann::json::array();
    std::string text;
    unsigned warnings = 0, failures = 0;
    for (const auto& finding : findings) {
        if (finding.verdict == Verdict::warn) ++warnings;
        if (finding.verdict == Verdict::fail) ++failures;
        text += line_of(finding);
        report.push_back({{"name", finding.name},
                          {"verdict", verdict_text(finding.verdict)},
                          {"found", finding.found},
                          {"advice", finding.advice}});
    }
    text +=
        fmt::format("{} checks: {} warnings, {} failures\n", findings.size(), warnings, failures);
    if (as_json) {
        show_json({{"ranks", ranks},
                   {"findings", report},
                   {"warnings", warnings},
                   {"failures", failures}});
    } else {
        show(text);
    }
    if (failures != 0) end_with(kExitFailed);
}

}  // namespace

void add_doctor(cli::App& app) {
    struct Options {
        unsigned ranks = 4;
        bool fabric = false, json = false;
    };
    auto options = std::make_shared<Options>();
    cli::App* command = app.add_subcommand("doctor", "Check this host for troubles of rings");
    command->add_option("-n,--ranks", options->ranks, "For jobs of this many ranks")
        ->check(cli::range(1U, rmem::kMaxRanks))
        ->capture_default_str();
    command->add_flag("--fabric", options->fabric,
                      "Check libfabric's providers for link fabric, and nothing else");
    command->add_flag("--json", options->json, "Print JSON");
    command->footer(kDoctorExamples);
    command->callback([options] { doctor(options->ranks, options->fabric, options->json); });
}

}  // namespace tools
