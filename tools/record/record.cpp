// SPDX-License-Identifier: Apache-2.0
// `rmem record`: every write of a ring, with its time, into a file.

#include "rmem/base/clock.hpp"
#include "rmem/recording/pcap_writer.hpp"
#include "rmem/recording/recording_writer.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/record/record_source.hpp"
#include "tools/stop_signals.hpp"
#include "tools/usage.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <utility>

namespace tools {

namespace {

using rmem::RecordedWrite;

constexpr const char* kRecordExamples = R"(
Examples:
  rmem record rig                            rig-<date>-<time>.rmemrec, until Ctrl-C or the end
  rmem record rig -o flight.rmemrec --for 10s
  rmem record rig --wait 60s                 started before the ring is there
  rmem record rig --pcap flight.pcap         for Wireshark
  rmem record desk --sample 1ms              link direct: the changes found by looking at it

A recording begins with the contents of the memory. It ends when the ring has no members left, after
--for a time or --count writes, or at SIGINT, SIGTERM or SIGHUP; a recorder that is killed has
lost 10 ms at most. `rmem replay` shows and plays it.
Exit codes: 0 done, 1 failed, or some writes were missed, 2 wrong command line.)";

constexpr std::int64_t kFlushNs = 10'000'000;
constexpr std::int64_t kMembersEveryNs = 200'000'000;  // looks for members that often
constexpr std::int64_t kProgressEveryNs = 250'000'000;
constexpr std::int64_t kWaitStepNs = 1'000'000;
constexpr std::int64_t kRestNs = 100'000'000;  // at the end, for writes not yet read

struct RecordOptions {
    std::string ring, out, pcap, duration, sample, wait;
    std::optional<unsigned> node;
    std::uint64_t count = 0;
    bool replace = false, json = false;
};

std::string dated_name(const std::string& ring) {
    const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
    return fmt::format("{}-{:%Y%m%d-%H%M%S}.rmemrec", ring, fmt::localtime(now));
}

rmem::RecordingInfo info_now(const rmem::RingConfig& config) {
    rmem::RecordingInfo info;
    info.config = config;
    info.config.unix_group.clear();
    info.start_ns = rmem::now_ns();
    info.start_wall_ns =
        std::chrono::system_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
    return info;
}

/// The file or files, and the counts of their contents.
class Recording {
public:
    Recording(const RecordOptions& options, const rmem::RecordingInfo& info) {
        rmem::RecordingWriter::Options how;
        how.flush_ns = kFlushNs;
        how.sync_at_close = true;
        how.replace = options.replace;
        if (!options.out.empty() || options.pcap.empty()) {
            name_ = options.out.empty() ? dated_name(info.config.name) : options.out;
            file_.emplace(name_, info, how);
        }
        if (!options.pcap.empty()) capture_.emplace(options.pcap, info, options.replace);
        if (name_.empty()) name_ = options.pcap;
    }

    void add(const RecordedWrite& write) {
        if ((write.flags & RecordedWrite::kMissed) != 0) {
            ++missed;
        } else if ((write.flags & RecordedWrite::kAtStart) == 0) {
            ++writes;
            bytes += write.words.size();
        }
        if (file_) file_->add(write);
        if (capture_) capture_->add(write);
    }

    /// Sends out what is old. Throws when the disk takes no more.
    void flush_old(std::int64_t now_ns) {
        if (file_) file_->flush_old(now_ns);
        throw_failure();
    }

    void close() {
        if (file_) file_->close();
        if (capture_) capture_->close();
        throw_failure();
    }

    const std::string& name() const { return name_; }

    std::uint64_t writes = 0, bytes = 0;  // except for the memory at the start
    std::uint64_t missed = 0;             // how often, not how many

private:
    void throw_failure() const {
        if (file_ && file_->failed()) throw *file_->failure();
        if (capture_) {
            if (const auto failure = capture_->failure()) throw *failure;
        }
    }

    std::string name_;
    std::optional<rmem::RecordingWriter> file_;
    std::optional<rmem::PcapWriter> capture_;
};

/// A line on the terminal that is written over, if somebody looks.
class Progress {
public:
    void show(std::int64_t now_ns, std::int64_t since_ns, const Recording& recording) {
        if (!is_seen_ || now_ns < next_ns_) return;
        next_ns_ = now_ns + kProgressEveryNs;
        fmt::print(stderr, "\r{:.1f} s  {} writes  {}  {}\x1b[K",
                   static_cast<double>(now_ns - since_ns) / 1e9, recording.writes,
                   size_text(recording.bytes),
                   recording.missed == 0 ? "none missed"
                                         : fmt::format("missed some {} times", recording.missed));
        is_shown_ = true;
    }
    void clear() {
        if (std::exchange(is_shown_, false)) fmt::print(stderr, "\r\x1b[K");
    }

private:
    const bool is_seen_ = ::isatty(STDERR_FILENO) == 1;
    bool is_shown_ = false;
    std::int64_t next_ns_ = 0;
};

class Recorder {
public:
    Recorder(const RecordOptions& options, std::int64_t duration_ns, RecordSource& source,
             const StopSignals& stop)
        : options_(options),
          source_(source),
          stop_(stop),
          info_(info_now(source.config())),
          recording_(options, info_),
          end_(rmem::Deadline::after(info_.start_ns, duration_ns)) {}

