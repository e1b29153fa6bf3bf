// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The nodes of one ring in this process, on any link of this host.
///
///     TestRing ring({.link = LinkKind::ring, .timing = "scramnet-burst"});
///     Node a = ring.join(0), b = ring.join(1);          // nodes, or
///     RingRank c(ring, 0);                              // a rank, and the link's memory itself
///
/// All share one mapping, for the thread sanitizer's sake; on link udp each node has a segment and
/// an engine of its own, over loop-back, and `node` finds those that have joined at the beginning.
/// (The billboard's endpoints on such a ring: tests/support/endpoint_pair.hpp.)

#include "rmem/link/ring/memory.hpp"
#include "rmem/node.hpp"
#include "rmem/ring/ring.hpp"
#include "tests/support/child.hpp"
#include "tests/support/own_network.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rmem::test {

struct RingSpec {
    LinkKind link = LinkKind::ring;
    unsigned nodes = 2;
    unsigned ranks = 0;  ///< 0: one for each node
    std::string timing = "none";
    std::size_t user_bytes = 65536;
    std::size_t system_bytes = 0;
    std::int64_t bound_ns = 0;
    unsigned slower = 1;  ///< than the profile: for tests in which the host must outrun the wire
    bool joins = false;   ///< the first rank of each node, at once
};

inline constexpr std::size_t kUdpBytes = 16384;

/// Two nodes on link udp that have joined.
inline RingSpec udp_pair(unsigned ranks = 2, const std::string& timing = "none") {
    return {.link = LinkKind::udp,
            .ranks = ranks,
            .timing = timing,
            .user_bytes = kUdpBytes,
            .joins = true};
}

inline TimingProfile slowed(TimingProfile profile, unsigned factor) {
    profile.bits_per_s /= factor;
    profile.node_delay_ps *= factor;
    profile.insertion_ps *= factor;
    profile.pitch_ps *= factor;
    return profile;
}

class TestRing {
public:
    explicit TestRing(const RingSpec& spec) {
        config_.name = name_.get();
        config_.link = spec.link;
        config_.nodes = spec.nodes;
        config_.ranks = spec.ranks == 0 ? spec.nodes : spec.ranks;
        config_.user_bytes = spec.user_bytes;
        config_.system_bytes = spec.system_bytes;
        config_.system_hash = spec.system_bytes == 0 ? 0 : 1;
        config_.timing = parse_timing(spec.timing);
        config_.bound_ns = spec.bound_ns;
        if (config_.is_remote()) stay_on_this_host(name(), config_.link);
        for (unsigned n = 0; n < (config_.is_remote() ? spec.nodes : 1); ++n) {
            rings_.push_back(open(n));
        }
        for (unsigned n = 0; spec.joins && n < spec.nodes; ++n) {
            nodes_.push_back(std::make_unique<Node>(join(first_rank(n))));
        }
        if (spec.slower == 1) return;
        // No environment can say that, so a ring refuses it; but the link takes what it finds here.
        auto& timing = const_cast<RingConfig&>(ring()->config()).timing;
        timing = slowed(timing, spec.slower);
    }

    const std::string& name() const { return name_.get(); }
    const RingConfig& config() const { return config_; }
    /// A node's mapping, which all threads share.
    const std::shared_ptr<Ring>& ring(unsigned node = 0) const {
        return rings_[config_.is_remote() ? node : 0];
    }
    /// Another mapping, for a forked process.
    std::shared_ptr<Ring> open(unsigned node = 0) const {
        return Ring::open(config_, Deadline::in(kPatienceNs), node);
    }
    std::string segment(unsigned node) const { return config_.segment_name(node); }
    /// For commands of a shell that join this ring.
    std::string environment() const {
        return "RMEM_INTERFACE=lo RMEM_GROUP=" + own_group(name_.get(), config_.link);
    }

