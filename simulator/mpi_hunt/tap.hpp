// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The channel interface, with the model looking on: it sees each packet before the device does. Tests of the hunt
/// have it do wrong.
///
/// Contract, errors, thread safety: mpi_channel/channel.hpp.

#include "mpi_channel/channel.hpp"
#include "mpi_channel/packets.hpp"
#include "simulator/mpi_hunt/model.hpp"

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

namespace simulator::mpi {

/// What is done to a packet that has come.
enum class Mischief : std::uint8_t {
    none,
    forget,     ///< it is dropped
    swap,       ///< a short message: it comes after the next packet
    no_credit,  ///< the credit that it brings is lost
    damage,     ///< a short message: a byte of it changes
};
using DoMischief =
    std::function<Mischief(unsigned at, unsigned from, const mpi_channel::Packet& packet)>;

class Tap : public mpi_channel::Channel {
public:
    Tap(billboard::Endpoint& endpoint, Model& model, const DoMischief& mischief)
        : Channel(endpoint), model_(model), mischief_(mischief) {}

    int send_control_block(Bytes header, Bytes message, unsigned to);
    int recv_any_control(Bytes* packet, unsigned* from);
    int recv_from_channel(std::span<std::byte> room, unsigned from, std::size_t* size);

    std::uint64_t sent_to(unsigned rank) const { return sent_.at(rank); }
    std::uint64_t received_from(unsigned rank) const { return received_.at(rank); }

private:
    struct Held {
        std::vector<std::byte> bytes;
        unsigned from = 0;
        bool is_there = false;
    };

    int next(Bytes* packet, unsigned* from);
    bool do_mischief(Bytes* packet, unsigned from);

    Model& model_;
    const DoMischief& mischief_;
    Held held_;
    bool give_held_ = false;
    std::vector<std::byte> changed_;
    std::array<std::uint64_t, Model::kRanks> sent_{}, received_{};  ///< packets
};

}  // namespace simulator::mpi
