// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Where more than kBellRanks ranks share one bank, a word per pair that counts posts, so that a
/// receiver of BBP_ANY looks at few lines: its senders' words are dense. Elsewhere it does nothing.
///
/// Thread safety: one thread. Progress: every call is wait-free. Trust: a bell is a hint; the
/// message that it announces is looked for.

#include "billboard/boards/bell_scan.hpp"
#include "billboard/boards/layout.hpp"
#include "rmem/base/marks.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace billboard {

template <class M>
class Bells {
public:
    Bells(M& memory, const Geometry& geometry, unsigned me)
        : memory_(memory),
          geometry_(geometry),
          me_(me),
          on_(!M::kReplicated && geometry.ranks() > kBellRanks),
          heads_((geometry.ranks() + kScanBlock - 1) / kScanBlock * kScanBlock, 0) {}

    bool are_used() const { return on_; }

    // ---- Of a sender: of the messages to s, `count` so far
    [[gnu::always_inline]] void ring(unsigned s, std::uint32_t count) {
        if (!on_) [[likely]]
            return;
        RMEM_MARK("post.before-bell");
        memory_.post_word(geometry_.bell(s, me_), count);
    }
    void reset(unsigned s) {
        if (on_) memory_.post_word(geometry_.bell(s, me_), 0);
    }

    // ---- Of a receiver
    void open(unsigned s) { heads_[s] = 0; }
    /// What s has rung is not looked for any more: a dead peer may owe a message.
    void close(unsigned s) {
        if (on_) heads_[s] = memory_.load(geometry_.bell(me_, s));
    }
    [[gnu::always_inline]] void taken(unsigned s) {
        if (on_) [[unlikely]]
            ++heads_[s];
    }
    /// False only if nobody has rung for a message that was not taken.
    bool have_rung() const {
        return any_difference(words(), heads_.data(), static_cast<unsigned>(heads_.size()));
    }
    /// The first rank from `first` on, in rank order, whose bell says that `has_next(rank)`; or -1.
    template <class HasNext>
    int find(unsigned first, HasNext&& has_next) const {
        const auto find_in = [&](unsigned from, unsigned to) {
            for (unsigned s = from; (s = next_difference(words(), heads_.data(), s, to)) < to; ++s)
                if (has_next(s)) return static_cast<int>(s);
            return -1;
        };
        const int s = find_in(first, geometry_.ranks());
        return s >= 0 ? s : find_in(0, first);
    }

private:
    const std::uint32_t* words() const {
        return reinterpret_cast<const std::uint32_t*>(
            memory_.data(geometry_.bell(me_, 0), geometry_.ranks() * rmem::kWordBytes));
    }

    M& memory_;
    const Geometry& geometry_;
    unsigned me_;
    bool on_;
    std::vector<std::uint32_t> heads_;  ///< taken from s since it opened, dense as the bells are
};

}  // namespace billboard
