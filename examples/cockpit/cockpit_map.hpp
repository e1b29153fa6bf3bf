// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The cockpit's memory map: the places of values in the reflective memory, and their writers.
///
/// offset  words  writer    what
/// 0x000   1      aircraft  begun: number of the frame whose state is being written
/// 0x004   1      aircraft  done: number of the frame whose state is complete; the word to wake on
/// 0x008   1      aircraft  phase: 0 boarding, 1 flying, 2 ended
/// 0x00c   1      aircraft  frames: how many the flight will have
/// 0x040   12     aircraft  the state of frame `done` (FlightState)
/// 0x100   4      seat 1    the state of seat 1 (SeatWord); seat s at 0x100 + 0x40 (s - 1)
///
/// Every word has one writer. All are 32 bits: counters unsigned, quantities IEEE 754 floats.
///
/// Reading a frame   A write has no order inside, but writes of one node arrive in the order
///                   written:
///   the aircraft writes begun, the state, done. So a seat that reads done, then the state, then
///   begun, and finds the two numbers equal, has a whole frame; otherwise the next frame was on its
///   way in, and one reads again.
/// Frames are numbered from 1 and last kFrameSeconds each; 0 means that there is none yet.

#include <cstddef>
#include <cstdint>
#include <numbers>

namespace cockpit {

inline constexpr std::size_t kBegun = 0x000;
inline constexpr std::size_t kDone = 0x004;
inline constexpr std::size_t kPhase = 0x008;
inline constexpr std::size_t kFrames = 0x00c;
inline constexpr std::size_t kState = 0x040;
inline constexpr std::size_t kFirstSeat = 0x100;
inline constexpr std::size_t kSeatStride = 0x040;

inline constexpr double kFrameSeconds = 0.01;
inline constexpr double kDegrees = 180 / std::numbers::pi;  ///< of a radian

enum Phase : std::uint32_t { boarding = 0, flying = 1, ended = 2 };

/// Earth is flat, north is heading 0, east is +90 degrees; right bank is positive.
struct FlightState {
    float time_s;            ///< 0x040
    float north_m;           ///< 0x044
    float east_m;            ///< 0x048
    float altitude_m;        ///< 0x04c above the sea
    float speed_mps;         ///< 0x050 through the air
    float path_rad;          ///< 0x054 flight path angle, positive climbing
    float heading_rad;       ///< 0x058
    float bank_rad;          ///< 0x05c
    float throttle;          ///< 0x060 0 to 1
    float load_factor;       ///< 0x064 lift over weight
    float lift_coefficient;  ///< 0x068
    float thrust_n;          ///< 0x06c
};
static_assert(sizeof(FlightState) == 12 * 4);

/// A quantity of the map, to compute with.
constexpr double wide(float value) {
    return static_cast<double>(value);
}

/// The nodes of the ring, by id.
enum Seat : unsigned { aircraft = 0, logger = 1, panel = 2, monitor = 3, seats };

enum class SeatWord : std::size_t {
    present = 0x0,  ///< 1 once the seat is taken
    seen = 0x4,     ///< the last frame that it has worked through
    missed = 0x8,   ///< frames that it never saw
    alarms = 0xc    ///< the monitor's: Alarm bits
};

constexpr std::size_t place(unsigned seat, SeatWord word) {
    return kFirstSeat + (seat - 1) * kSeatStride + static_cast<std::size_t>(word);
}

enum Alarm : std::uint32_t {
    steep_bank = 1U << 0,   ///< more than 40 degrees
    low_speed = 1U << 1,    ///< less than 1.2 times what stalls at this load
    high_speed = 1U << 2,   ///< more than 70 m/s
    fast_descent = 1U << 3  ///< more than 5 m/s
};

}  // namespace cockpit
