// SPDX-License-Identifier: Apache-2.0
#include "tools/node/node_munet.hpp"

#include "ports/munet/driver_protocol.hpp"
#include "rmem/base/clock.hpp"
#include "tools/node/service.hpp"
#include "tools/stop_signals.hpp"

#include <fmt/format.h>

#include <utility>

namespace tools {

namespace {

constexpr std::int64_t kSliceNs = 5'000'000;  ///< between looks for signals
constexpr std::int64_t kJoinNs = 30'000'000'000;

using ports::munet::Daemon;

/// This node's rank of its ring; it waits for no other.
std::unique_ptr<billboard::Endpoint> join(std::shared_ptr<rmem::Ring> ring, unsigned node) {
    billboard::Settings settings = billboard::Settings::read();
    settings.awaits_others = false;
    const rmem::RingConfig& config = ring->config();
    const rmem::Member member{ports::munet::Network::rank_of(node, config.nodes, config.ranks),
                              node};
    return billboard::Endpoint::open(std::move(ring), member, settings,
                                     rmem::Deadline::in(kJoinNs));
}

std::string in_words(const ports::munet::DaemonConfig& config) {
    return fmt::format("MU-Net at {}, {} for a user, {} senders for an endpoint",
                       config.driver.path, config.driver.user_bytes, config.driver.senders);
}

}  // namespace

void MunetOptions::add_to(cli::App& command) {
    command.add_flag("--munet", wanted_,
                     "MU-Net for this host's programs too; alone, where no --nodes is given");
    command
        .add_option("--munet-memory", memory_, "Memory that a user's endpoints may have together")
        ->capture_default_str();
    command.add_option("--munet-endpoints", endpoints_, "Endpoints that a user may have at a time")
        ->check(cli::range(1U, ports::munet::kEndpoints))
        ->capture_default_str();
    command
        .add_option("--munet-senders", senders_,
                    "Senders among which each endpoint's receive buffer is divided")
        ->check(cli::range(1U, ports::munet::kMaxSenders))
        ->capture_default_str();
    command.add_option("--munet-socket", socket_,
                       "Path of its socket [RMEM_MUNET] (default: in /run/rmem)");
    command.add_flag("--munet-spin", spin_, "Never sleep for MU-Net: takes a processor for itself");
}

ports::munet::DaemonConfig MunetOptions::config(const rmem::RingConfig& ring, unsigned node) const {
    const std::string socket = socket_.empty() ? ports::munet::socket_setting().path : socket_;
    return {
        .driver = {.path = ports::munet::socket_path(socket, rmem::Environment::read().ring, node),
                   .unix_group = ring.unix_group,
                   .node = node,
                   .nodes = ring.nodes,
                   .senders = senders_,
                   .user_bytes = rmem::parse_size("--munet-memory", memory_),
                   .user_endpoints = endpoints_},
        .board = fmt::format("{}@{}", ring.name, node),
        .spin = spin_};
}

void run_munet(const MunetOptions& options, const rmem::RingConfig& ring, unsigned node,
               bool is_alone, const SayLine& say) {
    const auto config = options.config(ring, node);
    const StopSignals stop;
    Service service;
    Daemon::Join open;
    if (!is_alone) {
        open = [joined = rmem::Ring::open(ring, rmem::Deadline::in(kJoinNs), node), node] {
            return join(joined, node);
        };
    }
    Daemon daemon(config, std::move(open));
    say(in_words(config));
    service.ready();
    while (stop.signal() == 0) {
        daemon.run_for(kSliceNs);
        const std::int64_t now = rmem::now_ns();
        service.status(fmt::format("MU-Net: {} endpoints", daemon.relay().active()));
        service.tick(now);
        stop.sleep_until(now);  // lets signals in that have come
    }
    service.stopping();
}

MunetThread::MunetThread(const MunetOptions& options, std::shared_ptr<rmem::Ring> ring, SayLine say)
    : options_(options),
      ring_(std::move(ring)),
      say_(std::move(say)),
      thread_("rmem-munet", [this] { run(); }) {}

void MunetThread::stop() {
    // relaxed is enough: nothing but the word itself is told
    stop_.store(true, std::memory_order_relaxed);
}

bool MunetThread::has_ended() const {
    // relaxed is enough: the destructor joins the thread before anything of it is used
    return ended_.load(std::memory_order_relaxed);
}

bool MunetThread::has_failed() const {
    // (1) pairs with (2): the failure
    return failed_.load(std::memory_order_acquire);
}

void MunetThread::rethrow() const {
    if (has_failed()) std::rethrow_exception(failure_);
}

void MunetThread::run() {
    try {
        const unsigned node = ring_->own_node();
        const auto config = options_.config(ring_->config(), node);
        Daemon daemon(config, [&] { return join(ring_, node); });
        say_(in_words(config));
        // relaxed is enough: as in stop
        while (!stop_.load(std::memory_order_relaxed)) daemon.run_for(kSliceNs);
    } catch (...) {
        failure_ = std::current_exception();
        // (2) pairs with (1)
        failed_.store(true, std::memory_order_release);
    }
    // relaxed is enough: as in has_ended
    ended_.store(true, std::memory_order_relaxed);
}

}  // namespace tools
