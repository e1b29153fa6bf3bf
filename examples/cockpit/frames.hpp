// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Frames through the memory, by the rules of cockpit_map.hpp: one class that writes them, one that
/// reads them. Thread safety: as rmem::Node, one thread.

#include "cockpit_map.hpp"

#include "rmem/node.hpp"

#include <cstdint>
#include <optional>

namespace cockpit {

/// Writes a word or a block; where the outbound queue is full, runs the engine and tries again.
void put(rmem::Node& node, std::size_t offset, const void* from, std::size_t bytes);
void put(rmem::Node& node, std::size_t offset, std::uint32_t value);

struct Frame {
    std::uint32_t number = 0;
    FlightState state{};
};

class FrameWriter {
public:
    /// Waits until every other seat of the ring is taken.
    FrameWriter(rmem::Node& node, std::uint32_t frames);

    void write(const Frame& frame);
    /// Waits until every seat has worked through the frame.
    void wait_for_readers(std::uint32_t frame);
    void end();

private:
    rmem::Node& node_;
};

class FrameReader {
public:
    /// Takes the node's seat and waits until the flight begins.
    explicit FrameReader(rmem::Node& node);

    /// Sleeps until there is a frame newer than the last one, and reads it whole; none when the
    /// flight has ended. Frames that came and went in between are counted as missed.
    std::optional<Frame> next();
    /// Says that the frame has been worked through.
    void release(const Frame& frame);

    std::uint32_t seen() const noexcept { return seen_; }
    std::uint32_t missed() const noexcept { return missed_; }
    /// Frames that were read more than once to have them whole.
    std::uint32_t torn() const noexcept { return torn_; }

private:
    void sleep();

    rmem::Node& node_;
    std::uint32_t last_ = 0;
    std::uint32_t seen_ = 0;
    std::uint32_t missed_ = 0;
    std::uint32_t torn_ = 0;
};

}  // namespace cockpit
