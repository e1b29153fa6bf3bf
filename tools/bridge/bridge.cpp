// SPDX-License-Identifier: Apache-2.0
// `rmem bridge`: forwards declared regions between two rings, or to the bridge of another site.

#include "rmem/base/clock.hpp"
#include "tools/bridge/bridged_ring.hpp"
#include "tools/bridge/line_socket.hpp"
#include "tools/commands.hpp"
#include "tools/node/service.hpp"
#include "tools/output.hpp"
#include "tools/run/run_report.hpp"
#include "tools/stop_signals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tools {

namespace {

using bridge::End;

constexpr const char* kBridgeExamples = R"(
Examples:
  rmem bridge /etc/rmem/lab.json              until it is told to end
  rmem bridge --check /etc/rmem/lab.json      only says what it would forward

Two rings of this host, in the file:
  {"rings": {"rig": {"RMEM_RING": "rig", "RMEM_LINK": "ring", "RMEM_NODE": "3", "RMEM_NODES": "4",
                     "table": "0xF0000"},
             "lab": {"RMEM_RING": "lab", "RMEM_LINK": "udp", "RMEM_NODE": "1", "RMEM_NODES": "2",
                     "RMEM_KEY_FILE": "/etc/rmem/lab.key", "table": "0xF0000"}},
   "regions": [{"name": "attitude", "from": "rig", "offset": "0x1000", "bytes": 256,
                "sync": ["0x10FC"], "to": "lab", "at": "0x1000"},
               {"name": "commands", "from": "lab", "offset": 0, "bytes": 64,
                "to": "rig", "at": 0, "writes_per_second": 1000}]}

The rings of two sites, a bridge at each; there the ring's name, and "listen", are the site's own:
  {"rings": {"rig": {"RMEM_RING": "rig", "RMEM_NODE": "3", "RMEM_NODES": "4", "table": "0xF0000"}},
   "far": {"connect": "lab.example:5575", "key_file": "/etc/rmem/sites.key"},
   "regions": [{"name": "attitude", "from": "rig", "offset": "0x1000", "bytes": 256, "to": "far"}]}

What is between the sites is encrypted with the key of both: `rmem key` makes the file.
Exit codes: 0 told to end by SIGTERM, SIGINT or SIGHUP; 1 failed, or dropped by a ring; 2 wrong
command line.)";

struct BridgeOptions {
    std::string file;
    bool check = false, spin = false, quiet = false;
};

class Bridge {
public:
    /// Rounds without a look at signals and the service manager.
    static constexpr unsigned kMaxRounds = 64;
    static constexpr std::int64_t kLookNs = 10'000'000;  ///< between looks at signals, while busy

    Bridge(const BridgeOptions& options, const BridgeConfig& config) : options_(options) {
        if (config.far) line_.emplace(*config.far);
        const auto noticing = options.spin ? Noticing::awake : Noticing::asleep;
        for (const BridgedRingConfig& ring : config.rings)
            rings_.push_back(std::make_unique<BridgedRing>(ring, noticing));
        if (line_) return;
        for (const auto& ring : rings_) ring->end().connect(rmem::now_ns());
    }

    void run(const StopSignals& stop) {
        service_.ready();
        say(line_ && line_->port() != 0
                ? fmt::format("waits for the far site at port {}", line_->port())
                : "forwards");
        for (std::int64_t look_ns = 0; stop.signal() == 0;) {
            bool goes_on = options_.spin;
            for (unsigned round = 0; round < kMaxRounds && step(); ++round) goes_on = true;
            const std::int64_t now = rmem::now_ns();
            service_.tick(now);
            if (!goes_on) {
                wait(stop);
            } else if (now >= look_ns) {
                stop.look();
                look_ns = now + kLookNs;
            }
        }
        service_.stopping();
        if (line_) line_->close(rmem::now_ns(), true);
        say(fmt::format("stopped by {}", signal_name(stop.signal())));
    }

private:
    /// True if there was anything to do.
    bool step() {
        bool any = false;
        const std::int64_t now = rmem::now_ns();
        for (const auto& ring : rings_) any = ring->look(now) || any;
        if (!any && !line_ && now < due_ns_) return false;
        any = (line_ ? exchange_far(now) : exchange_here(now)) || any;
        for (const auto& ring : rings_) ring->keep(now);
        for (const auto& ring : rings_)
            for (const std::string& news : ring->end().take_news()) say(news);
        due_ns_ = any || is_held_up() ? now : due_ns(now);
        return any;
    }

    /// Whether a ring had no room for what has come.
    bool is_held_up() const {
        return std::any_of(rings_.begin(), rings_.end(),
                           [](const auto& ring) { return ring->end().delivery() != nullptr; });
    }

    /// When the rings and their ends have something to do, if nothing is written.
    std::int64_t due_ns(std::int64_t now) const {
        std::int64_t due = rmem::kNever;
        for (const auto& ring : rings_)
            due = std::min({due, ring->keep_ns(), ring->end().due_ns(now)});
        return due;
    }

    // ---- Two ends here

