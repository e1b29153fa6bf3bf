// SPDX-License-Identifier: Apache-2.0
// `rmem sim hunt`: seeds of faults and traffic, until something breaks.

#include "rmem/ring/waiting/waiting.hpp"
#include "simulator/bbp_hunt/hunt.hpp"
#include "simulator/hunt/jobs.hpp"
#include "simulator/mpi_hunt/hunt.hpp"
#include "simulator/udp_hunt/hunt.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/sim/sim.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <string>

namespace tools {

namespace {

constexpr const char* kSimHuntExamples = R"(
A seed is four simulated ranks that exchange at least 2000 messages while at least 20 faults meet
them: writes delayed, lost or repeated, cables cut, links clogged, processes stopped and killed,
cards failing and coming back. Every event is checked; equal seeds are equal runs. With --link udp
a seed is two to five nodes of the udp link that write while datagrams are lost, doubled,
overtaken, damaged and held up, links are cut one way or both, and nodes die, leave, come late and
come back. With --mpi a seed is four ranks that send each other 300 messages by MPI's device over
the billboard, with tags, from any source, short, eager and by rendezvous, and cancel, peek and
claim, while 10 faults meet them; a plain model says which receive each must end in. The table
says how often each fault was met; one that was never met fails the hunt, for it was not tested.

Examples:
  rmem sim hunt --seeds 1000            seeds 1 to 1000, on all processors
  rmem sim hunt --seeds 100 --first 7   seeds 7 to 106
  rmem sim hunt --link udp --seeds 1000 the protocol of the udp link
  rmem sim hunt --mpi --seeds 1000      MPI's messages over the billboard
  rmem sim replay 42                    the events of seed 42

Exit codes: 0 nothing found, 1 something was found (or never met), 2 wrong command line.)";

struct HuntCommand {
    std::string link = "ring";
    bool mpi = false;
    std::uint64_t seeds = 1000;
    std::uint64_t first = 1;
    unsigned jobs = 0;
    bool no_shrink = false;
    bool hash = false;
    bool json = false;
};

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
    return std::chrono::duration<double>(Clock::now() - start).count();
}

/// One line on a terminal, written over and over.
class Progress {
public:
    explicit Progress(std::uint64_t seeds) : seeds_(seeds), is_on_(::isatty(2) == 1) {}
    ~Progress() { clear(); }

    void operator()(std::uint64_t done, std::size_t failed) {
        if (!is_on_ || seconds_since(last_) < 0.5) return;
        last_ = Clock::now();
        const double elapsed = seconds_since(start_);
        const double left =
            done == 0 ? 0
                      : elapsed * static_cast<double>(seeds_ - done) / static_cast<double>(done);
        fmt::print(stderr, "\r{} of {} seeds, {} failed, {:.0f} s left \x1b[K", done, seeds_,
                   failed, left);
        std::fflush(stderr);
    }
    void clear() {
        if (is_on_) fmt::print(stderr, "\r\x1b[K");
    }

private:
    std::uint64_t seeds_;
    bool is_on_;
    Clock::time_point start_ = Clock::now(), last_ = start_;
};

std::string met_text(const simulator::HuntResult& result) {
    Table table({"fault or coverage mark", ">met"});
    for (const auto& fault : result.kinds.faults) {
        table.add({fault.name, fmt::format("{}", result.all.faults.at(fault.place))});
    }
    for (const auto& mark : result.kinds.coverage) {
        table.add({mark.name, fmt::format("{}", result.all.coverage.at(mark.place))});
    }
    return table.text();
}

/// The failing seeds, and of the first one what is left when all is left out that it does not need.
std::string failures_text(const simulator::HuntResult& result, const simulator::Subject& subject,
                          bool may_shrink) {
    std::string text;
    for (const simulator::FailedSeed& failed : result.failed) {
        text += fmt::format("seed {} (version {}, commit {}): {}\n", failed.seed, RMEM_TOOL_VERSION,
                            RMEM_COMMIT, failed.sentence);
    }
    const auto first = std::find_if(result.failed.begin(), result.failed.end(),
                                    [](const simulator::FailedSeed& f) { return !f.crashed; });
    if (first == result.failed.end() || !may_shrink) return text;
    return text + fmt::format(
                      "\nThe smallest form of the first one; a line for {} once it is fixed:\n"
                      "  rmem sim replay {} {} --trace\n",
                      subject.seeds_file, subject.shrink(first->seed), subject.option);
}

