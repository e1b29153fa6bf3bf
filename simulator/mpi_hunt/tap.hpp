// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A transport of the device, with the model looking on: it sees each packet before the device
/// does. Tests of the hunt have it do wrong.
///
/// Contract, errors, thread safety: mpi_channel/transport.hpp.

#include "mpi_channel/device/packets.hpp"
#include "mpi_channel/transport.hpp"
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

/// A tap's knowledge of its transport's packets.
class Onlooker {
public:
    using Bytes = std::span<const std::byte>;

    Onlooker(Model& model, unsigned rank, const DoMischief& mischief)
        : model_(model), rank_(rank), mischief_(mischief) {}

    std::uint64_t sent_to(unsigned rank) const { return sent_.at(rank); }
    std::uint64_t received_from(unsigned rank) const { return received_.at(rank); }

protected:
    void note_sent(unsigned to) { ++sent_.at(to); }
    void note_bulk(unsigned from, std::size_t bytes) { model_.comes(rank_, from, bytes); }
    /// A packet that was held back, if it is its turn.
    bool give_held(Bytes* packet, unsigned* from);
    /// Of one that has come. False: it does not come, or not now.
    bool let_through(Bytes* packet, unsigned from);
    void show(Bytes packet, unsigned from);

private:
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

template <class T>
class Tap final : public T, public Onlooker {
public:
    using Bytes = Onlooker::Bytes;

    Tap(billboard::Endpoint& endpoint, Model& model, const DoMischief& mischief)
        : T(endpoint), Onlooker(model, endpoint.rank(), mischief) {}

    int send_control_block(Bytes header, Bytes message, unsigned to) {
        const int result = T::send_control_block(header, message, to);
        if (result == BBP_OK) note_sent(to);
        return result;
    }
    int recv_any_control(Bytes* packet, unsigned* from) {
        if (!give_held(packet, from)) {
            do {
                const int result = T::recv_any_control(packet, from);
                if (result != BBP_OK) return result;
            } while (!let_through(packet, *from));
        }
        show(*packet, *from);
        return BBP_OK;
    }
    int recv_from_channel(std::span<std::byte> room, unsigned from, std::size_t* size) {
        const int result = T::recv_from_channel(room, from, size);
        if (result == BBP_OK) note_bulk(from, *size);
        return result;
    }
};

}  // namespace simulator::mpi
