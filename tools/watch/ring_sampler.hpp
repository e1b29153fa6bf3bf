// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Takes samples of a ring, as long as one likes: an observer that takes part in nothing.
///
/// It maps the ring's segments read-only, so it changes nothing, and works while the members are
/// stuck or dead. A ring that has gone is not there; one that comes back under the name is found by
/// the next sample.
/// `name`: of a ring over several hosts all its nodes on this host, or one of them (`rig@2`).
/// Thread safety: one thread. Errors: `rmem::Error` for a segment that is no ring of this version.

#include "rmem/ring/ring.hpp"
#include "tools/watch/ring_sample.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace tools {

/// What one segment says: of a ring over several hosts its own node's. Without the MU-Net daemons.
RingSample sample_of(const rmem::Ring& ring);
/// Those of this host's nodes.
void add_munet(RingSample& sample);

class RingSampler {
public:
    explicit RingSampler(std::string name) : name_(std::move(name)) {}

    RingSample sample(std::int64_t now);
    /// The bank of a node, as of the last sample; empty when it is not on this host. Words are to
    /// be read as atomics.
    std::span<const std::byte> bank(unsigned node) const;

private:
    void find_segments();

    std::string name_;
    std::vector<std::shared_ptr<rmem::Ring>> rings_;  ///< the segments of one ring
};

}  // namespace tools
