// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace bench {

namespace {

std::string number(double value) {
    const double size = std::fabs(value);
    return fmt::format("{:.{}f}", value, size < 10 ? 2 : size < 100 ? 1 : 0);
}

std::string text_of(const Row& value) {
    if (value.is_null()) return "-";
    if (value.is_string()) return value.get<std::string>();
    if (value.is_boolean()) return value.get<bool>() ? "yes" : "no";
    if (value.is_number_float()) return number(value.get<double>());
    return value.dump();
}

/// Columns in the order in which rows first have them.
std::vector<std::string> columns_of(const std::vector<Row>& rows) {
    std::vector<std::string> names;
    for (const Row& row : rows) {
        for (const auto& [name, value] : row.items()) {
            if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
        }
    }
    return names;
}

}  // namespace

void Table::print(bool json) const {
    if (json) {
        fmt::print("{}\n", Row({{"figure", title_}, {"notes", notes_}}).dump());
        for (const Row& row : rows_) {
            Row line = {{"figure", title_}};
            line.update(row);
            fmt::print("{}\n", line.dump());
        }
        return;
    }
    const auto names = columns_of(rows_);
    std::vector<std::vector<std::string>> lines = {names};
    for (const Row& row : rows_) {
        auto& line = lines.emplace_back();
        for (const auto& name : names) line.push_back(row.contains(name) ? text_of(row[name]) : "");
    }
    std::vector<std::size_t> widths(names.size());
    for (const auto& line : lines) {
        for (std::size_t i = 0; i < line.size(); ++i)
            widths[i] = std::max(widths[i], line[i].size());
    }
    fmt::print("{}\n", title_);
    for (const auto& line : lines) {
        std::string all;
        for (std::size_t i = 0; i < line.size(); ++i)
            all += i == 0 ? fmt::format("{:<{}}", line[i], widths[i])
                          : fmt::format("  {:>{}}", line[i], widths[i]);
        fmt::print("{}\n", all);
    }
    fmt::print("{}\n", notes_);
}

}  // namespace bench
