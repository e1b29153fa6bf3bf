// SPDX-License-Identifier: Apache-2.0
#include "mpi_channel/device/peer_memory.hpp"

#include "rmem/base/process.hpp"

#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <utility>

namespace mpi_channel {

namespace {

/// The most bytes in one call; the system reads no more than 2 GiB.
constexpr std::size_t kMaxAtOnce = std::size_t{1} << 30;

}  // namespace

HostMemory::HostMemory(std::shared_ptr<const rmem::Ring> ring, Refused refused)
    : ring_(std::move(ring)), refused_(std::move(refused)), processes_(ring_->config().ranks) {}

bool HostMemory::reaches(unsigned rank) {
    const rmem::RankSlot& slot = ring_->rank(rank);
    // (1) - this acquire-load synchronizes-with the release-store rmem/ring/rank_hold.cpp (4): the
    // rank's entry is that process's
    const auto state = slot.state.load(std::memory_order_acquire);
    if (state != static_cast<std::uint32_t>(rmem::RankState::joined)) return false;
    const auto incarnation = slot.incarnation.load(std::memory_order_relaxed);  // enough: (1)
    Process& process = processes_[rank];
    if (process.incarnation != incarnation) {
        const auto pid = slot.pid.load(std::memory_order_relaxed);           // enough: (1)
        const auto start = slot.start_time.load(std::memory_order_relaxed);  // enough: (1)
        process = {incarnation, static_cast<int>(pid)};
        if (start == 0 || rmem::process_start_time(pid) != start) refuse(rank, ESRCH);
    }
    return process.pid != 0;
}

bool HostMemory::read(unsigned rank, std::uint64_t address, std::span<std::byte> to) {
    if (!reaches(rank)) return false;
    const Process process = processes_[rank];
    while (!to.empty()) {
        const iovec here{to.data(), std::min(to.size(), kMaxAtOnce)};
        const iovec there{reinterpret_cast<void*>(address), here.iov_len};
        const ssize_t count = ::process_vm_readv(process.pid, &here, 1, &there, 1, 0);
        if (count <= 0) {
            refuse(rank, count == 0 ? EFAULT : errno);
            return false;
        }
        to = to.subspan(static_cast<std::size_t>(count));
        address += static_cast<std::uint64_t>(count);
    }
    // Otherwise the number might have been another process's meanwhile: the process that holds the
    // rank now has held it all the time.
    return reaches(rank) && processes_[rank].incarnation == process.incarnation &&
           ring_->is_alive(rank);
}

void HostMemory::refuse(unsigned rank, int error) {
    processes_[rank].pid = 0;
    refused_(rank, error);
}

}  // namespace mpi_channel
