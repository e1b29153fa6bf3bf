// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Ranks of a `ring` link in one process: one mapping, several RingMemory objects.
///
///     RingRanks ring({.nodes = 2, .timing = "scramnet-burst"});
///     RingRank a(ring, 0), b(ring, 1);
///     a.memory.post_word(0, 1);
///     b.await(0, 1);

#include "rmem/link/ring/memory.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>

namespace rmem::test {

inline constexpr std::int64_t kPatienceNs = 30'000'000'000;

struct RingSpec {
    unsigned nodes = 2;
    unsigned ranks = 0;  ///< 0: one for each node
    std::string timing = "none";
    std::size_t user_bytes = 65536;
    std::int64_t bound_ns = 0;
    unsigned slower = 1;  ///< than the profile: for tests in which the host must outrun the wire
};

inline TimingProfile slowed(TimingProfile profile, unsigned factor) {
    profile.bits_per_s /= factor;
    profile.node_delay_ps *= factor;
    profile.insertion_ps *= factor;
    profile.pitch_ps *= factor;
    return profile;
}

class RingRanks {
public:
    explicit RingRanks(const RingSpec& spec) {
        config_.name = name_.get();
        config_.link = LinkKind::ring;
        config_.nodes = spec.nodes;
        config_.ranks = spec.ranks == 0 ? spec.nodes : spec.ranks;
        config_.user_bytes = spec.user_bytes;
        config_.timing = parse_timing(spec.timing);
        config_.bound_ns = spec.bound_ns;
        ring_ = Ring::open(config_, Deadline::in(kPatienceNs));
        if (spec.slower == 1) return;
        // No environment can say that, so a ring refuses it; but the link takes what it finds here.
        auto& timing = const_cast<RingConfig&>(ring_->config()).timing;
        timing = slowed(timing, spec.slower);
    }

    const RingConfig& config() const { return config_; }
    /// The mapping that all threads share, for the thread sanitizer's sake.
    const std::shared_ptr<Ring>& ring() const { return ring_; }
    /// Another mapping, for a forked process.
    std::shared_ptr<Ring> open() const { return Ring::open(config_, Deadline::in(kPatienceNs)); }

    NodeSlot& node(unsigned n) const { return ring_->node(n); }
    std::uint64_t count(unsigned node, LinkCounter id) const {
        return ring_->node(node).link.get(id);
    }
    std::uint64_t rank_count(unsigned rank, LinkCounter id) const {
        return ring_->rank(rank).link.get(id);
    }

private:
    RingName name_;
    RingConfig config_;
    std::shared_ptr<Ring> ring_;
};

struct RingRank {
    Membership member;
    RingMemory memory;

    RingRank(const RingRanks& ring, unsigned rank, const RingOptions& options = {})
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
