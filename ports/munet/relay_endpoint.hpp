// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the relay keeps for itself about an endpoint: nothing of it lies where a program can write.

#include "ports/munet/relay.hpp"
#include "rmem/base/copy.hpp"

#include <algorithm>
#include <cstring>

namespace ports::munet {

/// A destination of an endpoint.
struct Relay::Slot {
    enum class State : std::uint8_t { closed, asked, open };
    State state = State::closed;
    std::uint8_t place = 0;
    Address to;
    std::uint16_t generation = 0;
    std::uint32_t share = 0, sent = 0, returned = 0;  ///< lines; the last two count on
    Endpoint* local = nullptr;                        ///< the destination, at this node
};

/// A sender that an endpoint admits.
struct alignas(kLine) Relay::Place {
    bool used = false;
    std::uint8_t slot = 0;
    Address from;
    std::uint16_t generation = 0;
    std::uint32_t user = 0;
    std::uint32_t delivered = 0, returned = 0;  ///< lines
    std::uint64_t last_line = 0;                ///< behind its last record

    /// A message of another node that comes in chunks.
    bool fills = false;
    std::uint32_t at = 0, length = 0, filled = 0;
};

struct alignas(kLine) Relay::Endpoint {
    unsigned number = 0;
    std::uint32_t user = 0;
    Geometry geometry;
    EndpointMemory memory;
    rmem::Counters* counters = nullptr;

    // The descriptors
    DescriptorEntry* next = nullptr;
    unsigned next_index = 0;
    std::uint8_t mark = 1;
    std::uint64_t taken = 0;

    // The receive buffer
    std::uint32_t tail_at = 0;         ///< line of the next record
    std::uint64_t tail = 0, head = 0;  ///< lines, counting on; head: as last looked up

    /// A message under way from the send buffer.
    struct Moving {
        bool active = false;
        std::uint8_t slot = 0;
        std::uint16_t generation = 0;
        std::uint32_t offset = 0, length = 0, moved = 0;
        std::uint32_t at = 0;
    } moving;

    std::array<Slot, kSlots> slots{};
    std::vector<Place> places;

    void count(Counter counter, std::uint64_t n = 1) const noexcept { counters->add(counter, n); }
};

/// Copies bytes into a record, which may go on at the buffer's start.
inline void copy_in(const EndpointMemory& memory, const Geometry& g, std::uint32_t line,
                    std::size_t from_start, const std::byte* data, std::size_t bytes) {
    const std::size_t size = g.receive_lines * kLine;
    std::size_t at = line * kLine + from_start;
    if (at >= size) at -= size;
    const std::size_t first = std::min(bytes, size - at);
    std::memcpy(memory.line(0) + at, data, first);
    if (first < bytes) std::memcpy(memory.line(0), data + first, bytes - first);
}

}  // namespace ports::munet
