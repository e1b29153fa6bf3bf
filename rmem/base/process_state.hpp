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
///     std::unique_ptr<Service> service;
///     const bool registered = rmem::sim::exchanges<service>();
///
/// Thread safety: registration when libraries are loaded; the rest on the simulation's thread.

#include "rmem/error.hpp"

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
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
[[nodiscard]] RMEM_API bool register_process_state(MakeProcessState make);

/// `Mine`, a fresh one for each simulated process, which `swap` exchanges with the library's own.
template <class Mine, void (*swap)(Mine&) noexcept>
class Exchanged final : public ProcessState {
public:
    void exchange() noexcept override { swap(mine_); }

private:
    Mine mine_{};
};

template <class Mine, void (*swap)(Mine&) noexcept>
[[nodiscard]] bool exchanges_by() {
    return register_process_state([]() -> std::unique_ptr<ProcessState> {
        return std::make_unique<Exchanged<Mine, swap>>();
    });
}

template <auto&... variables>
using CopyOf = std::tuple<std::remove_reference_t<decltype(variables)>...>;
template <auto&... variables>
void exchange_all(CopyOf<variables...>& mine) noexcept {
    std::apply([](auto&... own) { (std::swap(variables, own), ...); }, mine);
}

/// Each simulated process has its own of these variables, value-initialized at first.
template <auto&... variables>
[[nodiscard]] bool exchanges() {
    return exchanges_by<CopyOf<variables...>, exchange_all<variables...>>();
}

/// One fresh state of each kind, in the order of registration.
RMEM_API std::vector<std::unique_ptr<ProcessState>> make_process_states();

}  // namespace rmem::sim
