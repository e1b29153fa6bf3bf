// SPDX-License-Identifier: Apache-2.0
// `rmem replay`: shows a recording, makes a capture of it, or plays it into a ring.

#include "rmem/node.hpp"
#include "rmem/recording/pcap_writer.hpp"
#include "rmem/ring/ring.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/record/recorded_text.hpp"
#include "tools/record/ring_replay.hpp"
#include "tools/stop_signals.hpp"
#include "tools/usage.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <charconv>
#include <memory>
#include <optional>
#include <string>

namespace tools {

namespace {

using rmem::RecordedWrite;
using rmem::RecordingReader;

constexpr const char* kReplayExamples = R"(
Examples:
  rmem replay flight.rmemrec                        its contents, and whether it is whole
  rmem replay flight.rmemrec --print --node 2       its writes as text; --json for programs
  rmem replay flight.rmemrec --ring rig             into a ring, at the original speed
  rmem replay flight.rmemrec --ring new --make      into a ring that is made as the recorded one was
  rmem replay flight.rmemrec --ring rig --speed 10x --from 2s --until 5s
  rmem replay flight.rmemrec --ring rig --step      a write for each Enter
  rmem replay flight.rmemrec --pcap flight.pcap     for Wireshark, with share/rmem/rmem.lua

A replay takes a rank of the ring that nobody holds. It first makes the memory as it was where the
replay begins, unless --node takes the writes of one node only. Times count from the recording's
start.
Exit codes: 0 done, 1 failed, or damage has cost blocks of the recording, 2 wrong command line,
128 + signal when one ended it.)";

struct ReplayOptions {
    std::string file, ring, speed = "1x", from, until, pcap;
    std::optional<unsigned> node, as_rank;
    bool print = false, step = false, make = false, hold = false, replace = false, json = false;
};

Selection selection_of(const ReplayOptions& options, const rmem::RecordingInfo& info) {
    Selection selection;
    const auto time = [&](const char* what, const std::string& text) {
        return info.start_ns + duration_option(what, text);
    };
    if (!options.from.empty()) selection.from_ns = time("--from", options.from);
    if (!options.until.empty()) selection.until_ns = time("--until", options.until);
    if (selection.from_ns > selection.until_ns) {
        throw UsageError(
            fmt::format("--from {} is after --until {}; swap them", options.from, options.until));
    }
    selection.node = options.node;
    if (!options.node || *options.node < info.config.nodes) return selection;
    throw rmem::Error(rmem::Errc::bad_rank,
                      fmt::format("the ring in '{}' has no node {} (--node): its nodes are 0 to {}",
                                  options.file, *options.node, info.config.nodes - 1));
}

/// An option that selects writes, without one that uses them, would do nothing.
void refuse_idle_selection(const ReplayOptions& options) {
    const char* idle = !options.from.empty()    ? "--from"
                       : !options.until.empty() ? "--until"
                       : options.node           ? "--node"
                                                : nullptr;
    if (idle == nullptr) return;
    throw UsageError(
        fmt::format("{} says which writes to print, play or convert; give --print, "
                    "--ring or --pcap, too",
                    idle));
}

/// Behind the end there is nothing, which is hardly what was meant.
void check_beginning(const ReplayOptions& options, const Selection& selection) {
    if (options.from.empty()) return;
    RecordingReader reader(options.file);
    reader.seek(selection.from_ns);
    RecordedWrite write;
    if (reader.next(write)) return;
    throw rmem::Error(rmem::Errc::invalid_argument,
                      fmt::format("'{}' has no write at --from {} or later; `rmem replay {}` shows "
                                  "how long it is",
                                  options.file, options.from, options.file));
}

rmem::PlaySpeed speed_of(const ReplayOptions& options) {
    if (options.step) return rmem::parse_play_speed("step");
    const bool is_bare =
        !options.speed.empty() && options.speed.back() >= '0' && options.speed.back() <= '9';
    try {
        return rmem::parse_play_speed(is_bare ? options.speed + "x" : options.speed);
    } catch (const rmem::Error& error) {
        const std::string sentence = error.sentence();
        throw UsageError(
            fmt::format("--speed is '{}'{}", options.speed, sentence.substr(sentence.find(';'))));
    }
}

// ---- Showing and converting

void print_writes(RecordingReader& reader, const Selection& selection, bool json) {
    if (selection.from_ns > reader.info().start_ns) reader.seek(selection.from_ns);
    RecordedWrite write;
    while (reader.next(write)) {
        if (!selection.takes(write)) continue;
        if (json) {
            show_json_line(write_json(write, reader.info()));
        } else {
            show(write_text(write, reader.info()));
        }
    }
}

void convert(RecordingReader& reader, const Selection& selection, const ReplayOptions& options) {
    rmem::PcapWriter capture(options.pcap, reader.info(), options.replace);
    std::uint64_t packets = 0;
    RecordedWrite write;
    while (reader.next(write)) {
        if (!selection.takes(write)) continue;
        if (!capture.add(write)) break;
        ++packets;
    }
    capture.close();
    if (const auto failure = capture.failure()) throw *failure;
    if (options.json) return show_json({{"file", options.pcap}, {"packets", packets}});
    fmt::print(stderr, "rmem replay: {} packets to '{}'\n", packets, options.pcap);
}

void show_summary(RecordingReader& reader, bool json) {
    const auto summary = summary_json(reader);
    json ? show_json(summary) : show(summary_text(summary));
}

// ---- Into a ring

std::shared_ptr<rmem::Ring> open_ring(const ReplayOptions& options, rmem::RingConfig config) {
    if (!options.make) return rmem::Ring::attach(options.ring);
    config.name = options.ring;
    return rmem::Ring::open(config, rmem::Deadline::in(rmem::kDefaultJoinTimeoutNs),
                            options.node.value_or(0));
}

unsigned replaying_node(unsigned rank, const rmem::RingConfig& config) {
    return rank * config.nodes / config.ranks;
}

/// Which rank the replay is: of the replayed node, if there is one, and free.
unsigned free_rank(const rmem::Ring& ring, std::optional<unsigned> node) {
    const rmem::RingConfig& config = ring.config();
    for (unsigned rank = 0; rank < config.ranks; ++rank) {
        if (node && replaying_node(rank, config) != *node) continue;
        if (!ring.is_alive(rank)) return rank;
    }
    throw rmem::Error(
        rmem::Errc::rank_taken,
        node ? fmt::format("every rank of node {} of ring '{}' is taken, and a replay needs one: "
                           "stop the program whose writes it replaces, or give another --as-rank",
                           *node, config.name)
             : fmt::format(
                   "every rank of ring '{}' is taken, and a replay needs one: start the ring "
                   "with a rank more, or stop the program whose writes it replaces",
                   config.name));
}

/// The user's input, by lines, while signals are heard.
class Steps {
public:
    Steps(const rmem::RecordingInfo& info, const StopSignals& stop, bool json)
        : info_(info), stop_(stop), json_(json) {}

