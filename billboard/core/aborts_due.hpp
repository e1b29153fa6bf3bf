// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The receivers of a message in parts that was begun and cannot be ended: before anything else is
/// posted to one of them, a part takes the message back (Posting). A receiver that has gone needs
/// none (Peers).
///
/// Invariant: the number is that of the receivers.
/// Thread safety: one thread.

#include "rmem/base/check.hpp"

#include <algorithm>
#include <vector>

namespace billboard {

class AbortsDue {
public:
    explicit AbortsDue(unsigned ranks) : is_due_(ranks, false) {}

    [[nodiscard]] bool any() const noexcept { return number_ != 0; }
    [[nodiscard]] bool to(unsigned d) const { return is_due_[d]; }
    void set(unsigned d, bool due) {
        if (is_due_[d] == due) return;
        is_due_[d] = due;
        number_ += due ? 1U : ~0U;
        RMEM_CHECK(number_ == std::count(is_due_.begin(), is_due_.end(), true));
    }

private:
    friend struct PlantedBug;  ///< a test's, which a check finds

    unsigned number_ = 0;
    std::vector<bool> is_due_;
};

}  // namespace billboard
