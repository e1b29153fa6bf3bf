// SPDX-License-Identifier: Apache-2.0
#include "simulator/mpi_hunt/tap.hpp"

#include <utility>

namespace simulator::mpi {

using mpi_channel::PacketType;

int Tap::send_control_block(Bytes header, Bytes message, unsigned to) {
    const int result = Channel::send_control_block(header, message, to);
    if (result == BBP_OK) ++sent_.at(to);
    return result;
}

int Tap::recv_any_control(Bytes* packet, unsigned* from) {
    if (!give_held(packet, from)) {
        do {
            const int result = Channel::recv_any_control(packet, from);
            if (result != BBP_OK) return result;
        } while (!let_through(packet, *from));
    }
    show(*packet, *from);
    return BBP_OK;
}

int Tap::recv_from_channel(std::span<std::byte> room, unsigned from, std::size_t* size) {
    const int result = Channel::recv_from_channel(room, from, size);
    if (result == BBP_OK) model_.comes(rank_, from, *size);
    return result;
}

void Tap::show(Bytes packet, unsigned from) {
    const auto what = mpi_channel::read(packet);
    if (!what) return model_.complain(rank_, "a malformed packet came");
    model_.arrives(rank_, from, *what);
    if (what->header.type != PacketType::bundle) return;
    const bool is_sound = mpi_channel::for_each_bundled(packet.last(what->size), [&](Bytes its) {
        show(its, from);
        return true;
    });
    if (!is_sound) model_.complain(rank_, "a malformed bundle came");
}

bool Tap::give_held(Bytes* packet, unsigned* from) {
    if (!std::exchange(gives_held_, false)) return false;
    held_.is_there = false;
    *packet = held_.bytes;
    *from = held_.from;
    return true;
}

bool Tap::let_through(Bytes* packet, unsigned from) {
    ++received_.at(from);
    auto what = mpi_channel::read(*packet);
    const Mischief mischief = what && mischief_ ? mischief_(rank_, from, *what) : Mischief::none;
    const bool is_short = what && what->header.type == PacketType::short_message;
    if (mischief == Mischief::forget) return false;
    if (mischief == Mischief::swap && is_short && !held_.is_there) {
        held_ = {{packet->begin(), packet->end()}, from, true};
        return false;
    }
    gives_held_ = held_.is_there;
    if (mischief != Mischief::no_credit && mischief != Mischief::damage) return true;
    changed_.assign(packet->begin(), packet->end());
    if (mischief == Mischief::no_credit) {
        what->header.credit = 0;
        static_cast<void>(mpi_channel::write(*what, changed_.data()));
    } else if (is_short && what->size != 0) {
        changed_.back() ^= std::byte{1};
    }
    *packet = changed_;
    return true;
}

}  // namespace simulator::mpi