    /// Shows the next write and asks how many to play.
    std::uint64_t ask(const RecordedWrite& next) {
        if (json_) {
            show_json_line(write_json(next, info_));
        } else {
            show("next: " + write_text(next, info_));
        }
        for (;;) {
            if (::isatty(STDIN_FILENO) == 1) fmt::print(stderr, "Enter, a number, or q: ");
            const auto line = read_line();
            if (!line || *line == "q") return 0;
            if (line->empty()) return 1;
            std::uint64_t steps = 0;
            const char* end = line->data() + line->size();
            const auto [rest, error] = std::from_chars(line->data(), end, steps);
            if (error == std::errc{} && rest == end && steps != 0) return steps;
            fmt::print(stderr,
                       "rmem replay: '{}' is not a number of writes; Enter plays one, q ends\n",
                       printable(*line));
        }
    }

private:
    /// Nothing at the end, or when a signal came.
    std::optional<std::string> read_line() {
        for (;;) {
            const std::size_t end = typed_.find('\n');
            if (end != std::string::npos) {
                std::string line = typed_.substr(0, end);
                typed_.erase(0, end + 1);
                return line;
            }
            char buffer[256];
            if (!stop_.wait_readable(STDIN_FILENO)) return std::nullopt;
            const ssize_t got = ::read(STDIN_FILENO, buffer, sizeof buffer);
            if (got <= 0) return std::nullopt;
            typed_.append(buffer, static_cast<std::size_t>(got));
        }
    }

