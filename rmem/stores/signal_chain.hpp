// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Signals that this library looks at before the program does.
///
/// A handler says whether the signal was its own. If not, the action that the program had for the
/// signal is taken, as if there were no library: its handler with its mask and flags, or the end of
/// the process, by the same instruction.
/// Limits: an action that the program sets later takes this library's place, until `stay_first`.
/// Thread safety: `look_first` from any thread; handlers run where the signal comes, with all
///   signals blocked.
/// Errors: Error(system).

#include "rmem/error.hpp"

#include <ucontext.h>
#include <csignal>

namespace rmem::stores {

/// True: it was ours, and the program goes on as `context` says.
using FirstHandler = bool (*)(const siginfo_t& info, ucontext_t& context) noexcept;

/// From now on, for SIGSEGV; an action that the program has set by now follows. More than once is
/// as once.
RMEM_API void look_first(int signal, FirstHandler handler);

/// Where somebody looks first: does so again, before an action that the program has set since.
void stay_first();

/// Whether a signal waits that is mostly meant to end the program (SIGINT, SIGTERM, SIGHUP,
/// SIGQUIT), and is blocked, as in a FirstHandler.
[[nodiscard]] bool is_asked_to_end() noexcept;

}  // namespace rmem::stores
