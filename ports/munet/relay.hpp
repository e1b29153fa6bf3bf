// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The relay: what the paper's control program (MCP) does on the network card. It polls the
/// endpoints of its node and moves their messages, to endpoints of the same node by one copy, to
/// other nodes as frames (frames.hpp).
///
///     Relay relay({.node = 0, .nodes = 1}, edge);
///     const int number = relay.open(memory, geometry, user, counters);
///     while (…) relay.turn();
///
/// No socket, clock, thread or lock in it: bytes in, actions out, by an Edge.
///
/// Terms
///   pairing   a slot of one endpoint and a place of another that belong together, from the answer
///             to a Kind::open until one of the two endpoints is closed or a node is lost
/// Invariants
///   - Nothing is believed that an endpoint's memory says: a descriptor's control word is read
///     once; slots, places, positions and counts are the relay's own. A bad value is counted and
///     dropped, and costs its author alone.
///   - Of what a slot sent no more is under way than its share: sent - returned <= share. So the
///     places of an endpoint never need more than its receive buffer, whatever senders do, as long
///     as its own program is honest about what it has consumed; if not, its messages are dropped.
///   - A place is given to another sender only when what the former one left is consumed.
///   - Nobody waits for anybody: what a link cannot take at the moment waits in the relay, apart
///     for each node, and is bounded by the shares. So one endpoint's messages to a node that
///     stands still do not hold up those to others.
/// Progress: turn() does a bounded amount for each endpoint: kTurnMessages descriptors, or about
/// kTurnBytes of a message.
/// Thread safety: one thread at a time.
/// Errors: none; open() returns -1 when all numbers are in use.
/// Source: S. Nagar et al. (docs/design/munet.md says what is the paper's).

#include "ports/munet/counters.hpp"
#include "ports/munet/endpoint_memory.hpp"
#include "ports/munet/frames.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <vector>

namespace ports::munet {

inline constexpr unsigned kTurnMessages = 8;
inline constexpr std::size_t kTurnBytes = 16384;

/// Where the relay's actions go.
class RMEM_API Edge {
public:
    enum class Sent { yes, full, lost };
    /// A frame in two pieces; full: not now, lost: not any more, until `lost()` was told and the
    /// node asked again.
    [[nodiscard]] virtual Sent send(unsigned node, std::span<const std::byte> head,
                                    std::span<const std::byte> data) = 0;
    /// The endpoint's program sleeps, and there is news for it.
    virtual void wake(unsigned endpoint) noexcept = 0;

protected:
    ~Edge() = default;
};

/// Where a message is on its way, for measurements: the rows of the paper's Table 2 that the daemon
/// sees.
enum class Stage : unsigned { detected, header_sent, data_sent, arrived, in_host_memory };

class RMEM_API Trace {
public:
    virtual void passes(Stage stage) noexcept = 0;

protected:
    ~Trace() = default;
};

struct RelayConfig {
    unsigned node = 0;
    unsigned nodes = 1;
    std::size_t chunk = kChunk;  ///< bytes of a long message in a frame
};

class RMEM_API Relay {
public:
    Relay(RelayConfig config, Edge& edge);
    ~Relay();
    Relay(const Relay&) = delete;
    Relay& operator=(const Relay&) = delete;

    /// From now on the endpoint in this memory (zeroed, possible geometry) is polled; its number.
    /// What happens is counted in the block of that number. Memory and blocks outlive it.
    int open(std::span<std::byte> memory, const Geometry& geometry, std::uint32_t user,
             std::span<rmem::Counters> counters);
    /// Takes what it has still sent, at most a circle of descriptors; then its memory is not looked
    /// at any more.
    void close(unsigned endpoint);

    /// Once over all endpoints that are open. Whether anything moved.
    bool turn();
    /// A frame of another node.
    void deliver(unsigned node, std::span<const std::byte> frame);
    /// A node is not there any more, or only as a new one.
    void lose(unsigned node);

