// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <limits>
#include <span>
#include <string_view>

namespace rmem {

namespace {

struct Unit {
    std::string_view suffix;
    std::uint64_t factor;
};

constexpr std::array<Unit, 4> kSizeUnits = {{
    {"", 1},
    {"K", 1ULL << 10},
    {"M", 1ULL << 20},
    {"G", 1ULL << 30},
}};

constexpr std::array<Unit, 4> kTimeUnits = {{
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
}};

/// A number, of a size hexadecimal after 0x, and one of `units`, at most `max`. `plain` makes the
/// plain form of a unit's other ones.
std::uint64_t parse_with_unit(
    const std::string& what, const std::string& text, std::span<const Unit> units,
    std::uint64_t max, const std::string& wanted,
    std::string (*plain)(std::string_view) = [](std::string_view s) { return std::string(s); }) {
    std::uint64_t number = 0;
    const char* end = text.data() + text.size();
    const bool is_hex =
        units.data() == kSizeUnits.data() && (text.starts_with("0x") || text.starts_with("0X"));
    const auto [rest, error] =
        std::from_chars(text.data() + (is_hex ? 2 : 0), end, number, is_hex ? 16 : 10);
    if (error != std::errc{}) throw malformed_setting(what, text, wanted);
    const std::string suffix = plain({rest, static_cast<std::size_t>(end - rest)});
    const auto unit =
        std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.suffix == suffix; });
    if (unit == units.end() || number > max / unit->factor)
        throw malformed_setting(what, text, wanted);
    return number * unit->factor;
}

/// "k", "KB" and "KiB" are K, "B" is none: all are powers of two.
std::string plain_size_unit(std::string_view given) {
    std::string unit(given);
    for (char& c : unit) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    if (unit == "B") return "";
    if (unit.size() == 3 && unit.ends_with("IB")) return unit.substr(0, 1);
    if (unit.size() == 2 && unit.ends_with('B')) return unit.substr(0, 1);
    return unit;
}

/// The number with the largest unit that leaves it whole.
std::string with_unit(std::uint64_t value, std::span<const Unit> units) {
    const Unit* best = &units.front();
    for (const Unit& unit : units) {
        if (value != 0 && value % unit.factor == 0) best = &unit;
    }
    return fmt::format("{}{}", value / best->factor, best->suffix);
}

}  // namespace

Error malformed_setting(const std::string& what, const std::string& text,
                        const std::string& wanted) {
    return {Errc::bad_environment, fmt::format("{} is '{}'; give {}", what, text, wanted)};
}

std::size_t parse_size(const std::string& what, const std::string& text) {
    return parse_with_unit(what, text, kSizeUnits, std::numeric_limits<std::size_t>::max(),
                           "a number of bytes such as 4096, 0x1000, 64K or 8M", plain_size_unit);
}

std::string size_setting(std::size_t bytes) {
    return with_unit(bytes, kSizeUnits);
}

std::string size_text(std::uint64_t bytes) {
    constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
    auto value = static_cast<double>(bytes);
    std::size_t unit = 0;
    for (; value >= 1024 && unit + 1 < kUnits.size(); ++unit) value /= 1024;
    const bool whole = value == static_cast<double>(static_cast<std::uint64_t>(value));
    return whole ? fmt::format("{:.0f} {}", value, kUnits[unit])
                 : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::string duration_setting(std::int64_t ns) {
    return with_unit(static_cast<std::uint64_t>(ns), kTimeUnits);
}

std::int64_t parse_duration_ns(const std::string& what, const std::string& text) {
    return static_cast<std::int64_t>(
        parse_with_unit(what, text, kTimeUnits, std::numeric_limits<std::int64_t>::max(),
                        "a time with its unit such as 250ns, 10us, 5ms or 2s"));
}

unsigned parse_unsigned(const std::string& what, const std::string& text, unsigned max) {
    constexpr std::array<Unit, 1> kNone = {{{"", 1}}};
    return static_cast<unsigned>(
        parse_with_unit(what, text, kNone, max, fmt::format("a whole number from 0 to {}", max)));
}

}  // namespace rmem
