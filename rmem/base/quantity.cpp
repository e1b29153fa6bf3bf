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

/// All are powers of two.
constexpr auto kSizeUnits = std::to_array<Unit>({
    {"", 1},
    {"K", 1ULL << 10},
    {"M", 1ULL << 20},
    {"G", 1ULL << 30},
    {"B", 1},
    {"KB", 1ULL << 10},
    {"MB", 1ULL << 20},
    {"GB", 1ULL << 30},
    {"KIB", 1ULL << 10},
    {"MIB", 1ULL << 20},
    {"GIB", 1ULL << 30},
});

constexpr std::array<Unit, 4> kTimeUnits = {{
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
}};

/// The number with the largest unit that leaves it whole.
std::string with_unit(std::uint64_t value, std::span<const Unit> units) {
    const Unit* best = &units.front();
    for (const Unit& unit : units) {
        if (value != 0 && value % unit.factor == 0 && unit.factor > best->factor) best = &unit;
    }
    return fmt::format("{}{}", value / best->factor, best->suffix);
}

}  // namespace

Error malformed_setting(const std::string& what, const std::string& text,
                        const std::string& wanted) {
    return {Errc::bad_environment, fmt::format("{} is '{}'; give {}", what, text, wanted)};
}

std::optional<std::uint64_t> number_with_unit(std::string_view text, std::span<const Unit> units,
                                              std::uint64_t max, int base) {
    std::uint64_t number = 0;
    const char* const end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data(), end, number, base);
    const std::string_view suffix(rest, static_cast<std::size_t>(end - rest));
    const auto unit =
        std::find_if(units.begin(), units.end(), [&](const Unit& u) { return u.suffix == suffix; });
    if (error != std::errc{} || unit == units.end() || number > max / unit->factor) return {};
    return number * unit->factor;
}

std::size_t parse_size(const std::string& what, const std::string& text) {
    std::string upper(text);
    for (char& c : upper) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
    const bool is_hex = upper.starts_with("0X");
    const auto bytes = number_with_unit(std::string_view(upper).substr(is_hex ? 2 : 0), kSizeUnits,
                                        std::numeric_limits<std::size_t>::max(), is_hex ? 16 : 10);
    if (bytes) return *bytes;
    throw malformed_setting(what, text, "a number of bytes such as 4096, 0x1000, 64K or 8M");
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
    if (const auto ns =
            number_with_unit(text, kTimeUnits, std::numeric_limits<std::int64_t>::max()))
        return static_cast<std::int64_t>(*ns);
    throw malformed_setting(what, text, "a time with its unit such as 250ns, 10us, 5ms or 2s");
}

unsigned parse_unsigned(const std::string& what, const std::string& text, unsigned max) {
    constexpr std::array<Unit, 1> kNone = {{{"", 1}}};
    if (const auto number = number_with_unit(text, kNone, max))
        return static_cast<unsigned>(*number);
    throw malformed_setting(what, text, fmt::format("a whole number from 0 to {}", max));
}

}  // namespace rmem
