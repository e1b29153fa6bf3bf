// SPDX-License-Identifier: Apache-2.0
// `rmem watch`: prints what changes in a bank, with the time at which it was seen.
//
// An observer has no interrupts, so it looks at intervals: a value that changes twice between two
// looks shows once.

#include "rmem/base/clock.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"
#include "tools/watch/bank_view.hpp"
#include "tools/watch/named.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace tools {

namespace {

constexpr const char* kWatchExamples = R"(
Examples:
  rmem watch my-ring 0x100                          on a terminal: live in place
  rmem watch my-ring 0x100 4 --as f32 --changes     one line for each change
  rmem watch my-ring 0x180 --as bits16be            bits, as a big-endian program stores them
  rmem watch my-ring 0x100 --interval 0ns           looks as often as it can
  rmem watch my-ring 0x100 --count 10 --json        ends after ten changes

Ends when the ring has no members left (one of `rmem make`: when it is cleaned away), after --count
changes or --for a time, or at Ctrl-C.
Exit codes: 0 done, 1 failed, 2 wrong command line.)";

constexpr std::uint64_t kMaxCells = 4096;
constexpr std::size_t kMaxLiveRows = 40;               // more do not stay on a screen
constexpr std::int64_t kMembersEveryNs = 200'000'000;  // looks for members that often

struct WatchOptions {
    GivenPlace given;
    std::string interval = "10ms", duration;
    std::uint64_t changes = 0;
    bool lines = false, system = false, json = false;
};

struct Cell {
    maps::Leaf leaf;
    std::vector<std::byte> bytes;
    std::uint64_t changes = 0;
    std::string when = "-";
};

using WallClock = std::chrono::system_clock;

std::string clock_text(WallClock::time_point when) {
    const auto us = std::chrono::duration_cast<std::chrono::microseconds>(when.time_since_epoch());
    return fmt::format("{:%H:%M:%S}.{:06}", fmt::localtime(WallClock::to_time_t(when)),
                       us.count() % 1'000'000);
}

class Watch {
public:
    explicit Watch(const WatchOptions& options)
        : options_(options),
          interval_(duration_option("--interval", options.interval)),
          end_(options.duration.empty()
                   ? rmem::Deadline::never()
                   : rmem::Deadline::in(duration_option("--for", options.duration))),
          bank_(options.given.ring, options.given.node),
          meant_(meant_by(options.given, bank_.ring())),
          live_(!options.lines && !options.json && ::isatty(STDOUT_FILENO) == 1) {
        bank_.check(meant_.begin(), meant_.end() - meant_.begin(), options.system);
        if (meant_.size() > kMaxCells) {
            throw UsageError(fmt::format("'{}' has {} values, and {} can be watched; give COUNT",
                                         options.given.place, meant_.size(), kMaxCells));
        }
        for (std::uint64_t i = 0; i < meant_.size(); ++i) {
            const maps::Leaf leaf = meant_.leaf(i);
            cells_.push_back({leaf, bank_.read(leaf.offset, leaf.bytes)});
        }
        live_ = live_ && cells_.size() <= kMaxLiveRows;
    }

    void run() {
        bank_.warn_if_old();
        show_first();
        for (;;) {
            const std::int64_t now = rmem::now_ns();
            const bool alive = has_members(now);  // before the look, so that the last change shows
            look();
            if (enough() || end_.passed(now)) return;
            if (!alive) {
                fmt::print(stderr, "rmem watch: ring '{}' has no members left\n",
                           options_.given.ring);
                return;
            }
            std::this_thread::sleep_for(std::chrono::nanoseconds(interval_));
        }
    }

private:
    bool enough() const { return options_.changes != 0 && seen_ >= options_.changes; }

    bool has_members(std::int64_t now) {
        if (now >= next_members_ns_) {
            next_members_ns_ = now + kMembersEveryNs;
            alive_ = may_change(bank_.ring());
        }
        return alive_;
    }

    void show_first() {
        const auto when = WallClock::now();
        for (const Cell& cell : cells_) show_value(cell, when, nullptr);
    }

    void look() {
        bool changed = false;
        for (Cell& cell : cells_) {
            std::vector<std::byte> found = bank_.read(cell.leaf.offset, cell.bytes.size());
            if (found == cell.bytes || enough()) continue;
            const auto when = WallClock::now();
            std::swap(cell.bytes, found);
            ++cell.changes;
            ++seen_;
            changed = true;
            cell.when = clock_text(when);
            if (!live_) show_value(cell, when, &found);
        }
        if (live_ && (changed || !drawn_)) redraw();
    }

    /// One line; `before` is null for the value at the start.
    void show_value(const Cell& cell, WallClock::time_point when,
                    const std::vector<std::byte>* before) {
        if (live_) return;
        if (options_.json) {
            nlohmann::json line = {
                {"time_ns", when.time_since_epoch() / std::chrono::nanoseconds(1)},
                {"offset", cell.leaf.offset},
                {"value", meant_.json(cell.leaf, cell.bytes)}};
            if (meant_.is_named()) line["name"] = cell.leaf.path;
            if (before != nullptr) line["before"] = meant_.json(cell.leaf, *before);
            return show_json_line(line);
        }
        const std::string was = before == nullptr ? "" : meant_.text(cell.leaf, *before) + " -> ";
        show(fmt::format("{}  {}  {}{}\n", clock_text(when), meant_.label(cell.leaf), was,
                         meant_.text(cell.leaf, cell.bytes)));
    }

    void redraw() {
        Table table(
            {meant_.is_named() ? "name" : "offset", ">value", ">changes", "last seen to change"});
        for (const Cell& cell : cells_) {
            table.add({meant_.label(cell.leaf), meant_.text(cell.leaf, cell.bytes),
                       fmt::format("{}", cell.changes), cell.when});
        }
        // Up over the old lines, and clear to the end of the screen.
        const std::string up = drawn_ ? fmt::format("\x1b[{}F\x1b[J", cells_.size() + 1) : "";
        drawn_ = true;
        show(up + table.text());
    }

    const WatchOptions& options_;
    const std::int64_t interval_;
    const rmem::Deadline end_;
    BankView bank_;
    const Meant meant_;
    bool live_;
    std::vector<Cell> cells_;
    std::uint64_t seen_ = 0;
    bool drawn_ = false;
    bool alive_ = true;
    std::int64_t next_members_ns_ = 0;
};

}  // namespace

void add_watch(cli::App& app) {
    auto options = std::make_shared<WatchOptions>();
    cli::App* command = app.add_subcommand("watch", "Print the changes in a bank");
    options->given.add_to(
        *command, "Node of the bank (default: the first; on link udp the one that is here)");
    options->given.add_count(*command, kMaxCells);
    command->add_option("--interval", options->interval, "Time between two looks")
        ->capture_default_str();
    command->add_flag("--changes", options->lines, "One line for each change, on a terminal too");
    command->add_option("--count", options->changes, "End after this many changes")
        ->check(cli::at_least_one());
    command->add_option("--for", options->duration, "End after this time, such as 5s");
    command->add_flag("--system", options->system, "The memory above the user's, too");
    command->add_flag("--json", options->json, "One JSON object for each change");
    command->footer(kWatchExamples);
    command->callback([options] {
        static_cast<void>(options->given.type());
        Watch(*options).run();
    });
}

}  // namespace tools
