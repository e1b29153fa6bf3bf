// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How bbp_ calls learn that their endpoint is shared by several threads
/// (billboard/process/process_endpoint.hpp).

#include "billboard/endpoint.hpp"

namespace billboard {

/// bbp_ calls of this process that went by `plain` go by `guarded` from now on.
void bbp_goes_by(Endpoint& plain, Endpoint& guarded) noexcept;

}  // namespace billboard
