// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A rank that is no GAMMA process, and says so to those that are: gamma_init waits for all ranks
/// of a ring.
///
/// For programs that hold a rank for something else, and never call gamma_init: MU-Net's daemon.
/// Thread safety: that of the endpoint, which outlives it. Progress: look() does not wait; what
/// finds no room is answered at a later look. Errors: none; what is no greeting is dropped.

#include "ports/common/port_endpoint.hpp"
#include "ports/gamma/frame.hpp"

#include <array>
#include <vector>

namespace ports::gamma {

class NonMember {
public:
    explicit NonMember(billboard::Endpoint& endpoint)
        : endpoint_(endpoint), has_asked_(endpoint.ranks()) {}

    /// Takes in what has come in class gamma, a bounded number, and answers.
    void look();

private:
    static constexpr unsigned kFramesPerLook = 32;

    void take_in();
    bool answer(int rank);

    const PortEndpoint<billboard::Class::gamma> endpoint_;
    std::vector<bool> has_asked_;
};

inline void NonMember::look() {
    take_in();
    for (unsigned r = 0; r < has_asked_.size(); ++r) {
        if (has_asked_[r] && answer(static_cast<int>(r))) has_asked_[r] = false;
    }
}

inline void NonMember::take_in() {
    std::array<std::byte, billboard::kTakenBytes> small;
    billboard::Bytes frame;
    for (unsigned n = 0; n < kFramesPerLook; ++n) {
        const int from = endpoint_.take(small, frame, Deadline::now());
        if (from < 0) return;
        const Header header =
            Header::of(frame.size() < kHeaderBytes ? 0 : word_at(frame.data(), 0));
        if (header.kind == Kind::hello && (header.flags & kAnswer) == 0)
            has_asked_[static_cast<unsigned>(from)] = true;
        endpoint_.release(small.data(), frame);
    }
}

/// Whether that needs no other attempt.
inline bool NonMember::answer(int rank) {
    std::array<std::byte, kHelloBytes> hello{};
    put_word(hello.data(), 0, Header{Kind::hello, kAnswer, 0, 0, 0}.word());
    put_word(hello.data(), 8, kVersion);
    const int result = endpoint_.send(rank, hello.data(), hello.size(), Deadline::now());
    return result == BBP_OK || result == BBP_EPEER;
}

}  // namespace ports::gamma
