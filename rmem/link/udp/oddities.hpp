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
    /// Whether one of them was noted first, or from another address, since this was asked last.
    [[nodiscard]] bool has_news() noexcept;

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
    bool has_news_ = false;
};

}  // namespace rmem::udp
