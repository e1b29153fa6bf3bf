// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The sentence of dp_last_error(), one for each thread: the object, what was found, what to do.

#include <string>

namespace ports::dp {

/// Sets errno and the sentence; returns -1.
int fail(int error, const std::string& sentence) noexcept;
const char* last_error() noexcept;

}  // namespace ports::dp
