// SPDX-License-Identifier: Apache-2.0
#pragma once

/// How the commands show things: to people as text, to programs as JSON.
///
/// All text goes to stdout at once, so that a closed pipe is one failed write: `show` then ends the
/// command as SIGPIPE would have, without a word. Throws `rmem::Error` (no_space, system) when it
/// cannot be written for another reason.
/// Invariants, executed: a table's rows have no more cells than its heading, numbers that are put
/// together ascend, and fitted text is no wider than asked.

#include "rmem/base/quantity.hpp"

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace tools {

void show(std::string_view text);
void show_json(const nlohmann::json& value);
/// One line, for a stream of values.
void show_json_line(const nlohmann::json& value);

using rmem::size_text;
/// "247 ns", "6.50 µs", "30 s"; `ns` may come from shared memory, so any value is fine.
std::string duration_text(std::uint64_t ns);
/// "0-3, 5"
std::string numbers_text(const std::vector<unsigned>& ascending);
/// "0x00000100"
std::string offset_text(std::uint64_t offset);
/// The text without bytes that a terminal would obey.
std::string printable(std::string_view text);

/// Characters of UTF-8 text: its width on a terminal, for the little we print.
std::size_t text_width(std::string_view text);
/// As much of the text as fits into the width, with "…" at the end if that is not all.
std::string fitted(std::string_view text, std::size_t width);

/// Whether people look at the descriptor in colour (a terminal, and NO_COLOR is not set).
[[nodiscard]] bool is_colourful(int fd);

/// Rows in aligned columns; a column of which the first row's cell starts with '>' is
/// right-aligned.
class Table {
public:
    explicit Table(std::vector<std::string> heading);
    void add(std::vector<std::string> row);
    bool empty() const { return rows_.empty(); }
    std::string text(std::size_t indent = 0) const;
    std::string markdown() const;

private:
    std::vector<std::string> heading_;
    std::vector<bool> right_;
    std::vector<std::vector<std::string>> rows_;
};

}  // namespace tools
