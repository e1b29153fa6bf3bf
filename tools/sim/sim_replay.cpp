// SPDX-License-Identifier: Apache-2.0
// `rmem sim replay`: one seed of the hunt again, with all that happens.

#include "simulator/bbp_hunt/hunt.hpp"
#include "simulator/mpi_hunt/hunt.hpp"
#include "simulator/udp_hunt/hunt.hpp"
#include "simulator/udp_hunt/trace.hpp"
#include "tools/output.hpp"
#include "tools/sim/sim.hpp"
#include "tools/usage.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <span>
#include <string>

namespace tools {

namespace {

constexpr const char* kSimReplayExamples = R"(
The columns of a trace:
  time_us  virtual time           event  what happened (below)
  node     where                  rank   the process that did it, or -
  origin   of a write: the node it comes from; write: that node's count of writes
  offset   of a write: place in the memory; bytes; value: its first word
Events of a write: stored (by the process, into its card), sent (its bits go on the wire), arrived
(in node's memory), returned (come round, removed), lost (nodes after this one do not get it),
repeated and stray (came by again, dropped), late (beyond the bound), delayed (by a fault).
Others: started, ended, killed, stopped, continued, failed, joined (nodes), cut, mended (cables;
value: ring 0 or 1). Of the udp link: time_us, node, event (sent, arrived, overflowed: its socket
was full; wrote, applied; joined, dropped, came, left; a fault's name), the other node, and a
number or the datagram's contents.

Examples:
  rmem sim replay 42                    its ring, its faults, and what it broke
  rmem sim replay 42 --trace            and every event
  rmem sim replay 42:messages=300,faults=2.5 --trace     as a failing hunt has printed it
  rmem sim replay 42 --link udp --trace  a seed of rmem sim hunt --link udp
  rmem sim replay 42 --mpi              a seed of rmem sim hunt --mpi

Exit codes: 0 nothing broken, 1 something was, 2 wrong command line.)";

struct ReplayCommand {
    std::string seed;
    std::string link = "ring";
    bool mpi = false;
    bool trace = false;
};

/// Writes as it goes: a trace may have a million lines. They come from within simulated processes,
/// through which nothing may be thrown: end() throws the error.
class LineWriter {
public:
    void add(const std::string& line) noexcept {
        if (failure_) return;
        text_ += line;
        if (text_.size() > kBytes) flush();
    }
    void end() {
        flush();
        if (failure_) std::rethrow_exception(failure_);
    }

private:
    void flush() noexcept {
        try {
            if (!failure_) show(text_);
        } catch (...) {
            failure_ = std::current_exception();
        }
        text_.clear();
    }

    static constexpr std::size_t kBytes = 64 * 1024;
    std::string text_;
    std::exception_ptr failure_;
};

class TraceWriter final : public rmem::sim::Observer {
public:
    TraceWriter() { lines_.add(rmem::sim::trace_header()); }
    void end() { lines_.end(); }
    void on_event(const rmem::sim::Event& event) override {
        lines_.add(rmem::sim::trace_line(event));
    }

private:
    LineWriter lines_;
};

/// A seed of a hunt on the simulated ring; `what` it is beside that.
template <class Scenario>
std::string ring_scenario_text(const Scenario& s, const std::string& what) {
    std::string text = fmt::format(
        "seed {}: {} ranks, {} messages; timing {}, layout {}, partition {} B, {}; host: store {} "
        "ns, load {} ns, call {} ns\n",
        s.text(), Scenario::kRanks, s.messages, rmem::to_string(s.timing),
        billboard::name_of(s.settings.board.layout), s.settings.board.data_bytes, what,
        s.host.store_ns, s.host.load_ns, s.host.call_ns);
    Table table(
        {"fault", ">target", ">at message", ">accesses", ">writes", ">time us", "comes back"});
    for (const simulator::Fault& f : s.faults) {
        table.add({name_of(f.kind), fmt::format("{}", f.target), fmt::format("{}", f.at_message),
                   fmt::format("{}", f.accesses), fmt::format("{}", f.writes),
                   fmt::format("{}.{:03}", f.time_ns / 1000, f.time_ns % 1000),
                   f.comes_back ? "yes" : "no"});
    }
    return text + table.text();
}

std::string scenario_text(const simulator::bbp::Scenario& s) {
    const bool is_paper = s.settings.barrier == billboard::BarrierKind::paper;
    return ring_scenario_text(s, is_paper ? "barrier paper" : "barrier arrival");
}

std::string scenario_text(const simulator::mpi::Scenario& s) {
    return ring_scenario_text(s, s.heavy ? "many large messages" : "mostly short messages");
}

std::string scenario_text(const simulator::udp::Scenario& s) {
    simulator::Weather weather = s.weather;
    using Fault = simulator::Weather::Fault;
    std::string text = fmt::format(
        "seed {}: {} nodes, {} messages, {} key; history {} batches, socket {} datagrams; "
        "datagrams of {} B; first sequence {}; network: {} to {} us, of a thousand datagrams {} "
        "lost, {} doubled, {} "
        "damaged\n",
        s.text(), s.nodes, s.messages, s.has_key ? "with a" : "no", s.most_batches, s.socket_room,
        fmt::join(std::span(s.payloads).first(s.nodes), ", "), s.first_sequence,
        weather.delay_ns / 1000, (weather.delay_ns + weather.jitter_ns) / 1000,
        weather.of(Fault::drop), weather.of(Fault::duplicate), weather.of(Fault::corrupt));
    Table table(
        {"fault", ">target", ">other", ">at message", ">of 1000", ">time us", "comes back"});
    for (const simulator::udp::Fault& f : s.faults) {
        table.add({simulator::udp::name_of(f.kind), fmt::format("{}", f.target),
                   fmt::format("{}", f.other), fmt::format("{}", f.at_message),
                   fmt::format("{}", f.chance),
                   fmt::format("{}.{:03}", f.time_ns / 1000, f.time_ns % 1000),
                   f.comes_back ? "yes" : "no"});
    }
    return text + table.text();
}

void show_end(const simulator::Findings& findings) {
    std::string text;
    for (const std::string& sentence : findings.violations) text += "broken: " + sentence + "\n";
    show(text + fmt::format("{} messages, {} events, trace hash {:016x}: {}\n", findings.messages,
                            findings.events, findings.hash,
                            findings.violations.empty() ? "nothing broken" : "broken"));
    if (!findings.violations.empty()) end_with(kExitFailed);
}

template <class Scenario>
Scenario scenario_of(const std::string& seed) {
    try {
        return Scenario::parse(seed);
    } catch (const rmem::Error& error) {
        throw UsageError(error.sentence());
    }
}

void replay_udp(const ReplayCommand& command) {
    const auto scenario = scenario_of<simulator::udp::Scenario>(command.seed);
    show(scenario_text(scenario) + "\n");
    simulator::udp::HuntOptions options;
    options.hash = true;
    options.is_fabric = command.link == "fabric";
    LineWriter lines;
    if (command.trace) {
        lines.add(simulator::udp::trace_header());
        options.trace = [&lines](const std::string& line) { lines.add(line); };
    }
    const simulator::Findings findings = simulator::udp::run_scenario(scenario, options);
    lines.end();
    show_end(findings);
}

/// A hunt in a world.
template <class Scenario, class HuntOptions>
void replay_in_world(const ReplayCommand& command) {
    const auto scenario = scenario_of<Scenario>(command.seed);
    show(scenario_text(scenario) + "\n");
    HuntOptions options;
    options.hash = true;
    std::unique_ptr<TraceWriter> trace;
    if (command.trace) trace = std::make_unique<TraceWriter>();
    options.trace = trace.get();
    const simulator::Findings findings = run_scenario(scenario, options);
    if (trace) trace->end();
    show_end(findings);
}

void replay(const ReplayCommand& command) {
    if (command.mpi) {
        return replay_in_world<simulator::mpi::Scenario, simulator::mpi::HuntOptions>(command);
    }
    if (command.link != "ring") return replay_udp(command);
    replay_in_world<simulator::bbp::Scenario, simulator::bbp::HuntOptions>(command);
}

}  // namespace

void add_sim_replay(cli::App& sim) {
    auto options = std::make_shared<ReplayCommand>();
    cli::App* command = sim.add_subcommand("replay", "Replay one seed of the hunt, event by event");
    command->footer(kSimReplayExamples);
    command->add_option("seed", options->seed, "The seed, as a number or as a hunt has printed it")
        ->required();
    cli::Option* link =
        command->add_option("--link", options->link, "The hunt of the seed: ring, udp or fabric")
            ->check(cli::is_member({"ring", "udp", "fabric"}));
    command->add_flag("--mpi", options->mpi, "The seed is one of the hunt with --mpi")
        ->excludes(link);
    command->add_flag("--trace", options->trace, "Every event");
    command->callback([options] { replay(*options); });
}

}  // namespace tools
