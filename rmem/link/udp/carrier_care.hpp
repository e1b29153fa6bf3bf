// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Why a carrier does not reach the other nodes, found out and mended now and then: networks change
/// while nodes run.
///
/// Pure: the time comes in, and the carrier does what there is to do.
/// Invariant: a carrier's counters do not go back.
/// Thread safety: the engine's user. Units: nanoseconds.

#include "rmem/base/check.hpp"
#include "rmem/link/carrier/carrier.hpp"

#include <cstdint>
#include <cstring>
#include <string>
#include <utility>

namespace rmem::udp {

class CarrierCare {
public:
    static constexpr std::int64_t kRefusedNs = 500'000'000;  ///< between looks if all is refused

    /// The carrier outlives it.
    explicit CarrierCare(Carrier& carrier) : carrier_(carrier) {}

    /// Returns what is wrong, for people; empty: nothing.
    const std::string& keep(std::int64_t now) {
        const bool looks = now >= look_next_ns_;
        if (looks) {
            look_next_ns_ = now + kRefusedNs;
            look();
        }
        problem_ = carrier_.mend(looks && (is_refused_ || !problem_.empty()));
        if (problem_.empty() && is_refused_) {
            problem_ = std::string("the host refuses what this node sends (") +
                       std::strerror(carrier_.counters().last_error) +
                       "); look at its routes and firewall, and at `rmem doctor`";
        }
        return problem_;
    }

private:
    void look() noexcept {
        const CarrierCounters& all = carrier_.counters();
        RMEM_CHECK(all.sent >= sent_ && all.refused >= refused_);
        const bool has_sent = std::exchange(sent_, all.sent) != all.sent;
        const bool was_refused = std::exchange(refused_, all.refused) != all.refused;
        // Where a carrier is reliable, the others have gone.
        is_refused_ = was_refused && !has_sent && !carrier_.is_reliable();
    }

    Carrier& carrier_;
    std::string problem_;
    std::int64_t look_next_ns_ = 0;
    std::uint64_t sent_ = 0, refused_ = 0;  ///< by the last look
    bool is_refused_ = false;               ///< all that was sent between the last two
};

}  // namespace rmem::udp
