// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Named places in the code at which a test can end or stop the process.
///
/// RMEM_MARK("send.payload-written") costs nothing in the libraries as installed. In the variant
/// built with RMEM_MARKS, a process whose environment says RMEM_AT_MARK=kill:<mark>[:<n>] is
/// killed (SIGKILL) when it reaches the mark for the n-th time (first, if not given); stop: in
/// place of kill: stops it there (SIGSTOP), once. The test that kills at every mark reads their
/// list from the sources, so a new mark without a test fails the suite.

#ifdef RMEM_MARKS

#include "rmem/error.hpp"

namespace rmem {
RMEM_API void reach_mark(const char* name) noexcept;
}
#define RMEM_MARK(name) ::rmem::reach_mark(name)

#else
#define RMEM_MARK(name) static_cast<void>(0)
#endif
