// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/go_back_n.hpp"

#include "rmem/base/time.hpp"

#include <algorithm>

namespace ports::dp {

std::int64_t GoBackNSender::patience_ns() const noexcept {
    const std::int64_t measured =
        smooth_ns_ == 0
            ? kFirstPatienceNs
            : std::max(smooth_ns_ + std::max(4 * variation_ns_, smooth_ns_ / 2), kLeastPatienceNs);
    return std::min(measured << std::min(doublings_, 20U), kMaxPatienceNs);
}

bool GoBackNSender::sent(std::int64_t now) noexcept {
    RMEM_CHECK(sent_ < kept_.size() && ever_sent_ <= kept_.size());
    const bool again = sent_ < ever_sent_;
    if (sent_ == 0) since_ns_ = now;
    if (!again && !sampling_) {
        sampling_ = true;
        sample_ = sequence_to_send();
        sample_ns_ = now;
    }
    ++sent_;
    ever_sent_ = std::max(ever_sent_, sent_);
    return again;
}

void GoBackNSender::go_back() noexcept {
    sent_ = 0;
    sampling_ = false;  // what is sent again tells no round trip
}

void GoBackNSender::lose() noexcept {
    window_ = std::max<std::size_t>(window_ / 2, 1);
    acknowledged_ = 0;
}

void GoBackNSender::measure(std::int64_t round_trip) noexcept {
    if (smooth_ns_ == 0) {
        smooth_ns_ = shortest_ns_ = std::max<std::int64_t>(round_trip, 1);
        variation_ns_ = round_trip / 2;
        return;
    }
    const std::int64_t difference = round_trip - smooth_ns_;
    smooth_ns_ += difference / 8;
    variation_ns_ += (std::abs(difference) - variation_ns_) / 4;
    shortest_ns_ = std::max<std::int64_t>(std::min(shortest_ns_, round_trip), 1);
}

void GoBackNSender::on_ack(std::uint32_t awaited, bool gap, std::int64_t now) {
    const std::uint32_t acknowledged = awaited - first_;
    if (acknowledged > ever_sent_) return;  // old, or invalid
    if (sampling_ && static_cast<std::int32_t>(awaited - sample_) > 0) {
        measure(now - sample_ns_);
        sampling_ = false;
        doublings_ = 0;
    }
    if (acknowledged != 0) {
        kept_.erase(kept_.begin(), kept_.begin() + acknowledged);
        first_ = awaited;
        sent_ -= std::min<std::size_t>(sent_, acknowledged);
        ever_sent_ -= acknowledged;
        since_ns_ = now;
        silences_ = 0;
        acknowledged_ += acknowledged;
        if (acknowledged_ >= window_ && smooth_ns_ < 2 * shortest_ns_) {
            window_ = std::min(window_ + 1, kMaxWindow);
            acknowledged_ = 0;
        }
    }
    if (!gap) return;
    silences_ = 0;
    if (static_cast<std::int32_t>(first_ - lost_before_) >= 0) {  // one loss is told by many
        lose();
        lost_before_ = first_ + static_cast<std::uint32_t>(ever_sent_);
    }
    go_back();
}

bool GoBackNSender::on_tick(std::int64_t now) noexcept {
    if (now < next_tick_ns()) return false;
    ++silences_;
    ++doublings_;
    since_ns_ = now;
    lose();
    lost_before_ = first_ + static_cast<std::uint32_t>(ever_sent_);
    go_back();
    return true;
}

std::int64_t GoBackNSender::next_tick_ns() const noexcept {
    if (sent_ == 0 || is_broken()) return rmem::kNever;
    return since_ns_ + patience_ns();
}

GoBackNReceiver::Verdict GoBackNReceiver::on_message(std::uint16_t generation,
                                                     std::uint32_t sequence) noexcept {
    if (!met_ || generation != generation_) {
        if (sequence != first_) return Verdict::unknown;
        *this = GoBackNReceiver(first_);
        met_ = true;
        generation_ = generation;
    }
    if (sequence == awaited_) return Verdict::deliver;
    if (static_cast<std::int32_t>(sequence - awaited_) < 0) {
        owed_ = kAckEvery;  // its answer was lost, or is late
        return Verdict::old;
    }
    if (!told_gap_ && !blocked_) gap_ = told_gap_ = true;
    return Verdict::gap;
}

void GoBackNReceiver::has_room_again() noexcept {
    blocked_ = false;
    gap_ = told_gap_ = true;
}

}  // namespace ports::dp
