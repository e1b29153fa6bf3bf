// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The environment that settings are read from: the process's, or in a simulated process the one that
/// its world gives it.
///
/// Thread safety: as getenv.

#include "rmem/error.hpp"

namespace rmem {

/// The value of a variable; null where it is unset.
RMEM_API const char* environment_variable(const char* name) noexcept;

/// The same of a setting: an empty one counts as unset.
RMEM_API const char* environment_setting(const char* name) noexcept;

}  // namespace rmem
