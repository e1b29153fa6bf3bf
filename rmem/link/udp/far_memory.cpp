// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/far_memory.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/link/fabric/make_endpoint.hpp"
#include "rmem/link/udp/engine_settings.hpp"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace rmem {

namespace {

/// What RMEM_BULK says; nothing: it is not set.
std::optional<bool> read_is_past_ring() {
    const char* const text = environment_setting("RMEM_BULK");
    if (text == nullptr) return std::nullopt;
    const std::string_view way = text;
    if (way == "ring" || way == "fabric") return way == "fabric";
    throw Error(Errc::bad_environment, fmt::format("RMEM_BULK is '{}'; give fabric or ring", way));
}

/// Where this node is reached by the others; empty: nothing says it.
std::string own_ip(const udp::EngineSettings& engine, unsigned node) {
    const auto& nodes = engine.fabric ? engine.fabric->nodes : engine.endpoints.nodes;
    if (!nodes.empty()) return udp::to_text(nodes.at(node).ip);
    if (engine.endpoints.own_interface) return udp::to_text(engine.endpoints.own_interface->ip);
    if (!engine.fabric || engine.fabric->interface.empty()) return "";
    for (const auto& interface : udp::interfaces()) {
        if (udp::is_named(interface.name, interface.ip, engine.fabric->interface))
            return udp::to_text(interface.ip);
    }
    return "";
}

std::optional<fabric::FarWay> find_way(const Ring& ring, unsigned node,
                                       std::optional<bool> is_past_ring) {
    udp::EngineSettings engine;
    try {
        engine = udp::EngineSettings::read(ring.config());
    } catch (const Error&) {
        if (is_past_ring) throw;
        return std::nullopt;  // the engine is a daemon's, which knows more
    }
    if (!is_past_ring && engine.key) return std::nullopt;
    // Where RMEM_PROVIDER names none: TCP, which every network has.
    const std::string provider = engine.fabric ? engine.fabric->provider : "";
    return fabric::FarWay{provider, own_ip(engine, node)};
}

}  // namespace

std::unique_ptr<FarMemory> far_memory_of(Ring& ring, unsigned node,
                                         std::function<void(const std::string& sentence)> told) {
    const auto is_past_ring = read_is_past_ring();
    if (!ring.config().is_remote() || !is_past_ring.value_or(true)) return nullptr;
    fabric::FarSettings settings;
    settings.ranks = ring.config().ranks;
    settings.told = std::move(told);
    settings.is_elsewhere = [&ring](unsigned rank) {
        // relaxed is enough: nothing else of the slot is read
        const auto state = ring.rank(rank).state.load(std::memory_order_relaxed);
        return state == static_cast<std::uint32_t>(RankState::elsewhere);
    };
    settings.find_way = [&ring, node, is_past_ring] { return find_way(ring, node, is_past_ring); };
    return fabric::make_far_memory(std::move(settings));
}

}  // namespace rmem
