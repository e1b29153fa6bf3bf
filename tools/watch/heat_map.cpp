// SPDX-License-Identifier: Apache-2.0
#include "tools/watch/heat_map.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/hash.hpp"
#include "rmem/ring/config.hpp"

#include <algorithm>
#include <atomic>

namespace tools {

namespace {

constexpr std::size_t kWordsOfLine = rmem::kLineBytes / rmem::kWordBytes;

/// Enough to tell two contents apart that nobody has made to look the same.
class Digest {
public:
    void add(std::uint32_t word) { value_ = rmem::golden_mix(value_, word) + 1; }
    std::uint64_t value() const { return value_ ^ value_ >> 29; }

private:
    std::uint64_t value_ = 0;
};

std::uint64_t digest_of(std::span<const std::byte> part, std::size_t first, std::size_t step) {
    Digest digest;
    for (std::size_t at = first; at < part.size(); at += step) {
        const std::size_t words = std::min(kWordsOfLine, (part.size() - at) / rmem::kWordBytes);
        // Only loads are made; atomic_ref takes no constants yet.
        auto* const word =
            reinterpret_cast<std::uint32_t*>(const_cast<std::byte*>(part.data()) + at);
        // relaxed is enough: nothing is read by what a word says
        for (std::size_t i = 0; i < words; ++i) {
            digest.add(std::atomic_ref(word[i]).load(std::memory_order_relaxed));
        }
    }
    return digest.value();
}

}  // namespace

void HeatMap::begin(std::size_t bytes, std::size_t from, std::size_t most_cells) {
    bytes_ = bytes;
    from_ = from;
    most_cells_ = most_cells;
    cell_bytes_ = rmem::kWordBytes;
    while (cell_bytes_ * most_cells < bytes) cell_bytes_ *= 2;
    parts_ = std::min(kParts, cell_bytes_ / rmem::kWordBytes);
    // Odd, so that it goes through all places of a pattern that repeats in powers of two.
    line_step_ = bytes <= kMaxBytes ? 1 : (bytes / kMaxBytes + 1) | 1;
    cells_.assign((bytes + cell_bytes_ - 1) / cell_bytes_, {});
    RMEM_CHECK(cells_.size() <= most_cells);
    digests_.assign(cells_.size() * parts_, 0);
    looks_ = 0;
}

void HeatMap::look(std::span<const std::byte> memory, std::size_t from, std::size_t most_cells) {
    RMEM_CHECK(from % rmem::kWordBytes == 0 &&
               reinterpret_cast<std::uintptr_t>(memory.data()) % rmem::kWordBytes == 0);
    if (memory.size() != bytes_ || from != from_ || most_cells != most_cells_ || looks_ == 0) {
        begin(memory.size(), from, std::max<std::size_t>(most_cells, 1));
        most_cells_ = most_cells;
    }
    const std::size_t part_bytes = cell_bytes_ / parts_;
    const std::size_t step = line_step_ * rmem::kLineBytes;
    std::vector<std::size_t> changed(cells_.size());
    for (std::size_t part = 0; part < digests_.size(); ++part) {
        const std::size_t start = std::min(part * part_bytes, memory.size());
        const std::size_t end = std::min(start + part_bytes, memory.size());
        const std::size_t into_step = line_step_ == 1 ? 0 : start % step;
        const std::size_t first = into_step == 0 ? 0 : step - into_step;
        const auto digest = digest_of(memory.subspan(start, end - start), first, step);
        if (digest != digests_[part] && looks_ > 0) ++changed[part / parts_];
        digests_[part] = digest;
    }
    for (std::size_t i = 0; i < cells_.size(); ++i) {
        const double share = static_cast<double>(changed[i]) / static_cast<double>(parts_);
        cells_[i].heat = std::max(share, cells_[i].heat / 2);
        cells_[i].ever = cells_[i].ever || changed[i] != 0;
        RMEM_CHECK(cells_[i].heat <= 1 && (cells_[i].ever || cells_[i].heat == 0));
    }
    ++looks_;
}

}  // namespace tools
