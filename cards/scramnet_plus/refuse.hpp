// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How calls refuse: -1, and the sentence behind it.
///
/// Thread safety: the sentence belongs to the calling thread (rmem/base/failures.hpp).

#include "rmem/base/failures.hpp"

#include <string_view>

namespace cards::scramnet_plus {

inline constexpr int kDone = 0;
inline constexpr int kRefused = -1;

[[gnu::cold]] inline int refuse(std::string_view sentence) {
    static_cast<void>(rmem::fail(RMEM_EINVAL, sentence));
    return kRefused;
}

/// For a call of rmem.h; where it has failed it has left its sentence.
inline int result_of(int code) {
    return code >= RMEM_OK ? kDone : kRefused;
}

}  // namespace cards::scramnet_plus
