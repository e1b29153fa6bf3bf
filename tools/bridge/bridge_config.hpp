// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The configuration file of `rmem bridge`: JSON, with comments as in C++; rmem-bridge(1) has it in
/// full.
///
/// Errors: `rmem::Error(invalid_argument)`: the sentence names the file, the object in it, what was
///   found and what to give. Facts of the ring itself (its size) are checked when it is open.
/// Thread safety: values and functions. Units: bytes.

#include "bridge/receiver.hpp"
#include "bridge/sender.hpp"
#include "remote/socket.hpp"
#include "rmem/base/environment_variable.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace tools {

/// A ring of the bridge, and what goes from it and to it.
struct BridgedRingConfig {
    std::string name;                    ///< in the file
    rmem::GivenSettings::List settings;  ///< RMEM_… of the bridge's node there
    std::uint64_t table = 0;             ///< where its bridges' table lies (bridge/table.hpp)
    std::vector<bridge::SentRegion> sent;
    std::vector<bridge::ReceivedRegion> received;
};

/// The way to the half-bridge at another site.
struct FarConfig {
    remote::Address address;
    bool listens = false;
    std::string key_file;
};

struct BridgeConfig {
    std::vector<BridgedRingConfig> rings;  ///< two, or one and the far site's
    std::optional<FarConfig> far;
};

/// `file` is for the sentences.
BridgeConfig parse_bridge_config(const std::string& file, const std::string& text);
BridgeConfig read_bridge_config(const std::string& file);

}  // namespace tools
