// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The environment that settings are read from: the process's, or in a simulated process the one
/// that its world gives it.
///
/// Thread safety: as getenv.

#include "rmem/error.hpp"

#include <string>
#include <vector>

namespace rmem {

/// The value of a variable; null where it is unset.
RMEM_API const char* environment_variable(const char* name) noexcept;

/// The same of a setting: an empty one counts as unset.
RMEM_API const char* environment_setting(const char* name) noexcept;

/// Every RMEM_ variable that something of this project reads.
RMEM_API const std::vector<std::string>& setting_names();

/// Throws bad_environment when the process's environment has a variable that nothing reads and
/// whose name is one edit away from that of one that is read: a setting that its user believes is
/// set.
RMEM_API void refuse_misspelt_settings();

}  // namespace rmem
