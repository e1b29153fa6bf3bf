// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A wire model with its outcomes kept, and the questions of its tests.

#include "rmem/base/hash.hpp"
#include "rmem/wire/model.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace rmem {
using Kind = WireOutcomeKind;

struct Bench {
    Bench(const std::string& profile, std::uint32_t nodes, std::int64_t start_ns = 0)
        : Bench(parse_timing(profile), nodes, start_ns) {}
    Bench(const TimingProfile& profile, std::uint32_t nodes, std::int64_t start_ns = 0)
        : model(profile, nodes, start_ns) {}

    /// Returns the tag. Without an offset, no write follows another's address.
    std::uint64_t write(std::uint16_t origin, std::int64_t time_ns, std::uint32_t bytes = 4) {
        return write_at(origin, time_ns, 1'000'000 + 64 * tags * 97, bytes);
    }
    std::uint64_t write_at(std::uint16_t origin, std::int64_t time_ns, std::uint64_t offset,
                           std::uint32_t bytes = 4, bool interrupt = false,
                           std::int64_t extra_delay_ns = 0) {
        submitted =
            model.submit({origin, interrupt, bytes, offset, time_ns, extra_delay_ns, ++tags});
        return tags;
    }
    void advance(std::int64_t until_ns) {
        model.advance(until_ns, [this](const WireOutcome& o) { outcomes.push_back(o); });
    }
    void drain() {
        while (model.next_time_ns() != kNever) advance(model.next_time_ns());
    }

    /// The time of the first such outcome, or -1.
    std::int64_t time_of(Kind kind, std::uint16_t node, std::uint64_t tag) const {
        for (const WireOutcome& o : outcomes) {
            if (o.kind == kind && o.node == node && o.tag == tag) return o.time_ns;
        }
        return -1;
    }
    std::int64_t arrival(std::uint16_t node, std::uint64_t tag) const {
        return time_of(Kind::arrived, node, tag);
    }
    std::size_t count(Kind kind) const {
        return static_cast<std::size_t>(
            std::count_if(outcomes.begin(), outcomes.end(),
                          [kind](const WireOutcome& o) { return o.kind == kind; }));
    }

    WireModel model;
    std::vector<WireOutcome> outcomes;
    std::uint64_t tags = 0;
    WireSubmit submitted = WireSubmit::refused;
};

/// Time order, per-origin order at every node, nothing twice.
inline void expect_order(const std::vector<WireOutcome>& outcomes) {
    std::int64_t last_time = std::numeric_limits<std::int64_t>::min();
    std::map<std::pair<int, int>, std::uint64_t> last_tag;
    bool in_time_order = true;
    bool in_origin_order = true;
    for (const WireOutcome& o : outcomes) {
        in_time_order = in_time_order && o.time_ns >= last_time;
        last_time = o.time_ns;
        if (o.kind != Kind::arrived && o.kind != Kind::returned) continue;
        std::uint64_t& last = last_tag[{o.node, o.origin}];
        if (in_origin_order && o.tag <= last) {
            ADD_FAILURE() << "at node " << o.node << ", time " << o.time_ns << ": write " << o.tag
                          << " of node " << o.origin << " behind " << last;
        }
        in_origin_order = in_origin_order && o.tag > last;
        last = o.tag;
    }
    EXPECT_TRUE(in_time_order);
    EXPECT_TRUE(in_origin_order);
}

inline std::uint64_t hash_of(const std::vector<WireOutcome>& outcomes) {
    std::uint64_t hash = Fnv1a::kStart;
    const auto add = [&hash](std::uint64_t value) {
        hash = Fnv1a(hash).mix(value).value();
        hash ^= hash >> 29;
    };
    for (const WireOutcome& o : outcomes) {
        add(static_cast<std::uint64_t>(o.time_ns));
        add(o.tag);
        add(o.node);
        add(static_cast<std::uint64_t>(o.kind));
    }
    return hash;
}

inline bool within(std::uint64_t found, std::uint64_t expected, std::uint64_t percent) {
    return found * 100 >= expected * (100 - percent) && found * 100 <= expected * (100 + percent);
}

}  // namespace rmem
