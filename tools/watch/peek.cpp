// SPDX-License-Identifier: Apache-2.0
// `rmem peek`: prints values from a bank.

#include "tools/commands.hpp"
#include "tools/json.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"
#include "tools/watch/bank_view.hpp"
#include "tools/watch/named.hpp"

#include <fmt/format.h>

#include <limits>
#include <memory>
#include <span>
#include <string>

namespace tools {

namespace {

constexpr const char* kPeekExamples = R"(
Examples:
  rmem peek my-ring 0x100               one word
  rmem peek my-ring 0x100 8 --as f32    eight numbers, one on each line
  rmem peek my-ring 0x200 2 --as u16be  two numbers as a big-endian program stores them
  rmem peek rig aircraft/altitude       a variable of the ring's map, in its unit
  rmem peek rig aircraft/state          a structure, each member
  rmem peek my-ring 4K 80 --as text     a text of at most 80 bytes
  rmem peek my-ring 0 16 --node 2       as node 2 sees it (links with a bank per node)
  rmem peek my-ring@2 0 16              the same, on link udp

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

struct PeekOptions {
    GivenPlace given;
    bool system = false, json = false;
};

void peek(const PeekOptions& options) {
    static_cast<void>(options.given.type());
    const BankView bank(options.given.ring, options.given.node);
    const Meant meant = meant_by(options.given, bank.ring());
    const std::uint64_t begin = meant.begin();
    bank.check(begin, meant.end() - begin, options.system);
    bank.warn_if_old();
    const auto bytes = bank.read(begin, meant.end() - begin);
    const auto bytes_of = [&](const maps::Leaf& leaf) {
        return std::span(bytes).subspan(leaf.offset - begin, leaf.bytes);
    };
    if (!options.json) {
        if (!meant.is_named() || meant.size() == 1) {
            std::string lines;
            for (std::uint64_t i = 0; i < meant.size(); ++i)
                lines += meant.text(meant.leaf(i), bytes_of(meant.leaf(i))) + "\n";
            return show(lines);
        }
        Table table({">offset", "name", "value"});
        for (const auto& leaf : meant.leaves)
            table.add(
                {offset_text(leaf.offset), meant.label(leaf), meant.text(leaf, bytes_of(leaf))});
        return show(table.text());
    }
    nlohmann::json values = nlohmann::json::array();
    nlohmann::json all = {{"ring", options.given.ring}, {"node", bank.node()}, {"offset", begin}};
    if (!meant.is_named()) {
        for (std::uint64_t i = 0; i < meant.size(); ++i)
            values.push_back(meant.json(meant.leaf(i), bytes_of(meant.leaf(i))));
        all["type"] = maps::name_of(options.given.type());
    } else {
        for (const auto& leaf : meant.leaves) {
            values.push_back({{"name", leaf.path},
                              {"offset", leaf.offset},
                              {"type", maps::name_of(leaf.cell)},
                              {"unit", leaf.unit()},
                              {"value", meant.json(leaf, bytes_of(leaf))}});
        }
        all["name"] = options.given.place;
    }
    all["values"] = values;
    show_json(all);
}

}  // namespace

void add_peek(cli::App& app) {
    auto options = std::make_shared<PeekOptions>();
    cli::App* command = app.add_subcommand("peek", "Print values from a bank");
    options->given.add_to(
        *command, "Node of the bank (default: the first; on link udp the one that is here)");
    options->given.add_count(*command, std::numeric_limits<std::uint64_t>::max());
    command->add_flag("--system", options->system, "The memory above the user's, too");
    command->add_flag("--json", options->json, "Print JSON");
    command->footer(kPeekExamples);
    command->callback([options] { peek(*options); });
}

}  // namespace tools
