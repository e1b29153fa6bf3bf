// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Numbers with units, as settings and options have them.
///
/// Units: bytes, nanoseconds. Errors: `Error(bad_environment)`, which names the object.

#include "rmem/error.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace rmem {

/// A whole number followed by one of the units, as a number of the least one; nothing if it is
/// anything else, or more than `max`.
struct Unit {
    std::string_view suffix;
    std::uint64_t factor;
};
std::optional<std::uint64_t> number_with_unit(std::string_view text, std::span<const Unit> units,
                                              std::uint64_t max, int base = 10);

/// "4096", "0x1000", "64K", "8M", "1G", also as 64k, 64KB or 64KiB; "250ns", "10us", "5ms", "2s".
/// `what` names the object in the error.
RMEM_API std::size_t parse_size(const std::string& what, const std::string& text);
RMEM_API std::int64_t parse_duration_ns(const std::string& what, const std::string& text);
RMEM_API unsigned parse_unsigned(const std::string& what, const std::string& text, unsigned max);

/// The shortest text that parses to it: "8M", "10us".
RMEM_API std::string size_setting(std::size_t bytes);
RMEM_API std::string duration_setting(std::int64_t ns);

/// For people: "512 B", "1.5 MiB".
RMEM_API std::string size_text(std::uint64_t bytes);

/// What those throw: `wanted` says what to give instead of `text`.
RMEM_API Error malformed_setting(const std::string& what, const std::string& text,
                                 const std::string& wanted);

}  // namespace rmem
