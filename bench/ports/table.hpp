// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Rows for readers, or for programs: the same fields, as a table or as a line of JSON for each,
/// after a line with the notes.

#include <nlohmann/json.hpp>

#include <string>
#include <utility>
#include <vector>

namespace bench {

using Row = nlohmann::ordered_json;

class Table {
public:
    /// `title` is the figure's name in JSON; `notes` are printed below the table.
    Table(std::string title, std::string notes)
        : title_(std::move(title)), notes_(std::move(notes)) {}
    void add(Row row) { rows_.push_back(std::move(row)); }
    void print(bool json) const;

private:
    std::string title_, notes_;
    std::vector<Row> rows_;
};

}  // namespace bench
