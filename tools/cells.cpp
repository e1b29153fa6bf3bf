// SPDX-License-Identifier: Apache-2.0
#include "tools/cells.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>

#include "rmem/config.hpp"
#include "rmem/error.hpp"
#include "tools/output.hpp"

namespace tools {

namespace {

struct CellName {
    CellType type;
    const char* name;
    std::size_t bytes;
};

constexpr std::array<CellName, 7> kCells = {{
    {CellType::u32, "u32", 4},
    {CellType::i32, "i32", 4},
    {CellType::x32, "x32", 4},
    {CellType::f32, "f32", 4},
    {CellType::f64, "f64", 8},
    {CellType::u8, "u8", 1},
    {CellType::text, "text", 1},
}};

rmem::Error malformed(const std::string& text, const std::string& wanted) {
    return {rmem::Errc::invalid_argument,
            fmt::format("the value '{}' is not {}; choose the type with --as ({})", text, wanted,
                        kCellTypes)};
}

template <class T>
T as(std::span<const std::byte> bytes) {
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
}

template <class T>
std::vector<std::byte> bytes_of(T value) {
    std::vector<std::byte> bytes(sizeof value);
    std::memcpy(bytes.data(), &value, sizeof value);
    return bytes;
}

std::string text_of(std::span<const std::byte> bytes) {
    const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
    std::string text;
    std::transform(bytes.begin(), end, std::back_inserter(text),
                   [](std::byte b) { return static_cast<char>(b); });
    return text;
}

/// A whole number in decimal or, after 0x, hexadecimal; with a sign where `min` is below zero.
std::int64_t parse_whole(const std::string& text, std::int64_t min, std::int64_t max) {
    const std::string wanted = fmt::format("a whole number from {} to {}", min, max);
    std::string_view digits = text;
    const bool negative = digits.starts_with('-');
    if (negative) digits.remove_prefix(1);
    const int base = digits.starts_with("0x") || digits.starts_with("0X") ? 16 : 10;
    if (base == 16) digits.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    constexpr auto kMost = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    if (error != std::errc{} || rest != digits.data() + digits.size() || value > kMost) {
        throw malformed(text, wanted);
    }
    const auto result =
        negative ? -static_cast<std::int64_t>(value) : static_cast<std::int64_t>(value);
    if (result < min || result > max) throw malformed(text, wanted);
    return result;
}

template <class T>
T parse_real(const std::string& text) {
    T value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || rest != text.data() + text.size())
        throw malformed(text, "a number");
    return value;
}

}  // namespace

CellType parse_cell_type(const std::string& name) {
    for (const auto& cell : kCells) {
        if (name == cell.name) return cell.type;
    }
    throw rmem::Error(rmem::Errc::invalid_argument,
                      fmt::format("there is no type '{}' (--as); give {}", name, kCellTypes));
}

std::size_t cell_bytes(CellType type) noexcept {
    for (const auto& cell : kCells) {
        if (cell.type == type) return cell.bytes;
    }
    return 1;
}

std::string cell_text(CellType type, std::span<const std::byte> bytes) {
    switch (type) {
        case CellType::u32: return fmt::format("{}", as<std::uint32_t>(bytes));
        case CellType::i32: return fmt::format("{}", as<std::int32_t>(bytes));
        case CellType::x32: return fmt::format("0x{:08x}", as<std::uint32_t>(bytes));
        case CellType::f32: return fmt::format("{}", as<float>(bytes));
        case CellType::f64: return fmt::format("{}", as<double>(bytes));
        case CellType::u8: return fmt::format("{}", as<std::uint8_t>(bytes));
        case CellType::text: return printable(text_of(bytes));
    }
    return {};
}

nlohmann::json cell_json(CellType type, std::span<const std::byte> bytes) {
    switch (type) {
        case CellType::u32: return as<std::uint32_t>(bytes);
        case CellType::i32: return as<std::int32_t>(bytes);
        case CellType::x32: return cell_text(type, bytes);
        case CellType::f32: {
            const auto value = as<float>(bytes);
            // JSON has no word for these.
            return std::isfinite(value) ? nlohmann::json(value)
                                        : nlohmann::json(cell_text(type, bytes));
        }
        case CellType::f64: {
            const auto value = as<double>(bytes);
            return std::isfinite(value) ? nlohmann::json(value)
                                        : nlohmann::json(cell_text(type, bytes));
        }
        case CellType::u8: return as<std::uint8_t>(bytes);
        case CellType::text: return text_of(bytes);
    }
    return {};
}

std::vector<std::byte> parse_cell(CellType type, const std::string& text) {
    switch (type) {
        case CellType::u32:
        case CellType::x32:
            return bytes_of(static_cast<std::uint32_t>(
                parse_whole(text, 0, std::numeric_limits<std::uint32_t>::max())));
        case CellType::i32:
            return bytes_of(static_cast<std::int32_t>(
                parse_whole(text, std::numeric_limits<std::int32_t>::min(),
                            std::numeric_limits<std::int32_t>::max())));
        case CellType::f32: return bytes_of(parse_real<float>(text));
        case CellType::f64: return bytes_of(parse_real<double>(text));
        case CellType::u8: return bytes_of(static_cast<std::uint8_t>(parse_whole(text, 0, 255)));
        case CellType::text: {
            std::vector<std::byte> bytes(text.size() + 1);  // with the zero that ends it
            std::memcpy(bytes.data(), text.data(), text.size());
            return bytes;
        }
    }
    return {};
}

std::uint64_t parse_offset(const std::string& what, const std::string& text) {
    if (!text.starts_with("0x") && !text.starts_with("0X")) return rmem::parse_size(what, text);
    std::uint64_t value = 0;
    const char* end = text.data() + text.size();
    const auto [rest, error] = std::from_chars(text.data() + 2, end, value, 16);
    if (error == std::errc{} && rest == end) return value;
    throw rmem::Error(rmem::Errc::invalid_argument,
                      fmt::format("{} is '{}'; give bytes as 256, 0x100 or 4K", what, text));
}

}  // namespace tools
