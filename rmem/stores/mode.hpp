// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The ways in which plain stores of a program are captured (docs/design/captured-stores.md).

#include "rmem/base/limits.hpp"
#include "rmem/error.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace rmem {

enum class StoresMode : int {
    exact = 1,         ///< each store, in program order, whatever the instruction
    instrumented = 2,  ///< each store of code that rmem-cc has compiled
    scan = 3,          ///< what has changed since the last look, some microseconds ago
};

RMEM_API const char* name_of(StoresMode mode) noexcept;
/// Throws Error(bad_environment).
RMEM_API StoresMode parse_stores(const std::string& text);
/// The way in RMEM_STORES; without: instrumented in a program that rmem-cc has linked, else scan in
/// a debugger, else exact where there is such a thing, else scan.
RMEM_API StoresMode stores_setting();

/// Whole words of the user's memory.
struct WordRange {
    std::size_t offset = 0, bytes = kWordBytes;
};
/// Those in RMEM_STORES, "0x100,0x2000+64" or "scan,0x100": offsets, each with the bytes from there
/// on if it is more than a word. Throws Error(bad_environment).
RMEM_API std::vector<WordRange> sync_words_setting();

}  // namespace rmem
