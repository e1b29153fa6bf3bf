// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Words and how to count them. A word is a run of bytes that are no ASCII white space, as for
/// `tr -s '[:space:]' '\n'`; upper and lower case differ.
/// Thread safety: none needed, no state is shared.

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>

namespace words {

/// Ordered by the words' bytes, as `sort` does in the C locale.
using Counts = std::map<std::string, std::uint64_t, std::less<>>;

/// Counts each word of the text.
void count(std::string_view text, Counts& counts);

/// The longest beginning of the text, at most `bytes` long, that cuts no word; one whole word (and
/// the white space before it) where that is longer.
std::string_view whole_words(std::string_view text, std::size_t bytes);

/// Part `index` of a text divided into `parts` of about equal length that cut no word. All parts,
/// one after the other, are the text.
std::string_view share(std::string_view text, std::size_t index, std::size_t parts);

/// "<count> <word>\n" for each word.
std::string to_text(const Counts& counts);
/// Adds such a text to the counts. Throws std::runtime_error on anything else.
void add_text(std::string_view text, Counts& counts);

std::uint64_t total(const Counts& counts);

}  // namespace words
