// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The object that handlers of this process work for: the systems' handlers are C functions without
/// an argument for it.
///
///     OfProcess<FmPort>::set(this);
///     …  OfProcess<FmPort>::get()->arrived(…)
///
/// Thread safety: as of a plain variable; each process of the simulator has one of its own.

#include "rmem/base/process_state.hpp"

#include <memory>
#include <utility>

namespace mpi_channel {

template <class T>
class OfProcess final : public rmem::sim::ProcessState {
public:
    static T* get() noexcept { return current_; }
    static void set(T* object) noexcept {
        static_cast<void>(registered_);  // so that it is made
        current_ = object;
    }
    void exchange() noexcept override { std::swap(current_, mine_); }

private:
    T* mine_ = nullptr;
    static inline T* current_ = nullptr;
    static inline const bool registered_ = rmem::sim::register_process_state(
        []() -> std::unique_ptr<rmem::sim::ProcessState> { return std::make_unique<OfProcess>(); });
};

}  // namespace mpi_channel
