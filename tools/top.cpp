// SPDX-License-Identifier: Apache-2.0
// `rmem top`: what happens in a ring, live in a terminal or as frames one after another.

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>

#include "rmem/clock.hpp"
#include "tools/bank_view.hpp"
#include "tools/commands.hpp"
#include "tools/heat_map.hpp"
#include "tools/output.hpp"
#include "tools/ring_sampler.hpp"
#include "tools/ring_view.hpp"
#include "tools/screen.hpp"
#include "tools/stop_signals.hpp"
#include "tools/top_frame.hpp"

namespace tools {

namespace {

constexpr const char* kExamples = R"(
Examples:
  rmem top                              the only ring of this host, live; q ends it
  rmem top my-ring --interval 200ms
  rmem top my-ring@1                    of several nodes on this host, one
  rmem top my-ring --once               one frame, as text
  rmem top my-ring --json --count 10 | jq '.nodes[].writes_per_s'

Rates and times are those between two looks. `rmem metrics` serves the same counters to Prometheus.
Exit codes: 0 done, 1 failed, 2 wrong command line.)";

constexpr std::size_t kPlainWidth = 200;  // where there is no terminal

struct TopOptions {
    std::string ring, interval = "1s";
    std::uint64_t count = 0;
    std::optional<unsigned> node;
    bool once = false, json = false, no_map = false;
};

/// The only ring, when none was named. Nodes of one ring count as one.
std::string only_ring() {
    std::string only;
    for (const std::string& found : rmem::Segment::list()) {
        const std::string name = found.substr(0, found.rfind('@'));
        if (name == only) continue;
        if (!only.empty()) {
            throw rmem::Error(rmem::Errc::invalid_argument,
                              fmt::format("this host has several rings, '{}' and '{}' among them; "
                                          "say which one",
                                          printable(only), printable(name)));
        }
        only = name;
    }
    if (!only.empty()) return only;
    throw rmem::Error(rmem::Errc::no_such_ring,
                      "no ring on this host; start one with `rmem run …`");
}

class Top {
public:
    explicit Top(const TopOptions& options)
        : options_(options),
          interval_ns_(rmem::parse_duration_ns("--interval", options.interval)),
          frames_left_(options.once ? 1 : options.count),
          is_endless_(frames_left_ == 0),
          sampler_(options.ring) {}

    void run() {
        look();
        if (!before_.exists) static_cast<void>(rmem::Ring::observe(options_.ring));  // says it
        if (options_.node) check_bank(*options_.node);
        const bool is_live = !options_.json && is_endless_ && ::isatty(STDOUT_FILENO) == 1;
        if (is_live) screen_.emplace();
        if (is_live) show_frame(view_of(before_, before_));
        while ((is_endless_ || frames_left_ > 0) && wait()) {
            const RingSample last = std::move(before_);
            look();
            show_frame(view_of(last, before_));
            if (!is_endless_) --frames_left_;
            if (!before_.exists && !is_live) return;
        }
    }

private:
    void look() {
        next_ns_ = rmem::now_ns() + interval_ns_;
        before_ = sampler_.sample(rmem::now_ns());
        if (options_.no_map || !before_.exists) return;
        shown_.node = options_.node.value_or(first_here());
        const auto bank = sampler_.bank(shown_.node);
        shown_.map = bank.empty() ? nullptr : &map_;
        if (!bank.empty()) map_.look(bank);
    }

    void check_bank(unsigned node) const {
        check_node(before_.config, node);
        if (!sampler_.bank(node).empty()) return;
        throw rmem::Error(rmem::Errc::bad_rank,
                          fmt::format("node {} of ring '{}' is on another host, and so is its bank "
                                      "(--node); run `rmem top` there",
                                      node, before_.config.name));
    }

    unsigned first_here() const {
        for (unsigned n = 0; n < before_.nodes.size(); ++n) {
            if (before_.nodes[n].is_here) return n;
        }
        return 0;
    }

    /// Until the next look. False when the user wants to end.
    bool wait() {
        while (rmem::now_ns() < next_ns_ && stop_.signal() == 0) {
            if (!screen_ || !screen_->has_keys()) {
                stop_.sleep_until(next_ns_);
            } else if (stop_.wait_readable_until(STDIN_FILENO, next_ns_) && !screen_->take_keys()) {
                return false;
            }
        }
        if (stop_.signal() == 0) stop_.sleep_until(rmem::now_ns());  // lets those in that have come
        return stop_.signal() == 0;
    }

    void show_frame(const RingView& view) {
        if (options_.json) return show_json_line(frame_json(view, shown_));
        if (screen_) {
            const auto size = Screen::size();
            return screen_->draw(frame_of(view, shown_, size.columns, size.rows));
        }
        std::string text = is_first_ ? "" : "\n";
        is_first_ = false;
        for (const Line& line : frame_of(view, shown_, kPlainWidth, 0)) text += line.text + "\n";
        show(text);
    }

    const TopOptions& options_;
    std::int64_t interval_ns_, next_ns_ = 0;
    std::uint64_t frames_left_;
    bool is_endless_, is_first_ = true;
    StopSignals stop_;
    RingSampler sampler_;
    RingSample before_;
    HeatMap map_;
    ShownMap shown_;
    std::optional<Screen> screen_;
};

}  // namespace

void add_top(CLI::App& app) {
    auto options = std::make_shared<TopOptions>();
    CLI::App* command = app.add_subcommand("top", "Show what happens in a ring, live");
    add_ring(*command, options->ring, "Name of the ring; the only one if not given");
    command->add_option("--interval", options->interval, "Time between two looks")
        ->capture_default_str();
    auto* count = command->add_option("--count", options->count, "End after so many frames")
                      ->check(CLI::PositiveNumber);
    command->add_flag("--once", options->once, "One frame, after one interval")->excludes(count);
    command->add_option("--node", options->node, "Whose bank the map shows (the first one here)");
    command->add_flag("--no-map", options->no_map, "Do not look into the bank");
    command->add_flag("--json", options->json, "One JSON object for each frame");
    command->footer(kExamples);
    command->callback([options] {
        if (options->ring.empty()) options->ring = only_ring();
        Top(*options).run();
    });
}

}  // namespace tools
