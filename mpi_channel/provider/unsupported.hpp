// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Tables of libfabric's calls in which every call says -FI_ENOSYS: an object puts those that it
/// has into a copy. libfabric's inline functions call through them without a look, so none may be
/// null.

#include <rdma/fi_errno.h>

#include <cstddef>
#include <type_traits>
#include <utility>

namespace mpi_channel::provider {

template <class Result, class... Arguments>
using Function = Result (*)(Arguments...);

/// Becomes a call of any type, one that is not supported.
struct Unsupported {
    template <class Result, class... Arguments>
    constexpr operator Function<Result, Arguments...>() const {
        return [](Arguments...) -> Result {
            if constexpr (std::is_pointer_v<Result>) {
                return nullptr;
            } else {
                return static_cast<Result>(-FI_ENOSYS);
            }
        };
    }
};

/// A table that has `size` first, and then calls alone.
template <class Table>
Table unsupported() {
    constexpr std::size_t calls = (sizeof(Table) - sizeof(std::size_t)) / sizeof(void (*)());
    return []<std::size_t... Is>(std::index_sequence<Is...>) {
        return Table{sizeof(Table), (static_cast<void>(Is), Unsupported())...};
    }
    (std::make_index_sequence<calls>());
}

}  // namespace mpi_channel::provider
