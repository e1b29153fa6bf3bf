// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The formats, each with the file of its name, and what they share.
/// Thread safety and errors: maps/formats/format.hpp.

#include "maps/formats/format.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace maps::formats {

/// What is being read.
struct Source {
    std::string_view text;
    const std::string& path;
    unsigned node;

    [[noreturn]] void refuse(unsigned line, const std::string& sentence) const;
};

/// The next line, without its end; false: there is none.
bool take_line(std::string_view& text, std::string_view& line) noexcept;
std::string_view trimmed(std::string_view text) noexcept;
/// The cells of a line; in quotation marks one may have the separator, and two marks for one.
std::vector<std::string> cells_of(std::string_view line, char separator);
std::string cell_text(const std::string& cell, char separator);
std::optional<std::uint64_t> number(std::string_view text, int base = 10) noexcept;

/// Says what no cell of a table has room for.
class Losses {
public:
    explicit Losses(Exported& exported) : exported_(exported) {}

    void lose(const Variable& one, const std::string& what);
    /// The table has this alone: a value of that type, its unit, place, first value, direction.
    void look_at(const Variable& one, unsigned node, bool has_description, bool has_unit = true);

private:
    Exported& exported_;
};

/// With those keys that are not empty, in order.
Other other_with(std::initializer_list<std::pair<const char*, std::string>> entries);

Map read_veristand_blocks(const Source& source);
Map read_veristand_points(const Source& source);
Map read_partitions(const Source& source);
Map read_ddf(const Source& source);
Map read_ipc(const Source& source);
Exported write_veristand_blocks(const Map& map, unsigned node);
Exported write_veristand_points(const Map& map, unsigned node);
Exported write_partitions(const Map& map, unsigned node);
Exported write_ddf(const Map& map, unsigned node);
Exported write_ipc(const Map& map, unsigned node);

}  // namespace maps::formats
