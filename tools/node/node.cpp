// SPDX-License-Identifier: Apache-2.0
// `rmem node`: the engine of a node on the udp link, as a process of its own, for any number of
// programs.
//
// With --unit it says by which settings programs of cards join its node, and keeps nodes on links
// of this host, too.
//
// The options become RMEM_ variables of this process; the same code reads them that reads those of
// the node's programs.

#include "billboard/environment.hpp"
#include "cards/common/unit.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/link/ring/keeper.hpp"
#include "rmem/link/udp/engine.hpp"
#include "rmem/link/udp/engine_settings.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "tools/commands.hpp"
#include "tools/node/node_events.hpp"
#include "tools/node/node_munet.hpp"
#include "tools/node/service.hpp"
#include "tools/run/ring_map.hpp"
#include "tools/run/run_report.hpp"
#include "tools/settings.hpp"
#include "tools/stop_signals.hpp"
#include "tools/watch/metrics_server.hpp"
#include "tools/watch/ring_metrics.hpp"
#include "tools/watch/ring_sampler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace tools {

namespace {

constexpr const char* kNodeExamples = R"(
Examples:
  rmem node --ring rig --node 0 --nodes 2 --key-file rig.key       on the first host
  rmem node --ring rig --node 1 --nodes 2 --key-file rig.key       on the second
  rmem node --ring rig --node 0 --nodes 2 --ranks 8                four programs at each node
  rmem node --ring try --node 0 --nodes 2 --interface lo           all nodes on this host
  rmem node --ring rig --node 0 --nodes 2 --metrics 9464           http://127.0.0.1:9464/metrics
  rmem node --unit 0 --ring rig --node 0 --nodes 2                 unit 0 of programs of cards
  rmem node --unit 0 --ring rig --node 0 --nodes 2 --link direct   the same, all on this host
  rmem node --munet                                                MU-Net, for this host's users
  rmem node --munet --ring rig --node 0 --nodes 2                  the same between hosts
  systemctl start rmem-node@rig                                    settings: /etc/rmem/rig.conf

Programs find the node by RMEM_RING, RMEM_NODE and the same settings, with RMEM_LINK=udp. Start
the node first: a program that comes before it runs the node itself.

Exit codes: 0 told to end by SIGTERM, SIGINT or SIGHUP; 1 failed (the sentence says why); 2 wrong
command line.)";

constexpr std::int64_t kOpenNs = 10'000'000'000;
constexpr std::int64_t kLookNs = 100'000'000;  ///< between looks at what has happened
constexpr std::int64_t kSignalNs = 1'000'000;  ///< between looks for signals
constexpr std::int64_t kRestNs = 10'000'000;

constexpr Setting kNodeSettings[] = {
    {"--ring", "RMEM_RING", "Name of the ring"},
    {"--node", "RMEM_NODE", "Which node this is, from 0"},
    {"--nodes", "RMEM_NODES", "Number of nodes of the ring"},
    {"--ranks", "RMEM_RANKS", "Number of ranks of the ring (default: one per node)"},
    {"--link", "RMEM_LINK", "udp, which is the default, fabric, ring or direct"},
};

constexpr Setting kNetworkSettings[] = {
    {"--group", "RMEM_GROUP",
     "Meeting point: a multicast address:port, each node's address, or a directory (fabric)"},
    {"--provider", "RMEM_PROVIDER", "Of link fabric: a provider of libfabric, such as tcp"},
    {"--topology", "RMEM_TOPOLOGY", "Of link fabric: a file that says which nodes share a rack"},
    {"--interface", "RMEM_INTERFACE", "Interface to meet on, by name or address"},
    {"--key-file", "RMEM_KEY_FILE", "The key that all nodes share; `rmem key` makes one"},
    {"--dead-timeout", "RMEM_DEAD_TIMEOUT", "A node that is silent for this long counts as dead"},
};

