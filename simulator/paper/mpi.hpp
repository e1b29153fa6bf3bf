// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A rank's MPI over a simulated ring: the channel interface, the device and the matching of
/// mpi_channel/, and in place of MPICH's layers above them the time that those took on the paper's
/// hosts.
///
/// Calls wait as in MPI: until the request is complete, by making progress. Their software takes
/// half of MpiHost::message_ns at either end: before the sender's packet is posted, and after the
/// receiver's progress. Nothing is taken for each byte: the paper finds that MPI adds a constant.
/// The collectives by messages are those of MPICH 1: a barrier that folds what is above a power of
/// two into it and exchanges within, a broadcast along a binomial tree. Those by multicast are the
/// paper's.
///
/// Thread safety, errors: simulator/paper/worlds.hpp. Between run_billboard's bbp_init and
/// bbp_finalize only.

#include "mpi_channel/channel.hpp"
#include "mpi_channel/device/device.hpp"
#include "simulator/paper/worlds.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace simulator {

/// The time of MPICH's software on a host.
struct MpiHost {
    /// Of a message, at both ends together. Fitted to the paper's 44 µs of an empty one
    /// (simulator/paper/calibration.hpp).
    std::int64_t message_ns = 24'489;
};

class Mpi final : mpi_channel::Completions {
public:
    /// For the process that runs.
    Mpi(rmem::sim::Process& me, const MpiHost& host);

    // ---- Messages
    void send(unsigned to, std::span<std::byte> bytes);
    void receive(unsigned from, std::span<std::byte> bytes);
    /// An empty message each way.
    void exchange(unsigned with);

    // ---- Collectives by messages, of all ranks
    void barrier();
    /// Of rank 0's bytes.
    void broadcast(std::span<std::byte> bytes);

    // ---- By one multicast of the channel interface
    void multicast(std::span<std::byte> bytes);

private:
    void completed(const mpi_channel::Completion& completion) override;
    void begin_send(unsigned to, std::span<std::byte> bytes);
    void begin_receive(unsigned from, std::span<std::byte> bytes);
    void finish();
    void work_before();
    void work_behind();

    rmem::sim::Process& me_;
    const MpiHost host_;
    mpi_channel::Channel channel_;
    mpi_channel::Device<mpi_channel::Channel> device_;
    unsigned under_way_ = 0;
};

}  // namespace simulator
