// SPDX-License-Identifier: Apache-2.0
#include "tools/record/record_source.hpp"

#include "rmem/base/check.hpp"
#include "rmem/ring/membership.hpp"
#include "tools/watch/bank_view.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <vector>

namespace tools {

namespace {

/// The node that holds the memory as the ring has it: one that nobody runs has fallen behind.
unsigned first_live_node(const rmem::Ring& ring) {
    for (unsigned node = 0; node < ring.config().nodes; ++node) {
        if (rmem::is_node_alive(ring, node)) return node;
    }
    return 0;
}

[[noreturn]] void refuse(const rmem::RingConfig& config) {
    throw rmem::Error(
        rmem::Errc::not_permitted,
        fmt::format("ring '{}' is on link direct, where a store is the transfer and nobody can see "
                    "single writes: sample its memory, for instance with --sample 1ms, or run its "
                    "program on --link ring",
                    config.name));
}

}  // namespace

std::unique_ptr<RecordSource> open_source(const std::string& name, const SourceOptions& options) {
    auto ring = rmem::Ring::observe(named_segment(name, options.node));
    const rmem::RingConfig& config = ring->config();
    const bool is_on_ring = config.link == rmem::LinkKind::ring;
    const unsigned node =
        is_on_ring && !options.node ? first_live_node(*ring) : chosen_node(*ring, options.node);
    if (options.sample_ns > 0) {
        return make_sampled_source(std::move(ring), node, options.sample_ns);
    }
    if (is_on_ring) return make_ring_source(std::move(ring), node);
    if (config.is_remote()) return make_udp_source(std::move(ring));
    refuse(config);
}

bool is_recordable(const rmem::RecordedWrite& write, const rmem::RingConfig& config) {
    const std::size_t bytes = write.words.size();
    const bool is_missed = (write.flags & rmem::RecordedWrite::kMissed) != 0;
    return write.node < config.nodes && write.rank < config.ranks && is_missed == (bytes == 0) &&
           (write.part() == rmem::kWholeWord || bytes == rmem::kWordBytes) &&
           bytes <= rmem::kMaxRecordedBytes && (write.offset | bytes) % rmem::kWordBytes == 0 &&
           bytes <= config.bank_bytes() && write.offset <= config.bank_bytes() - bytes;
}

std::uint32_t load_word(const std::byte* bank, std::size_t offset) noexcept {
    auto& word = *reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(bank + offset));
    // (1) - this acquire-load synchronizes-with the release-stores rmem/base/word_block.hpp (1)
    // and rmem/link/direct/card.hpp (1)
    return std::atomic_ref(word).load(std::memory_order_acquire);
}

void give_memory(const std::byte* bank, std::size_t bytes, rmem::RecordedWrite write,
                 const RecordSource::Sink& sink) {
    RMEM_CHECK(bytes % rmem::kWordBytes == 0);
    std::vector<std::byte> run;
    const auto give = [&](std::size_t end) {
        if (run.empty()) return;
        write.offset = end - run.size();
        write.words = run;
        sink(write);
        run.clear();
    };
    for (std::size_t at = 0; at < bytes; at += rmem::kWordBytes) {
        const std::uint32_t value = load_word(bank, at);
        if (value == 0 || run.size() == rmem::kMaxRecordedBytes) give(at);
        if (value == 0) continue;
        run.resize(run.size() + sizeof value);
        std::memcpy(run.data() + run.size() - sizeof value, &value, sizeof value);
    }
    give(bytes);
}

}  // namespace tools
