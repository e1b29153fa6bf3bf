// SPDX-License-Identifier: Apache-2.0
#include "simulator/paper/mpi.hpp"

#include "billboard/bbp.h"
#include "billboard/endpoint.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <numeric>

namespace simulator {

using mpi_channel::Completion;
using mpi_channel::Status;

namespace {

void require(bool is_so, const char* what) {
    if (!is_so) throw rmem::Error(rmem::Errc::system, what);
}

}  // namespace

Mpi::Mpi(rmem::sim::Process& me, const MpiHost& host)
    : me_(me),
      host_(host),
      channel_(*billboard::Endpoint::of_bbp_init()),
      device_(channel_, *this) {}

void Mpi::work_before() {
    me_.sleep(host_.message_ns / 2);
}

void Mpi::work_behind() {
    me_.sleep(host_.message_ns - host_.message_ns / 2);
}

// ---- Messages

void Mpi::completed(const Completion& completion) {
    require(completion.status == Status::ok, "a message of the simulated MPI failed");
    --under_way_;
}

void Mpi::begin_send(unsigned to, std::span<std::byte> bytes) {
    mpi_channel::SendOrder order;
    order.to = to;
    order.parts = {{bytes.data(), bytes.size()}};
    ++under_way_;
    device_.send(order);
}

void Mpi::begin_receive(unsigned from, std::span<std::byte> bytes) {
    mpi_channel::ReceiveOrder order;
    order.from = from;
    order.parts = {{bytes.data(), bytes.size()}};
    ++under_way_;
    device_.receive(order);
}

/// The device never waits; each look of its own takes virtual time.
void Mpi::finish() {
    while (under_way_ != 0) device_.progress();
}

void Mpi::send(unsigned to, std::span<std::byte> bytes) {
    work_before();
    begin_send(to, bytes);
    finish();
}

void Mpi::receive(unsigned from, std::span<std::byte> bytes) {
    begin_receive(from, bytes);
    finish();
    work_behind();
}

void Mpi::exchange(unsigned with) {
    begin_receive(with, {});
    work_before();
    begin_send(with, {});
    finish();
    work_behind();
}

// ---- Collectives

void Mpi::barrier() {
    const unsigned rank = channel_.rank();
    const unsigned core = std::bit_floor(channel_.ranks());
    if (rank >= core) {
        send(rank - core, {});
        receive(rank - core, {});
        return;
    }
    const bool has_second = rank + core < channel_.ranks();
    if (has_second) receive(rank + core, {});
    for (unsigned distance = 1; distance < core; distance *= 2) exchange(rank ^ distance);
    if (has_second) send(rank + core, {});
}

void Mpi::broadcast(std::span<std::byte> bytes) {
    const unsigned rank = channel_.rank();
    // The lowest bit of a rank leads to its parent, those below to its children.
    unsigned reach = rank == 0 ? std::bit_ceil(channel_.ranks()) : rank & (~rank + 1);
    if (rank != 0) receive(rank - reach, bytes);
    for (reach /= 2; reach != 0; reach /= 2) {
        if (rank + reach < channel_.ranks()) send(rank + reach, bytes);
    }
}

void Mpi::multicast(std::span<std::byte> bytes) {
    if (channel_.rank() != 0) {
        mpi_channel::Channel::Bytes packet;
        unsigned from = 0;
        int result = BBP_EAGAIN;
        while (result == BBP_EAGAIN) result = channel_.recv_any_control(&packet, &from);
        const auto header = mpi_channel::read(packet);
        require(result == BBP_OK && header && header->size == bytes.size(),
                "the message is not the simulated multicast");
        std::copy_n(packet.last(bytes.size()).begin(), bytes.size(), bytes.begin());
        return work_behind();
    }
    work_before();
    mpi_channel::Packet packet;
    packet.header.type = mpi_channel::PacketType::short_message;
    std::array<std::byte, mpi_channel::kMaxPacketBytes> header;
    const auto used = std::span(header).first(mpi_channel::write(packet, header.data()));
    std::vector<int> others(channel_.ranks() - 1);
    std::iota(others.begin(), others.end(), 1);
    int result = BBP_EAGAIN;
    while (result == BBP_EAGAIN) result = channel_.mcast_control(used, bytes, others);
    require(result == BBP_OK, "the simulated multicast failed");
}

}  // namespace simulator
