// SPDX-License-Identifier: Apache-2.0
// `rmem poke`: writes values into a ring.
//
// From outside (tools/watch/outside_write.hpp), or as a rank that is not running.

#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"
#include "tools/watch/bank_view.hpp"
#include "tools/watch/cells.hpp"
#include "tools/watch/outside_write.hpp"

#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace tools {

namespace {

constexpr const char* kPokeExamples = R"(
Examples:
  rmem poke my-ring 0x100 42                        one word
  rmem poke my-ring 0x100 1.5 -2 --as f32           two numbers, one after the other
  rmem poke my-ring 0x180 0b1010 --as bits16be      bits, as a big-endian program reads them
  rmem poke my-ring 4K "hello" --as text            a text and the zero that ends it
  rmem poke my-ring 0x100 7 --node 3                raises interrupts as a write of node 3

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

struct PokeOptions {
    std::string ring, offset, as = "u32";
    std::vector<std::string> values;
    std::optional<unsigned> node;
    bool json = false;
};

using Bytes = std::vector<std::byte>;

void poke(const PokeOptions& options) {
    const CellType type = parse_cell_type(options.as);
    const std::uint64_t offset = size_option("OFFSET", options.offset);
    check_alignment(type, options.as, offset);
    Bytes bytes;
    for (const auto& value : options.values) {
        const Bytes cell = parse_cell(type, value);
        bytes.insert(bytes.end(), cell.begin(), cell.end());
    }
    // A member of no rank, so that the ring stays while we write.
    const auto ring = rmem::Ring::attach(named_segment(options.ring, options.node));
    const rmem::RingConfig& config = ring->config();
    static_cast<void>(chosen_node(*ring, options.node));
    check_user_range(config, offset, bytes.size(), "; the memory above belongs to its protocols");
    const unsigned node = write_from_outside(ring, options.node, offset, bytes);
    if (!options.json) return;
    show_json({{"ring", config.name},
               {"node", node},
               {"offset", offset},
               {"bytes", bytes.size()},
               {"link", name_of(config.link)}});
}

}  // namespace

void add_poke(cli::App& app) {
    auto options = std::make_shared<PokeOptions>();
    cli::App* command = app.add_subcommand("poke", "Write values into a ring");
    add_ring(*command, options->ring)->required();
    command->add_option("OFFSET", options->offset, "Offset in bytes: 256, 0x100 or 4K")->required();
    command->add_option("VALUE", options->values, "The values, one after the other")->required();
    command->add_option("--as", options->as, fmt::format("Type: {}", kCellTypes))
        ->capture_default_str();
    command->add_option(
        "--node", options->node,
        "Which node writes (default: the first live one; on link udp the one here)");
    command->add_flag("--json", options->json, "Print the result as JSON");
    command->footer(kPokeExamples);
    command->callback([options] { poke(*options); });
}

}  // namespace tools
