// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The memory of other ranks' processes, where it can be read: the second path for long messages,
/// past the ring.
///
///     HostMemory memory(rmem::Ring::observe(name), told);
///     if (memory.reaches(3) && memory.read(3, address, room)) …
///
/// The device asks through PeerMemory and knows no process; tests give it one of their own.
/// HostMemory reads with process_vm_readv(2). A rank is within reach when it is joined on this host
/// and the process that its slot names is that one (it has the start time the slot tells, and holds
/// the rank). The system may still refuse: another user, another name space, ptrace's scope; then
/// the rank is out of reach from there on, and `refused` is told why, once.
///
/// Trust: addresses are others' words. They are read from, never written to, and into no more room
/// than the caller gives.
/// Thread safety: one thread at a time. Errors: results.

#include "rmem/ring/ring.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

namespace mpi_channel {

class PeerMemory {
public:
    virtual ~PeerMemory() = default;
    /// Whether a rank's memory can be read from here, as far as is known.
    [[nodiscard]] virtual bool reaches(unsigned rank) = 0;
    /// All of `to`, or false: then what is in it is worth nothing.
    [[nodiscard]] virtual bool read(unsigned rank, std::uint64_t address,
                                    std::span<std::byte> to) = 0;
};

class HostMemory final : public PeerMemory {
public:
    /// `refused`: a rank, and the error number of why it is out of reach.
    using Refused = std::function<void(unsigned rank, int error)>;

    HostMemory(std::shared_ptr<const rmem::Ring> ring, Refused refused);

    [[nodiscard]] bool reaches(unsigned rank) override;
    [[nodiscard]] bool read(unsigned rank, std::uint64_t address, std::span<std::byte> to) override;

private:
    struct Process {
        std::uint32_t incarnation = 0;  ///< of which the rest is known
        int pid = 0;                    ///< 0: out of reach
    };
    void refuse(unsigned rank, int error);

    std::shared_ptr<const rmem::Ring> ring_;
    Refused refused_;
    std::vector<Process> processes_;  ///< by rank
};

}  // namespace mpi_channel