struct NodeOptions {
    OwnersOption owners;
    Settings settings;
    MunetOptions munet;
    std::optional<unsigned> unit;
    std::optional<std::uint16_t> metrics;
    std::string metrics_address = "127.0.0.1";
    bool insecure = false, spin = false, quiet = false;
};

unsigned node_of(const rmem::Environment& environment, const rmem::RingConfig& config) {
    if (!environment.node) {
        throw rmem::Error(rmem::Errc::bad_environment,
                          fmt::format("ring '{}' has {} nodes, and nothing says which one this is; "
                                      "give --node, or set RMEM_NODE",
                                      config.name, config.nodes));
    }
    if (*environment.node < config.nodes) return *environment.node;
    throw rmem::Error(rmem::Errc::bad_rank,
                      fmt::format("node {} is outside ring '{}', which has {} nodes; they count "
                                  "from 0 (--node, --nodes)",
                                  *environment.node, config.name, config.nodes));
}

rmem::ByteLock lock_engine(const rmem::Ring& ring) {
    if (auto lock = ring.try_lock_engine()) return std::move(*lock);
    // relaxed is enough, twice: for people
    const auto kind =
        static_cast<rmem::udp::EngineKind>(ring.board().kind.load(std::memory_order_relaxed));
    const unsigned pid = ring.board().pid.load(std::memory_order_relaxed);
    throw rmem::Error(
        rmem::Errc::rank_taken,
        fmt::format("node {} of ring '{}' is run by process {}, {}", ring.own_node(),
                    ring.config().name, pid,
                    kind == rmem::udp::EngineKind::program
                        ? "a program that was there first; end it, start this, then programs"
                        : "another `rmem node`; end it, or give this one its own --node"));
}

/// The node, from joining to being told to end.
class NodeDaemon {
public:
    NodeDaemon(const NodeOptions& options, rmem::Ring& ring, rmem::udp::EngineSettings settings)
        : options_(options),
          events_(ring, [this](const std::string& sentence) { say(sentence); }),
          where_(
              settings.endpoints.text() +
              (settings.key ? "" : ", without a key: anyone who can send there can write into it")),
          engine_(ring, std::move(settings), rmem::udp::EngineKind::daemon, std::nullopt) {
        engine_.on_bound_violation(
            [this](const rmem::BoundViolation& violation) { events_.note(violation); });
    }

    /// `munet`: ends the node when it fails; null: there is none. `ready` is called once, when the
    /// node has joined.
    void run(rmem::Deadline joined, MunetThread* munet, const std::function<void()>& ready) {
        say("joining by " + where_);
        if (const std::string advice = engine_.work().carrier().buffer_advice(); !advice.empty())
            say(advice);
        bool is_ready = false;
        while (!is_stopped()) {
            turn();
            const std::int64_t now = rmem::now_ns();
            if (now >= next_look_ns_) look(now);
            if (!is_ready && engine_.is_member()) {
                is_ready = true;
                look(now);
                ready();
                service_.ready();
            }
            if (!is_ready && joined.passed(now)) engine_.join(joined);  // says what is wrong
            if (munet != nullptr && munet->has_failed()) munet->rethrow();
        }
        service_.stopping();
        if (munet != nullptr) munet->stop();
        while (munet != nullptr && !munet->has_ended()) turn();
        say(fmt::format("stopped by {}", signal_name(stop_.signal())));
    }

private:
    void turn() {
        engine_.run();
        if (!options_.spin) engine_.rest(kRestNs);
    }
    bool is_stopped() {
        const std::int64_t now = rmem::now_ns();
        if (now < next_signal_ns_) return false;
        next_signal_ns_ = now + kSignalNs;
        stop_.sleep_until(now);  // lets those in that have come
        return stop_.signal() != 0;
    }

    void look(std::int64_t now) {
        next_look_ns_ = now + kLookNs;
        events_.look(now);
        service_.status(events_.status());
        service_.tick(now);
    }

    void say(const std::string& sentence) const {
        if (!options_.quiet) fmt::print(stderr, "rmem node: {}\n", sentence);
    }

