// SPDX-License-Identifier: Apache-2.0
#include "billboard/answer_pause.hpp"

#include "rmem/clock.hpp"

#include <algorithm>
#include <limits>

namespace billboard {

namespace {

/// The shortest of some measurements: all others were interrupted.
unsigned measure_pauses() noexcept {
    constexpr int kTimes = 16, kPauses = 64;
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < kTimes; ++i) {
        const std::int64_t start = rmem::now_ns();
        for (int k = 0; k < kPauses; ++k) rmem::cpu_relax();
        shortest = std::min(shortest, rmem::now_ns() - start);
    }
    return static_cast<unsigned>(std::clamp<std::int64_t>(
        AnswerPause::kNs * kPauses / std::max<std::int64_t>(shortest, 1), 1, AnswerPause::kNs));
}

}  // namespace

unsigned AnswerPause::first() noexcept {
    static const unsigned pauses = measure_pauses();
    return pauses;
}

}  // namespace billboard
