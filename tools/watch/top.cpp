// SPDX-License-Identifier: Apache-2.0
// `rmem top`: the events of a ring, live in a terminal or as frames one after another.

#include "rmem/base/clock.hpp"
#include "rmem/ring/segment.hpp"
#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/stop_signals.hpp"
#include "tools/usage.hpp"
#include "tools/watch/bank_view.hpp"
#include "tools/watch/cells.hpp"
#include "tools/watch/heat_map.hpp"
#include "tools/watch/ring_report.hpp"
#include "tools/watch/ring_sampler.hpp"
#include "tools/watch/ring_view.hpp"
#include "tools/watch/screen.hpp"
#include "tools/watch/top_frame.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>

namespace tools {

namespace {

constexpr const char* kTopExamples = R"(
Examples:
  rmem top                              the only ring of this host, live; q ends it
  rmem top my-ring --interval 200ms
  rmem top my-ring@1                    of several nodes on this host, one
  rmem top my-ring --once               one frame, as text
  rmem top my-ring --from 0x100 --bytes 4K    the map of 4 KiB
  rmem top my-ring --json --count 10 | jq '.nodes[].writes_per_s'

Keys: q ends; arrows and page keys scroll; + and - zoom the map, left and right move it, 0 shows
all of the user's memory; a shows all nodes. Rates and times are those between two looks. `rmem
metrics` serves the same counters to Prometheus.
Exit codes: 0 done, 1 failed, 2 wrong command line.)";

constexpr std::size_t kLeastWindow = 64;  // bytes of the map

struct TopOptions {
    std::string ring, interval = "1s";
    std::uint64_t count = 0;
    std::optional<unsigned> node;
    std::string from = "0", bytes;
    bool once = false, json = false, no_map = false;
};

/// The only ring, when none was named. Nodes of one ring count as one; objects that are no ring,
/// and other users' rings, do not.
std::string only_ring() {
    std::string only;
    for (const std::string& found : rmem::Segment::list()) {
        const std::string name = found.substr(0, found.rfind('@'));
        if (name == only || ring_summary(found)["state"] == "broken") continue;
        if (!only.empty()) {
            throw rmem::Error(rmem::Errc::invalid_argument,
                              fmt::format("this host has several rings, '{}' and '{}' among them; "
                                          "say which one",
                                          printable(only), printable(name)));
        }
        only = name;
    }
    if (!only.empty()) return only;
    throw rmem::Error(
        rmem::Errc::no_such_ring,
        fmt::format(
            "no ring of yours on this host{}; start one with `rmem run …`",
            rmem::Segment::others().empty() ? "" : ", though other users have some (`rmem list`)"));
}

class Top {
public:
    explicit Top(const TopOptions& options)
        : options_(options),
          interval_ns_(rmem::parse_duration_ns("--interval", options.interval)),
          frames_left_(options.once ? 1 : options.count),
          is_endless_(frames_left_ == 0),
          sampler_(options.ring),
          from_(size_option("--from", options.from) / rmem::kWordBytes * rmem::kWordBytes),
          bytes_(options.bytes.empty() ? 0 : size_option("--bytes", options.bytes)) {}

    void run() {
        look();
        if (!before_.exists) static_cast<void>(rmem::Ring::observe(options_.ring));  // says it
        if (options_.node) check_bank(*options_.node);
        check_window();
        const bool is_live = !options_.json && is_endless_ && ::isatty(STDOUT_FILENO) == 1;
        if (is_live) screen_.emplace();
        view_ = view_of(before_, before_);
        if (is_live) show_frame();
        while ((is_endless_ || frames_left_ > 0) && wait()) {
            const RingSample last = std::move(before_);
            look();
            view_ = view_of(last, before_);
            show_frame();
            if (!is_endless_) --frames_left_;
            if (!before_.exists && !is_live) return;
        }
    }

private:
    void look() {
        next_ns_ = rmem::now_ns() + interval_ns_;
        before_ = sampler_.sample(rmem::now_ns());
        if (before_.exists) look_at_bank();
    }

    void look_at_bank() {
        if (options_.no_map) return;
        shown_.node = options_.node.value_or(first_here());
        const auto bank = sampler_.bank(shown_.node);
        shown_.map = bank.empty() ? nullptr : &map_;
        if (bank.empty()) return;
        if (screen_) fit_to_screen();
        const auto [from, bytes] = window(bank.size());
        map_.look(bank.subspan(from, bytes), from, map_cells(port_));
    }

    void fit_to_screen() {
        const auto size = Screen::size();
        port_.width = size.columns;
        port_.height = size.rows;
        port_.has_keys = screen_->has_keys();
    }

    /// The part of a bank that the map shows.
    std::pair<std::size_t, std::size_t> window(std::size_t bank) const {
        const std::size_t from = from_ < bank ? from_ : 0;
        const std::size_t all = std::min<std::size_t>(before_.config.user_bytes, bank);
        const std::size_t wanted = bytes_ != 0 ? bytes_ : from < all ? all - from : bank - from;
        return {from, std::min(wanted, bank - from)};
    }

    void check_window() const {
        const std::size_t bank = before_.config.bank_bytes();
        if (from_ < bank && bytes_ <= bank - from_) return;
        throw rmem::Error(
            rmem::Errc::invalid_argument,
            fmt::format("{} bytes at {} (--from, --bytes) are outside the bank of ring "
                        "'{}', which ends at {}",
                        bytes_, offset_text(from_), before_.config.name, offset_text(bank)));
    }

    /// To half of it or twice as much; moved, to the next half of it.
    void zoom(bool in) {
        const std::size_t bank = sampler_.bank(shown_.node).size();
        if (bank == 0) return;
        std::tie(from_, bytes_) = window(bank);
        bytes_ = in ? std::max(bytes_ / 2, kLeastWindow) : std::min(bytes_ * 2, bank);
        bytes_ = std::min((bytes_ + 3) / rmem::kWordBytes * rmem::kWordBytes, bank);
        from_ = std::min(from_, bank - bytes_);
    }
    void move(bool forth) {
        const std::size_t bank = sampler_.bank(shown_.node).size();
        if (bank == 0) return;
        std::tie(from_, bytes_) = window(bank);
        const std::size_t step = std::max<std::size_t>(bytes_ / 8, 1) * rmem::kWordBytes;
        from_ = forth ? std::min(from_ + step, bank - bytes_) : from_ - std::min(from_, step);
    }

    /// False when one of them means to end.
    bool obey(const std::string& keys) {
        const std::size_t page = port_.height > 3 ? port_.height - 3 : 1;
        for (const char key : keys) {
            switch (key) {
                case 'q': return false;
                case 'k': port_.scroll -= std::min<std::size_t>(port_.scroll, 1); break;
                case 'j': ++port_.scroll; break;
                case 'b': port_.scroll -= std::min(port_.scroll, page); break;
                case 'f':
                case ' ': port_.scroll += page; break;
                case '+':
                case '=': zoom(true); break;
                case '-': zoom(false); break;
                case 'h': move(false); break;
                case 'l': move(true); break;
                case '0': from_ = bytes_ = 0; break;
                case 'a': port_.all_nodes = !port_.all_nodes; break;
                default: break;
            }
        }
        // Another part of the memory is looked at at once; the same one only when its time has
        // come.
        const auto bank = sampler_.bank(shown_.node);
        if (!bank.empty() && shown_.map != nullptr &&
            window(bank.size()) != std::pair(map_.from(), map_.bytes())) {
            look_at_bank();
        }
        show_frame();
        return true;
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
            } else if (stop_.wait_readable_until(STDIN_FILENO, next_ns_) &&
                       !obey(screen_->take_keys())) {
                return false;
            }
        }
        if (stop_.signal() == 0) stop_.sleep_until(rmem::now_ns());  // lets those in that have come
        return stop_.signal() == 0;
    }

    void show_frame() {
        if (options_.json) return show_json_line(frame_json(view_, shown_));
        if (screen_) {
            fit_to_screen();
            const Frame frame = frame_of(view_, shown_, port_);
            port_.scroll = frame.scroll;
            return screen_->draw(frame.lines);
        }
        std::string text = is_first_ ? "" : "\n";
        is_first_ = false;
        for (const Line& line : frame_of(view_, shown_, port_).lines) text += line.text + "\n";
        show(text);
    }

    const TopOptions& options_;
    std::int64_t interval_ns_, next_ns_ = 0;
    std::uint64_t frames_left_;
    bool is_endless_, is_first_ = true;
    StopSignals stop_;
    RingSampler sampler_;
    RingSample before_;
    RingView view_;
    HeatMap map_;
    std::size_t from_, bytes_;  ///< of the map; no bytes: the user's memory from there
    Viewport port_;
    ShownMap shown_;
    std::optional<Screen> screen_;
};

}  // namespace

void add_top(cli::App& app) {
    auto options = std::make_shared<TopOptions>();
    cli::App* command = app.add_subcommand("top", "Show a ring live");
    add_ring(*command, options->ring, "Name of the ring; the only one if not given");
    command->add_option("--interval", options->interval, "Time between two looks")
        ->capture_default_str();
    auto* count = command->add_option("--count", options->count, "End after this many frames")
                      ->check(cli::at_least_one());
    command->add_flag("--once", options->once, "One frame, after one interval")->excludes(count);
    command->add_option("--node", options->node,
                        "Node of the bank that the map shows (default: the first one here)");
    command->add_option("--from", options->from, "Offset at which the map begins")
        ->capture_default_str();
    command->add_option("--bytes", options->bytes,
                        "Bytes of the bank that it shows (default: the user's memory)");
    command->add_flag("--no-map", options->no_map, "Do not look into the bank");
    command->add_flag("--json", options->json, "One JSON object for each frame");
    command->footer(kTopExamples);
    command->callback([options] {
        if (options->ring.empty()) options->ring = only_ring();
        Top(*options).run();
    });
}

}  // namespace tools
