// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/clock.hpp"

#include "rmem/sim/process.hpp"

namespace rmem {

std::int64_t program_now_ns() noexcept {
    const sim::Process* process = sim::current_process();
    return process == nullptr ? now_ns() : process->now_ns();
}

}  // namespace rmem