    void run() {
        const RecordSource::Sink sink = [this](const RecordedWrite& write) {
            if (!enough()) recording_.add(write);
        };
        source_.begin(info_.start_ns, sink);
        if (!options_.json) {
            fmt::print(stderr, "rmem record: ring '{}' to '{}'\n", info_.config.name,
                       recording_.name());
        }
        for (;;) {
            const std::int64_t now = rmem::now_ns();
            // Both before the look, so that it finds what was written until then.
            const bool is_last = stop_.signal() != 0 || end_.passed(now) || !has_writers(now);
            const bool is_much = source_.look(now, sink);
            recording_.flush_old(now);
            progress_.show(now, info_.start_ns, recording_);
            if (is_last || enough()) break;
            stop_.sleep_until(is_much ? 0 : now + source_.interval_ns());
        }
        const rmem::Deadline rest = rmem::Deadline::in(kRestNs);
        while (!enough() && !rest.passed(rmem::now_ns()) && source_.look(rmem::now_ns(), sink)) {
        }
        recording_.close();
        progress_.clear();
    }

    void report() const {
        const std::int64_t took = rmem::now_ns() - info_.start_ns;
        if (options_.json) {
            return show_json({{"ring", info_.config.name},
                              {"file", recording_.name()},
                              {"duration_ns", took},
                              {"writes", recording_.writes},
                              {"bytes", recording_.bytes},
                              {"missed", recording_.missed},
                              {"sampled", !options_.sample.empty()}});
        }
        fmt::print(stderr, "rmem record: {} {} ({}) in {} to '{}'\n", recording_.writes,
                   options_.sample.empty() ? "writes" : "changes", size_text(recording_.bytes),
                   duration_text(static_cast<std::uint64_t>(took)), recording_.name());
        if (recording_.missed == 0) return;
        fmt::print(
            stderr,
            "rmem record: {} times writes were missed, because they were overwritten before this "
            "process got to read them; the recording says where. Give it a processor of its own\n",
            recording_.missed);
    }
    bool missed_some() const { return recording_.missed != 0; }

private:
    bool enough() const { return options_.count != 0 && recording_.writes >= options_.count; }

    bool has_writers(std::int64_t now) {
        if (now >= next_members_ns_) {
            next_members_ns_ = now + kMembersEveryNs;
            has_writers_ = source_.has_writers();
        }
        return has_writers_;
    }

    const RecordOptions& options_;
    RecordSource& source_;
    const StopSignals& stop_;
    const rmem::RecordingInfo info_;
    Recording recording_;
    Progress progress_;
    const rmem::Deadline end_;
    bool has_writers_ = true;
    std::int64_t next_members_ns_ = 0;
};

/// Waits for the ring to be there, if it is to.
std::unique_ptr<RecordSource> open(const RecordOptions& options, const StopSignals& stop) {
    SourceOptions how;
    how.node = options.node;
    if (!options.sample.empty()) how.sample_ns = duration_option("--sample", options.sample);
    const std::int64_t wait_ns = options.wait.empty() ? 0 : duration_option("--wait", options.wait);
    const rmem::Deadline deadline = rmem::Deadline::in(wait_ns);
    for (;;) {
        try {
            return open_source(options.ring, how);
        } catch (const rmem::Error& error) {
            // A half-made one is taken for foreign.
            const bool may_come = error.code() == rmem::Errc::no_such_ring ||
                                  error.code() == rmem::Errc::foreign_segment;
            if (!may_come || deadline.passed(rmem::now_ns()) || stop.signal() != 0) throw;
        }
        stop.sleep_until(rmem::now_ns() + kWaitStepNs);
    }
}

void record(const RecordOptions& options) {
    const std::int64_t duration_ns =
        options.duration.empty() ? rmem::kNever : duration_option("--for", options.duration);
    if (!options.sample.empty() && duration_option("--sample", options.sample) == 0) {
        throw UsageError("--sample 0 is not valid; give the time between two looks, such as 1ms");
    }
    const StopSignals stop;
    const auto source = open(options, stop);
    Recorder recorder(options, duration_ns, *source, stop);
    recorder.run();
    recorder.report();
    if (recorder.missed_some()) end_with(kExitFailed);
}

}  // namespace

void add_record(cli::App& app) {
    auto options = std::make_shared<RecordOptions>();
    cli::App* command = app.add_subcommand("record", "Record a ring's writes in a file");
    add_ring(*command, options->ring)->required();
    command->add_option("-o,--out", options->out,
                        "The file (default: named after the ring and the time, unless --pcap)");
    command->add_option("--for", options->duration, "End after this time, such as 10s");
    command->add_option("--count", options->count, "End after this many writes")
        ->check(cli::at_least_one());
    command->add_option("--pcap", options->pcap, "Write a capture for Wireshark");
    command->add_option("--sample", options->sample,
                        "Record the changes of the memory at this interval, such as 1ms");
    command->add_option("--node", options->node,
                        "Node whose memory it begins with (default: the first live one)");
    command->add_option("--wait", options->wait, "Wait this long for the ring to be there");
    command->add_flag("--replace", options->replace, "Replace a file that is there");
    command->add_flag("--json", options->json, "Print the result as JSON");
    command->footer(kRecordExamples);
    command->callback([options] { record(*options); });
}

}  // namespace tools
