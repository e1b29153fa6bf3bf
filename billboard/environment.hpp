// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The billboard's part of the environment, and a ring configuration that has room for it.
///
///   RMEM_LAYOUT     inline (default) or paper
///   RMEM_PARTITION  bytes of data partition per rank, e.g. 64K
///   RMEM_BARRIER    arrival (default) or paper: how bbp_barrier works
///                   (billboard/core/barriers.hpp)
///
/// Errors: `rmem::Error` (bad_environment, bad_size).

#include "billboard/boards/layout.hpp"
#include "rmem/ring/config.hpp"
#include "rmem/ring/waiting/awaiting.hpp"

namespace billboard {

enum class BarrierKind : std::uint32_t { arrival = 1, paper = 2 };

struct Settings {
    BoardConfig board;
    BarrierKind barrier = BarrierKind::arrival;
    /// Whether opening waits for the other ranks. If not, those that have not come yet are there
    /// and silent: messages to them wait (BBP_EAGAIN), and barriers.
    bool awaits_others = true;
    rmem::Await await{};  ///< its ranks are everybody
    /// Whether a ring that is there decides on the layout; on the partition it does while
    /// data_bytes is 0.
    bool is_layout_open = false;

    RMEM_API static Settings read();
};

/// The settings, completed from the ring's billboard. Throws version_mismatch, with both values,
/// where they say otherwise.
RMEM_API Settings completed(const Settings& settings, const rmem::RingConfig& there);

/// The ring that the environment asks for, with the billboard's region in it.
RMEM_API rmem::RingConfig ring_config(const rmem::Environment& environment,
                                      const Settings& settings);

/// As above, with RMEM_LAYOUT and RMEM_PARTITION read from the environment.
RMEM_API rmem::RingConfig ring_config(const rmem::Environment& environment);

}  // namespace billboard
