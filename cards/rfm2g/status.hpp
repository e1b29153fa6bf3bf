// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Results within the library: RFM2G_STATUS, and the sentence behind a failure.
///
/// Thread safety: the sentence belongs to the calling thread (rmem/base/failures.hpp).

#include "cards/rfm2g/rfm2g_api.h"
#include "rmem/base/failures.hpp"

#include <string_view>

namespace cards::rfm2g {

[[gnu::cold]] inline RFM2G_STATUS refuse(RFM2G_STATUS status, std::string_view sentence) {
    static_cast<void>(rmem::fail(RMEM_EINVAL, sentence));
    return status;
}

/// For a call of rmem.h that has failed, and has left its sentence.
[[gnu::cold]] inline RFM2G_STATUS status_of(int code, RFM2G_STATUS otherwise) {
    return code == RMEM_ENOMEM ? RFM2G_LOW_MEMORY : otherwise;
}

}  // namespace cards::rfm2g
