// SPDX-License-Identifier: Apache-2.0
#include "maps/plain_line.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <system_error>

namespace maps {

namespace {

constexpr bool is_digit(char c) {
    return c >= '0' && c <= '9';
}
constexpr bool is_of_a_key(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-';
}

/// A number as TOML and from_chars both have it; what only one of them has is not plain.
std::optional<Value> plain_number(std::string_view word) {
    Value value;
    const bool is_signed = word[0] == '-';
    const std::string_view digits = word.substr(is_signed ? 1 : 0);
    if (digits.empty() || !is_digit(digits[0])) return std::nullopt;
    const char* const end = word.data() + word.size();
    if (digits.starts_with("0x")) {
        if (is_signed || digits.size() == 2) return std::nullopt;
        const auto [rest, error] = std::from_chars(word.data() + 2, end, value.integer, 16);
        if (error != std::errc{} || rest != end || value.integer < 0) return std::nullopt;
    } else {
        if (digits.size() > 1 && digits[0] == '0' && is_digit(digits[1])) return std::nullopt;
        const std::size_t point = word.find('.');
        const bool is_real = word.find_first_of(".eE") != std::string_view::npos;
        if (point != std::string_view::npos &&
            (point + 1 == word.size() || !is_digit(word[point + 1]) || !is_digit(word[point - 1])))
            return std::nullopt;
        if (is_real) {
            const auto [rest, error] = std::from_chars(word.data(), end, value.real);
            if (error != std::errc{} || rest != end) return std::nullopt;
            value.kind = Value::Kind::real;
            return value;
        }
        const auto [rest, error] = std::from_chars(word.data(), end, value.integer);
        if (error != std::errc{} || rest != end) return std::nullopt;
    }
    value.kind = Value::Kind::integer;
    value.real = static_cast<double>(value.integer);
    return value;
}

}  // namespace

void skip_blank(std::string_view& line) {
    line.remove_prefix(std::min(line.find_first_not_of(kBlank), line.size()));
}

std::optional<Entry> plain_entry(std::string_view line) {
    Entry entry;
    const auto is_beyond_ascii = [](char c) {
        return (static_cast<unsigned char>(c) & 0x80U) != 0;
    };
    if (std::any_of(line.begin(), line.end(), is_beyond_ascii)) return std::nullopt;
    skip_blank(line);
    if (line.empty()) return entry;
    if (line[0] != '#') {
        std::size_t key = 0;
        while (key < line.size() && is_of_a_key(line[key])) ++key;
        entry.key = line.substr(0, key);
        line.remove_prefix(key);
        skip_blank(line);
        if (key == 0 || !line.starts_with('=')) return std::nullopt;
        line.remove_prefix(1);
        skip_blank(line);
        if (line.empty()) return std::nullopt;
        if (line[0] == '"' || line[0] == '\'') {
            const std::size_t close = line.find(line[0], 1);
            if (close == std::string_view::npos) return std::nullopt;
            entry.value.kind = Value::Kind::text;
            entry.value.text = line.substr(1, close - 1);
            if (line[0] == '"' && entry.value.text.find('\\') != std::string_view::npos)
                return std::nullopt;
            line.remove_prefix(close + 1);
        } else {
            const std::string_view word =
                line.substr(0, std::min(line.find_first_of(" \t\r#"), line.size()));
            if (word == "true" || word == "false") {
                entry.value.kind = Value::Kind::boolean;
                entry.value.integer = word == "true" ? 1 : 0;
            } else if (const auto number = plain_number(word)) {
                entry.value = *number;
            } else {
                return std::nullopt;
            }
            line.remove_prefix(word.size());
        }
        skip_blank(line);
    }
    if (!line.empty() && line[0] != '#') return std::nullopt;
    return entry;
}

bool has_control(std::string_view text) {
    for (std::size_t i = 0; i < text.size(); ++i) {
        const char c = text[i];
        if (c == '\r' && i + 1 < text.size() && text[i + 1] == '\n') continue;
        if ((static_cast<unsigned char>(c) < ' ' && c != '\t' && c != '\n') || c == 0x7f)
            return true;
    }
    return false;
}

}  // namespace maps
