// SPDX-License-Identifier: Apache-2.0
#include "rmem/environment_variable.hpp"

#include "rmem/sim/world.hpp"

#include <cstdlib>

namespace rmem {

const char* environment_variable(const char* name) noexcept {
    if (const sim::Process* process = sim::current_process()) {
        return process->world().variable(*process, name);
    }
    return std::getenv(name);  // NOLINT(concurrency-mt-unsafe): read at start-up
}

const char* environment_setting(const char* name) noexcept {
    const char* text = environment_variable(name);
    return text == nullptr || *text == '\0' ? nullptr : text;
}

}  // namespace rmem
