// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Which segment of this host a ring's name means.
///
/// A ring's segment has its name; on link udp each node has one, `<ring>@<node>`.
/// Thread safety: any. Errors: `rmem::Error`.

#include "rmem/error.hpp"

#include <string>

namespace rmem {

/// What of its name `name` is without a node's number: "rig@1" is of "rig".
std::string ring_of(const std::string& name);

/// The segment that a name means: its own, or that of the only node of a ring over several hosts.
/// Throws bad_rank where this host has several nodes of that ring.
std::string segment_named(const std::string& name);

/// The error that names the rings that are there instead.
Error no_such_ring(const std::string& name);

}  // namespace rmem
