// SPDX-License-Identifier: Apache-2.0
#include "tools/output.hpp"

#include "rmem/base/check.hpp"
#include "rmem/error.hpp"
#include "tools/commands.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <functional>
#include <system_error>

namespace tools {

namespace {

/// Whether a character of UTF-8 text begins here.
bool begins_character(char c) {
    return (c & 0xc0) != 0x80;
}

rmem::Error unwritten(int error) {
    const auto code = error == ENOSPC || error == EDQUOT || error == EFBIG ? rmem::Errc::no_space
                                                                           : rmem::Errc::system;
    return {code,
            fmt::format("the output could not be written, so what is there of it is not all: {}",
                        std::generic_category().message(error))};
}

std::string padded(const std::string& cell, std::size_t to, bool right) {
    const std::string space(to - std::min(to, text_width(cell)), ' ');
    return right ? space + cell : cell + space;
}

}  // namespace

void show(std::string_view text) {
    while (!text.empty()) {
        const ssize_t written = ::write(STDOUT_FILENO, text.data(), text.size());
        if (written < 0 && errno == EINTR) continue;
        if (written < 0 && errno == EPIPE) end_with(128 + SIGPIPE);
        if (written < 0) throw unwritten(errno);
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

std::string duration_text(std::uint64_t ns) {
    const auto value = static_cast<double>(ns);
    if (ns < 1'000) return fmt::format("{} ns", ns);
    if (ns < 1'000'000) return fmt::format("{:.3g} µs", value / 1e3);
    if (ns < 1'000'000'000) return fmt::format("{:.3g} ms", value / 1e6);
    return fmt::format("{:.4g} s", value / 1e9);
}

std::string numbers_text(const std::vector<unsigned>& ascending) {
    RMEM_CHECK(std::is_sorted(ascending.begin(), ascending.end(), std::less_equal<>()));
    std::string text;
    for (std::size_t i = 0; i < ascending.size();) {
        std::size_t last = i;
        while (last + 1 < ascending.size() && ascending[last + 1] == ascending[last] + 1) ++last;
        text += text.empty() ? "" : ", ";
        text += last == i ? fmt::format("{}", ascending[i])
                          : fmt::format("{}-{}", ascending[i], ascending[last]);
        i = last + 1;
    }
    return text;
}

std::string offset_text(std::uint64_t offset) {
    return fmt::format("0x{:08x}", offset);
}

std::string printable(std::string_view text) {
    std::string result;
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        if (byte < 0x20 || byte == 0x7f) {
            result += fmt::format("\\x{:02x}", byte);
        } else {
            result += c;
        }
    }
    return result;
}

std::size_t text_width(std::string_view text) {
    return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), begins_character));
}

std::string fitted(std::string_view text, std::size_t width) {
    if (text_width(text) <= width) return std::string(text);
    std::size_t characters = 0, end = 0;
    for (; end < text.size(); ++end) {
        if (begins_character(text[end]) && ++characters >= width) break;
    }
    std::string result = width == 0 ? "" : std::string(text.substr(0, end)) + "…";
    RMEM_CHECK(text_width(result) <= width);
    return result;
}

bool is_colourful(int fd) {
    return ::isatty(fd) == 1 && std::getenv("NO_COLOR") == nullptr;  // NOLINT: one thread
}

Table::Table(std::vector<std::string> heading) : heading_(std::move(heading)) {
    for (auto& cell : heading_) {
        right_.push_back(cell.starts_with('>'));
        if (right_.back()) cell.erase(0, 1);
    }
}

void Table::add(std::vector<std::string> row) {
    RMEM_CHECK(row.size() <= heading_.size());
    rows_.push_back(std::move(row));
}

std::string Table::text(std::size_t indent) const {
    std::vector<std::size_t> widths;
    for (const auto& cell : heading_) widths.push_back(text_width(cell));
    for (const auto& row : rows_) {
        for (std::size_t i = 0; i < row.size(); ++i)
            widths[i] = std::max(widths[i], text_width(row[i]));
    }
    std::string result;
    const auto add_row = [&](const std::vector<std::string>& row) {
        std::string line(indent, ' ');
        for (std::size_t i = 0; i < row.size(); ++i) {
            line += (i == 0 ? "" : "  ") + padded(row[i], widths[i], right_[i]);
        }
        line.erase(line.find_last_not_of(' ') + 1);
        result += line + "\n";
    };
    add_row(heading_);
    for (const auto& row : rows_) add_row(row);
    return result;
}

std::string Table::markdown() const {
    std::string result;
    const auto add_row = [&](const std::vector<std::string>& row) {
        for (const auto& cell : row) result += "| " + cell + " ";
        result += "|\n";
    };
    add_row(heading_);
    add_row(std::vector<std::string>(heading_.size(), "---"));
    for (const auto& row : rows_) add_row(row);
    return result;
}

}  // namespace tools
