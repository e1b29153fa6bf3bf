// SPDX-License-Identifier: Apache-2.0
#include "maps/cell.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/limits.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cstring>
#include <iterator>
#include <system_error>
#include <utility>

namespace maps {

namespace {

using Kind = Cell::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 5> kKinds = {{
    {"bits", Kind::bits},
    {"u", Kind::unsigned_number},
    {"i", Kind::signed_number},
    {"x", Kind::hexadecimal},
    {"f", Kind::real},
}};

/// "u32" without its byte order.
std::optional<Cell> plain_cell(std::string_view name) {
    if (name == "text") return Cell{Kind::text, 1};
    if (name == "bool") return Cell{Kind::boolean, 1};
    if (name == "bits") name = "bits32";
    for (const auto& [prefix, kind] : kKinds) {
        if (!name.starts_with(prefix)) continue;
        const std::string_view width = name.substr(prefix.size());
        const bool is_narrow = width == "8" || width == "16";
        if (!is_narrow && width != "32" && width != "64") return std::nullopt;
        if (is_narrow && kind == Kind::real) return std::nullopt;
        const std::uint8_t bytes = width == "8" ? 1 : width == "16" ? 2 : width == "32" ? 4 : 8;
        return Cell{kind, bytes};
    }
    return std::nullopt;
}

/// In the order in which the host has them.
std::vector<std::byte> in_host_order(const Cell& cell, std::span<const std::byte> bytes) {
    RMEM_CHECK(bytes.size() == cell.bytes);
    std::vector<std::byte> result(bytes.begin(), bytes.end());
    if (cell.is_swapped) std::reverse(result.begin(), result.end());
    return result;
}

template <class T>
T as(std::span<const std::byte> bytes) {
    T value{};
    std::memcpy(&value, bytes.data(), std::min(sizeof value, bytes.size()));
    return value;
}

/// The bits of a value in host order, as a number.
std::uint64_t unsigned_of(std::span<const std::byte> bytes) {
    switch (bytes.size()) {
        case 1: return as<std::uint8_t>(bytes);
        case 2: return as<std::uint16_t>(bytes);
        case 4: return as<std::uint32_t>(bytes);
        default: return as<std::uint64_t>(bytes);
    }
}

std::int64_t signed_of(std::span<const std::byte> bytes) {
    const auto unused = 64 - 8 * static_cast<unsigned>(bytes.size());
    // Its sign goes to the top, and comes down over all that is above.
    return static_cast<std::int64_t>(unsigned_of(bytes) << unused) >> unused;
}

std::vector<std::byte> bytes_of(std::uint64_t value, std::size_t bytes) {
    std::vector<std::byte> result(bytes);
    for (std::size_t i = 0; i < bytes; ++i) {
        const std::size_t place = std::endian::native == std::endian::little ? i : bytes - 1 - i;
        result[place] = static_cast<std::byte>(value >> (8 * i));
    }
    return result;
}

std::string text_of(std::span<const std::byte> bytes) {
    const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
    std::string text;
    std::transform(bytes.begin(), end, std::back_inserter(text),
                   [](std::byte b) { return static_cast<char>(b); });
    return text;
}

std::uint64_t most_of(const Cell& cell) {
    if (cell.kind == Kind::boolean) return 1;
    const auto bits = 8U * cell.bytes;
    return ~std::uint64_t{0} >> (64 - bits + (cell.kind == Kind::signed_number ? 1 : 0));
}

/// A whole number of that size in decimal or, after 0x or 0b, hexadecimal or binary.
std::optional<std::uint64_t> whole(const Cell& cell, std::string_view digits) {
    if (cell.kind == Kind::boolean) {
        if (digits == "true") return 1;
        if (digits == "false") return 0;
    }
    const bool is_negative = cell.kind == Kind::signed_number && digits.starts_with('-');
    if (is_negative) digits.remove_prefix(1);
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) base = 16;
    if (digits.starts_with("0b") || digits.starts_with("0B")) base = 2;
    if (base != 10) digits.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    const bool is_number = error == std::errc{} && rest == digits.data() + digits.size();
    if (!is_number || value > most_of(cell) + (is_negative ? 1 : 0)) return std::nullopt;
    return is_negative ? 0 - value : value;
}

template <class T>
std::optional<T> real(const std::string& text) {
    T value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || rest != text.data() + text.size()) return std::nullopt;
    return value;
}

}  // namespace

