// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Results within the library: the billboard's codes, and those that only GAMMA has (libgamma.h:
/// GAMMA_E…).

#include "billboard/errors.hpp"
#include "ports/gamma/libgamma.h"

namespace ports::gamma {

using billboard::fail;

constexpr bool is_same(int gamma, int billboard) {
    return gamma == billboard;
}
static_assert(is_same(GAMMA_EAGAIN, BBP_EAGAIN) && is_same(GAMMA_EINVAL, BBP_EINVAL) &&
              is_same(GAMMA_ENODE, BBP_ERANK) && is_same(GAMMA_ESIZE, BBP_ESIZE) &&
              is_same(GAMMA_EPEER, BBP_EPEER) && is_same(GAMMA_ETIMEDOUT, BBP_ETIMEDOUT) &&
              is_same(GAMMA_ENOMEM, BBP_ENOMEM) && is_same(GAMMA_ESYS, BBP_ESYS) &&
              is_same(GAMMA_ECORRUPT, BBP_ECORRUPT) && is_same(GAMMA_EVERSION, BBP_EVERSION) &&
              is_same(GAMMA_EBUSY, BBP_EBUSY));

}  // namespace ports::gamma
