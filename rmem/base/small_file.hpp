// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A small file of the kernel's, as in /proc, whole: by three system calls. The first stream of a
/// process makes the dynamic linker look up many of the C++ library's functions besides.
/// Thread safety: any thread.

#include <string>

namespace rmem {

inline constexpr unsigned kSmallFileBytes = 4096;

/// As much of it as kSmallFileBytes; empty where it cannot be read.
std::string small_file(const char* path);

}  // namespace rmem
