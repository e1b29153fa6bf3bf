// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The data filter of links that send: the parts of a write that go out.

#include <cstddef>

namespace rmem {

/// Of `words` words, calls send(first, count) for each run of those that is_sent(word) says are to
/// be sent, in order. Returns how many were not.
template <class IsSent, class Send>
std::size_t send_runs(std::size_t words, IsSent is_sent, Send send) {
    std::size_t unsent = 0;
    for (std::size_t i = 0; i < words;) {
        if (!is_sent(i)) {
            ++unsent;
            ++i;
            continue;
        }
        std::size_t end = i + 1;
        while (end < words && is_sent(end)) ++end;
        send(i, end - i);
        i = end;
    }
    return unsent;
}

}  // namespace rmem
