// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The ranks of a ring as endpoints of this process, for tests that look at what one of them does
/// alone: what tests/support/test_ring.hpp is for nodes. The name is the caller's, since programs
/// that are no tests use it, too.

#include "billboard/endpoint.hpp"
#include "rmem/ring/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace billboard::test {

inline Deadline patience() {
    return Deadline::in(100'000'000'000);
}

struct RingOfTwo {
    std::shared_ptr<rmem::Ring> ring;
    Settings settings;
};

/// A data partition of this many bytes.
inline RingOfTwo ring_of_two(const std::string& name, std::size_t data_bytes,
                             std::int64_t bound_ns = 0, unsigned ranks = 2,
                             Layout layout = Layout::lines,
                             rmem::LinkKind link = rmem::LinkKind::direct) {
    RingOfTwo two;
    two.settings.board = {layout, data_bytes};
    rmem::RingConfig config;
    config.name = name;
    config.nodes = config.ranks = ranks;
    config.link = link;
    config.user_bytes = 4096;
    config.bound_ns = bound_ns;
    const Geometry geometry(config, two.settings.board);
    config.system_bytes = geometry.region_bytes();
    config.system_hash = geometry.hash();
    two.ring = rmem::Ring::open(config, patience());
    return two;
}

struct Endpoints {
    std::shared_ptr<rmem::Ring> ring;
    Settings settings;
    std::vector<std::unique_ptr<Endpoint>> ranks;
};

/// Of this number of ranks, which wait for each other to join.
inline Endpoints open_ranks(const std::string& name, unsigned ranks, std::size_t data_bytes,
                            std::int64_t bound_ns = 0,
                            rmem::LinkKind link = rmem::LinkKind::direct) {
    const auto [ring, settings] =
        ring_of_two(name, data_bytes, bound_ns, ranks, Layout::lines, link);
    Endpoints all{ring, settings, {}};
    all.ranks.resize(ranks);
    std::vector<std::thread> threads;
    for (unsigned r = 0; r < ranks; ++r) {
        threads.emplace_back([&all, r] {
            all.ranks[r] = Endpoint::open(all.ring, {r, r}, all.settings, patience());
        });
    }
    for (std::thread& thread : threads) thread.join();
    return all;
}

struct EndpointPair {
    std::shared_ptr<rmem::Ring> ring;
    std::unique_ptr<Endpoint> sender, receiver;  ///< ranks 0 and 1
};

inline EndpointPair open_pair(const std::string& name, std::size_t data_bytes,
                              std::int64_t bound_ns = 0) {
    Endpoints two = open_ranks(name, 2, data_bytes, bound_ns);
    return {two.ring, std::move(two.ranks[0]), std::move(two.ranks[1])};
}

}  // namespace billboard::test
