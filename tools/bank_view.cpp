// SPDX-License-Identifier: Apache-2.0
#include "tools/bank_view.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstring>

#include "tools/output.hpp"

namespace tools {

BankView::BankView(const std::string& ring, unsigned node)
    : ring_(rmem::Ring::observe(ring)), node_(node) {
    check_node(ring_->config(), node);
}

void BankView::check(std::uint64_t offset, std::uint64_t bytes) const {
    const std::uint64_t size = bank_bytes();
    if (offset <= size && bytes <= size - offset) return;
    throw rmem::Error(
        rmem::Errc::invalid_argument,
        fmt::format("{} bytes at {} are outside the bank of ring '{}', which ends at {}; its user "
                    "memory ends at {}",
                    bytes, offset_text(offset), ring_->config().name, offset_text(size),
                    offset_text(user_bytes())));
}

std::vector<std::byte> BankView::read(std::uint64_t offset, std::uint64_t bytes) const {
    check(offset, bytes);
    std::vector<std::byte> result(bytes);
    std::byte* bank = ring_->bank(node_);
    std::uint64_t done = 0;
    while (done < bytes) {
        const std::uint64_t at = offset + done;
        const std::uint64_t word_at = at / rmem::kWordBytes * rmem::kWordBytes;
        // A word is the unit of atomicity, so no value of a live program shows half.
        auto& word = *reinterpret_cast<std::uint32_t*>(bank + word_at);
        const std::uint32_t value = std::atomic_ref(word).load(std::memory_order_acquire);
        const std::uint64_t skip = at - word_at;
        const std::uint64_t part = std::min(rmem::kWordBytes - skip, bytes - done);
        std::memcpy(result.data() + done, reinterpret_cast<const std::byte*>(&value) + skip, part);
        done += part;
    }
    return result;
}

void check_node(const rmem::RingConfig& config, unsigned node) {
    if (node < config.nodes) return;
    throw rmem::Error(rmem::Errc::bad_rank,
                      fmt::format("ring '{}' has no node {} (--node): its nodes are 0 to {}",
                                  config.name, node, config.nodes - 1));
}

}  // namespace tools
