// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The report of a write that took longer than the bound.

#include <cstdint>

namespace rmem {

/// A write that took longer than the bound.
struct BoundViolation {
    unsigned origin = 0;
    std::uint64_t offset = 0;
    std::int64_t written_ns = 0;
    std::int64_t propagation_ns = 0;
    bool by_host = false;  ///< in time on the wire; this host was away when it fell due
};

}  // namespace rmem
