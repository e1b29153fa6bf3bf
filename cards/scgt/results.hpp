// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Results within the library: a code of scgtapi.h, and the sentence behind a failure.
///
/// Thread safety: the sentence belongs to the calling thread (rmem/base/failures.hpp).

#include "cards/scgt/scgtapi.h"
#include "rmem/base/failures.hpp"

#include <string_view>

namespace cards::scgt {

[[gnu::cold]] inline uint32 refuse(uint32 result, std::string_view sentence) {
    static_cast<void>(rmem::fail(RMEM_EINVAL, sentence));
    return result;
}

/// For a call of rmem.h; where it has failed it has left its sentence.
inline uint32 result_of(int code) {
    switch (code) {
        case RMEM_OK: return SCGT_SUCCESS;
        case RMEM_EINVAL: return SCGT_BAD_PARAMETER;
        case RMEM_EPEER: return SCGT_LINK_ERROR;
        case RMEM_ENOMEM: return SCGT_INSUFFICIENT_RESOURCES;
        case RMEM_ETIMEDOUT: return SCGT_TIMEOUT;
        default: return SCGT_DRIVER_ERROR;
    }
}

}  // namespace cards::scgt
