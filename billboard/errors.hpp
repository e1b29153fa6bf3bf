// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The sentence behind a failed bbp_ call.
///
/// `fail` keeps it for bbp_last_error() and returns the code, so a failing path reads
/// `return fail(BBP_ERANK, "…")`. Never called for BBP_EAGAIN, which is no failure.
/// Thread safety: the sentence belongs to the calling thread.

#include "billboard/bbp.h"
#include "rmem/base/kept_sentence.hpp"
#include "rmem/error.hpp"

#include <span>
#include <string>

namespace billboard {

[[gnu::cold]] RMEM_API int fail(int code, const std::string& sentence);
RMEM_API const char* last_error() noexcept;
/// For a caller that keeps the sentences of several processes in one thread: the simulator.
void exchange_last_error(rmem::KeptSentence& sentence) noexcept;

/// BBP_ETIMEDOUT, with the awaited event: a message of `src`, room that `dests` must make, the
/// arrival of `missing` (none: not known).
[[nodiscard, gnu::cold]] RMEM_API int receive_timed_out(int src);
[[nodiscard, gnu::cold]] RMEM_API int send_timed_out(std::span<const int> dests);
[[nodiscard, gnu::cold]] RMEM_API int barrier_timed_out(std::span<const int> missing);

/// The code for an rmem error.
RMEM_API int code_of(rmem::Errc error) noexcept;

/// Runs `body` and turns what it throws into a code and its sentence.
template <class Body>
[[nodiscard]] int guarded(Body&& body) noexcept {
    try {
        return body();
    } catch (const rmem::Error& e) {
        return fail(code_of(e.code()), e.what());
    } catch (const std::bad_alloc&) {
        return fail(BBP_ENOMEM, "out of private memory");
    } catch (const std::exception& e) {
        return fail(BBP_ESYS, e.what());
    }
}

}  // namespace billboard
