// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/engine_settings.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/base/hash.hpp"
#include "rmem/link/carrier/unknown_host.hpp"
#include "rmem/link/fabric/make_endpoint.hpp"
#include "rmem/link/udp/protocol/format.hpp"
#include "rmem/link/udp/socket.hpp"
#include "rmem/ring/joining.hpp"

#include <fmt/format.h>
#include <sodium.h>
#include <time.h>

#include <algorithm>
#include <string>
#include <thread>

namespace rmem::udp {

namespace {

constexpr std::int64_t kLeastDeadNs = 10'000'000;

/// RMEM_PAYLOAD; none: it is unset.
std::optional<std::size_t> given_payload() {
    const std::string text = environment_text("RMEM_PAYLOAD");
    if (text.empty()) return std::nullopt;
    const std::size_t bytes = parse_size("RMEM_PAYLOAD", text);
    if (bytes >= kLeastPayload && bytes <= kMaxPayload && bytes % kWordBytes == 0) return bytes;
    throw Error(
        Errc::bad_environment,
        fmt::format(
            "RMEM_PAYLOAD={} is not a valid datagram size; it must be a multiple of {} from {} to "
            "{} bytes",
            bytes, kWordBytes, kLeastPayload, kMaxPayload));
}

}  // namespace

std::size_t read_payload(const Endpoints& endpoints) {
    if (const auto given = given_payload()) return *given;
    const std::size_t most = endpoints.longest_datagram().value_or(kDefaultPayload);
    return std::clamp(most / kWordBytes * kWordBytes, kLeastPayload, kMaxPayload);
}

namespace {

std::int64_t read_dead_timeout() {
    const std::string text = environment_text("RMEM_DEAD_TIMEOUT");
    if (text.empty()) return kDeadNs;
    const std::int64_t ns = parse_duration_ns("RMEM_DEAD_TIMEOUT", text);
    if (ns >= kLeastDeadNs) return ns;
    throw Error(
        Errc::bad_environment,
        fmt::format("RMEM_DEAD_TIMEOUT={} is too short to tell a dead node from a busy one; the "
                    "minimum is {} ms",
                    text, kLeastDeadNs / 1'000'000));
}

bool read_insecure() {
    const std::string text = environment_text("RMEM_INSECURE");
    if (text.empty() || text == "0") return false;
    if (text == "1") return true;
    throw Error(Errc::bad_environment,
                fmt::format("RMEM_INSECURE={} is not valid; it must be 0, 1 or unset", text));
}

std::optional<MasterKey> read_master_key(const EngineSettings& settings) {
    if (const std::string file = environment_text("RMEM_KEY_FILE"); !file.empty())
        return read_key(file);
    if (read_insecure() || !settings.leave_host()) return std::nullopt;
    throw Error(
        Errc::bad_key,
        fmt::format(
            "other hosts may hear the ring ({}), and write into it; set RMEM_KEY_FILE to a key "
            "that `rmem key` made, or RMEM_INSECURE=1 where the network is yours alone, or "
            "RMEM_INTERFACE=lo to stay on this host",
            settings.way()));
}

constexpr auto kAskAgain = std::chrono::milliseconds(200);

/// Where the others are. A name that is not known yet may be that of a container which starts at
/// the same time.
void read_addresses(EngineSettings& settings, const RingConfig& config) {
    const auto patience = Environment::read().join_timeout_ns.value_or(kDefaultJoinTimeoutNs);
    for (const Deadline deadline = Deadline::in(patience);;) {
        try {
            if (config.link == LinkKind::fabric) {
                settings.fabric = fabric::Settings::read(config.nodes);
            } else {
                settings.endpoints = Endpoints::read(config.nodes);
            }
            return;
        } catch (const UnknownHost&) {
            if (deadline.passed(program_now_ns())) throw;
        }
        std::this_thread::sleep_for(kAskAgain);
    }
}

}  // namespace

EngineSettings EngineSettings::read(const RingConfig& config) {
    EngineSettings settings;
    read_addresses(settings, config);
    settings.key = read_master_key(settings);
    settings.payload = settings.fabric ? given_payload().value_or(fabric::kEagerBytes)
                                       : read_payload(settings.endpoints);
    settings.dead_ns = read_dead_timeout();
    if (const std::string faults = environment_text("RMEM_FAULTS"); !faults.empty()) {
        settings.faults = FaultPlan::parse(faults, config.nodes, config.link);
    }
    return settings;
}

namespace {

/// No earlier incarnation may have the same: the wall clock, in nanoseconds.
std::uint64_t new_incarnation() {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

std::uint64_t true_random() {
    std::uint64_t value = 0;
    ::randombytes_buf(&value, sizeof value);
    return value;
}

}  // namespace

std::unique_ptr<Carrier> EngineSettings::make_carrier(const Ring& ring) const {
    const RingConfig& config = ring.config();
    if (fabric) return fabric::make_endpoint({*fabric, config.name, ring.own_node(), config.nodes});
    SocketSettings socket;
    socket.endpoints = endpoints;
    socket.node = ring.own_node();
    socket.nodes = config.nodes;
    return std::make_unique<Socket>(socket);
}

CoreConfig EngineSettings::core_config(const Ring& ring, const Carrier& carrier) const {
    CoreConfig config;
    config.exchange.node = static_cast<std::uint16_t>(ring.own_node());
    config.exchange.nodes = ring.config().nodes;
    config.exchange.ring = ring_id(ring.config());
    config.exchange.incarnation = new_incarnation();
    config.exchange.salt = true_random();
    config.exchange.bank_bytes = ring.config().bank_bytes();
    config.exchange.payload = payload;
    if (fabric || !endpoints.leave_host()) config.exchange.sure = payload;
    config.dead_ns = dead_ns;
    config.socket_room = carrier.bytes_held();
    config.exchange.is_reliable = carrier.is_reliable();
    config.seed = true_random();
    config.about = about(ring.config());
    return config;
}

std::string about(const RingConfig& config) {
    std::string text = fmt::format("ring '{}': ", config.name);
    for (const auto& [variable, value] : settings_of(config))
        text += fmt::format("{} {}; ", variable, value);
    // Both make these.
    return text + fmt::format("RMEM_LAYOUT/RMEM_PARTITION {} bytes ({:#x})", config.system_bytes,
                              config.system_hash);
}

std::uint64_t ring_id(const RingConfig& config) noexcept {
    return Fnv1a().add(config.name).add_word(config.hash()).value();
}

}  // namespace rmem::udp
