// SPDX-License-Identifier: Apache-2.0
#include "billboard/core/answer_pause.hpp"

#include "rmem/base/clock.hpp"

#include <algorithm>
#include <limits>

namespace billboard {

namespace {

/// Nanoseconds of a thousand pauses: by the shortest of some measurements, since all others were
/// interrupted.
std::int64_t measure_pauses() noexcept {
    constexpr int kTimes = 16, kPauses = 64;
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    for (int i = 0; i < kTimes; ++i) {
        const std::int64_t start = rmem::now_ns();
        for (int k = 0; k < kPauses; ++k) rmem::cpu_relax();
        shortest = std::min(shortest, rmem::now_ns() - start);
    }
    return std::max<std::int64_t>(shortest * 1000 / kPauses, 1);
}

}  // namespace

unsigned AnswerPause::pauses_of(std::int64_t ns) noexcept {
    static const std::int64_t thousand_ns = measure_pauses();
    return static_cast<unsigned>(std::clamp<std::int64_t>(ns * 1000 / thousand_ns, 1, ns));
}

}  // namespace billboard
