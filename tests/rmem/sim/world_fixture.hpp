// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Small worlds for tests, whose programs load and store words by themselves, and their events
/// kept.

#include "rmem/link/sim/memory.hpp"
#include "rmem/sim/world.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace rmem::sim {

inline WorldConfig small_world(unsigned nodes, const std::string& timing = "scramnet-burst",
                               const std::string& host = "none") {
    WorldConfig config;
    config.ring.name = "small";
    config.ring.nodes = config.ring.ranks = nodes;
    config.ring.user_bytes = 4096;
    config.ring.timing = parse_timing(timing);
    config.host = parse_host(host);
    return config;
}

inline WorldConfig with_ranks(WorldConfig config, unsigned ranks) {
    config.ring.ranks = ranks;
    return config;
}

/// Keeps all events, without the writes' bytes.
class Events final : public Observer {
public:
    explicit Events(World& world) { world.observe(this); }
    void on_event(const Event& event) override {
        all.push_back(event);
        all.back().data = {};
    }
    std::size_t count(EventKind kind) const {
        std::size_t n = 0;
        for (const Event& event : all) n += event.kind == kind ? 1 : 0;
        return n;
    }
    /// Those of a kind at a node.
    std::vector<Event> of(EventKind kind, unsigned node) const {
        std::vector<Event> found;
        for (const Event& event : all) {
            if (event.kind == kind && event.node == node) found.push_back(event);
        }
        return found;
    }

    std::vector<Event> all;
};

/// Waits as protocols do until the word has this value.
inline void await_word(SimMemory& memory, std::size_t offset, std::uint32_t value) {
    memory.begin_wait();
    while (memory.load(offset) != value) memory.wait(Deadline::never());
    memory.end_wait();
}

/// Posts it, and ends.
inline Program post_one(std::size_t offset, std::uint32_t value = 1) {
    return [=](Process& me) { SimMemory(me).post_word(offset, value); };
}

/// The same, and notes the process's time after the poll that saw it.
inline Program sees(std::size_t offset, std::uint32_t value, std::int64_t& seen_ns) {
    return [=, &seen_ns](Process& me) {
        SimMemory memory(me);
        await_word(memory, offset, value);
        seen_ns = me.now_ns();
    };
}

/// Posts 1, 2, … so far apart in time, to a word each, or all of them to one.
inline Program posts(std::uint32_t count, std::int64_t apart_ns, std::size_t from = 0,
                     std::size_t to_next = 4) {
    return [=](Process& me) {
        SimMemory memory(me);
        for (std::uint32_t i = 0; i < count; ++i) {
            memory.post_word(from + to_next * i, i + 1);
            me.sleep(apart_ns);
        }
    };
}
inline Program ticks(std::uint32_t count, std::int64_t apart_ns = 100) {
    return posts(count, apart_ns, 0, 0);
}

/// A member until its process ends.
inline Membership& join(Process& me) {
    return me.keep(std::make_unique<Membership>(std::make_shared<Ring>(me.world()),
                                                Member{me.rank(), me.node()}));
}

inline bool banks_are_equal(const World& world) {
    for (unsigned node = 1; node < world.nodes(); ++node) {
        const auto first = world.bank(0);
        const auto other = world.bank(node);
        for (std::size_t i = 0; i < first.size(); ++i) {
            if (first[i] != other[i]) return false;
        }
    }
    return true;
}

}  // namespace rmem::sim
