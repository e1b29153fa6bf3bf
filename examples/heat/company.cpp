// SPDX-License-Identifier: Apache-2.0
#include "company.hpp"

#include <billboard/bbp.h>
#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace heat {
namespace {

int check(int result, const char* call) {
    if (result < 0) throw std::runtime_error(fmt::format("{}: {}", call, bbp_last_error()));
    return result;
}

void send(int to, std::span<const double> values) {
    check(bbp_send(to, values.data(), values.size_bytes()), "bbp_send");
}

void receive(int from, std::span<double> values) {
    std::size_t bytes = 0;
    check(bbp_recv(from, values.data(), values.size_bytes(), &bytes), "bbp_recv");
    if (bytes != values.size_bytes()) {
        throw std::runtime_error(fmt::format("rank {} sent {} bytes where {} were due", from, bytes,
                                             values.size_bytes()));
    }
}

double add_up(std::span<const double> values) {
    double sum = 0.0;
    for (const double value : values) sum += value;
    return sum;
}

}  // namespace

// ---- Alone

double Alone::sum(std::span<const double> of_own_rows) {
    return add_up(of_own_rows);
}

std::vector<double> Alone::gather(Band& band) {
    std::vector<double> whole;
    for (std::size_t i = 0; i < band.count(); ++i) {
        whole.insert(whole.end(), band.row(i).begin(), band.row(i).end());
    }
    return whole;
}

// ---- Ranks

Ranks::Ranks(Size plate) : plate_(plate) {
    check(bbp_init(&rank_, &ranks_), "bbp_init");
    for (int r = 0; r < ranks_; ++r) {
        if (r != rank_) others_.push_back(r);
    }
}

Ranks::~Ranks() {
    bbp_finalize();
}

std::size_t Ranks::row_count(int rank) const noexcept {
    const auto r = static_cast<std::size_t>(rank);
    const auto n = static_cast<std::size_t>(ranks_);
    return plate_.rows / n + (r < plate_.rows % n ? 1 : 0);
}

std::size_t Ranks::first_row(int rank) const noexcept {
    const auto r = static_cast<std::size_t>(rank);
    const auto n = static_cast<std::size_t>(ranks_);
    return r * (plate_.rows / n) + std::min(r, plate_.rows % n);
}

bool Ranks::has_rows(int rank) const noexcept {
    return rank >= 0 && rank < ranks_ && row_count(rank) > 0;
}

/// A send may wait for its receiver, so two neighbours must not both begin by sending: the even one
/// of each pair sends first, the odd one receives first.
void Ranks::exchange_halo(Band& band) {
    if (!has_rows(rank_)) return;
    if (rank_ % 2 == 0) {
        exchange_below(band);
        exchange_above(band);
    } else {
        exchange_above(band);
        exchange_below(band);
    }
}

void Ranks::exchange_below(Band& band) {
    const int below = rank_ + 1;
    if (!has_rows(below)) return;
    const auto last = band.row(band.count() - 1);
    if (rank_ % 2 == 0) {
        send(below, last);
        receive(below, band.halo_below());
    } else {
        receive(below, band.halo_below());
        send(below, last);
    }
}

void Ranks::exchange_above(Band& band) {
    const int above = rank_ - 1;
    if (!has_rows(above)) return;
    if (rank_ % 2 == 0) {
        send(above, band.row(0));
        receive(above, band.halo_above());
    } else {
        receive(above, band.halo_above());
        send(above, band.row(0));
    }
}

/// Every rank multicasts its rows' sums, in turn, so that each has them all and adds them in the
/// plate's order; at any moment only one rank sends.
double Ranks::sum(std::span<const double> of_own_rows) {
    std::vector<double> of_all_rows(plate_.rows);
    for (int r = 0; r < ranks_; ++r) {
        const std::span rows(of_all_rows.data() + first_row(r), row_count(r));
        if (rows.empty()) continue;
        if (r != rank_) {
            receive(r, rows);
        } else {
            std::copy(of_own_rows.begin(), of_own_rows.end(), rows.begin());
            if (others_.empty()) continue;
            check(bbp_mcast(others_.data(), ranks_ - 1, rows.data(), rows.size_bytes()),
                  "bbp_mcast");
        }
    }
    return add_up(of_all_rows);
}

std::vector<double> Ranks::gather(Band& band) {
    if (rank_ != 0) {
        for (std::size_t i = 0; i < band.count(); ++i) send(0, band.row(i));
        return {};
    }
    std::vector<double> whole = Alone().gather(band);
    whole.resize(plate_.rows * plate_.columns);
    for (int r = 1; r < ranks_; ++r) {
        for (std::size_t i = 0; i < row_count(r); ++i) {
            const std::size_t start = (first_row(r) + i) * plate_.columns;
            receive(r, std::span(whole.data() + start, plate_.columns));
        }
    }
    return whole;
}

}  // namespace heat
