// SPDX-License-Identifier: Apache-2.0
#pragma once

/// State that a library keeps once per process, for the simulator, whose processes are fibers of
/// one process.
///
/// A library with such state registers, when it is loaded, how to make a fresh one. Each simulated
/// process gets one of each; the simulator calls `exchange` before a process runs and again after:
/// it exchanges the library's own variables with what the object holds. So the library's functions
/// find their state where they always do, and pay nothing for it.
///
/// Thread safety: registration when libraries are loaded; the rest on the simulation's thread.

#include "rmem/error.hpp"

#include <memory>
#include <vector>

namespace rmem::sim {

class ProcessState {
public:
    ProcessState() = default;
    virtual ~ProcessState() = default;
    ProcessState(const ProcessState&) = delete;
    ProcessState& operator=(const ProcessState&) = delete;

    virtual void exchange() noexcept = 0;
};

using MakeProcessState = std::unique_ptr<ProcessState> (*)();

/// Returns true, so that it can initialize a constant.
RMEM_API bool register_process_state(MakeProcessState make);

/// One fresh state of each kind, in the order of registration.
RMEM_API std::vector<std::unique_ptr<ProcessState>> make_process_states();

}  // namespace rmem::sim
