// SPDX-License-Identifier: Apache-2.0
#include "billboard/environment.hpp"

#include "rmem/base/environment_variable.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

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
    settings.is_layout_open = true;
    if (const char* text = rmem::environment_setting("RMEM_LAYOUT")) {
        settings.board.layout = parse_layout(text);
        settings.is_layout_open = false;
    }
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
    settings.await = rmem::Await::read();
    settings.awaits_others = settings.await.others.value_or(true);
    return settings;
}

Settings completed(const Settings& settings, const rmem::RingConfig& there) {
    const auto board = board_of(there);
    if (!board) return settings;  // joining says what is there instead
    const auto size = [](std::size_t bytes) {
        return fmt::format("{} ({} bytes)", rmem::size_setting(bytes), bytes);
    };
    std::vector<std::string> differences;
    if (!settings.is_layout_open && settings.board.layout != board->layout) {
        differences.push_back(fmt::format("RMEM_LAYOUT is {} there and {} here",
                                          name_of(board->layout), name_of(settings.board.layout)));
    }
    if (settings.board.data_bytes != 0 && settings.board.data_bytes != board->data_bytes) {
        differences.push_back(fmt::format("RMEM_PARTITION is {} there and {} here",
                                          size(board->data_bytes),
                                          size(settings.board.data_bytes)));
    }
    if (!differences.empty()) {
        throw rmem::Error(rmem::Errc::version_mismatch,
                          fmt::format("ring '{}' was made with another billboard than this process "
                                      "asks for: {}; give all members the same, or none, to take "
                                      "them from the ring; or use another RMEM_RING",
                                      there.name, fmt::join(differences, ", ")));
    }
    Settings result = settings;
    result.board = *board;
    return result;
}

rmem::RingConfig ring_config(const rmem::Environment& environment, const Settings& settings) {
    rmem::RingConfig config = environment.ring_config();
    config.check();
    if (settings.board.layout == Layout::pieces && config.link != rmem::LinkKind::sim) {
        throw rmem::Error(rmem::Errc::bad_environment,
                          "RMEM_LAYOUT: layout pieces is for simulated programs; give inline");
    }
    const Geometry geometry(config, settings.board);
    config.system_bytes = geometry.region_bytes();
    config.system_hash = geometry.hash();
    return config;
}

rmem::RingConfig ring_config(const rmem::Environment& environment) {
    return ring_config(environment, Settings::read());
}

}  // namespace billboard
