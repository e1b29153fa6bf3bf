// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Checks that work in a process that the test forked, where gtest's would be lost.
///
/// A check that does not hold throws `CheckFailed`, whose text names the place, the expected value
/// and the found one; the harness (tests/support/rank_processes.hpp) carries it to the test. Each
/// check also leaves its place in `last_place`, so that a rank that hangs can be told where.
/// Thread safety: one thread per process.

#include <fmt/format.h>

#include <concepts>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace rmem::test {

/// The place of a check in the source.
struct Place {
    const char* file = "";
    int line = 0;

    static constexpr Place here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
        return {file, line};
    }
};

class CheckFailed : public std::runtime_error {
public:
    CheckFailed(Place place, std::string_view text);
};

/// Where `passing` leaves the place of each check; the harness points it into shared memory.
extern Place* last_place;

inline void passing(Place place) {
    if (last_place != nullptr) *last_place = place;
}

/// Fails with `text`.
[[noreturn]] void fail(std::string_view text, Place place = Place::here());

/// "BBP_EPEER (-5)" for a code, the number for anything else.
std::string code_name(int code);

/// Fails unless `holds`.
inline void check(bool holds, std::string_view what, Place place = Place::here()) {
    passing(place);
    if (!holds) fail(what, place);
}

template <class T>
concept Number = std::integral<T> && !std::same_as<T, bool> && !std::same_as<T, char>;

/// Fails unless the two are equal, and prints both.
template <class Found, class Expected>
void check_equal(const Found& found, const Expected& expected, std::string_view what,
                 Place place = Place::here()) {
    passing(place);
    bool equal = false;
    if constexpr (Number<Found> && Number<Expected>) {
        equal = std::cmp_equal(found, expected);
    } else {
        equal = found == expected;
    }
    if (!equal) fail(fmt::format("{}: expected {}, found {}", what, expected, found), place);
}

/// Fails unless a bbp_ call returned `expected`, and quotes bbp_last_error().
void check_code(int found, int expected, std::string_view what = "", Place place = Place::here());

/// Fails unless a bbp_ call returned BBP_OK.
inline void check_ok(int found, std::string_view what = "", Place place = Place::here()) {
    check_code(found, 0, what, place);
}

/// Fails unless a bbp_ call failed, with any code, and said why.
void check_refused(int found, std::string_view what, Place place = Place::here());

/// Fails unless bbp_last_error() holds these words.
void check_said(std::string_view words, Place place = Place::here());

}  // namespace rmem::test
