// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A connection of two sides, 0 and 1, over the simulator's network: bytes come in order, late and
/// in any pieces, until it is cut. What was under way is lost then, in one direction or in both;
/// each side learns of it at its own time, and the next connection comes when both have.
///
///     if (line.number(0) != own) …            // 0: there is none
///     line.send(0, end.out(), now_ns);
///     const auto came = line.take(1, now_ns);
///
/// Thread safety: none. Equal seeds and calls give equal bytes. Units: nanoseconds.

#include "rmem/base/frames.hpp"
#include "rmem/base/random.hpp"
#include "simulator/udp_hunt/network.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

namespace rmem::test {

class CutLine {
public:
    static constexpr std::int64_t kLongestNs = 2'000'000;  ///< until a side learns of a cut

    /// `lost`: pieces of a thousand that cut it.
    CutLine(std::uint64_t seed, unsigned lost)
        : random_(seed), network_(2, seed, weather(lost), simulator::Network::Kind::fabric) {}

    /// Which connection a side has, from 1.
    [[nodiscard]] std::uint64_t number(unsigned side) const { return sides_.at(side).number; }
    [[nodiscard]] std::uint64_t cuts() const { return cuts_; }

    void cut(std::int64_t now_ns) {
        if (is_cut_ || number_ == 0) return;
        is_cut_ = true;
        ++cuts_;
        for (Side& side : sides_) side.learns_ns = now_ns + random_.between(0, kLongestNs);
    }
    /// Sides learn what is due. False: there is no connection at either.
    void run(std::int64_t now_ns, bool comes_back = true) {
        for (Side& side : sides_)
            if (is_cut_ && now_ns >= side.learns_ns) side.number = 0;
        const bool is_free = sides_[0].number == 0 && sides_[1].number == 0;
        if (!is_free || !comes_back) return;
        is_cut_ = false;
        ++number_;
        for (Side& side : sides_) side = {number_, 0, {}};
    }
    void send(unsigned side, ByteQueue& out, std::int64_t now_ns) {
        while (sides_.at(side).number != 0 && !out.empty()) {
            const auto left = out.left();
            const auto most = 1 + random_.below(random_.one_in(4) ? 40'000 : 40);
            const auto piece = left.first(std::min<std::size_t>(left.size(), most));
            std::vector<std::byte> bytes(sizeof number_ + piece.size());
            std::memcpy(bytes.data(), &sides_.at(side).number, sizeof number_);
            std::memcpy(bytes.data() + sizeof number_, piece.data(), piece.size());
            out.sent(piece.size());
            const std::uint64_t lost = network_.counts().lost;
            if (!is_cut_) network_.post(side, bytes, now_ns);
            if (network_.counts().lost != lost) cut(now_ns);
        }
    }
    [[nodiscard]] std::vector<std::byte> take(unsigned side, std::int64_t now_ns) {
        while (auto arrival = network_.take(now_ns)) {
            Side& to = sides_.at(arrival->to);
            std::uint64_t number = 0;
            std::memcpy(&number, arrival->bytes.data(), sizeof number);
            if (number != to.number) continue;
            to.came.insert(to.came.end(), arrival->bytes.begin() + sizeof number,
                           arrival->bytes.end());
        }
        return std::exchange(sides_.at(side).came, {});
    }

private:
    struct Side {
        std::uint64_t number = 0;
        std::int64_t learns_ns = 0;
        std::vector<std::byte> came;
    };

    static simulator::Weather weather(unsigned lost) {
        simulator::Weather weather;
        weather.of(simulator::Weather::Fault::drop) = lost;
        weather.jitter_ns = 200'000;
        return weather;
    }

    Random random_;
    simulator::Network network_;
    std::array<Side, 2> sides_;
    std::uint64_t number_ = 0, cuts_ = 0;
    bool is_cut_ = false;
};

}  // namespace rmem::test
