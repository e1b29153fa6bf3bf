// SPDX-License-Identifier: Apache-2.0
#include "frames.hpp"

#include <fmt/format.h>

#include <stdexcept>

namespace cockpit {
namespace {

constexpr std::int64_t kSecond = 1'000'000'000;
constexpr std::int64_t kBoardingNs = 30 * kSecond;  ///< others may still be starting
constexpr std::int64_t kSilenceNs = 10 * kSecond;  ///< longer than the slowest pause between frames
constexpr std::int64_t kCallNs = kSecond / 50;     ///< between a reader's calls "present"

[[noreturn]] void give_up(unsigned seat, const char* what) {
    throw std::runtime_error(fmt::format("seat {} {}: is its process alive?", seat, what));
}

}  // namespace

void put(rmem::Node& node, std::size_t offset, const void* from, std::size_t bytes) {
    rmem::WriteResult result;
    while ((result = node.write(offset, from, bytes)) == rmem::WriteResult::again) node.poll();
    if (result == rmem::WriteResult::dropped) give_up(node.id(), "was dropped by the others");
}

void put(rmem::Node& node, std::size_t offset, std::uint32_t value) {
    put(node, offset, &value, sizeof value);
}

// ---- FrameWriter

FrameWriter::FrameWriter(rmem::Node& node, std::uint32_t frames) : node_(node) {
    const auto deadline = rmem::Deadline::in(kBoardingNs);
    for (unsigned seat = 1; seat < node_.config().nodes; ++seat) {
        const auto word = place(seat, SeatWord::present);
        if (node_.wait_change(word, 0, deadline) == 0) give_up(seat, "did not board in 30 s");
    }
    put(node_, kFrames, frames);
    put(node_, kPhase, flying);
}

void FrameWriter::write(const Frame& frame) {
    put(node_, kBegun, frame.number);
    put(node_, kState, &frame.state, sizeof frame.state);
    put(node_, kDone, frame.number);
}

void FrameWriter::wait_for_readers(std::uint32_t frame) {
    for (unsigned seat = 1; seat < node_.config().nodes; ++seat) {
        const auto deadline = rmem::Deadline::in(kSilenceNs);
        const auto word = place(seat, SeatWord::seen);
        for (auto seen = node_.load(word); seen != frame;) {
            const auto now = node_.wait_change(word, seen, deadline);
            if (now == seen) give_up(seat, "has worked through no frame for 10 s");
            seen = now;
        }
    }
}

void FrameWriter::end() {
    put(node_, kPhase, ended);
    if (!node_.flush(rmem::Deadline::in(kSilenceNs))) {
        throw std::runtime_error("not every seat has the last frame after 10 s");
    }
}

// ---- FrameReader

FrameReader::FrameReader(rmem::Node& node) : node_(node) {
    node_.watch(kDone, kPhase + sizeof(std::uint32_t) - kDone);
    // Said again and again, because an aircraft that joins later does not hear what was said
    // before.
    const auto deadline = rmem::Deadline::in(kBoardingNs);
    while (node_.load(kPhase) == boarding) {
        if (deadline.passed(rmem::now_ns())) give_up(aircraft, "did not take off in 30 s");
        put(node_, place(node_.id(), SeatWord::present), 1);
        node_.wait_change(kPhase, boarding, rmem::Deadline::in(kCallNs));
    }
}

std::optional<Frame> FrameReader::next() {
    for (bool again = false;;) {
        Frame frame;
        frame.number = node_.load(kDone);
        if (frame.number != last_) {
            node_.read(kState, &frame.state, sizeof frame.state);
            if (node_.load(kBegun) != frame.number) {
                again = true;
                continue;
            }
            ++seen_;
            if (again) ++torn_;
            missed_ += frame.number - last_ - 1;
            last_ = frame.number;
            return frame;
        }
        // The phase ends after the last frame is done, so nothing comes after this.
        if (node_.load(kPhase) == ended && node_.load(kDone) == last_) return std::nullopt;
        sleep();
    }
}

void FrameReader::release(const Frame& frame) {
    put(node_, place(node_.id(), SeatWord::missed), missed_);
    put(node_, place(node_.id(), SeatWord::seen), frame.number);
}

/// An interrupt may be one of a frame that was read already: the caller looks and sleeps again.
void FrameReader::sleep() {
    if (!node_.next_interrupt(rmem::Deadline::in(kSilenceNs)) && node_.load(kDone) == last_ &&
        node_.load(kPhase) != ended) {
        give_up(aircraft, "has written no frame for 10 s");
    }
}

}  // namespace cockpit