    unsigned first_rank(unsigned node) const {
        return (node * config_.ranks + config_.nodes - 1) / config_.nodes;
    }
    Node join(unsigned rank) const {
        const unsigned node = rank * config_.nodes / config_.ranks;
        return Node(ring(node), {rank, node});
    }
    /// The one that has joined.
    Node& node(unsigned n) const { return *nodes_[n]; }
    /// All that was written is in all banks.
    void flush() const {
        for (const auto& one : nodes_) EXPECT_TRUE(one->flush(Deadline::in(kPatienceNs)));
    }
    /// The ring's part there ends, with those that use it.
    void end(unsigned node = 0) {
        if (node < nodes_.size()) nodes_[node].reset();
        rings_[node].reset();
    }

    NodeSlot& slot(unsigned node) const { return ring()->node(node); }
    std::uint64_t count(unsigned node, LinkCounter id) const { return slot(node).link.get(id); }
    std::uint64_t rank_count(unsigned rank, LinkCounter id) const {
        return ring()->rank(rank).link.get(id);
    }

private:
    RingName name_;
    RingConfig config_;
    std::vector<std::shared_ptr<Ring>> rings_;
    std::vector<std::unique_ptr<Node>> nodes_;
};

/// Writes, and tries again while there is no room.
inline void write_all(Node& node, std::size_t offset, const void* bytes, std::size_t size) {
    while (node.write(offset, bytes, size) == WriteResult::again) node.poll();
}
inline void write_word(Node& node, std::size_t offset, std::uint32_t value) {
    write_all(node, offset, &value, sizeof value);
}
inline std::vector<std::byte> memory_of(Node& node) {
    std::vector<std::byte> bytes(node.size());
    node.read(0, bytes.data(), bytes.size());
    return bytes;
}

/// Nothing moves but by calls.
inline RingOptions still() {
    RingOptions options;
    options.helper = false;
    return options;
}

inline std::uint32_t in_bank(const TestRing& ring, unsigned node, std::size_t offset) {
    const std::byte* const word = ring.ring(node)->bank(node) + offset;
    return reinterpret_cast<const std::atomic<std::uint32_t>*>(word)->load(
        std::memory_order_acquire);
}

/// As if ranks without a helper did not want each write.
inline void allow_delivery(const TestRing& ring) {
    for (unsigned r = 0; r < ring.config().ranks; ++r) ring.ring()->rank(r).wants_each_write = 0;
    ring.ring()->delivery().note_change();
}

/// A rank on link ring, by its memory.
struct RingRank {
    Membership member;
    RingMemory memory;

    RingRank(const TestRing& ring, unsigned rank, const RingOptions& options = {})
        : RingRank(ring.ring(), {rank, rank % ring.config().nodes}, options) {}
    RingRank(std::shared_ptr<Ring> ring, Member place, const RingOptions& options)
        : member(std::move(ring), place), memory(member, options) {}

    std::uint32_t load(std::size_t offset) {
        memory.progress();
        return memory.load(offset);
    }
    /// Waits until the word has the value; fails after 30 s.
    void await(std::size_t offset, std::uint32_t value) {
        await([&] { return memory.load(offset) == value; });
    }
    template <class Condition>
    requires std::predicate<Condition>
    void await(Condition holds) {
        const Deadline deadline = Deadline::in(kPatienceNs);
        memory.begin_wait();
        while (!holds() && memory.wait(deadline) != Step::expired) {
        }
        memory.end_wait();
        ASSERT_TRUE(holds()) << "not within 30 s";
    }
    void wait_for_room(std::size_t bytes) {
        await([&] { return memory.room(bytes); });
    }
    void flush() { ASSERT_TRUE(memory.flush(Deadline::in(kPatienceNs))); }
};

/// Options with faults.
inline RingOptions faulty(const std::string& faults, unsigned nodes = 2) {
    RingOptions options;
    options.faults = FaultPlan::parse(faults, nodes, LinkKind::ring);
    return options;
}

}  // namespace rmem::test
