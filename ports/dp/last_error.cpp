// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/last_error.hpp"

#include <algorithm>
#include <array>
#include <cerrno>

namespace ports::dp {

namespace {
thread_local std::array<char, 512> sentence_of_last;
}

int fail(int error, const std::string& sentence) noexcept {
    const std::size_t n = std::min(sentence.size(), sentence_of_last.size() - 1);
    std::copy_n(sentence.begin(), n, sentence_of_last.begin());
    sentence_of_last[n] = 0;
    errno = error;
    return -1;
}

const char* last_error() noexcept {
    return sentence_of_last.data();
}

}  // namespace ports::dp
