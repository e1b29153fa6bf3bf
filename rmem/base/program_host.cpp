// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/program_host.hpp"

#include "rmem/base/clock.hpp"

namespace rmem {

namespace {

constinit thread_local ProgramHost* host_of_thread = nullptr;

}  // namespace

ProgramHost* program_host() noexcept {
    return host_of_thread;
}

void set_program_host(ProgramHost* host) noexcept {
    host_of_thread = host;
}

std::int64_t program_now_ns() noexcept {
    return host_of_thread == nullptr ? now_ns() : host_of_thread->now_ns();
}

}  // namespace rmem
