// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the tests of Fast Messages share: a node's incarnation, frames by hand, and what went wrong
/// as errno.

#include "billboard/errors.hpp"
#include "billboard/process/process_endpoint.hpp"
#include "ports/fm/fm.h"
#include "tests/support/conformance.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>

namespace rmem::test {

/// From FM_initialize to FM_finalize.
class FmSession {
public:
    explicit FmSession(Place place = Place::here()) {
        FM_initialize();
        check(FM_numnodes != 0, "FM_initialize", place);
    }
    ~FmSession() {
        if (FM_numnodes != 0) FM_finalize();
    }
    FmSession(const FmSession&) = delete;
    FmSession& operator=(const FmSession&) = delete;
};

inline long long count_of(FM_counter counter) {
    return FM_count(FM_nodeid, counter);
}

/// Calls, and checks what it leaves in errno; 0: nothing.
template <class Call>
void check_errno(int expected, Call&& call, Place place = Place::here()) {
    errno = 0;
    call();
    const int found = errno;
    check(found == expected,
          fmt::format("errno is {} ({}) instead of {} ({}): {}", found, std::strerror(found),
                      expected, std::strerror(expected), billboard::last_error()),
          place);
}

/// A frame as bytes, from a sender that is not Fast Messages.
inline void send_frame(int node, std::span<const std::byte> bytes, Place place = Place::here()) {
    check_code(billboard::ProcessEndpoint::open()->endpoint().send(node, bytes.data(), bytes.size(),
                                                                   {}, billboard::Class::fm),
               BBP_OK, "a frame by hand", place);
}
/// Any value, as bytes.
template <class T>
std::span<const std::byte> bytes_of(const T& value) {
    return std::as_bytes(std::span(&value, 1));
}

}  // namespace rmem::test