    const rmem::RecordingInfo& info_;
    const StopSignals& stop_;
    const bool json_;
    std::string typed_;
};

void report(const ReplayOptions& options, const Replayed& result, unsigned rank,
            std::int64_t took_ns, bool is_timed) {
    if (options.json) {
        return show_json({{"ring", options.ring},
                          {"rank", rank},
                          {"writes", result.writes},
                          {"bytes", result.bytes},
                          {"outside", result.outside},
                          {"missed", result.missed},
                          {"latest_ns", result.latest_ns},
                          {"duration_ns", took_ns}});
    }
    const std::string latest =
        is_timed ? fmt::format(", at most {} behind their times",
                               duration_text(static_cast<std::uint64_t>(result.latest_ns)))
                 : "";
    fmt::print(stderr, "rmem replay: {} writes ({}) in {} into ring '{}' as rank {}{}\n",
               result.writes, size_text(result.bytes),
               duration_text(static_cast<std::uint64_t>(took_ns)), options.ring, rank, latest);
    if (result.outside != 0) {
        fmt::print(stderr,
                   "rmem replay: {} writes left out: they are outside the user's memory of ring "
                   "'{}', in regions of protocols or after its end\n",
                   result.outside, options.ring);
    }
    if (result.missed != 0) {
        fmt::print(stderr, "rmem replay: at {} places the recorder had missed writes\n",
                   result.missed);
    }
}

void play(RecordingReader& reader, const Selection& selection, const ReplayOptions& options,
          const StopSignals& stop) {
    const rmem::PlaySpeed speed = speed_of(options);
    const auto ring = open_ring(options, reader.info().config);
    // On link udp a segment is one node's.
    const bool is_remote = ring->config().is_remote();
    const auto own = is_remote ? std::optional(ring->own_node()) : options.node;
    const unsigned rank = options.as_rank ? *options.as_rank : free_rank(*ring, own);
    rmem::Node node(ring, {rank, is_remote ? *own : replaying_node(rank, ring->config())});
    const std::int64_t start = rmem::now_ns();
    RingReplay replay(node, reader, selection, stop);
    Steps steps(reader.info(), stop, options.json);
    replay.run(speed, [&](const RecordedWrite& next) { return steps.ask(next); });
    report(options, replay.result(), rank, rmem::now_ns() - start,
           speed.kind == rmem::PlaySpeed::Kind::timed);
    while (options.hold && stop.signal() == 0) {
        stop.sleep_until(rmem::now_ns() + rmem::kNsPerSecond);
    }
}

void replay(const ReplayOptions& options) {
    RecordingReader reader(options.file);
    const Selection selection = selection_of(options, reader.info());
    check_beginning(options, selection);
    int signal = 0;
    if (!options.ring.empty()) {
        const StopSignals stop;
        play(reader, selection, options, stop);
        signal = options.hold ? 0 : stop.signal();
    } else if (!options.pcap.empty()) {
        convert(reader, selection, options);
    } else if (options.print) {
        print_writes(reader, selection, options.json);
    } else {
        refuse_idle_selection(options);
        show_summary(reader, options.json);
    }
    if (signal != 0) end_with(128 + signal);
    // A replay that stops before the end does not know what comes.
    RecordedWrite rest;
    while (reader.next(rest)) {
    }
    if (reader.report().whole()) return;
    fmt::print(stderr, "rmem replay: '{}': {}\n", options.file, to_string(reader.report()));
    const bool damaged = reader.report().lost_blocks != 0 || reader.report().damaged_bytes != 0;
    if (damaged) end_with(kExitFailed);
}

void add_ring_options(cli::App& command, ReplayOptions& options, cli::Option* ring) {
    command
        .add_option("--speed", options.speed,
                    "As recorded (1x), slower (0.5x), faster (10x), or max")
        ->capture_default_str()
        ->needs(ring);
    command
        .add_flag("--step", options.step, "Play a write for each line typed, or as many as it says")
        ->needs(ring);
    command
        .add_option("--as-rank", options.as_rank,
                    "Write as this rank (default: the first free one)")
        ->needs(ring);
    command.add_flag("--make", options.make, "Make the ring as the recorded one was")->needs(ring);
    command.add_flag("--hold", options.hold, "Stay in the ring after the end, until Ctrl-C")
        ->needs(ring);
}

}  // namespace

void add_replay(cli::App& app) {
    auto options = std::make_shared<ReplayOptions>();
    cli::App* command = app.add_subcommand("replay", "Show a recording, or play it into a ring");
    command->add_option("FILE", options->file, "The recording")->required();
    cli::Option* ring = command->add_option("--ring", options->ring, "Play it into this ring");
    add_ring_options(*command, *options, ring);
    cli::Option* print = command->add_flag("--print", options->print, "Print the writes");
    cli::Option* pcap =
        command->add_option("--pcap", options->pcap, "Make a capture for Wireshark of it");
    command->add_flag("--replace", options->replace, "Replace a capture that is there")
        ->needs(pcap);
    ring->excludes(print)->excludes(pcap);
    print->excludes(pcap);
    command->add_option("--from", options->from, "Begin this long after the start, such as 2s");
    command->add_option("--until", options->until, "End this long after the start");
    command->add_option("--node", options->node, "Only the writes of this node");
    command->add_flag("--json", options->json, "Print JSON");
    command->footer(kReplayExamples);
    command->callback([options] { replay(*options); });
}

}  // namespace tools