    const NodeOptions& options_;
    StopSignals stop_;
    Service service_;
    NodeEvents events_;
    std::string where_;
    rmem::udp::Engine engine_;
    std::int64_t next_look_ns_ = 0, next_signal_ns_ = 0;
};

/// Serves the node's counters from now on, if that is wanted. As any observer: the engine knows
/// nothing of it.
std::unique_ptr<MetricsServer> serve_metrics(const NodeOptions& options,
                                             const std::string& segment) {
    if (!options.metrics) return nullptr;
    auto server = std::make_unique<MetricsServer>(
        options.metrics_address, *options.metrics,
        [segment, sampler = std::make_shared<RingSampler>(segment)] {
            return metrics_of(segment, sampler->sample(rmem::now_ns()));
        });
    if (!options.quiet) fmt::print(stderr, "rmem node: metrics at {}\n", server->url());
    return server;
}

/// At its end: where no program is left that could wait for a daemon to come back, nobody is to.
/// Made with the engine's lock held.
class LastWord {
public:
    explicit LastWord(const rmem::Ring& ring) : ring_(ring) {}
    ~LastWord() {
        for (unsigned r = 0; r < ring_.config().ranks; ++r) {
            if (ring_.is_alive(r)) return;
        }
        // relaxed is enough: the lock orders it
        ring_.board().kind.store(static_cast<std::uint32_t>(rmem::udp::EngineKind::none),
                                 std::memory_order_relaxed);
    }
    LastWord(const LastWord&) = delete;
    LastWord& operator=(const LastWord&) = delete;

private:
    const rmem::Ring& ring_;
};

/// The ring that settings and environment name, of link udp where they name none.
rmem::RingConfig configure(const NodeOptions& options, bool* is_alone) {
    options.settings.apply();
    if (options.insecure) set_variable("RMEM_INSECURE", "1");
    unset_variable("RMEM_RANK");  // a launcher's: this process is none
    prepare_map("node");
    const rmem::Environment environment = rmem::Environment::read();
    *is_alone = options.munet.wanted() && !environment.nodes;
    if (*is_alone) {
        rmem::RingConfig config = environment.ring_config();
        // Of all users, and so of one name for all.
        if (!environment.ring) config.name = rmem::RingConfig{}.name;
        return config;
    }
    if (!environment.link) set_variable("RMEM_LINK", "udp");
    return billboard::ring_config(rmem::Environment::read());
}

void say(const NodeOptions& options, const std::string& sentence) {
    if (!options.quiet) fmt::print(stderr, "rmem node: {}\n", sentence);
}

/// The settings by which a program joins the node.
cards::Settings settings_of(const rmem::RingConfig& config, unsigned node) {
    cards::Settings settings = {{"RMEM_RING", config.name},
                                {"RMEM_LINK", rmem::name_of(config.link)},
                                {"RMEM_NODE", fmt::format("{}", node)},
                                {"RMEM_NODES", fmt::format("{}", config.nodes)},
                                {"RMEM_RANKS", fmt::format("{}", config.ranks)},
                                {"RMEM_SIZE", fmt::format("{}", config.user_bytes)}};
    for (const std::string& name : rmem::setting_names()) {
        const char* value = rmem::environment_setting(name.c_str());
        const bool is_there =
            std::any_of(settings.begin(), settings.end(),
                        [&](const auto& setting) { return setting.first == name; });
        if (value == nullptr || is_there) continue;
        const bool is_path =
            name == "RMEM_KEY_FILE" || name == "RMEM_MAP";  // programs run elsewhere
        settings.emplace_back(name, is_path ? std::filesystem::absolute(value).string() : value);
    }
    return settings;
}

void publish_unit(std::optional<cards::PublishedUnit>& unit, const NodeOptions& options,
                  const rmem::RingConfig& config, unsigned node) {
    if (!options.unit) return;
    unit.emplace(*options.unit, settings_of(config, node));
    say(options, fmt::format("unit {} is node {} of ring '{}'", *options.unit, node, config.name));
}

