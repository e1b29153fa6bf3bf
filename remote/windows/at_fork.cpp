// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/at_fork.hpp"

namespace rmem {

// There is no fork().
AtFork::AtFork() = default;
AtFork::~AtFork() = default;

}  // namespace rmem
