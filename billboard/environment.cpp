// SPDX-License-Identifier: Apache-2.0
#include "billboard/environment.hpp"

#include "rmem/environment_variable.hpp"

#include <fmt/format.h>

#include <string>

namespace billboard {

namespace {

BarrierKind parse_barrier(const std::string& text) {
    if (text == "arrival") return BarrierKind::arrival;
    if (text == "paper") return BarrierKind::paper;
    throw rmem::Error(
        rmem::Errc::bad_environment,
        fmt::format("RMEM_BARRIER: there is no barrier '{}'; give arrival or paper", text));
}

}  // namespace

Settings Settings::read() {
    Settings settings;
    if (const char* text = rmem::environment_setting("RMEM_LAYOUT"))
        settings.board.layout = parse_layout(text);
    if (const char* text = rmem::environment_setting("RMEM_PARTITION")) {
        settings.board.data_bytes = rmem::parse_size("RMEM_PARTITION", text);
        if (settings.board.data_bytes == 0) {
            throw rmem::Error(rmem::Errc::bad_size,
                              fmt::format("RMEM_PARTITION: a data partition of 0 bytes holds no "
                                          "message; give at least {}, or unset it",
                                          kMinDataBytes));
        }
    }
    if (const char* text = rmem::environment_setting("RMEM_BARRIER"))
        settings.barrier = parse_barrier(text);
    return settings;
}

rmem::RingConfig ring_config(const rmem::Environment& environment, const Settings& settings) {
    rmem::RingConfig config = environment.ring_config();
    config.check();
    const Geometry geometry(config, settings.board);
    config.system_bytes = geometry.region_bytes();
    config.system_hash = geometry.hash();
    return config;
}

rmem::RingConfig ring_config(const rmem::Environment& environment) {
    return ring_config(environment, Settings::read());
}

}  // namespace billboard
