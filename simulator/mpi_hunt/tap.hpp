// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The channel interface, with the model looking on: it sees each packet before the device
/// does. Tests of the hunt have it do wrong.
///
/// Contract, errors, thread safety: mpi_channel/transport.hpp.

#include "mpi_channel/channel.hpp"
#include "mpi_channel/device/packets.hpp"
#include "simulator/mpi_hunt/model.hpp"

#include "billboard/bbp.h"

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace simulator::mpi {

/// The treatment of a packet that has come.
enum class Mischief : std::uint8_t {
    none,
    forget,     ///< it is dropped
    swap,       ///< a short message: it comes after the next packet
    no_credit,  ///< the credit that it brings is lost
    damage,     ///< a short message: a byte of it changes
};
using DoMischief =
    std::function<Mischief(unsigned at, unsigned from, const mpi_channel::Packet& packet)>;

class Tap final : public mpi_channel::Channel {
public:
    using Simulated = Model;  ///< the device's checks run

    Tap(billboard::Endpoint& endpoint, Model& model, const DoMischief& mischief)
        : Channel(endpoint), model_(model), rank_(endpoint.rank()), mischief_(mischief) {}

    [[nodiscard]] int send_control_block(Bytes header, Bytes message, unsigned to);
    [[nodiscard]] int recv_any_control(Bytes* packet, unsigned* from);
    [[nodiscard]] int recv_from_channel(std::span<std::byte> room, unsigned from,
                                        std::size_t* size);

    std::uint64_t sent_to(unsigned rank) const { return sent_.at(rank); }
    std::uint64_t received_from(unsigned rank) const { return received_.at(rank); }

private:
    /// A packet that was held back, if it is its turn.
    bool give_held(Bytes* packet, unsigned* from);
    /// Of one that has come. False: it does not come, or not now.
    bool let_through(Bytes* packet, unsigned from);
    void show(Bytes packet, unsigned from);

    struct Held {
        std::vector<std::byte> bytes;
        unsigned from = 0;
        bool is_there = false;
    };

    Model& model_;
    const unsigned rank_;
    const DoMischief& mischief_;
    Held held_;
    bool gives_held_ = false;
    std::vector<std::byte> changed_;
    std::array<std::uint64_t, Model::kRanks> sent_{}, received_{};  ///< packets
};

}  // namespace simulator::mpi
