// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Whose handler the calling thread runs: such a thread holds the endpoint already.
/// Thread safety: a variable for each thread. In the initial TLS, since each call looks at it.

#include "ports/gamma/process.hpp"

namespace ports::gamma {

[[gnu::tls_model("initial-exec")]] extern constinit thread_local const Process* handling;

inline Process::Held Process::hold() {
    return handling == this ? Held() : process_->hold();
}

}  // namespace ports::gamma
