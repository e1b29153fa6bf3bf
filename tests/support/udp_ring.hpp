// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring of two nodes on link udp in the test's process: a segment and an engine each, over
/// loop-back.
///
///     UdpRing ring;
///     ring.node(0).write_word(0x40, 7);

#include "rmem/node.hpp"
#include "rmem/ring.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <string>

namespace rmem::test {

class UdpRing {
public:
    static constexpr std::size_t kBytes = 16384;

    /// With `ranks` of them, of which the first of each node is the test's.
    explicit UdpRing(unsigned ranks = 2, const std::string& timing = "none") {
        config_.name = name_.get();
        config_.link = LinkKind::udp;
        config_.nodes = 2;
        config_.ranks = ranks;
        config_.user_bytes = kBytes;
        config_.timing = parse_timing(timing);
        stay_on_this_host(name_.get());
        for (unsigned n = 0; n < 2; ++n) {
            rings_[n] = Ring::open(config_, Deadline::in(kDefaultJoinTimeoutNs), n);
            nodes_[n] = std::make_unique<Node>(rings_[n], Member{first_rank(n), n});
        }
    }

    const std::string& name() const { return name_.get(); }
    std::string segment(unsigned node) const { return config_.segment_name(node); }
    const RingConfig& config() const { return config_; }
    unsigned first_rank(unsigned node) const {
        return (node * config_.ranks + config_.nodes - 1) / config_.nodes;
    }
    Ring& ring(unsigned n) const { return *rings_[n]; }
    Node& node(unsigned n) const { return *nodes_[n]; }
    void end(unsigned n) {
        nodes_[n].reset();
        rings_[n].reset();
    }

    void write(unsigned n, std::size_t offset, const void* bytes, std::size_t size) const {
        while (node(n).write(offset, bytes, size) == WriteResult::again) node(n).poll();
    }
    void write_word(unsigned n, std::size_t offset, std::uint32_t value) const {
        write(n, offset, &value, sizeof value);
    }
    /// All that was written is in both banks.
    void flush() const {
        for (const auto& one : nodes_) EXPECT_TRUE(one->flush(Deadline::in(kDefaultJoinTimeoutNs)));
    }
    /// For commands of a shell that join this ring.
    std::string environment() const {
        return "RMEM_INTERFACE=lo RMEM_GROUP=" + own_group(name_.get());
    }

private:
    RingName name_;
    RingConfig config_;
    std::array<std::shared_ptr<Ring>, 2> rings_;
    std::array<std::unique_ptr<Node>, 2> nodes_;
};

}  // namespace rmem::test
