// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The limits of containers and of those who have started this process, where they are looked up.
///
/// A cgroup's limits are those of the cgroups above it, too, as far as they can be seen: version 2,
/// or the controllers of version 1.
/// Thread safety: any thread. Errors: std::bad_alloc; what cannot be read is no limit.
/// Units: bytes. `root`: another folder instead of /, for tests.

#include "rmem/error.hpp"

#include <sys/resource.h>

#include <compare>
#include <cstdint>
#include <optional>
#include <string>

namespace rmem {

/// That the cgroup's quota amounts to; nothing: it has none.
RMEM_API std::optional<double> processors_of_cgroup(const std::string& root = "");

struct CgroupMemory {
    std::uint64_t room = 0;  ///< until the limit is met, caches given back and swap used
    std::uint64_t limit = 0;
    friend auto operator<=>(const CgroupMemory&, const CgroupMemory&) = default;
};
/// Where there is the least room; nothing: there is no limit.
RMEM_API std::optional<CgroupMemory> memory_of_cgroup(const std::string& root = "");

/// Of this process; nothing: unlimited.
RMEM_API std::optional<std::uint64_t> own_limit(__rlimit_resource which) noexcept;

/// The end of a sentence about a call that the system has refused: the limit that it has met, as
/// far as it can be known, and how to raise it; empty where `error` is of another kind.
RMEM_API std::string limit_behind(int error);
/// The same for EAGAIN of mmap(2), and of a thread.
RMEM_API std::string limit_of_locked_memory();
RMEM_API std::string limit_of_threads();

}  // namespace rmem
