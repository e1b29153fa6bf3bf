// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a run broke, and what it met.
///
/// Thread safety: none. A run goes on after a finding, so that the trace shows what came of it; only the
/// first few sentences are kept.

#include "simulator/hunt/scenario.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace simulator {

/// What the hunt must have met beside the faults themselves.
enum class Sight : std::uint8_t {
    overtaken = 0,  ///< a write arrived before an older one of another origin
    fifo_full,      ///< a sender was told that the transmit FIFO is full
    send_waited,    ///< a sender was told to wait, or waited, for room
    collected,      ///< garbage was collected in the data partition
    in_parts,       ///< a message larger than a partition came whole
    multicast,      ///< a multicast was delivered to all it named
    bound_broken,   ///< a write was later than the bound, and counted
    peer_error,     ///< a call said BBP_EPEER
    drained,        ///< a message was received of a sender that was dead by then
    forgiven,       ///< a message suffered from a loss that the link had reported
    barrier_passed,
    numbers_wrapped,  ///< a sequence number went through zero
    epochs_wrapped,   ///< the 8 bits of a rank's lives that messages carry
    count_
};
inline constexpr std::size_t kSights = static_cast<std::size_t>(Sight::count_);

const char* name_of(Sight sight) noexcept;

struct Findings {
    static constexpr std::size_t kMostSentences = 10;

    std::vector<std::string> violations;
    std::array<std::uint64_t, kFaultKinds> faults{};
    std::array<std::uint64_t, kSights> sights{};
    std::uint64_t messages = 0;  ///< received whole
    std::uint64_t injected = 0;  ///< of the scenario's faults
    std::uint64_t events = 0;
    std::uint64_t hash = 0;  ///< of the trace, if it was asked for

    void violate(std::string sentence) {
        if (violations.size() < kMostSentences) violations.push_back(std::move(sentence));
    }
    void met(FaultKind kind) { ++faults[static_cast<std::size_t>(kind)]; }
    void saw(Sight sight, std::uint64_t n = 1) { sights[static_cast<std::size_t>(sight)] += n; }
    Findings& operator+=(const Findings& other);
};

}  // namespace simulator
