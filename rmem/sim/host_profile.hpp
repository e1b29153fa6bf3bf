// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The costs of a simulated host: its processor's way to the card across the I/O bus, and software.
///
/// Units: nanoseconds of virtual time. A load and a call cost at least 1 ns, so that a process that
/// polls without waiting still lets time pass.
/// Errors: `parse_host` throws Error(bad_profile) with a sentence that names the valid values.

#include "rmem/error.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace rmem::sim {

struct HostProfile {
    std::string name = "none";
    std::int64_t store_ns = 0;  ///< one word to the card; 0: a write enters the card as a whole
    std::int64_t load_ns = 1;   ///< one word from the card: the processor waits for it
    std::int64_t call_ns = 1;   ///< software of one call that sends, receives or waits

    friend bool operator==(const HostProfile&, const HostProfile&) = default;
};

/// "none", "pentium-ii" (the billboard paper's hosts; constants in docs/guide/simulator.md), each
/// with ",store=<time>", ",load=<time>", ",call=<time>".
RMEM_API HostProfile parse_host(std::string_view spec);
RMEM_API std::vector<std::string> host_profile_names();

}  // namespace rmem::sim
