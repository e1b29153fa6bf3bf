// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/round_trip.hpp"

#include <algorithm>

namespace rmem {

namespace {

/// How far two clocks drift apart meanwhile, at most; rounded up.
std::int64_t drift(std::int64_t ns) {
    constexpr std::int64_t kMillion = 1'000'000;
    if (ns <= 0) return 0;
    return ns / kMillion * RoundTrip::kDriftPpm +
           (ns % kMillion * RoundTrip::kDriftPpm + kMillion - 1) / kMillion;
}

bool is_time(std::int64_t ns) {
    return ns >= 0 && ns <= RoundTrip::kLatestNs;
}

}  // namespace

bool RoundTrip::is_possible(const Echo& echo) noexcept {
    if (!is_time(echo.sent_ns) || !is_time(echo.arrived_ns) || !is_time(echo.other_sent_ns)) {
        return false;
    }
    const std::int64_t away = echo.arrived_ns - echo.sent_ns;
    if (away < 0 || away > kLongestNs) return false;
    return echo.held_ns >= 0 && echo.held_ns <= away && echo.held_ns <= echo.other_sent_ns;
}

RoundTrip::Sample RoundTrip::sample_of(const Echo& echo, std::int64_t round_trip) noexcept {
    const std::int64_t half = round_trip / 2;
    // The other half is one longer where the round trip is odd.
    return {echo.other_sent_ns - (echo.arrived_ns - half), round_trip - half + drift(echo.held_ns),
            echo.arrived_ns};
}

bool RoundTrip::add(const Echo& echo) noexcept {
    if (!is_possible(echo)) return false;
    const std::int64_t round_trip = echo.arrived_ns - echo.sent_ns - echo.held_ns;
    smooth(round_trip);
    const Sample sample = sample_of(echo, round_trip);
    if (!empty() && !agrees_with_best(sample)) {
        ++jumps_;
        filled_ = next_ = best_ = 0;
    }
    keep(sample);
    return true;
}

void RoundTrip::smooth(std::int64_t round_trip) noexcept {
    if (empty()) {
        smoothed_8_ = round_trip * 8;
        deviation_4_ = round_trip * 2;
        return;
    }
    const std::int64_t difference = round_trip - smoothed_8_ / 8;
    deviation_4_ += std::max(difference, -difference) - deviation_4_ / 4;
    smoothed_8_ += difference;
}

void RoundTrip::keep(const Sample& sample) noexcept {
    const std::size_t at = next_;
    const bool is_best = empty() || sample.error_ns <= error_at(samples_[best_], sample.taken_ns);
    samples_[at] = sample;
    next_ = (next_ + 1) % kSamples;
    filled_ = std::min(filled_ + 1, kSamples);
    if (is_best) {
        best_ = at;
    } else if (best_ == at) {  // its place was taken
        best_ = find_best(sample.taken_ns);
    }
}

std::size_t RoundTrip::find_best(std::int64_t now) const noexcept {
    std::size_t best = 0;
    for (std::size_t i = 1; i < filled_; ++i) {
        if (error_at(samples_[i], now) < error_at(samples_[best], now)) best = i;
    }
    return best;
}

/// Both may be true at once.
bool RoundTrip::agrees_with_best(const Sample& sample) const noexcept {
    const Sample& best = samples_[best_];
    const std::int64_t apart = sample.offset_ns - best.offset_ns;
    return std::max(apart, -apart) <= sample.error_ns + error_at(best, sample.taken_ns);
}

std::int64_t RoundTrip::error_at(const Sample& sample, std::int64_t now) noexcept {
    return sample.error_ns + drift(now - sample.taken_ns);
}

std::optional<RoundTrip::Estimate> RoundTrip::offset(std::int64_t now) const noexcept {
    if (empty() || !is_time(now)) return std::nullopt;
    const Sample& best = samples_[best_];
    return Estimate{best.offset_ns, error_at(best, now)};
}

std::optional<RoundTrip::Estimate> RoundTrip::own_time(std::int64_t other_ns,
                                                       std::int64_t now) const noexcept {
    const auto known = offset(now);
    if (!known || !is_time(other_ns)) return std::nullopt;
    return Estimate{other_ns - known->value_ns, known->error_ns};
}

}  // namespace rmem
