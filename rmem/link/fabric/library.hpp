// SPDX-License-Identifier: Apache-2.0
#pragma once

/// libfabric, loaded when a ring wants it: programs on the other links do without it and its
/// libraries, and so does a host that has none.
///
/// Thread safety: all of it from any thread. It stays loaded.
/// Errors: `Error(no_fabric)` with a sentence that says what to install.
/// Source: fi_getinfo(3); everything else of libfabric's is reached through what these return.

#include "rmem/error.hpp"

#include <rdma/fabric.h>

#include <cstdint>

namespace rmem::fabric {

/// The interface that this link is written for.
inline constexpr std::uint32_t kApi = FI_VERSION(1, 14);

struct Library {
    int (*getinfo)(std::uint32_t version, const char* node, const char* service,
                   std::uint64_t flags, const fi_info* hints, fi_info** info);
    void (*freeinfo)(fi_info* info);
    fi_info* (*dupinfo)(const fi_info* info);
    int (*fabric)(fi_fabric_attr* attributes, fid_fabric** fabric, void* context);
    const char* (*strerror)(int error);
    std::uint32_t (*version)();
};

/// Loads it at the first call.
RMEM_API const Library& library();

}  // namespace rmem::fabric