/// On a link of this host: keeps the ring, the node and the unit.
void keep_node(const NodeOptions& options, const rmem::RingConfig& config, unsigned node) {
    const StopSignals stop;
    const auto ring_options = rmem::RingOptions::from(rmem::Environment::read(), config);
    const auto ring = rmem::Ring::open(config, rmem::Deadline::in(kOpenNs), node);
    options.owners.give(*ring);
    rmem::NodeKeeper keeper(ring, node, ring_options);
    std::optional<cards::PublishedUnit> unit;
    publish_unit(unit, options, config, node);
    Service service;
    service.ready();
    while (stop.signal() == 0) {
        const std::int64_t now = rmem::now_ns();
        service.tick(now);
        keeper.look();
        stop.sleep_until(now + kLookNs);
    }
    service.stopping();
    say(options, fmt::format("stopped by {}", signal_name(stop.signal())));
}

/// The engine of link udp, and MU-Net beside it if that is wanted.
void run_engine(const NodeOptions& options, const rmem::RingConfig& config, unsigned node) {
    auto settings = rmem::udp::EngineSettings::read(config);  // before anything is made
    const auto metrics = serve_metrics(options, config.segment_name(node));
    const auto ring = rmem::Ring::open(config, rmem::Deadline::in(kOpenNs), node);
    options.owners.give(*ring);
    const rmem::ByteLock lock = lock_engine(*ring);
    const LastWord last_word(*ring);
    const auto patience =
        rmem::Environment::read().join_timeout_ns.value_or(rmem::kDefaultJoinTimeoutNs);
    NodeDaemon daemon(options, *ring, std::move(settings));
    std::unique_ptr<MunetThread> munet;
    if (options.munet.wanted()) {
        munet = std::make_unique<MunetThread>(
            options.munet, ring, [&](const std::string& sentence) { say(options, sentence); });
    }
    std::optional<cards::PublishedUnit> unit;
    daemon.run(rmem::Deadline::in(patience), munet.get(),
               [&] { publish_unit(unit, options, config, node); });
}

void run_node(const NodeOptions& options) {
    bool is_alone = false;
    const rmem::RingConfig config = configure(options, &is_alone);
    const rmem::Environment environment = rmem::Environment::read();
    const unsigned node = is_alone ? environment.node.value_or(0) : node_of(environment, config);
    if (!is_alone && config.is_remote()) return run_engine(options, config, node);
    if (!options.munet.wanted()) return keep_node(options, config, node);
    run_munet(options.munet, config, node, is_alone,
              [&](const std::string& sentence) { say(options, sentence); });
}

}  // namespace

void add_node(cli::App& app) {
    auto options = std::make_shared<NodeOptions>();
    cli::App* command =
        app.add_subcommand("node", "Run a node of link udp for all its programs on this host");
    options->settings.add_to(*command, kNodeSettings);
    options->settings.add_to(*command, kRingSettings);
    options->owners.add_to(*command);
    options->settings.add_to(*command, kNetworkSettings);
    options->munet.add_to(*command);
    command->add_option("--unit", options->unit,
                        "Programs of cards find the node as their unit of that number, from 0");
    command->add_flag("--insecure", options->insecure,
                      "Without a key where others may hear it [RMEM_INSECURE=1]");
    command->add_flag("--spin", options->spin,
                      "Never sleep: takes a processor for itself, for the lowest latency");
    command->add_option("--metrics", options->metrics,
                        "Serve its counters to Prometheus at this port; 0: any free one");
    command
        ->add_option("--metrics-address", options->metrics_address,
                     "Also at this address of the host")
        ->capture_default_str();
    command->add_flag("-q,--quiet", options->quiet, "Print nothing but why it failed");
    command->footer(kNodeExamples);
    command->callback([options] { run_node(*options); });
}

}  // namespace tools
