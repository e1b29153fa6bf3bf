// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/helper_thread.hpp"

#include <utility>

namespace rmem {

// There are no signals to block.
std::thread HelperThread::start(const char*, std::function<void()> work) {
    return std::thread(std::move(work));
}

bool HelperThread::ask_for_real_time() noexcept {
    return false;
}

void HelperThread::leave_real_time() noexcept {}

}  // namespace rmem
