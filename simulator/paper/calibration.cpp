// SPDX-License-Identifier: Apache-2.0
#include "simulator/paper/calibration.hpp"

#include "simulator/paper/experiments.hpp"
#include "simulator/paper/mpi_experiments.hpp"

#include <cstdlib>

namespace simulator {

namespace {

constexpr std::int64_t kMaxNs = 2047;  // neither can be as much: both latencies are below 8 µs

/// The first of 1 to `most_ns` that is no longer below, by the caller's measure; `most_ns` if none
/// is.
template <class IsBelow>
std::int64_t first_not_below(IsBelow&& is_below, std::int64_t most_ns = kMaxNs) {
    std::int64_t low = 1, high = most_ns;
    while (low < high) {
        const std::int64_t middle = (low + high) / 2;
        if (is_below(middle)) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

HostFit try_out(Testbed testbed, std::int64_t load_ns, std::int64_t call_ns) {
    testbed.host.load_ns = load_ns;
    testbed.host.call_ns = call_ns;
    return {load_ns, call_ns, one_way_ps(testbed, 0), one_way_ps(testbed, 4)};
}

std::int64_t excess_ps(const HostFit& fit) {
    return fit.zero_bytes_ps + fit.four_bytes_ps - kPaperZeroBytesPs - kPaperFourBytesPs;
}

}  // namespace

bool HostFit::fits() const noexcept {
    return std::abs(zero_bytes_ps - kPaperZeroBytesPs) <= kFitTolerancePs &&
           std::abs(four_bytes_ps - kPaperFourBytesPs) <= kFitTolerancePs;
}

HostFit fit_load(const Testbed& testbed, std::int64_t call_ns) {
    const std::int64_t load_ns = first_not_below(
        [&](std::int64_t load) { return excess_ps(try_out(testbed, load, call_ns)) < 0; });
    const HostFit above = try_out(testbed, load_ns, call_ns);
    if (load_ns == 1) return above;
    const HostFit below = try_out(testbed, load_ns - 1, call_ns);
    return -excess_ps(below) < excess_ps(above) ? below : above;
}

HostFit fit_host(const Testbed& testbed) {
    const std::int64_t too_long =
        first_not_below([&](std::int64_t call_ns) { return fit_load(testbed, call_ns).fits(); });
    return fit_load(testbed, too_long - 1 > 0 ? too_long - 1 : 1);
}

MpiHost fit_mpi(const Testbed& testbed) {
    const auto miss_ps = [&](std::int64_t message_ns) {
        return mpi_one_way_ps(testbed, 0, {message_ns}) - kPaperMpiZeroBytesPs;
    };
    const std::int64_t above = first_not_below([&](std::int64_t ns) { return miss_ps(ns) < 0; },
                                               kPaperMpiZeroBytesPs / 1000);
    return {std::abs(miss_ps(above - 1)) < std::abs(miss_ps(above)) ? above - 1 : above};
}

}  // namespace simulator
