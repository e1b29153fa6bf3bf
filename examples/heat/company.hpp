// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A band's needs from the other bands: their rows at its border, and the sum over the whole plate.
/// `Alone` has the whole plate; `Ranks` are the other processes, reached over the billboard.

#include "plate.hpp"

#include <span>
#include <vector>

namespace heat {

class Company {
public:
    virtual ~Company() = default;
    /// Fills the band's halo with the neighbours' rows.
    virtual void exchange_halo(Band& band) = 0;
    /// Adds up, in the order of the plate's rows, the values that every band gives for its own
    /// rows. The order is fixed because a sum of floating-point numbers depends on it.
    virtual double sum(std::span<const double> of_own_rows) = 0;
    /// The rows of the whole plate at rank 0, nothing at the others.
    virtual std::vector<double> gather(Band& band) = 0;
};

class Alone final : public Company {
public:
    void exchange_halo(Band&) override {}
    double sum(std::span<const double> of_own_rows) override;
    std::vector<double> gather(Band& band) override;
};

class Ranks final : public Company {
public:
    /// Joins the ring that the environment names.
    explicit Ranks(Size plate);
    ~Ranks() override;
    Ranks(const Ranks&) = delete;
    Ranks& operator=(const Ranks&) = delete;

    int rank() const noexcept { return rank_; }
    int ranks() const noexcept { return ranks_; }
    /// The rows of a rank. When there are more ranks than rows the last ones have none.
    std::size_t first_row(int rank) const noexcept;
    std::size_t row_count(int rank) const noexcept;

    void exchange_halo(Band& band) override;
    double sum(std::span<const double> of_own_rows) override;
    std::vector<double> gather(Band& band) override;

private:
    bool has_rows(int rank) const noexcept;
    void exchange_above(Band& band);
    void exchange_below(Band& band);

    Size plate_;
    int rank_ = 0;
    int ranks_ = 0;
    std::vector<int> others_;
};

}  // namespace heat
