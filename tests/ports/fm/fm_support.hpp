// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What the tests of Fast Messages share: a node's incarnation, frames by hand, and what went wrong
/// as errno.

#include "billboard/errors.hpp"
#include "billboard/process/process_endpoint.hpp"
#include "ports/fm/fm.h"
#include "tests/support/conformance.hpp"

#include <fm/fm1.h>
#include <fm/fm2.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <functional>
#include <span>
#include <string_view>

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

/// What the handlers of a node have noted: simulated nodes share the variables of a test.
template <class Seen>
Seen& seen_by_node() {
    static Seen all[kMaxTestRanks];
    return all[FM_nodeid];
}
/// One that has noted nothing before.
template <class Seen>
struct FreshSession : FmSession {
    FreshSession() { seen_by_node<Seen>() = {}; }
};

/// Takes in what is of 1.0, of 2.x, or of both.
inline void extract1_until(const std::function<bool()>& holds, std::string_view what = "messages",
                           Place place = Place::here()) {
    await([&] { return FM1_extract(), holds(); }, what, place);
}
inline void extract2_until(const std::function<bool()>& holds, std::string_view what = "messages",
                           Place place = Place::here()) {
    await([&] { return FM2_extract(~0UL), holds(); }, what, place);
}
inline void extract_both_until(const std::function<bool()>& holds,
                               std::string_view what = "messages", Place place = Place::here()) {
    await([&] { return FM1_extract(), FM2_extract(~0UL), holds(); }, what, place);
}

/// A message of 2.x, in pieces.
inline void send_stream(ULONG node, ULONG id, std::span<const std::byte> bytes,
                        std::size_t piece = ~std::size_t{0}, Place place = Place::here()) {
    FM_stream* const s = FM_begin_message(node, bytes.size(), id);
    check(s != nullptr, "FM_begin_message", place);
    for (std::size_t at = 0; at < bytes.size();) {
        const std::size_t size = std::min(piece, bytes.size() - at);
        FM_send_piece(s, const_cast<std::byte*>(bytes.data() + at), size);
        at += size;
    }
    FM_end_message(s);
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
