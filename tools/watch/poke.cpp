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
#include "tools/watch/named.hpp"
#include "tools/watch/outside_write.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <span>
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
  rmem poke rig aircraft/altitude 1000              a variable of the ring's map, in its unit
  rmem poke rig aircraft/status.ready true          bits of a number
  rmem poke my-ring 0x100 7 --node 3                raises interrupts as a write of node 3

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

struct PokeOptions {
    GivenPlace given;
    std::vector<std::string> values;
    bool json = false;
};

/// The values, from the first one's place on; what lies between them stays as it is.
std::vector<std::byte> bytes_of(const PokeOptions& options, const Meant& meant,
                                std::vector<std::byte> there) {
    if (options.values.size() > meant.leaves.size()) {
        throw UsageError(fmt::format("'{}' has {} value{}, and {} are given", options.given.place,
                                     meant.leaves.size(), meant.leaves.size() == 1 ? "" : "s",
                                     options.values.size()));
    }
    for (std::size_t i = 0; i < options.values.size(); ++i) {
        const maps::Leaf& leaf = meant.leaves[i];
        const auto place = std::span(there).subspan(leaf.offset - meant.begin(), leaf.bytes);
        const maps::Given value = maps::given_value(leaf, options.values[i], place);
        if (!value.refused.empty())
            throw UsageError(fmt::format("'{}': {}", leaf.path, value.refused));
        std::copy(value.bytes.begin(), value.bytes.end(), place.begin());
    }
    return there;
}

void poke(const PokeOptions& options) {
    const CellType type = options.given.type();
    std::vector<std::byte> bytes;
    for (const auto& value : options.values) {
        if (!options.given.is_of_type()) break;
        const auto cell = parse_cell(type, value);
        bytes.insert(bytes.end(), cell.begin(), cell.end());
    }
    // A member of no rank, so that the ring stays while we write.
    const auto ring = rmem::Ring::attach(named_segment(options.given.ring, options.given.node));
    const rmem::RingConfig& config = ring->config();
    Meant meant = meant_by(options.given, *ring);
    static_cast<void>(chosen_node(*ring, options.given.node));
    std::optional<unsigned> node = options.given.node;
    if (meant.is_named()) {
        // A number's fields are in the number; alone they are meant by their own name.
        if (meant.leaves.size() > 1)
            std::erase_if(meant.leaves, [](const auto& leaf) { return leaf.field != nullptr; });
        meant.leaves.resize(
            std::min(meant.leaves.size(), std::max<std::size_t>(options.values.size(), 1)));
        const maps::Owner& owner = meant.map->find(options.given.place)->variable->owner;
        const bool is_here = owner.kind == maps::Owner::Kind::node && owner.number < config.nodes;
        if (!node && is_here && !config.is_remote()) node = owner.number;
    }
    const std::uint64_t offset = meant.begin();
    const std::uint64_t size = meant.is_named() ? meant.end() - offset : bytes.size();
    check_user_range(config, offset, size, "; the memory above belongs to its protocols");
    if (meant.is_named())
        bytes = bytes_of(options, meant, BankView(ring->segment_name(), node).read(offset, size));
    const unsigned writer = write_from_outside(ring, node, offset, bytes);
    if (!options.json) return;
    show_json({{"ring", config.name},
               {"node", writer},
               {"offset", offset},
               {"bytes", bytes.size()},
               {"link", name_of(config.link)}});
}

}  // namespace

void add_poke(cli::App& app) {
    auto options = std::make_shared<PokeOptions>();
    cli::App* command = app.add_subcommand("poke", "Write values into a ring");
    options->given.add_to(*command,
                          "Which node writes (default: a name's owner, or the first live one; on "
                          "link udp the one here)");
    command->add_option("VALUE", options->values, "The values, one after the other")->required();
    command->add_flag("--json", options->json, "Print the result as JSON");
    command->footer(kPokeExamples);
    command->callback([options] { poke(*options); });
}

}  // namespace tools
