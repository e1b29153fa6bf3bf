// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/cells.hpp"

#include "rmem/base/check.hpp"
#include "rmem/ring/config.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <iterator>
#include <optional>

namespace tools {

namespace {

using CellKind = CellType::Kind;

UsageError malformed(const std::string& text, const std::string& wanted) {
    return UsageError(
        fmt::format("the value '{}' is not {}; correct it, or choose another type: {}", text,
                    wanted, kCellTypes));
}

/// "u32" without its byte order.
std::optional<CellType> plain_type(std::string_view name) {
    if (name == "text") return CellType{CellKind::text, 1};
    if (name == "bits") name = "bits32";
    constexpr std::array<std::pair<std::string_view, CellKind>, 5> kKinds = {{
        {"bits", CellKind::bits},
        {"u", CellKind::unsigned_number},
        {"i", CellKind::signed_number},
        {"x", CellKind::hexadecimal},
        {"f", CellKind::real},
    }};
    for (const auto& [prefix, kind] : kKinds) {
        if (!name.starts_with(prefix)) continue;
        const std::string_view width = name.substr(prefix.size());
        const bool is_narrow = width == "8" || width == "16";
        if (!is_narrow && width != "32" && width != "64") return std::nullopt;
        if (is_narrow && kind == CellKind::real) return std::nullopt;
        const std::size_t bytes = width == "8" ? 1 : width == "16" ? 2 : width == "32" ? 4 : 8;
        return CellType{kind, bytes};
    }
    return std::nullopt;
}

/// In the order in which the host has them.
std::vector<std::byte> in_host_order(const CellType& type, std::span<const std::byte> bytes) {
    RMEM_CHECK(bytes.size() == type.bytes);
    std::vector<std::byte> result(bytes.begin(), bytes.end());
    if (type.is_swapped) std::reverse(result.begin(), result.end());
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

/// A whole number of that size in decimal or, after 0x or 0b, hexadecimal or binary.
std::uint64_t parse_whole(const std::string& text, std::size_t bytes, bool is_signed) {
    const auto bits = 8 * static_cast<unsigned>(bytes);
    const std::uint64_t most = ~std::uint64_t{0} >> (64 - bits + (is_signed ? 1 : 0));
    std::string_view digits = text;
    const bool is_negative = is_signed && digits.starts_with('-');
    if (is_negative) digits.remove_prefix(1);
    int base = 10;
    if (digits.starts_with("0x") || digits.starts_with("0X")) base = 16;
    if (digits.starts_with("0b") || digits.starts_with("0B")) base = 2;
    if (base != 10) digits.remove_prefix(2);
    std::uint64_t value = 0;
    const auto [rest, error] =
        std::from_chars(digits.data(), digits.data() + digits.size(), value, base);
    const bool is_whole = error == std::errc{} && rest == digits.data() + digits.size();
    if (!is_whole || value > most + (is_negative ? 1 : 0)) {
        throw malformed(text, is_signed
                                  ? fmt::format("a whole number from -{} to {}", most + 1, most)
                                  : fmt::format("a whole number from 0 to {}", most));
    }
    return is_negative ? 0 - value : value;
}

template <class T>
T parse_real(const std::string& text) {
    T value = 0;
    const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc{} || rest != text.data() + text.size())
        throw malformed(text, "a number");
    return value;
}

/// JSON has no word for infinities and NaN.
template <class T>
nlohmann::json real_json(T value) {
    if (std::isfinite(value)) return value;
    return fmt::format("{}", value);
}

}  // namespace

std::size_t CellType::alignment() const {
    return std::min(bytes, rmem::kWordBytes);
}

CellType parse_cell_type(const std::string& name) {
    const bool is_big = name.ends_with("be"), is_little = name.ends_with("le");
    const auto plain =
        plain_type(std::string_view(name).substr(0, name.size() - (is_big || is_little ? 2 : 0)));
    if (plain && !((is_big || is_little) && plain->is_text())) {
        CellType type = *plain;
        type.is_swapped = is_big      ? std::endian::native == std::endian::little
                          : is_little ? std::endian::native == std::endian::big
                                      : false;
        return type;
    }
    throw UsageError(fmt::format("there is no type '{}'; give {}", name, kCellTypes));
}

void check_alignment(const CellType& type, const std::string& name, std::uint64_t offset) {
    if (offset % type.alignment() == 0) return;
    throw UsageError(
        fmt::format("{} is not a multiple of {} bytes, as a value of type {} needs; "
                    "types u8, x8 and text may be anywhere",
                    offset_text(offset), type.alignment(), name));
}

std::string cell_text(const CellType& type, std::span<const std::byte> bytes) {
    if (type.is_text()) return printable(text_of(bytes));
    const auto value = in_host_order(type, bytes);
    switch (type.kind) {
        case CellKind::unsigned_number: return fmt::format("{}", unsigned_of(value));
        case CellKind::signed_number: return fmt::format("{}", signed_of(value));
        case CellKind::hexadecimal:
            return fmt::format("0x{:0{}x}", unsigned_of(value), 2 * type.bytes);
        case CellKind::bits: return fmt::format("0b{:0{}b}", unsigned_of(value), 8 * type.bytes);
        case CellKind::real:
            return type.bytes == 4 ? fmt::format("{}", as<float>(value))
                                   : fmt::format("{}", as<double>(value));
        case CellKind::text: break;
    }
    return {};
}

nlohmann::json cell_json(const CellType& type, std::span<const std::byte> bytes) {
    if (type.is_text()) return text_of(bytes);
    const auto value = in_host_order(type, bytes);
    switch (type.kind) {
        case CellKind::unsigned_number: return unsigned_of(value);
        case CellKind::signed_number: return signed_of(value);
        case CellKind::real:
            return type.bytes == 4 ? real_json(as<float>(value)) : real_json(as<double>(value));
        default: return cell_text(type, bytes);
    }
}

std::vector<std::byte> parse_cell(const CellType& type, const std::string& text) {
    std::vector<std::byte> bytes;
    switch (type.kind) {
        case CellKind::text:
            bytes.resize(text.size() + 1);  // with the zero that ends it
            std::memcpy(bytes.data(), text.data(), text.size());
            return bytes;
        case CellKind::real:
            bytes = type.bytes == 4
                        ? bytes_of(std::bit_cast<std::uint32_t>(parse_real<float>(text)), 4)
                        : bytes_of(std::bit_cast<std::uint64_t>(parse_real<double>(text)), 8);
            break;
        default:
            bytes = bytes_of(parse_whole(text, type.bytes, type.kind == CellKind::signed_number),
                             type.bytes);
    }
    return in_host_order(type, bytes);
}

}  // namespace tools
