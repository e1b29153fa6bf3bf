// SPDX-License-Identifier: Apache-2.0
// `rmem dump`: a bank's bytes, for people, for files and for programs.

#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"
#include "tools/watch/bank_view.hpp"
#include "tools/watch/named.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

namespace tools {

namespace {

constexpr const char* kDumpExamples = R"(
Examples:
  rmem dump my-ring                              the user's memory; repeated lines shown as *
  rmem dump my-ring --from 0x100 --to 0x200
  rmem dump my-ring --format raw > bank.bin      bytes as they are
  rmem dump my-ring --node 1 --format json       lines as JSON
  rmem dump my-ring --system                     with the system's regions above the user's memory

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

constexpr std::uint64_t kLineBytes = 16;
constexpr std::uint64_t kChunkBytes = std::uint64_t{1} << 20;  // read and printed at once

struct DumpOptions {
    std::string ring, from = "0", to, format = "hex";
    std::optional<unsigned> node;
    bool system = false, json = false;
};

using Line = std::span<const std::byte>;

std::string hex_of(Line line) {
    std::string hex;
    for (const auto byte : line) hex += fmt::format("{:02x}", static_cast<unsigned>(byte));
    return hex;
}

/// "00000100  01 00 00 00 …  |....|", words apart.
std::string hex_line(std::uint64_t offset, Line line) {
    std::string bytes, text;
    for (std::size_t i = 0; i < line.size(); ++i) {
        const auto value = static_cast<unsigned>(line[i]);
        bytes += fmt::format("{}{:02x}", i % rmem::kWordBytes == 0 ? "  " : " ", value);
        text += value >= 0x20 && value < 0x7f ? static_cast<char>(value) : '.';
    }
    return fmt::format("{:08x}{:<52}  |{}|\n", offset, bytes, text);
}

/// Lines that are as the one before, counted instead of printed.
class Folder {
public:
    explicit Folder(bool json) : json_(json) {}

    void add(std::uint64_t offset, Line line) {
        if (Line(last_).size() == line.size() &&
            std::equal(line.begin(), line.end(), last_.begin())) {
            ++repeats_;
            return;
        }
        end_repeats();
        last_.assign(line.begin(), line.end());
        if (json_) {
            lines_.push_back({{"offset", offset}, {"hex", hex_of(line)}});
        } else {
            text_ += hex_line(offset, line);
        }
    }
    void end_repeats() {
        if (repeats_ != 0 && json_) lines_.back()["repeats"] = repeats_;
        if (repeats_ != 0 && !json_) text_ += "*\n";
        repeats_ = 0;
    }
    std::string take_text() { return std::exchange(text_, {}); }
    nlohmann::json take_lines() { return std::move(lines_); }

private:
    bool json_;
    std::vector<std::byte> last_;
    std::uint64_t repeats_ = 0;
    std::string text_;
    nlohmann::json lines_ = nlohmann::json::array();
};

void dump_raw(const BankView& bank, std::uint64_t from, std::uint64_t to) {
    if (::isatty(STDOUT_FILENO) == 1) {
        throw rmem::Error(rmem::Errc::invalid_argument,
                          "raw bytes would garble the terminal; send them to a file or a pipe");
    }
    for (; from < to; from += std::min(kChunkBytes, to - from)) {
        const auto bytes = bank.read(from, std::min(kChunkBytes, to - from));
        show({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
    }
}

void dump_lines(const BankView& bank, std::uint64_t from, std::uint64_t to, bool json) {
    Folder folder(json);
    for (std::uint64_t at = from; at < to; at += std::min(kChunkBytes, to - at)) {
        const auto bytes = bank.read(at, std::min(kChunkBytes, to - at));
        for (std::uint64_t i = 0; i < bytes.size(); i += kLineBytes) {
            folder.add(at + i, Line(bytes).subspan(i, std::min(kLineBytes, bytes.size() - i)));
        }
        if (!json) show(folder.take_text());
    }
    folder.end_repeats();
    if (!json) return show(folder.take_text() + fmt::format("{:08x}\n", to));
    show_json({{"ring", bank.ring().config().name},
               {"node", bank.node()},
               {"from", from},
               {"to", to},
               {"line_bytes", kLineBytes},
               {"lines", folder.take_lines()}});
}

void check_order(std::uint64_t from, std::uint64_t to) {
    if (from <= to) return;
    throw UsageError(
        fmt::format("--from {} is after --to {}; swap them", offset_text(from), offset_text(to)));
}

void dump(const DumpOptions& options) {
    if (!maps::is_path(options.from) && !options.to.empty() && !maps::is_path(options.to))
        check_order(size_option("--from", options.from), size_option("--to", options.to));
    const BankView bank(options.ring, options.node);
    const std::uint64_t from = offset_option("--from", options.from, bank.ring());
    std::optional<std::uint64_t> given;
    if (!options.to.empty()) given = offset_option("--to", options.to, bank.ring());
    if (given) check_order(from, *given);
    const std::uint64_t end = options.system ? bank.bank_bytes() : bank.user_bytes();
    const std::uint64_t to = given.value_or(std::max(from, end));
    bank.check(from, to - from, options.system);
    bank.warn_if_old();
    if (options.format == "raw") return dump_raw(bank, from, to);
    dump_lines(bank, from, to, options.json || options.format == "json");
}

}  // namespace

void add_dump(cli::App& app) {
    auto options = std::make_shared<DumpOptions>();
    cli::App* command = app.add_subcommand("dump", "Print a bank's bytes");
    add_ring(*command, options->ring)->required();
    command->add_option("--from", options->from, "First byte, or a name of its map")
        ->capture_default_str();
    command->add_option("--to", options->to, "End (default: of the user's memory)");
    command->add_option("--node", options->node,
                        "Node of the bank (default: the first; on link udp the one that is here)");
    command->add_option("--format", options->format, "hex, raw or json")
        ->check(cli::is_member({"hex", "raw", "json"}))
        ->capture_default_str();
    command->add_flag("--system", options->system, "Up to the end of the system's regions");
    command->add_flag("--json", options->json, "As --format json");
    command->footer(kDumpExamples);
    command->callback([options] { dump(*options); });
}

}  // namespace tools
