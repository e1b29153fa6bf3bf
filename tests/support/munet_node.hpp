// SPDX-License-Identifier: Apache-2.0
#pragma once

/// MU-Net without processes: endpoints of one process, whose waits let the relay take its turns.
///
///     MunetNode node;
///     MunetEndpoint& a = node.create(1 << 16, 1 << 16);
///     a.program().send(b.address(), …);
///
/// Several nodes in one process meet by a MunetWire; nodes that are ranks of a ring by
/// tests/support/munet_ring_node.hpp.
/// Thread safety: one thread.

#include "ports/munet/program.hpp"
#include "ports/munet/relay.hpp"
#include "rmem/base/clock.hpp"

#include <cerrno>
#include <cstdlib>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <span>
#include <vector>

namespace rmem::test {

inline ports::munet::Geometry munet_geometry(std::size_t send, std::size_t receive,
                                             unsigned senders) {
    return {.send_bytes = static_cast<std::uint32_t>(send),
            .receive_lines = static_cast<std::uint32_t>(receive / ports::munet::kLine),
            .senders = senders};
}

/// Memory of an endpoint: zeroed, on a line's boundary.
class MunetMemory {
public:
    explicit MunetMemory(const ports::munet::Geometry& g)
        : bytes_(g.bytes()),
          at_(new (std::align_val_t{ports::munet::kLine}) std::byte[g.bytes()]()) {}
    ~MunetMemory() { ::operator delete[](at_, std::align_val_t{ports::munet::kLine}); }
    MunetMemory(const MunetMemory&) = delete;
    MunetMemory& operator=(const MunetMemory&) = delete;
    std::span<std::byte> bytes() const { return {at_, bytes_}; }

private:
    std::size_t bytes_;
    std::byte* at_;
};

class alignas(ports::munet::kLine) MunetEndpoint final : public ports::munet::Surroundings {
public:
    using Step = std::function<void()>;
    MunetEndpoint(ports::munet::Relay& relay, unsigned node, const ports::munet::Geometry& g,
                  std::uint32_t user, Step step)
        : memory_(g),
          step_(std::move(step)),
          number_(relay.open(memory_.bytes(), g, user, {&counters, 1})),
          program_(memory_.bytes(), g,
                   {static_cast<std::uint16_t>(node), static_cast<std::uint8_t>(number_)}, *this),
          words_(memory_.bytes(), g) {}

    void ring() noexcept override { ++rings; }
    void begin_wait() noexcept override {}
    int pause(rmem::Deadline deadline) override {
        step_();
        return deadline.passed(rmem::program_now_ns()) ? -ETIMEDOUT : 0;
    }
    void end_wait() noexcept override {}

    ports::munet::Program& program() { return program_; }
    ports::munet::Address address() const { return program_.own(); }
    unsigned number() const { return static_cast<unsigned>(number_); }
    const ports::munet::EndpointMemory& words() const { return words_; }
    std::span<std::byte> memory() const { return memory_.bytes(); }
    std::uint64_t count(ports::munet::Counter counter) const { return counters.get(counter); }

    rmem::Counters counters{};
    unsigned rings = 0;

private:
    MunetMemory memory_;
    Step step_;
    int number_;
    ports::munet::Program program_;
    ports::munet::EndpointMemory words_;
};

/// Frames between the nodes of one process, in order.
class MunetWire {
public:
    explicit MunetWire(unsigned nodes) : nodes_(nodes) {}
    unsigned nodes() const { return nodes_; }

    struct Frame {
        unsigned from;
        std::vector<std::byte> bytes;
    };
    std::map<unsigned, std::deque<Frame>> to;

private:
    unsigned nodes_;
};

class MunetNode final : public ports::munet::Edge {
public:
    explicit MunetNode(unsigned senders = 4, MunetWire* wire = nullptr, unsigned node = 0)
        : senders_(senders),
          wire_(wire),
          node_(node),
          relay({.node = node, .nodes = wire == nullptr ? 1 : wire->nodes()}, *this) {}

    ports::munet::Geometry geometry(std::size_t send, std::size_t receive) const {
        return munet_geometry(send, receive, senders_);
    }
    MunetEndpoint& create(std::size_t send = 65536, std::size_t receive = 65536,
                          std::uint32_t user = 1000) {
        endpoints.push_back(std::make_unique<MunetEndpoint>(relay, node_, geometry(send, receive),
                                                            user, [this] { step(); }));
        return *endpoints.back();
    }
    void destroy(MunetEndpoint& endpoint) {
        relay.close(endpoint.number());
        std::erase_if(endpoints, [&](const auto& e) { return e.get() == &endpoint; });
    }

    void step() {
        if (others) others();
        turn();
    }
    /// Frames that have come, and one turn.
    bool turn() {
        bool moved = false;
        if (wire_ != nullptr) {
            auto& inbox = wire_->to[node_];
            while (!inbox.empty()) {
                const auto frame = std::move(inbox.front());
                inbox.pop_front();
                relay.deliver(frame.from, frame.bytes);
                moved = true;
            }
        }
        return relay.turn() || moved;
    }
    void settle() {
        while (turn()) {
        }
    }

    Sent send(unsigned node, std::span<const std::byte> head,
              std::span<const std::byte> data) override {
        auto& frame = wire_->to[node].emplace_back();
        frame = {node_, {head.begin(), head.end()}};
        frame.bytes.insert(frame.bytes.end(), data.begin(), data.end());
        return Sent::yes;
    }
    void wake(unsigned endpoint) noexcept override { ++wakes[endpoint]; }

private:
    unsigned senders_;
    MunetWire* wire_;
    unsigned node_;

public:
    ports::munet::Relay relay;
    std::vector<std::unique_ptr<MunetEndpoint>> endpoints;
    std::function<void()> others;  ///< turns of the other nodes
    std::map<unsigned, unsigned> wakes;
};

}  // namespace rmem::test
