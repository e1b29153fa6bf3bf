// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Flow control between two ranks, as one of them counts it: the private memory that unexpected
/// messages of one may take at the other.
///
///     if (credit.covers(cost)) credit.spend(cost);     // a message leaves, unasked
///     if (!credit.refund(bytes)) …                     // the other says that it has received some
///     if (!credit.hold(cost)) …                        // a message of the other has arrived
///     credit.owe(cost);                                // it has been received
///     packet.credit = credit.owed(); …; credit.repaid();  // and the other has been told
///
/// Trust: refund() and hold() take the other's word, and return false when it is not possible.
/// Units: bytes; a message costs its size and kCostBytes.
/// Thread safety: one thread at a time.
/// Invariants, checked where `kAlwaysChecks` says so and in debug builds
///   (C1) What is left is at most kCredit: nobody refunds more than was spent.
///   (C2) What is owed is a part of what is held.

#include "rmem/base/check.hpp"

#include <cstddef>
#include <cstdint>

namespace mpi_channel {

/// Of one sender's messages, short and eager, that a receiver has not received yet; kCostBytes are
/// added for each.
inline constexpr std::size_t kCredit = std::size_t{1} << 20;
inline constexpr std::size_t kCostBytes = 64;

[[nodiscard]] constexpr std::size_t cost_of(std::size_t size) noexcept {
    return size + kCostBytes;
}

template <bool kAlwaysChecks>
class Credit {
public:
    // ---- Of this rank's messages there
    [[nodiscard]] std::size_t left() const noexcept { return left_; }
    [[nodiscard]] bool covers(std::size_t cost) const noexcept { return cost <= left_; }
    void spend(std::size_t cost) noexcept {
        RMEM_CHECK_IF(kAlwaysChecks, covers(cost));
        left_ -= cost;
    }
    /// False: it is more than was spent.
    [[nodiscard]] bool refund(std::size_t bytes) noexcept {
        if (bytes > kCredit - left_) return false;
        left_ += bytes;
        return true;
    }

    // ---- Of the other's messages here
    [[nodiscard]] std::size_t held() const noexcept { return held_; }
    [[nodiscard]] std::size_t owed() const noexcept { return owed_; }
    /// False: the other had no credit for it.
    [[nodiscard]] bool hold(std::size_t cost) noexcept {
        held_ += cost;
        return held_ <= kCredit;
    }
    void owe(std::size_t cost) noexcept {
        owed_ += cost;
        RMEM_CHECK_IF(kAlwaysChecks, owed_ <= held_);
    }
    void repaid() noexcept {
        held_ -= owed_;
        owed_ = 0;
    }

private:
    std::size_t left_ = kCredit;
    std::size_t held_ = 0;  ///< received or not, and not yet repaid
    std::size_t owed_ = 0;  ///< received
};

}  // namespace mpi_channel
