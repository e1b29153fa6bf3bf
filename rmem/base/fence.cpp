// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/fence.hpp"

#include <linux/membarrier.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace rmem {

namespace {

bool membarrier(int command) noexcept {
    return ::syscall(__NR_membarrier, command, 0U, 0) == 0;
}

}  // namespace

void heavy_fence() noexcept {
    membarrier(MEMBARRIER_CMD_GLOBAL_EXPEDITED);
}

bool register_fences() noexcept {
    return membarrier(MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED);
}

}  // namespace rmem