    bool exchange_here(std::int64_t now) {
        End& first = rings_[0]->end();
        End& second = rings_[1]->end();
        bool any = false;
        for (const auto& ring : rings_) ring->end().run(now);
        any = hand_over(first, second, now) || any;
        any = hand_over(second, first, now) || any;
        for (const auto& ring : rings_) any = ring->make(now) || any;
        if (!first.is_broken() && !second.is_broken()) return any;
        say(first.is_broken() ? first.problem() : second.problem());
        for (const auto& ring : rings_) ring->end().disconnect();
        for (const auto& ring : rings_) ring->end().connect(now);
        return true;
    }

    static bool hand_over(End& from, End& to, std::int64_t now) {
        const auto left = from.out().left();
        if (left.empty() || !to.wants_input()) return false;
        to.receive(left, now);
        from.out().sent(left.size());
        return true;
    }

    // ---- One end here

    bool exchange_far(std::int64_t now) {
        End& end = rings_[0]->end();
        line_->run(now, end.wants_input());
        const bool is_another = end.is_connected() && line_->number() != number_;
        if (is_another || line_->is_up() != end.is_connected()) come_or_go(now);
        if (!end.is_connected()) return false;
        const auto came = line_->take_plain();
        if (!came.empty()) end.receive(came, now);
        bool any = rings_[0]->make(now);
        end.run(now);
        if (end.is_broken()) {
            say(end.problem());
            line_->close(now, false);
            come_or_go(now);
            return false;
        }
        const std::size_t before = end.out().left().size();
        line_->send(end.out());
        any = any || !came.empty() || end.out().left().size() != before;
        line_->run(now, false);
        return any;
    }

    void come_or_go(std::int64_t now) {
        End& end = rings_[0]->end();
        if (const std::string problem = line_->take_problem(); !problem.empty()) say(problem);
        if (end.is_connected()) {
            end.disconnect();
            service_.status("no line to the far site");
        }
        if (!line_->is_up()) return;
        number_ = line_->number();
        say("the line to the far site is up");
        service_.status("the line to the far site is up");
        end.connect(now);
    }

    // ---- Waiting

    void wait(const StopSignals& stop) {
        const std::int64_t now = rmem::now_ns();
        std::int64_t due = std::min(now + (is_held_up() ? kTryNs : kLongestWaitNs), due_ns(now));
        polled_.clear();
        for (const auto& ring : rings_) {
            due = std::min(due, ring->look_ns());
            polled_.push_back({ring->fd(), POLLIN, 0});
        }
        if (line_) {
            line_->add_to(polled_, rings_[0]->end().wants_input(), now);
            due = std::min(due, line_->due_ns(now));
            if (const std::string problem = line_->take_problem(); !problem.empty()) say(problem);
        }
        if (!stop.wait(polled_, due)) return;
        for (std::size_t i = 0; i < rings_.size(); ++i)
            if (polled_[i].revents != 0) rings_[i]->take_interrupts(rmem::now_ns());
    }

    void say(const std::string& sentence) const {
        if (!options_.quiet) fmt::print(stderr, "rmem bridge: {}\n", sentence);
    }

    static constexpr std::int64_t kLongestWaitNs = 100'000'000;
    /// Between tries of a frame that finds no room in its ring.
    static constexpr std::int64_t kTryNs = 50'000;

    const BridgeOptions& options_;
    Service service_;
    std::optional<LineSocket> line_;
    unsigned number_ = 0;  ///< of the line that the end has
    std::vector<std::unique_ptr<BridgedRing>> rings_;
    std::int64_t due_ns_ = 0;  ///< of two ends here: before it only what is written needs a step
    std::vector<pollfd> polled_;
};

void show_config(const BridgeConfig& config) {
    Table table({"region", "ring", ">offset", ">bytes", ""});
    for (const BridgedRingConfig& ring : config.rings) {
        for (const auto& region : ring.sent)
            table.add({printable(region.name), printable(ring.name), offset_text(region.offset),
                       fmt::format("{}", region.bytes), "is taken"});
        for (const auto& region : ring.received)
            table.add({printable(region.name), printable(ring.name), offset_text(region.at),
                       fmt::format("{}", region.bytes), "is brought"});
    }
    show(table.text());
}

void run_bridge(const BridgeOptions& options) {
    const BridgeConfig config = read_bridge_config(options.file);
    if (options.check) {
        for (const BridgedRingConfig& ring : config.rings) check_unopened(ring);
        return show_config(config);
    }
    // Before there are threads, which inherit what is blocked.
    const StopSignals stop;
    Bridge(options, config).run(stop);
}

}  // namespace

void add_bridge(cli::App& app) {
    auto options = std::make_shared<BridgeOptions>();
    cli::App* command = app.add_subcommand(kBridge.word, kBridge.description);
    command->add_option("FILE", options->file, "The bridge's configuration")->required();
    command->add_flag("--check", options->check, "Say what would be forwarded, and open nothing");
    command->add_flag("--spin", options->spin,
                      "Never sleep: takes a processor for itself, for the lowest latency");
    command->add_flag("-q,--quiet", options->quiet, "Print nothing but why it failed");
    command->footer(kBridgeExamples);
    command->callback([options] { run_bridge(*options); });
}

}  // namespace tools
