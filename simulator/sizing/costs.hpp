// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a datagram or a message costs a host and the network: the constants that sizes are computed
/// from. Each can be given on the command line of `rmem sim scale`.
///
/// Units: nanoseconds of one processor, unless a name says otherwise.
/// Source: of `udp_costs`, docs/measurements/archive/udp-2026-11-22.md ("Where the time goes") and
/// docs/design/udp-link.md ("A stream's time"), which say what the link's own code and the host's
/// calls take here; what a further datagram of one call takes bench/udp_calls.cpp measures. The
/// switch, the line rate and all of `fabric_costs` are nominal: nothing of that kind is here to
/// measure. The latter add up to the 0.8 us that a message of 32 bytes takes one way by
/// cards of 100 Gbit/s, as published.

#include <cstddef>
#include <cstdint>

namespace simulator::sizing {

struct Costs {
    std::int64_t call_ns = 0;      ///< a send call with its first datagram or message
    std::int64_t further_ns = 0;   ///< each further one of the same call
    std::int64_t receive_ns = 0;   ///< one that comes: the call, the check, the store into the bank
    std::int64_t byte_ps = 0;      ///< picoseconds for each byte, on either side
    std::int64_t switch_ns = 0;    ///< from the last bit in to the first bit out
    std::int64_t link_mbit_s = 1;  ///< rate of each host's line, either way

    constexpr std::int64_t bytes_ns(std::size_t bytes) const noexcept {
        return static_cast<std::int64_t>(bytes) * byte_ps / 1000;
    }
    /// On a host's line, with what Ethernet, IP and UDP put around it.
    constexpr std::int64_t line_ns(std::size_t bytes) const noexcept {
        constexpr std::int64_t kAround = 66, kBits = 8, kNsPerUs = 1000;
        return (static_cast<std::int64_t>(bytes) + kAround) * kBits * kNsPerUs / link_mbit_s;
    }
};

inline constexpr Costs udp_costs = {.call_ns = 4000,
                                    .further_ns = 2300,
                                    .receive_ns = 1400,
                                    .byte_ps = 350,
                                    .switch_ns = 1000,
                                    .link_mbit_s = 10'000};
inline constexpr Costs fabric_costs = {.call_ns = 150,
                                       .further_ns = 150,
                                       .receive_ns = 150,
                                       .byte_ps = 0,
                                       .switch_ns = 450,
                                       .link_mbit_s = 100'000};

}  // namespace simulator::sizing
