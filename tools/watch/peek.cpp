// SPDX-License-Identifier: Apache-2.0
// `rmem peek`: prints values from a bank.

#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"
#include "tools/watch/bank_view.hpp"
#include "tools/watch/cells.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>

namespace tools {

namespace {

constexpr const char* kPeekExamples = R"(
Examples:
  rmem peek my-ring 0x100               one word
  rmem peek my-ring 0x100 8 --as f32    eight numbers, one on each line
  rmem peek my-ring 0x200 2 --as u16be  two numbers as a big-endian program stores them
  rmem peek my-ring 4K 80 --as text     a text of at most 80 bytes
  rmem peek my-ring 0 16 --node 2       as node 2 sees it (links with a bank per node)
  rmem peek my-ring@2 0 16              the same, on link udp

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

struct PeekOptions {
    std::string ring, offset, as = "u32";
    std::uint64_t count = 1;
    std::optional<unsigned> node;
    bool system = false, json = false;
};

void peek(const PeekOptions& options) {
    const CellType type = parse_cell_type(options.as);
    const std::uint64_t offset = size_option("OFFSET", options.offset);
    check_alignment(type, options.as, offset);
    const BankView bank(options.ring, options.node);
    const std::size_t size = type.bytes;
    bank.check(offset, options.count > bank.bank_bytes() ? options.count : options.count * size,
               options.system);
    bank.warn_if_old();
    const auto bytes = bank.read(offset, options.count * size);
    const std::span<const std::byte> all(bytes);

    std::string lines;
    nlohmann::json values = nlohmann::json::array();
    const std::size_t step = type.is_text() ? bytes.size() : size;
    for (std::size_t at = 0; at < bytes.size(); at += step) {
        const auto cell = all.subspan(at, step);
        values.push_back(cell_json(type, cell));
        lines += cell_text(type, cell) + "\n";
    }
    if (!options.json) return show(lines);
    show_json({{"ring", options.ring},
               {"node", bank.node()},
               {"offset", offset},
               {"type", options.as},
               {"values", values}});
}

}  // namespace

void add_peek(cli::App& app) {
    auto options = std::make_shared<PeekOptions>();
    cli::App* command = app.add_subcommand("peek", "Print values from a bank");
    add_ring(*command, options->ring)->required();
    command->add_option("OFFSET", options->offset, "Offset in bytes: 256, 0x100 or 4K")->required();
    command->add_option("COUNT", options->count, "Number of values (of text: bytes)")
        ->check(cli::at_least_one())
        ->capture_default_str();
    command->add_option("--as", options->as, fmt::format("Type: {}", kCellTypes))
        ->capture_default_str();
    command->add_option("--node", options->node,
                        "Node of the bank (default: the first; on link udp the one that is here)");
    command->add_flag("--system", options->system, "The memory above the user's, too");
    command->add_flag("--json", options->json, "Print JSON");
    command->footer(kPeekExamples);
    command->callback([options] { peek(*options); });
}

}  // namespace tools
