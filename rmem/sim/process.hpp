// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A simulated process: one incarnation of a rank, with a clock of its own.
///
/// Its program is a function that runs as a fiber. Accesses to its card and calls take virtual
/// time, as the host profile says; its own computing takes none, except for `sleep`. Inside it, the
/// C interfaces of the libraries (bbp_init …) and rmem::Node::open work as in a process of its own,
/// rmem::environment_variable finds the world's variables and its own rank, and deadlines are times
/// of its clock (rmem::program_now_ns).
///
/// Killed, it stops between two accesses and nothing of it runs any more: no destructor does.
/// Thread safety: the simulation's thread only.

#include "rmem/base/fiber.hpp"
#include "rmem/base/process_state.hpp"
#include "rmem/base/program_host.hpp"
#include "rmem/ring/bound_violation.hpp"
#include "rmem/ring/interrupts.hpp"
#include "rmem/sim/watch.hpp"

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace rmem::sim {

class World;
class Process;

using Program = std::function<void(Process&)>;

class RMEM_API Process final : public ProgramHost {
public:
    ~Process();
    Process(const Process&) = delete;
    Process& operator=(const Process&) = delete;

    World& world() const noexcept { return world_; }
    unsigned rank() const noexcept { return rank_; }
    unsigned node() const noexcept { return node_; }
    unsigned incarnation() const noexcept {
        return incarnation_;
    }  ///< 1 for the rank's first process
    std::int64_t now_ns() const noexcept override { return clock_ns_; }
    const char* variable(const char* name) const noexcept override;

    /// Lets virtual time pass; from its own program only.
    void sleep(std::int64_t ns);

    /// The value of an environment variable that it finds from now on; nullopt: none.
    void set_variable(const std::string& name, std::optional<std::string> value);

    /// Keeps an object as long as the process: destroyed by it when its program has returned, and
    /// when it is killed by the world, whose memory it then cannot reach any more. The last goes
    /// first.
    template <class T>
    T& keep(std::unique_ptr<T> object) {
        kept_.push_back(std::move(object));
        return *static_cast<T*>(kept_.back().get());
    }

private:
    friend class World;
    friend class SimMemory;
    friend class SimCard;
    friend class Membership;

    enum class State : std::uint8_t { ready, running, parked, ended, dead };

    Process(World& world, unsigned rank, unsigned node, unsigned incarnation,
            std::size_t stack_bytes, Program program);
    void release_kept() noexcept;
    void exchange_states() noexcept;
    void run();

    World& world_;
    const unsigned rank_;
    const unsigned node_;
    const unsigned incarnation_;
    std::int64_t clock_ns_ = 0;
    State state_ = State::ready;
    bool stopped_ = false;
    std::uint64_t queued_as_ = 0;  ///< its valid entry in the queue of ready processes; 0: none
    std::int64_t queued_for_ns_ = 0;
    std::uint64_t accesses_ = 0;
    std::uint64_t fault_at_access_ = UINT64_MAX;
    std::int64_t next_check_ns_ = 0;  ///< for dead peers
    unsigned checks_due_ = 0;
    unsigned changes_seen_ = 0;    ///< words of its watch that changed since it was parked
    std::int64_t room_at_ns_ = 0;  ///< the poll was refused room; not before then
    bool no_room_ = false;
    bool awaits_room_ = false;  ///< a store is stalled by the card's full FIFO
    bool awaits_interrupt_ = false;
    Watch watch_;
    std::function<void(const Interrupt&)> on_interrupt_;
    std::function<void(const BoundViolation&)> on_violation_;
    std::deque<std::function<void()>> calls_;  ///< to be made in its name, unless it is stopped
    Program program_;
    std::vector<std::shared_ptr<void>> kept_;
    std::vector<std::unique_ptr<ProcessState>> states_;
    std::map<std::string, std::optional<std::string>, std::less<>> variables_;  ///< its own
    Fiber fiber_;
};

/// The simulated process that runs just now on this thread; null outside of a simulation.
RMEM_API Process* current_process() noexcept;

}  // namespace rmem::sim