    [[nodiscard]] unsigned active() const noexcept { return static_cast<unsigned>(active_.size()); }
    /// The other nodes with which pairings exist or are asked for.
    [[nodiscard]] std::vector<bool> partners() const;
    /// Frames that wait for a link.
    [[nodiscard]] std::size_t backlog() const noexcept { return backlogged_; }
    /// Frames that no relay sends.
    [[nodiscard]] std::uint64_t bad_frames() const noexcept { return bad_frames_; }
    void trace(Trace* trace) noexcept { trace_ = trace; }

private:
    friend struct PlantedBug;  ///< a test's, which a check finds
    struct Endpoint;
    struct Slot;
    struct Place;

    // What programs ask for
    bool take(Endpoint& e, std::uint64_t word);
    void act(Endpoint& e, Control control, const DescriptorEntry& entry);
    void message(Endpoint& e, Control control, const DescriptorEntry& entry);
    void begin_move(Endpoint& e, Control control, const DescriptorEntry& entry);
    bool go_on_moving(Endpoint& e);
    void abandon_move(Endpoint& e);
    void advance(Endpoint& e);
    [[nodiscard]] bool spend(Endpoint& e, Slot& slot, std::uint32_t lines);
    [[nodiscard]] FrameHead message_head(Endpoint& e, const Slot& slot, FrameType type,
                                         std::uint32_t length);

    // Pairings
    void ask(Endpoint& e, unsigned slot, const DescriptorEntry& entry, std::uint32_t length);
    [[nodiscard]] Answer admit(Endpoint* to, Address from, unsigned slot, std::uint16_t generation,
                               std::uint32_t user, std::uint8_t* place);
    void answer(Endpoint& e, unsigned slot, Answer code, std::uint32_t share, std::uint8_t place);
    void end_slot(Endpoint& e, Slot& slot, Answer code);
    void free_place(Endpoint& e, Place& place);
    void credit(Endpoint& e, Credit credit, const Slot* carrier);
    void returned(Endpoint& e, unsigned slot, std::uint32_t lines);

    // Receive buffers
    [[nodiscard]] bool reserve(Endpoint& to, std::uint32_t lines, std::uint32_t* at);
    void place(Endpoint& to, std::uint8_t place, Kind kind, std::uint32_t length,
               const std::byte* data);
    void show(Endpoint& to, std::uint32_t at, Control control, std::uint64_t origin);
    [[nodiscard]] static std::uint32_t next_line(const Endpoint& to) noexcept;
    static void end_at(Endpoint& to, std::uint32_t line) noexcept;
    void refresh(Endpoint& to);
    void wake(Endpoint& e);

    // Other nodes
    void post(unsigned node, const FrameHead& head, std::span<const std::byte> data = {});
    bool flush();
    [[nodiscard]] bool is_backlog_right() const noexcept;
    void lose_those_lost();
    void deliver_message(unsigned node, const FrameHead& head, std::span<const std::byte> data);
    void deliver_chunk(Endpoint& to, std::uint8_t place, const FrameHead& head,
                       std::span<const std::byte> data);
    void deliver_answer(unsigned node, const FrameHead& head);

    void passes(Stage stage) noexcept {
        if (trace_ != nullptr) [[unlikely]]
            trace_->passes(stage);
    }
    [[nodiscard]] Address address(const Endpoint& e) const noexcept;
    [[nodiscard]] Endpoint* local(Address address) const noexcept;

    const RelayConfig config_;
    Edge& edge_;
    Trace* trace_ = nullptr;
    std::array<std::unique_ptr<Endpoint>, kEndpoints> endpoints_;
    std::vector<Endpoint*> active_;
    std::uint16_t last_generation_ = 0;
    std::vector<std::deque<std::vector<std::byte>>> waiting_;  ///< frames, for each node
    std::size_t backlogged_ = 0;
    std::vector<bool> lost_;
    bool has_lost_ = false;
    Credit carried_;  ///< to go with the next frame
    std::uint64_t bad_frames_ = 0;
};

}  // namespace ports::munet
