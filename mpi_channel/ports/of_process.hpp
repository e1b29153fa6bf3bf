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

namespace mpi_channel {

template <class T>
class OfProcess {
public:
    [[nodiscard]] static T* get() noexcept { return current_; }
    static void set(T* object) noexcept {
        static_cast<void>(registered_);  // so that it is made
        current_ = object;
    }

private:
    static inline T* current_ = nullptr;
    static inline const bool registered_ = rmem::sim::exchanges<current_>();
};

}  // namespace mpi_channel
