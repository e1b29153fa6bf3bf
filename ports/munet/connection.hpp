// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A program's connection to its node's daemon: the endpoint's memory, and how the program waits.
///
/// A wait spins while there are processors to spare (the daemon tells how many processes poll),
/// yields for kYieldNs, and then sleeps on a futex in the endpoint's memory; every millisecond
/// or so it looks whether the daemon is there.
/// Thread safety: one thread at a time. Errors: open() tells; rmem::Error from the environment.

#include "ports/munet/program.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/ring/waiting/wait_stages.hpp"

#include <cstdint>
#include <span>
#include <string>

namespace ports::munet {

class RMEM_API Connection final : public Surroundings {
public:
    Connection() = default;
    Connection(Connection&& other) noexcept;
    Connection& operator=(Connection&&) = delete;
    ~Connection();

    /// 0, or a negative errno and why.
    [[nodiscard]] int open(std::size_t send_bytes, std::size_t receive_bytes, std::string* why);

    std::span<std::byte> memory() const noexcept { return memory_; }
    const Geometry& geometry() const noexcept { return geometry_; }
    Address own() const noexcept { return own_; }
    unsigned nodes() const noexcept { return nodes_; }

    /// Whether the daemon is still there. One system call.
    [[nodiscard]] bool has_daemon() const noexcept;
    [[nodiscard]] std::string no_daemon() const;
    /// For a program that polls by itself: lets others run where processors are few.
    void give_way() noexcept;

    void ring() noexcept override;
    void begin_wait() noexcept override;
    int pause(rmem::Deadline deadline) override;
    void end_wait() noexcept override;

private:
    [[nodiscard]] int map(int fd);
    [[nodiscard]] int slow_pause(rmem::Deadline deadline);
    [[nodiscard]] unsigned spin_limit() const noexcept;

    std::string path_;
    rmem::Descriptor socket_;
    std::span<std::byte> memory_;
    Geometry geometry_;
    Address own_;
    unsigned nodes_ = 1;
    unsigned processors_ = 1;
    bool has_fences_ = false;

    // A wait
    rmem::WaitStages stages_;
    unsigned limit_ = 0;
    std::int64_t next_look_ = 0;
    std::uint32_t wakes_seen_ = 0;
    bool is_armed_ = false;
};

}  // namespace ports::munet
