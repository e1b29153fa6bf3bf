// SPDX-License-Identifier: Apache-2.0
#include "simulator/mpi_hunt/tap.hpp"

#include "billboard/bbp.h"

#include <utility>

namespace simulator::mpi {

using mpi_channel::PacketType;

int Tap::send_control_block(Bytes header, Bytes message, unsigned to) {
    const int result = Channel::send_control_block(header, message, to);
    if (result == BBP_OK) ++sent_.at(to);
    return result;
}

int Tap::recv_any_control(Bytes* packet, unsigned* from) {
    const int result = next(packet, from);
    if (result != BBP_OK) return result;
    if (const auto what = mpi_channel::read(*packet)) {
        model_.arrives(rank(), *from, *what);
    } else {
        model_.complain(rank(), "a packet came that is none");
    }
    return BBP_OK;
}

int Tap::next(Bytes* packet, unsigned* from) {
    if (std::exchange(give_held_, false)) {
        held_.is_there = false;
        *packet = held_.bytes;
        *from = held_.from;
        return BBP_OK;
    }
    int result = BBP_OK;
    do {
        result = Channel::recv_any_control(packet, from);
        if (result != BBP_OK) return result;
        ++received_.at(*from);
    } while (mischief_ && do_mischief(packet, *from));
    give_held_ = held_.is_there;
    return result;
}

/// True if the packet does not come, or not now.
bool Tap::do_mischief(Bytes* packet, unsigned from) {
    auto what = mpi_channel::read(*packet);
    if (!what) return false;
    const bool is_short = what->header.type == PacketType::short_message;
    changed_.assign(packet->begin(), packet->end());
    switch (mischief_(rank(), from, *what)) {
        case Mischief::forget: return true;
        case Mischief::swap:
            if (!is_short || held_.is_there) return false;
            held_.bytes = changed_;
            held_.from = from;
            return held_.is_there = true;
        case Mischief::no_credit:
            what->header.credit = 0;
            mpi_channel::write(*what, changed_.data());
            break;
        case Mischief::damage:
            if (is_short && what->size != 0) changed_.back() ^= std::byte{1};
            break;
        case Mischief::none: return false;
    }
    *packet = changed_;
    return false;
}

int Tap::recv_from_channel(std::span<std::byte> room, unsigned from, std::size_t* size) {
    const int result = Channel::recv_from_channel(room, from, size);
    if (result == BBP_OK) model_.comes(rank(), from, *size);
    return result;
}

}  // namespace simulator::mpi
