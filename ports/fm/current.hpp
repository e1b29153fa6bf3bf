// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the C functions of Fast Messages keep for this process, and how they tell what went wrong.

#include "ports/fm/runtime.hpp"

#include <memory>
#include <string>

namespace ports::fm {

struct Current {
    Parameters parameters;
    Handlers handlers;
    std::unique_ptr<Runtime> runtime;
};
extern Current current;

inline constexpr int kMostHandlers = 65535;

/// Sets errno, and keeps the sentence for bbp_last_error.
[[gnu::cold]] void refuse(int error, int code, std::string sentence);
[[gnu::cold]] void not_initialized();

/// What FM_extract says: that many, or the end of a node.
int extracted(Runtime& runtime, int result);

}  // namespace ports::fm
