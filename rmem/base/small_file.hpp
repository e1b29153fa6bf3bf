// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Files that are read whole, by a few system calls. The first stream of a process makes the
/// dynamic linker look up many of the C++ library's functions besides.
/// Thread safety: any thread.

#include "rmem/error.hpp"

#include <cstddef>
#include <string>

namespace rmem {

inline constexpr unsigned kSmallFileBytes = 4096;
inline constexpr std::size_t kUserFileBytes = std::size_t{1} << 20;

/// A file of the kernel's, as in /proc: as much of it as kSmallFileBytes; empty where it cannot be
/// read.
std::string small_file(const char* path);

/// A text of a user's. Throws Error(code) where it cannot be read, or has more than `most` bytes;
/// `what` names it then.
RMEM_API std::string user_file(const std::string& path, const std::string& what, Errc code,
                               std::size_t most = kUserFileBytes);

/// What the system says of an error of errno, and what helps against it: the end of a sentence that
/// has named the object and what was tried.
RMEM_API std::string system_words(int error);

}  // namespace rmem
