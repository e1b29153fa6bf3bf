// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A plate that conducts heat, or a band of its rows.
///
/// The plate's edge keeps its temperature. Inside, each step moves every point towards the mean of
/// its four neighbours (explicit Euler on the five-point stencil; `kConductivity` ≤ 1/4 keeps it
/// stable). A band computes each point with the operations, in the order, that the whole plate
/// would: that is why any division into bands gives the same bits.
/// Units: degrees, steps. Thread safety: none.

#include <cstddef>
#include <span>
#include <vector>

namespace heat {

inline constexpr double kConductivity = 0.2;
inline constexpr double kHotDegrees = 100.0;

struct Size {
    std::size_t rows = 0;
    std::size_t columns = 0;
};

/// Rows [first, first + count) of the plate, and a halo row above and below for the neighbours'
/// rows.
class Band {
public:
    /// At step 0: a hot upper edge, a hot disc, all else at 0.
    Band(Size plate, std::size_t first, std::size_t count);

    Size plate() const noexcept { return plate_; }
    std::size_t first() const noexcept { return first_; }
    std::size_t count() const noexcept { return count_; }
    std::span<double> row(std::size_t of_band) noexcept { return at(now_, of_band + 1); }
    std::span<double> halo_above() noexcept { return at(now_, 0); }
    std::span<double> halo_below() noexcept { return at(now_, count_ + 1); }

    /// One step; the halo must hold the neighbours' rows as they are now.
    void step();
    /// For each row of the band: the sum of the squares of the last step's changes.
    std::vector<double> changes() const;

private:
    std::span<double> at(std::vector<double>& rows, std::size_t index) noexcept {
        return {rows.data() + index * plate_.columns, plate_.columns};
    }
    bool is_edge(std::size_t plate_row) const noexcept {
        return plate_row == 0 || plate_row + 1 == plate_.rows;
    }

    Size plate_;
    std::size_t first_;
    std::size_t count_;
    std::vector<double> now_;
    std::vector<double> next_;  ///< after a step: the state before it
};

}  // namespace heat
