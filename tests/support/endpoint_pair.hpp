// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The ranks of a ring as endpoints of this process, for tests that look at what one of them does
/// alone.

#include "billboard/endpoint.hpp"
#include "rmem/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

namespace billboard::test {

inline Deadline patience() {
    return Deadline::in(100'000'000'000);
}

struct EndpointPair {
    std::shared_ptr<rmem::Ring> ring;
    std::unique_ptr<Endpoint> sender, receiver;  ///< ranks 0 and 1
};

struct RingOfTwo {
    std::shared_ptr<rmem::Ring> ring;
    Settings settings;
};

/// Link direct, layout inline, a data partition of this many bytes.
inline RingOfTwo ring_of_two(const std::string& name, std::size_t data_bytes,
                             std::int64_t bound_ns = 0, unsigned ranks = 2) {
    RingOfTwo two;
    two.settings.board = {Layout::inline_slots, data_bytes};
    rmem::RingConfig config;
    config.name = name;
    config.nodes = config.ranks = ranks;
    config.user_bytes = 4096;
    config.bound_ns = bound_ns;
    const Geometry geometry(config, two.settings.board);
    config.system_bytes = geometry.region_bytes();
    config.system_hash = geometry.hash();
    two.ring = rmem::Ring::open(config, patience());
    return two;
}

/// Each waits for the other to join.
inline EndpointPair open_pair(const std::string& name, std::size_t data_bytes,
                              std::int64_t bound_ns = 0) {
    const auto [ring, settings] = ring_of_two(name, data_bytes, bound_ns);
    EndpointPair pair;
    pair.ring = ring;
    std::thread other([&pair, settings = settings] {
        pair.receiver = Endpoint::open(pair.ring, {1, 1}, settings, patience());
    });
    pair.sender = Endpoint::open(pair.ring, {0, 0}, settings, patience());
    other.join();
    return pair;
}

struct Endpoints {
    std::shared_ptr<rmem::Ring> ring;
    Settings settings;
    std::vector<std::unique_ptr<Endpoint>> ranks;
};

/// Of this number of ranks.
inline Endpoints open_ranks(const std::string& name, unsigned ranks, std::size_t data_bytes) {
    const auto [ring, settings] = ring_of_two(name, data_bytes, 0, ranks);
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

}  // namespace billboard::test
