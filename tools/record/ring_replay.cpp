// SPDX-License-Identifier: Apache-2.0
#include "tools/record/ring_replay.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"
#include "tools/output.hpp"
#include "tools/watch/outside_write.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

namespace tools {

using rmem::PlaySpeed;
using rmem::RecordedWrite;

namespace {

constexpr std::int64_t kRoomNs = 10'000'000'000;
/// How long before its time a write is waited for awake: a sleep ends some tens of microseconds
/// late.
constexpr std::int64_t kAwakeNs = 100'000;
constexpr std::size_t kImageWriteBytes = 1024;

}  // namespace

RingReplay::RingReplay(rmem::Node& node, rmem::RecordingReader& reader, const Selection& selection,
                       const StopSignals& stop)
    : node_(node),
      reader_(reader),
      selection_(selection),
      stop_(stop),
      image_(selection.node ? 0 : node.size()) {
    RMEM_CHECK(selection_.from_ns <= selection_.until_ns);
}

void RingReplay::run(PlaySpeed speed, const Steps& steps) {
    const std::int64_t first_ns = std::max(selection_.from_ns, reader_.info().start_ns);
    std::optional<rmem::Player> player;
    const auto begin = [&] {
        write_image();
        player.emplace(speed, first_ns, rmem::now_ns());
    };
    RecordedWrite write;
    while (stop_.signal() == 0 && reader_.next(write)) {
        if (!player && is_before(write)) note(write);
        if (is_before(write) ? !is_belated(write, player.has_value()) : !selection_.takes(write)) {
            continue;
        }
        if (!player) begin();
        if (!wait_for(*player, write, steps)) break;
        if (speed.kind == PlaySpeed::Kind::timed) note_lateness(*player, write);
        play(write);
    }
    if (!player && stop_.signal() == 0) begin();
    const bool done = node_.flush(rmem::Deadline::in(kRoomNs));
    if (!done) {
        throw rmem::Error(
            rmem::Errc::timed_out,
            fmt::format("not every live node of ring '{}' applied the writes within {}; "
                        "`rmem info {}` shows who is stopped",
                        node_.config().name, duration_text(kRoomNs), node_.config().name));
    }
}

bool RingReplay::is_before(const RecordedWrite& write) const noexcept {
    return (write.flags & RecordedWrite::kAtStart) != 0 || write.time_ns < selection_.from_ns;
}

/// Of the time before, but recorded after writes that have been played: it belongs to the memory
/// anyway.
bool RingReplay::is_belated(const RecordedWrite& write, bool has_begun) const noexcept {
    return has_begun && !selection_.node && (write.flags & RecordedWrite::kAtStart) == 0;
}

/// Into the memory where the replay begins.
void RingReplay::note(const RecordedWrite& write) {
    if (write.offset >= image_.size()) return;
    rmem::for_each_run(write.part(), write.words,
                       [&](std::size_t at, std::span<const std::byte> bytes) {
                           const std::size_t place = std::min(write.offset + at, image_.size());
                           std::copy_n(bytes.data(), std::min(bytes.size(), image_.size() - place),
                                       image_.data() + place);
                       });
}

void RingReplay::write_image() {
    const std::vector<std::byte> image = std::exchange(image_, {});
    node_.set_data_filter(true);
    for (std::size_t at = 0; at < image.size(); at += kImageWriteBytes) {
        write_with_patience(
            node_, at, std::span(image).subspan(at, std::min(kImageWriteBytes, image.size() - at)));
    }
    node_.set_data_filter(false);
}

/// Waits until the write is due. False if it is not to be played any more.
bool RingReplay::wait_for(rmem::Player& player, const RecordedWrite& write, const Steps& steps) {
    while (!player.take(write.time_ns, rmem::now_ns())) {
        const std::int64_t due = player.due_ns(write.time_ns);
        if (due != rmem::kNever) {
            sleep_until(due);
        } else if (const std::uint64_t more = steps(write); more != 0) {
            player.step(more);
        } else {
            return false;
        }
        if (stop_.signal() != 0) return false;
    }
    return true;
}

void RingReplay::sleep_until(std::int64_t due_ns) {
    node_.poll();
    if (due_ns - rmem::now_ns() > kAwakeNs) stop_.sleep_until(due_ns - kAwakeNs);
}

void RingReplay::note_lateness(const rmem::Player& player, const RecordedWrite& write) noexcept {
    if (write.time_ns < newest_ns_) return;  // its time steps back
    newest_ns_ = write.time_ns;
    const std::int64_t late = rmem::now_ns() - player.due_ns(write.time_ns);
    result_.latest_ns = std::max(result_.latest_ns, late);
}

void RingReplay::play(RecordedWrite write) {
    if ((write.flags & RecordedWrite::kMissed) != 0) {
        ++result_.missed;
        return;
    }
    const std::uint64_t room = node_.size() - std::min<std::uint64_t>(write.offset, node_.size());
    if (write.words.size() > room) {
        ++result_.outside;
        write.words = write.words.first(room);
    }
    if (write.words.empty()) return;
    const bool marked = (write.flags & RecordedWrite::kInterrupt) != 0;
    RMEM_CHECK(write.offset + write.words.size() <= node_.size());
    if (marked) node_.mark(write.offset, write.words.size());
    write_with_patience(node_, write.offset, write.words, write.part());
    if (marked) node_.unmark(write.offset, write.words.size());
    ++result_.writes;
    result_.bytes += write.words.size();
}

}  // namespace tools
