// SPDX-License-Identifier: Apache-2.0
#include "bridge/sender.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"

#include <algorithm>
#include <utility>

namespace bridge {

namespace {}  // namespace

// ---- A limit

Sender::Limit::Limit(std::uint64_t per_second)
    : per_ns_(static_cast<double>(per_second) / static_cast<double>(rmem::kNsPerSecond)),
      most_(std::max(per_ns_ * static_cast<double>(kBurstNs), 1.0)),
      left_(most_) {}

bool Sender::Limit::allows(std::int64_t now_ns) {
    if (per_ns_ == 0) return true;
    left_ = std::min(most_, left_ + per_ns_ * static_cast<double>(now_ns - at_ns_));
    at_ns_ = now_ns;
    return left_ > 0;
}

std::int64_t Sender::Limit::due_ns(std::int64_t now_ns) const {
    if (per_ns_ == 0 || left_ > 0) return now_ns;
    return at_ns_ + static_cast<std::int64_t>(-left_ / per_ns_) + 1;
}

Sender::Region::Region(SentRegion region)
    : sent(std::move(region)),
      image(sent.bytes / kWordBytes),
      bytes(sent.bytes_per_second),
      writes(sent.writes_per_second) {
    for (const rmem::WordRange& range : sent.sync)
        image.set_sync((range.offset - sent.offset) / kWordBytes, range.bytes / kWordBytes);
}

Sender::Sender(std::vector<SentRegion> regions) {
    for (SentRegion& region : regions) regions_.emplace_back(std::move(region));
}

void Sender::come_to(std::int64_t now_ns) {
    RMEM_CHECK(now_ns >= latest_ns_);
    latest_ns_ = now_ns;
}

void Sender::check_window() const {
    RMEM_CHECK(unacknowledged_.empty() == (unacknowledged_bytes_ == 0));
    RMEM_CHECK(unacknowledged_.empty() ||
               unacknowledged_.front().number + unacknowledged_.size() == number_ + 1);
}

// ---- The source

void Sender::begin_anew(std::int64_t now_ns) {
    come_to(now_ns);
    open_.clear();
    for (Region& region : regions_) {
        note_behind(region, now_ns);
        region.is_fresh = true;
        region.image.forget();
    }
}

void Sender::take_seen(const SourceWrite& write, std::int64_t now_ns) {
    come_to(now_ns);
    for (Region& region : regions_) {
        const std::uint64_t begin = std::max(write.offset, region.sent.offset);
        const std::uint64_t end =
            std::min(write.offset + write.words.size(), region.sent.offset + region.sent.bytes);
        if (begin >= end) continue;
        note_behind(region, now_ns);
        region.image.put((begin - region.sent.offset) / kWordBytes,
                         write.words.subspan(begin - write.offset, end - begin), write.is_interrupt,
                         true, write.part);
    }
}

void Sender::take(const SourceWrite& write, std::int64_t now_ns) {
    come_to(now_ns);
    Open& open = open_of(write, now_ns);
    for (std::size_t r = 0; r < regions_.size(); ++r) {
        const SentRegion& region = regions_[r].sent;
        if (write.offset < region.offset + region.bytes &&
            region.offset < write.offset + write.words.size())
            take_part(open, r, write, now_ns);
    }
    if (write.has_more) return;
    send(open, now_ns);
    std::swap(open, open_.back());
    open_.pop_back();
}

Sender::Open& Sender::open_of(const SourceWrite& write, std::int64_t now_ns) {
    const auto found = std::find_if(open_.begin(), open_.end(),
                                    [&](const Open& each) { return each.origin == write.origin; });
    if (found != open_.end()) return *found;
    Open& open = open_.emplace_back();
    open.origin = write.origin;
    open.stored_ns = write.stored_ns;
    open.since_ns = now_ns;
    return open;
}

/// Once the begin of a commit leaves, all of it does; where it does not, its region is behind, and
/// so the rest does not either until a copy has been sent.
bool Sender::admits(Open& open, std::size_t index, std::int64_t now_ns) {
    const std::uint64_t bit = std::uint64_t{1} << index;
    if ((open.admitted & bit) != 0) return true;
    Region& region = regions_[index];
    is_full_ = is_full_ || unacknowledged_bytes_ >= kWindowBytes;
    const bool is_admitted = region.is_open && !is_full_ && !region.image.is_dirty() &&
                             region.bytes.allows(now_ns) && region.writes.allows(now_ns);
    if (is_admitted) open.admitted |= bit;
    return is_admitted;
}

void Sender::take_part(Open& open, std::size_t index, const SourceWrite& write,
                       std::int64_t now_ns) {
    Region& region = regions_[index];
    const std::uint64_t begin = std::max(write.offset, region.sent.offset);
    const std::uint64_t end =
        std::min(write.offset + write.words.size(), region.sent.offset + region.sent.bytes);
    const std::size_t word = (begin - region.sent.offset) / kWordBytes;
    const bool is_sent = admits(open, index, now_ns);
    if (!is_sent) {
        note_behind(region, now_ns);
        region.is_fresh = true;
    }
    const auto words =
        region.image.put(word, write.words.subspan(begin - write.offset, end - begin),
                         write.is_interrupt, !is_sent, write.part);
    if (!is_sent) {
        if (region.is_open) ++counts_.conflated;
        return;
    }
    put(open, index, word, words, write.is_interrupt, now_ns);
    region.bytes.spend(words.size());
    region.writes.spend(1);
}

void Sender::note_behind(Region& region, std::int64_t now_ns) {
    if (!region.image.is_dirty()) region.behind_since_ns = now_ns;
}

void Sender::mark(std::uint64_t offset, std::int64_t now_ns) {
    for (Region& region : regions_) {
        if (offset < region.sent.offset || offset - region.sent.offset >= region.sent.bytes)
            continue;
        note_behind(region, now_ns);
        region.image.mark((offset - region.sent.offset) / kWordBytes);
    }
}

// ---- Frames

/// Longer ones are several.
void Sender::put(Open& open, std::size_t region, std::size_t word, std::span<const std::byte> words,
                 bool has_mark, std::int64_t now_ns) {
    RMEM_CHECK(regions_[region].is_open);
    while (!words.empty()) {
        if (open.count == kMaxPieces || open.bytes == kMaxFrameBytes) send(open, now_ns);
        const auto part =
            words.first(std::min<std::size_t>(words.size(), kMaxFrameBytes - open.bytes));
        append_piece(open.pieces, {static_cast<std::uint16_t>(region),
                                   has_mark ? Piece::kInterrupt : std::uint16_t{0},
                                   static_cast<std::uint32_t>(word), part});
        ++open.count;
        open.bytes += part.size();
        word += part.size() / kWordBytes;
        words = words.subspan(part.size());
    }
}

void Sender::send(Open& open, std::int64_t now_ns) {
    if (open.count == 0) return;
    const std::size_t before = out_.bytes().size();
    write_frame(out_.bytes(), {++number_, open.flags, open.stored_ns}, open.pieces);
    const std::size_t bytes = out_.bytes().size() - before;
    if (unacknowledged_.empty()) heard_ns_ = now_ns;
    unacknowledged_.push_back({number_, bytes, now_ns});
    unacknowledged_bytes_ += bytes;
    check_window();
    counts_.writes += open.count;
    counts_.bytes += open.bytes;
    ++counts_.frames;
    open.pieces.clear();
    open.count = 0;
    open.bytes = 0;
}

/// What has come of commits that are not whole: nothing may overtake it.
void Sender::send_open(std::int64_t now_ns) {
    for (Open& open : open_) {
        send(open, now_ns);
        open.admitted = 0;
    }
}

void Sender::pump(std::int64_t now_ns) {
    come_to(now_ns);
    if (is_full_ && unacknowledged_bytes_ <= kWindowBytes / 2) is_full_ = false;
    std::erase_if(open_, [&](Open& open) {
        if (now_ns - open.since_ns < kUnfinishedNs) return false;
        send(open, now_ns);
        return true;
    });
    if (!is_full_) copy(now_ns);
}

/// All regions that may be copied, at once: so an origin's words of several keep their order.
void Sender::copy(std::int64_t now_ns) {
    std::vector<std::size_t> wanted;
    for (std::size_t r = 0; r < regions_.size(); ++r) {
        Region& region = regions_[r];
        if (region.is_open && region.image.is_dirty() && region.bytes.allows(now_ns) &&
            region.writes.allows(now_ns))
            wanted.push_back(r);
    }
    if (wanted.empty()) return;
    send_open(now_ns);
    Open copied;
    copied.flags = FrameHead::kCopy;
    copied.stored_ns = now_ns;
    for (const Image::Pass pass : {Image::Pass::others, Image::Pass::sync}) {
        for (const std::size_t r : wanted) {
            Region& region = regions_[r];
            region.image.copy(pass, kMaxFrameBytes / kWordBytes,
                              [&](std::size_t word, std::span<const std::byte> words, bool mark) {
                                  put(copied, r, word, words, mark, now_ns);
                                  region.bytes.spend(words.size());
                                  region.writes.spend(1);
                              });
        }
    }
    send(copied, now_ns);
    for (const std::size_t r : wanted) {
        if (std::exchange(regions_[r].is_fresh, false)) ++counts_.copies;
    }
}

// ---- The line

void Sender::open(std::size_t index, std::int64_t now_ns) {
    regions_[index].is_open = true;
    regions_[index].is_fresh = true;
    regions_[index].behind_since_ns = now_ns;
    regions_[index].image.set_all_dirty();
}

void Sender::close(std::size_t index) {
    regions_[index].is_open = false;
    regions_[index].image.set_all_dirty();
    // What is to come of commits that have begun does not leave.
    for (Open& open : open_) open.admitted &= ~(std::uint64_t{1} << index);
}

void Sender::close_all() {
    for (std::size_t r = 0; r < regions_.size(); ++r) close(r);
    out_ = {};
    open_.clear();
    unacknowledged_.clear();
    unacknowledged_bytes_ = 0;
    number_ = 0;
    is_full_ = false;
}

bool Sender::acknowledge(std::uint64_t number, std::int64_t now_ns) {
    come_to(now_ns);
    if (number > number_) return false;
    while (!unacknowledged_.empty() && unacknowledged_.front().number <= number) {
        unacknowledged_bytes_ -= unacknowledged_.front().bytes;
        unacknowledged_.pop_front();
        heard_ns_ = now_ns;
    }
    check_window();
    return true;
}

std::int64_t Sender::due_ns(std::int64_t now_ns) const {
    std::int64_t due = rmem::kNever;
    for (const Open& open : open_) due = std::min(due, open.since_ns + kUnfinishedNs);
    if (is_full_ && unacknowledged_bytes_ > kWindowBytes / 2) return due;
    for (const Region& region : regions_) {
        if (!region.is_open || !region.image.is_dirty()) continue;
        due = std::min(due, std::max(region.bytes.due_ns(now_ns), region.writes.due_ns(now_ns)));
    }
    return due;
}

std::int64_t Sender::silent_since_ns() const {
    return unacknowledged_.empty() ? rmem::kNever : heard_ns_;
}

std::int64_t Sender::lag_ns(std::int64_t now_ns) const {
    std::int64_t since = unacknowledged_.empty() ? now_ns : unacknowledged_.front().at_ns;
    for (const Region& region : regions_) {
        if (region.is_open && region.image.is_dirty())
            since = std::min(since, region.behind_since_ns);
    }
    return now_ns - since;
}

}  // namespace bridge
