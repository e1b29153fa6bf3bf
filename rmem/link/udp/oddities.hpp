// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What a node has heard of others that it refuses, as sentences for people: another key, another
/// ring, other settings, its own number in another process.
///
/// Only what was heard within kRecentNs counts. Thread safety: one user at a time. Units:
/// nanoseconds.

#include "rmem/link/carrier/endpoints.hpp"
#include "rmem/link/udp/protocol/exchange.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace rmem::udp {

class RMEM_API Oddities {
public:
    static constexpr std::int64_t kRecentNs = 10'000'000'000;

    /// `about`: what this node says of its ring (engine_settings.hpp: about()).
    Oddities(std::string ring, unsigned node, std::string about);

    /// `from`: 0 when it is not known. `text`: what a datagram of another ring says of it.
    void note(Odd odd, unsigned origin, Ip from, std::string_view text, std::int64_t now);
    /// All that counts, the weightiest first, without a full stop; empty: nothing.
    std::string text(std::int64_t now) const;
    /// Whether anything counts.
    bool are_recent(std::int64_t now) const noexcept { return now - newest_ns_ <= kRecentNs; }
    /// How often another process had this node's number.
    std::uint64_t namesakes() const noexcept { return namesakes_; }

private:
    struct Heard {
        std::int64_t at_ns = -1;  ///< -1: never
        unsigned origin = 0;
        Ip from = 0;
        std::string text;
    };
    std::string sentence(Odd odd, const Heard& heard) const;

    std::string ring_;
    unsigned node_;
    std::string about_;
    std::array<Heard, static_cast<std::size_t>(Odd::count_)> heard_;
    std::int64_t newest_ns_ = INT64_MIN / 2;
    std::uint64_t namesakes_ = 0;
};

}  // namespace rmem::udp