nlohmann::json hunt_json(const simulator::HuntResult& result, double seconds) {
    nlohmann::json json = {{"seeds", result.seeds},
                           {"seconds", seconds},
                           {"messages", result.all.messages},
                           {"faults_injected", result.all.injected},
                           {"events", result.all.events},
                           {"commit", RMEM_COMMIT},
                           {"failed", nlohmann::json::array()},
                           {"never_met", result.never_met()}};
    for (const auto& failed : result.failed) {
        json["failed"].push_back({{"seed", failed.seed}, {"sentence", failed.sentence}});
    }
    for (const auto& fault : result.kinds.faults) {
        json["faults"][fault.name] = result.all.faults.at(fault.place);
    }
    for (const auto& mark : result.kinds.coverage) {
        json["coverage"][mark.name] = result.all.coverage.at(mark.place);
    }
    if (result.all.hash != 0) json["hash"] = fmt::format("{:016x}", result.all.hash);
    return json;
}

void hunt(const HuntCommand& command) {
    simulator::HuntPlan plan;
    plan.subject = command.mpi                ? simulator::mpi::subject()
                   : command.link == "udp"    ? simulator::udp::subject()
                   : command.link == "fabric" ? simulator::udp::fabric_subject()
                                              : simulator::bbp::subject();
    plan.first = command.first;
    plan.seeds = command.seeds;
    plan.jobs = command.jobs != 0 ? command.jobs : rmem::allowed_processors();
    plan.hash = command.hash;
    const auto start = Clock::now();
    Progress progress(plan.seeds);
    const simulator::HuntResult result = simulator::hunt(plan, std::ref(progress));
    progress.clear();
    const double seconds = seconds_since(start);
    const auto never_met = result.never_met();
    if (command.json) {
        show_json(hunt_json(result, seconds));
    } else {
        std::string text =
            met_text(result) + "\n" + failures_text(result, plan.subject, !command.no_shrink);
        for (const std::string& name : never_met) {
            text += fmt::format("never met: {}; run more seeds\n", name);
        }
        text += fmt::format(
            "{} seeds, {} failed; {} messages, {} faults, {} events; {:.1f} s, {:.0f} seeds an "
            "hour\n",
            result.seeds, result.failed.size(), result.all.messages, result.all.injected,
            result.all.events, seconds, static_cast<double>(result.seeds) / seconds * 3600);
        if (command.hash) text += fmt::format("trace hash {:016x}\n", result.all.hash);
        show(text);
    }
    if (!result.failed.empty() || !never_met.empty()) end_with(kExitFailed);
}

}  // namespace

void add_sim_hunt(cli::App& sim) {
    auto options = std::make_shared<HuntCommand>();
    cli::App* command =
        sim.add_subcommand("hunt", "Look for faults: random traffic under random trouble");
    command->footer(kSimHuntExamples);
    cli::Option* link = command
                            ->add_option("--link", options->link,
                                         "ring: the billboard on it; udp, fabric: their protocol")
                            ->check(cli::is_member({"ring", "udp", "fabric"}));
    command->add_flag("--mpi", options->mpi, "MPI's messages over the billboard")->excludes(link);
    command->add_option("--seeds", options->seeds, "How many")
        ->check(cli::range(std::uint64_t{1}, std::uint64_t{1} << 40));
    command->add_option("--first", options->first, "The first one");
    command->add_option("--jobs", options->jobs, "Processes at once (default: the processors)")
        ->check(cli::range(1U, 256U));
    command->add_flag("--no-shrink", options->no_shrink, "Leave a failing seed as large as it is");
    command->add_flag("--hash", options->hash, "Print a hash of all that happened");
    command->add_flag("--json", options->json, "For programs");
    command->callback([options] { hunt(*options); });
}

}  // namespace tools
