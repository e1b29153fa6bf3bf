// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The sentence for a thread's last failed call, in one place until the thread ends.
///
/// So a pointer that was given before a call is good after it: in printf("%d %s", call(),
/// last_error()) the arguments may be evaluated in any order. A sentence that is longer is cut.
/// Thread safety: one thread.

#include <algorithm>
#include <array>
#include <string_view>

namespace rmem {

class KeptSentence {
public:
    static constexpr std::size_t kMostBytes = 1023;

    void keep(std::string_view sentence) noexcept {
        const std::size_t bytes = std::min(sentence.size(), kMostBytes);
        *std::copy_n(sentence.begin(), bytes, text_.begin()) = 0;
    }
    const char* c_str() const noexcept { return text_.data(); }

private:
    std::array<char, kMostBytes + 1> text_{};
};

}  // namespace rmem
