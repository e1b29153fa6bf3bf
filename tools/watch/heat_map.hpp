// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Which parts of a memory change: it as some hundred cells, each with how much of it has changed
/// of late.
///
/// A look makes a digest of each of a cell's parts (16, or a word each) and compares it with the
/// last look's; the heat of a cell is the share of its parts that have changed, or half of its last
/// value if that is more. A value that changes and changes back between two looks is not seen. Of
/// more than kMaxBytes only every n-th line is looked at.
/// Invariants, executed: what is looked at lies at whole words; there are no more cells than
/// wanted, and each has a heat of 0 to 1.
/// Thread safety: one thread. Reading a bank disturbs its writers as any other reader would.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tools {

class HeatMap {
public:
    static constexpr std::size_t kCells = 256, kParts = 16;
    static constexpr std::size_t kMaxBytes = std::size_t{1} << 25;  ///< that a look reads

    struct Cell {
        double heat = 0;    ///< 0 to 1
        bool ever = false;  ///< has changed since the first look
    };

    /// `memory` begins at `from`, a multiple of the word, and becomes as many cells as fit into
    /// `most_cells`. The first look at another place, size or number has nothing to compare with.
    void look(std::span<const std::byte> memory, std::size_t from = 0,
              std::size_t most_cells = kCells);

    const std::vector<Cell>& cells() const { return cells_; }
    std::size_t cell_bytes() const { return cell_bytes_; }
    std::size_t from() const { return from_; }
    std::size_t bytes() const { return bytes_; }
    /// 1: every line of 64 bytes is looked at, 3: every third…
    std::size_t line_step() const { return line_step_; }
    std::uint64_t looks() const { return looks_; }

private:
    void begin(std::size_t bytes, std::size_t from, std::size_t most_cells);

    std::size_t bytes_ = 0, from_ = 0, most_cells_ = 0;
    std::size_t cell_bytes_ = 0, parts_ = kParts, line_step_ = 1;
    std::uint64_t looks_ = 0;
    std::vector<Cell> cells_;
    std::vector<std::uint64_t> digests_;  ///< of each part
};

}  // namespace tools
