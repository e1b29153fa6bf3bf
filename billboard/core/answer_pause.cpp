// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/answer_pause.hpp"

#include <algorithm>
#include <limits>

namespace billboard {

namespace {

/// By the shortest of some measurements, since all others were interrupted.
std::int64_t shortest_of(unsigned pauses) noexcept {
    constexpr int kTimes = 16;
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < kTimes; ++i) {
        const std::int64_t start = rmem::now_ns();
        for (unsigned k = 0; k < pauses; ++k) rmem::cpu_relax();
        shortest = std::min(shortest, rmem::now_ns() - start);
    }
    return shortest;
}

}  // namespace

void AnswerPause::learn(std::int64_t ns) noexcept {
    constexpr unsigned kPauses = 65;
    static const std::int64_t one_ns = shortest_of(1);  // with its clock: so long is a poll, too
    static const std::int64_t others_ns = std::max<std::int64_t>(shortest_of(kPauses) - one_ns, 1);
    const std::int64_t most =
        hop_ns_ == 0 ? tuning_.most_ns : hop_ns_ + hop_ns_ * std::int64_t{tuning_.growth} / 64 + 1;
    ns = std::min(ns - one_ns, most);
    hop_ns_ = static_cast<std::uint32_t>(std::clamp<std::int64_t>(ns, 0, tuning_.most_ns));
    pauses_ = static_cast<unsigned>(hop_ns_ * std::int64_t{kPauses - 1} / others_ns);
    until_measured_ = tuning_.every;
}

}  // namespace billboard