std::size_t Cell::alignment() const noexcept {
    return std::min<std::size_t>(bytes, rmem::kWordBytes);
}

std::optional<Cell> parse_cell(std::string_view name) {
    const bool is_big = name.ends_with("be"), is_little = name.ends_with("le");
    auto cell = plain_cell(name.substr(0, name.size() - (is_big || is_little ? 2 : 0)));
    if (!cell || ((is_big || is_little) && cell->is_text())) return std::nullopt;
    const bool is_host_big = std::endian::native == std::endian::big;
    cell->is_swapped = cell->bytes > 1 && ((is_big && !is_host_big) || (is_little && is_host_big));
    return cell;
}

std::string name_of(const Cell& cell) {
    if (cell.is_text()) return "text";
    const bool is_big = cell.is_swapped == (std::endian::native == std::endian::little);
    const char* order = cell.is_swapped ? (is_big ? "be" : "le") : "";
    if (cell.kind == Kind::boolean) return fmt::format("bool{}", order);
    const auto* const kind = std::find_if(kKinds.begin(), kKinds.end(),
                                          [&](const auto& one) { return one.second == cell.kind; });
    return fmt::format("{}{}{}", kind->first, 8U * cell.bytes, order);
}

std::string value_text(const Cell& cell, std::span<const std::byte> bytes) {
    if (cell.is_text()) return text_of(bytes);
    const auto value = in_host_order(cell, bytes);
    switch (cell.kind) {
        case Kind::unsigned_number: return fmt::format("{}", unsigned_of(value));
        case Kind::signed_number: return fmt::format("{}", signed_of(value));
        case Kind::hexadecimal: return fmt::format("0x{:0{}x}", unsigned_of(value), 2 * cell.bytes);
        case Kind::bits: return fmt::format("0b{:0{}b}", unsigned_of(value), 8 * cell.bytes);
        case Kind::boolean: return unsigned_of(value) == 0 ? "false" : "true";
        case Kind::real:
            return cell.bytes == 4 ? fmt::format("{}", as<float>(value))
                                   : fmt::format("{}", as<double>(value));
        case Kind::text: break;
    }
    return {};
}

double value_of(const Cell& cell, std::span<const std::byte> bytes) {
    if (cell.is_text()) return 0;
    const auto value = in_host_order(cell, bytes);
    if (cell.kind == Kind::signed_number) return static_cast<double>(signed_of(value));
    if (cell.kind != Kind::real) return static_cast<double>(unsigned_of(value));
    return cell.bytes == 4 ? static_cast<double>(as<float>(value)) : as<double>(value);
}

std::optional<std::vector<std::byte>> value_bytes(const Cell& cell, const std::string& text) {
    if (cell.is_text()) {
        std::vector<std::byte> bytes(text.size() + 1);  // with the zero that ends it
        std::memcpy(bytes.data(), text.data(), text.size());
        return bytes;
    }
    std::optional<std::uint64_t> bits;
    if (cell.kind != Kind::real) {
        bits = whole(cell, text);
    } else if (cell.bytes == 4) {
        if (const auto value = real<float>(text)) bits = std::bit_cast<std::uint32_t>(*value);
    } else {
        if (const auto value = real<double>(text)) bits = std::bit_cast<std::uint64_t>(*value);
    }
    if (!bits) return std::nullopt;
    return in_host_order(cell, bytes_of(*bits, cell.bytes));
}

std::string wanted_of(const Cell& cell) {
    if (cell.is_text()) return "a text";
    if (cell.kind == Kind::real) return "a number";
    if (cell.kind == Kind::boolean) return "true or false";
    const std::uint64_t most = most_of(cell);
    return cell.kind == Kind::signed_number
               ? fmt::format("a whole number from -{} to {}", most + 1, most)
               : fmt::format("a whole number from 0 to {}", most);
}

}  // namespace maps
