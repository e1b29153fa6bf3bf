// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The code of a failed C call, and the sentence behind it.
///
/// `fail` keeps the sentence for rmem_last_error() and bbp_last_error(), which are one, and returns
/// the code, so a failing path reads `return fail(RMEM_EINVAL, "…")`. Never called for RMEM_EAGAIN,
/// which is no failure.
/// Thread safety: the sentence belongs to the calling thread, in a simulation to its process.

#include "rmem/codes.h"
#include "rmem/error.hpp"

#include <exception>
#include <new>
#include <string_view>

namespace rmem {

[[gnu::cold]] RMEM_API int fail(int code, std::string_view sentence);
RMEM_API const char* last_error() noexcept;
/// For a null pointer in the place of a node, and of an argument that it names.
[[gnu::cold]] RMEM_API int no_node();
[[gnu::cold]] RMEM_API int no_place(const char* what);

/// A code's meaning.
RMEM_API const char* meaning_of(int code) noexcept;

/// The code for an error of setting up.
RMEM_API int code_of(Errc error) noexcept;

/// For a catch-all: the code for what has been thrown, with its sentence kept.
[[gnu::cold]] RMEM_API int failed_with(std::exception_ptr thrown) noexcept;

/// Runs `body` and turns what it throws into a code and its sentence.
template <class Body>
[[nodiscard]] inline int guarded(Body&& body) noexcept {
    try {
        return body();
    } catch (...) {
        return failed_with(std::current_exception());
    }
}

}  // namespace rmem
