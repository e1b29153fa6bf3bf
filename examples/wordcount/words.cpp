// SPDX-License-Identifier: Apache-2.0
#include "words.hpp"

#include <fmt/format.h>

#include <charconv>
#include <iterator>
#include <stdexcept>

namespace words {
namespace {

constexpr std::string_view kSpace = " \t\n\v\f\r";

/// Where the word that `at` is in, or at the end of, ends.
std::size_t end_of_word(std::string_view text, std::size_t at) {
    const std::size_t end = text.find_first_of(kSpace, at);
    return end == std::string_view::npos ? text.size() : end;
}

}  // namespace

void count(std::string_view text, Counts& counts) {
    std::size_t at = text.find_first_not_of(kSpace);
    while (at != std::string_view::npos) {
        const std::size_t end = end_of_word(text, at);
        const std::string_view word = text.substr(at, end - at);
        if (const auto known = counts.find(word); known != counts.end()) {
            ++known->second;
        } else {
            counts.emplace(word, 1);
        }
        at = text.find_first_not_of(kSpace, end);
    }
}

std::string_view whole_words(std::string_view text, std::size_t bytes) {
    const std::size_t first_word = text.find_first_not_of(kSpace);
    if (text.size() <= bytes || first_word == std::string_view::npos) return text;
    const std::size_t last_space = text.find_last_of(kSpace, bytes);
    if (last_space != std::string_view::npos && last_space > first_word) {
        return text.substr(0, last_space);
    }
    return text.substr(0, end_of_word(text, first_word));
}

std::string_view share(std::string_view text, std::size_t index, std::size_t parts) {
    const auto cut = [&](std::size_t i) {
        return i == parts ? text.size() : end_of_word(text, text.size() / parts * i);
    };
    const std::size_t from = index == 0 ? 0 : cut(index);
    return text.substr(from, cut(index + 1) - from);
}

std::string to_text(const Counts& counts) {
    std::string text;
    for (const auto& [word, times] : counts) {
        fmt::format_to(std::back_inserter(text), "{} {}\n", times, word);
    }
    return text;
}

void add_text(std::string_view text, Counts& counts) {
    while (!text.empty()) {
        std::uint64_t times = 0;
        const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), times);
        const std::size_t space = static_cast<std::size_t>(after - text.data());
        const std::size_t end = text.find('\n');
        if (error != std::errc() || end == std::string_view::npos || space + 1 >= end ||
            text[space] != ' ') {
            throw std::runtime_error(
                fmt::format("'{}' is not a line of counts", text.substr(0, end_of_word(text, 0))));
        }
        counts[std::string(text.substr(space + 1, end - space - 1))] += times;
        text.remove_prefix(end + 1);
    }
}

std::uint64_t total(const Counts& counts) {
    std::uint64_t sum = 0;
    for (const auto& [word, times] : counts) sum += times;
    return sum;
}

}  // namespace words
