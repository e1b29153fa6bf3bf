// SPDX-License-Identifier: Apache-2.0
// `rmem sim replay`: one seed of the hunt again, with all that happens.

#include <fmt/format.h>

#include <cstdio>
#include <memory>
#include <string>

#include "simulator/hunt/hunt.hpp"
#include "tools/output.hpp"
#include "tools/sim.hpp"

namespace tools {

namespace {

constexpr const char* kExamples = R"(
The columns of a trace:
  time_us  virtual time           event  what happened (below)
  node     where                  rank   the process that did it, or -
  origin   of a write: the node it comes from; write: that node's count of writes
  offset   of a write: place in the memory; bytes; value: its first word
Events of a write: stored (by the process, into its card), sent (its bits go on the wire), arrived (in
node's memory), returned (come round, removed), lost (nodes behind this one do not get it), repeated and
stray (came by again, dropped), late (beyond the bound), delayed (by a fault). Others: started, ended,
killed, stopped, continued, failed, joined (nodes), cut, mended (cables; value: ring 0 or 1).

Examples:
  rmem sim replay 42                    its ring, its faults, and what it broke
  rmem sim replay 42 --trace            and every event
  rmem sim replay 42:messages=300,faults=2.5 --trace     as a failing hunt has printed it

Exit codes: 0 nothing broken, 1 something was, 2 wrong command line.)";

struct ReplayCommand {
    std::string seed;
    bool trace = false;
};

/// Writes as it goes: a trace may have a million lines.
class TraceWriter final : public rmem::sim::Observer {
public:
    TraceWriter() { show(rmem::sim::trace_header()); }
    ~TraceWriter() override { flush(); }
    void on_event(const rmem::sim::Event& event) override {
        text_ += rmem::sim::trace_line(event);
        if (text_.size() > kBytes) flush();
    }

private:
    static constexpr std::size_t kBytes = 64 * 1024;
    void flush() {
        show(text_);
        text_.clear();
    }
    std::string text_;
};

std::string scenario_text(const simulator::Scenario& s) {
    std::string text = fmt::format(
        "seed {}: {} ranks, {} messages; timing {}, layout {}, partition {} B, barrier {}; host: "
        "store "
        "{} ns, load {} ns, call {} ns\n",
        s.text(), simulator::Scenario::kRanks, s.messages, rmem::to_string(s.timing),
        billboard::name_of(s.settings.board.layout), s.settings.board.data_bytes,
        s.settings.barrier == billboard::BarrierKind::paper ? "paper" : "arrival", s.host.store_ns,
        s.host.load_ns, s.host.call_ns);
    Table table(
        {"fault", ">target", ">at message", ">accesses", ">writes", ">time us", "comes back"});
    for (const simulator::Fault& f : s.faults) {
        table.add({simulator::name_of(f.kind), fmt::format("{}", f.target),
                   fmt::format("{}", f.at_message), fmt::format("{}", f.accesses),
                   fmt::format("{}", f.writes),
                   fmt::format("{}.{:03}", f.time_ns / 1000, f.time_ns % 1000),
                   f.comes_back ? "yes" : "no"});
    }
    return text + table.text();
}

void replay(const ReplayCommand& command) {
    const simulator::Scenario scenario = simulator::Scenario::parse(command.seed);
    show(scenario_text(scenario) + "\n");
    simulator::HuntOptions options;
    options.hash = true;
    std::unique_ptr<TraceWriter> trace;
    if (command.trace) trace = std::make_unique<TraceWriter>();
    options.trace = trace.get();
    const simulator::Findings findings = simulator::run_scenario(scenario, options);
    trace.reset();
    std::string text;
    for (const std::string& sentence : findings.violations) text += "broken: " + sentence + "\n";
    show(text + fmt::format("{} messages, {} events, trace hash {:016x}: {}\n", findings.messages,
                            findings.events, findings.hash,
                            findings.violations.empty() ? "nothing broken" : "broken"));
    if (!findings.violations.empty()) end_with(kExitFailed);
}

}  // namespace

void add_sim_replay(CLI::App& sim) {
    auto options = std::make_shared<ReplayCommand>();
    CLI::App* command = sim.add_subcommand("replay", "One seed of the hunt again, event by event");
    command->footer(kExamples);
    command->add_option("seed", options->seed, "The seed, as a number or as a hunt has printed it")
        ->required();
    command->add_flag("--trace", options->trace, "Every event");
    command->callback([options] { replay(*options); });
}

}  // namespace tools
