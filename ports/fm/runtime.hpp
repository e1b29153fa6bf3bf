// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Fast Messages in this process: what FM_initialize makes and FM_finalize ends.
///
/// Thread safety: made and ended by one thread, while no other is inside a call.
/// Errors: the constructor throws `rmem::Error`.

#include "billboard/process/process_endpoint.hpp"
#include "ports/fm/fm1.hpp"
#include "ports/fm/fm2.hpp"
#include "ports/fm/network.hpp"

#include <memory>
#include <mutex>

namespace ports::fm {

struct Parameters {
    bool is_quiet = false;
    unsigned max_handlers = 1024;
    Fm1::Limits fm1;
};

struct Runtime {
    /// How long FM_finalize waits for others to accept what was sent.
    static constexpr std::int64_t kSettleNs = 5'000'000'000;

    Runtime(const Parameters& parameters, const Handlers& handlers);
    /// Waits for what is on its way. Without it that may be lost.
    void leave();
    Runtime(const Runtime&) = delete;
    Runtime& operator=(const Runtime&) = delete;

    std::shared_ptr<billboard::ProcessEndpoint> process;
    Network network;
    Fm1 fm1;
    Fm2 fm2;
    std::once_flag is_shared;  ///< once there is a second thread
};

}  // namespace ports::fm
