// SPDX-License-Identifier: Apache-2.0
// `rmem poke`: writes values into a ring.
//
// On `direct` all nodes share one bank, so a store is the write of whichever node one likes. On links
// with a bank per node only a member's writes travel, so poking needs a rank that nobody holds.

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "rmem/interrupts.hpp"
#include "rmem/node.hpp"
#include "rmem/waiting.hpp"
#include "tools/bank_view.hpp"
#include "tools/cells.hpp"
#include "tools/commands.hpp"
#include "tools/output.hpp"

namespace tools {

namespace {

constexpr const char* kExamples = R"(
Examples:
  rmem poke my-ring 0x100 42                        one word
  rmem poke my-ring 0x100 1.5 -2 --as f32           two numbers, one after the other
  rmem poke my-ring 0x180 0b1010 --as bits16be      bits, as a big-endian program reads them
  rmem poke my-ring 4K "hello" --as text            a text and the zero that ends it
  rmem poke my-ring 0x100 7 --node 3                raises interrupts as a write of node 3
  rmem poke my-ring 0x100 7 --node 3 --as-rank 3    on link `ring`: as rank 3, which is not running
  rmem poke my-ring@3 0x100 7 --as-rank 3           the same on link `udp`, on node 3's host

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

constexpr std::int64_t kTravelNs = 10'000'000'000;  // the slowest profile needs microseconds

struct PokeOptions {
    std::string ring, offset, as = "u32";
    std::vector<std::string> values;
    std::optional<unsigned> node, as_rank;
    bool json = false;
};

using Bytes = std::vector<std::byte>;

/// Stores as the card would: words, each whole.
void store(std::byte* bank, std::uint64_t offset, const Bytes& bytes) {
    std::uint64_t done = 0;
    for (; bytes.size() - done >= rmem::kWordBytes && (offset + done) % rmem::kWordBytes == 0;
         done += rmem::kWordBytes) {
        std::uint32_t value;
        std::memcpy(&value, bytes.data() + done, sizeof value);
        auto& word = *reinterpret_cast<std::uint32_t*>(bank + offset + done);
        std::atomic_ref(word).store(value, std::memory_order_release);
    }
    // What is smaller than a word is whole, too, where it lies in one.
    if (bytes.size() - done >= 2 && (offset + done) % 2 == 0 && bytes.size() - done < 4) {
        std::uint16_t value;
        std::memcpy(&value, bytes.data() + done, sizeof value);
        auto& half = *reinterpret_cast<std::uint16_t*>(bank + offset + done);
        std::atomic_ref(half).store(value, std::memory_order_release);
        done += sizeof value;
    }
    for (; done < bytes.size(); ++done) {
        auto& byte = *reinterpret_cast<unsigned char*>(bank + offset + done);
        std::atomic_ref(byte).store(std::to_integer<unsigned char>(bytes[done]),
                                    std::memory_order_release);
    }
}

void poke_direct(const std::shared_ptr<rmem::Ring>& ring, unsigned node, std::uint64_t offset,
                 const Bytes& bytes) {
    // Makes this process one that sleepers' membarriers reach (rmem/waiting.hpp).
    const rmem::Waiter waiter(*ring, 0);
    store(ring->bank(node), offset, bytes);
    const unsigned ranks = ring->config().ranks;
    unsigned alive = 0;
    while (alive < ranks && !ring->is_alive(alive)) ++alive;
    if (alive == ranks) return;  // nobody is there to be told
    rmem::InterruptBoard::in_the_name_of(*ring, node, alive).written(offset, bytes.size());
    for (unsigned rank = 0; rank < ranks; ++rank) waiter.notify(rank);
}

void poke_as_member(const std::shared_ptr<rmem::Ring>& ring, rmem::Member member,
                    std::uint64_t offset, const Bytes& bytes) {
    rmem::Node node(ring, member);
    const rmem::Deadline deadline = rmem::Deadline::in(kTravelNs);
    while (node.write(offset, bytes.data(), bytes.size()) == rmem::WriteResult::again) {
        if (deadline.passed(rmem::now_ns())) {
            throw rmem::Error(
                rmem::Errc::timed_out,
                fmt::format("ring '{}' took no write for {}: the outbound queue of "
                            "rank {} stays full; is a member stopped?",
                            ring->config().name, duration_text(kTravelNs), member.rank));
        }
        node.poll();
    }
    if (node.flush(deadline)) return;
    throw rmem::Error(
        rmem::Errc::timed_out,
        fmt::format("not every live node of ring '{}' applied the write within {}; "
                    "`rmem info {}` shows who is stopped",
                    ring->config().name, duration_text(kTravelNs), ring->config().name));
}

[[noreturn]] void refuse(const rmem::RingConfig& config, unsigned node) {
    const unsigned rank = node * config.ranks / config.nodes;
    throw rmem::Error(
        rmem::Errc::not_permitted,
        fmt::format(
            "ring '{}' has a bank per node (link {}), and only a member's writes reach the "
            "others; give --as-rank with a rank that is not running (node {} is that of rank "
            "{}), which poke then is for a moment",
            config.name, name_of(config.link), node, rank));
}

/// A poke is a rank of its own for a moment.
rmem::Member free_member(const rmem::Ring& ring, unsigned rank, unsigned node) {
    const rmem::RingConfig& config = ring.config();
    if (rank >= config.ranks) {
        throw rmem::Error(rmem::Errc::bad_rank,
                          fmt::format("ring '{}' has no rank {} (--as-rank): its ranks are 0 to {}",
                                      config.name, rank, config.ranks - 1));
    }
    if (!ring.is_alive(rank)) return {rank, node};
    std::vector<unsigned> free;
    for (unsigned r = 0; r < config.ranks; ++r) {
        if (!ring.is_alive(r)) free.push_back(r);
    }
    throw rmem::Error(
        rmem::Errc::rank_taken,
        fmt::format("rank {} of ring '{}' is process {}, so --as-rank cannot be it; {}", rank,
                    config.name,
                    // relaxed is enough: for people
                    ring.rank(rank).pid.load(std::memory_order_relaxed),
                    free.empty() ? "every rank is taken: start the ring with one more than its "
                                   "programs need"
                                 : "free are " + numbers_text(free)));
}

void poke(const PokeOptions& options) {
    const CellType type = parse_cell_type(options.as);
    const std::uint64_t offset = parse_offset("OFFSET", options.offset);
    check_alignment(type, options.as, offset);
    Bytes bytes;
    for (const auto& value : options.values) {
        const Bytes cell = parse_cell(type, value);
        bytes.insert(bytes.end(), cell.begin(), cell.end());
    }
    // A member of no rank, so that the ring stays while we write.
    const auto ring = rmem::Ring::attach(named_segment(options.ring, options.node));
    const rmem::RingConfig& config = ring->config();
    const unsigned node = chosen_node(*ring, options.node);
    if (offset > config.user_bytes || bytes.size() > config.user_bytes - offset) {
        throw rmem::Error(rmem::Errc::invalid_argument,
                          fmt::format("{} bytes at {} are outside the user's memory of ring '{}', "
                                      "which ends at {}; what lies above belongs to its protocols",
                                      bytes.size(), offset_text(offset), config.name,
                                      offset_text(config.user_bytes)));
    }
    if (config.link == rmem::LinkKind::direct) {
        poke_direct(ring, node, offset, bytes);
    } else if (!options.as_rank) {
        refuse(config, node);
    } else {
        poke_as_member(ring, free_member(*ring, *options.as_rank, node), offset, bytes);
    }
    if (!options.json) return;
    show_json({{"ring", config.name},
               {"node", node},
               {"offset", offset},
               {"bytes", bytes.size()},
               {"link", name_of(config.link)}});
}

}  // namespace

void add_poke(CLI::App& app) {
    auto options = std::make_shared<PokeOptions>();
    CLI::App* command = app.add_subcommand("poke", "Write values into a ring");
    add_ring(*command, options->ring)->required();
    command->add_option("OFFSET", options->offset, "Where, in bytes: 256, 0x100 or 4K")->required();
    command->add_option("VALUE", options->values, "What, one after the other")->required();
    command->add_option("--as", options->as, fmt::format("Type: {}", kCellTypes))
        ->capture_default_str();
    command->add_option("--node", options->node,
                        "Which node writes (default: the first; on link udp the one that is here)");
    command->add_option("--as-rank", options->as_rank,
                        "Links with a bank per node: join as this rank, which nobody holds");
    command->add_flag("--json", options->json, "Print what was done as JSON");
    command->footer(kExamples);
    command->callback([options] { poke(*options); });
}

}  // namespace tools
