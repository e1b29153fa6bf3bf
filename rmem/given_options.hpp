// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a program says by itself when it opens a node or an endpoint in C (rmem_options), as
/// settings that come before those of the environment.
/// Thread safety: functions. Errors: Error(invalid_argument).

#include "rmem/base/environment_variable.hpp"
#include "rmem/error.hpp"

struct rmem_options;  // rmem/rmem.h

namespace rmem {

/// Null: nothing.
[[nodiscard]] RMEM_API GivenSettings::List settings_of(const rmem_options* options);

}  // namespace rmem
