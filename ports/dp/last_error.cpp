// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/last_error.hpp"

#include "rmem/base/kept_sentence.hpp"

#include <cerrno>

namespace ports::dp {

namespace {
thread_local rmem::KeptSentence sentence_of_last;
}

int fail(int error, const std::string& sentence) noexcept {
    sentence_of_last.keep(sentence);
    errno = error;
    return -1;
}

const char* last_error() noexcept {
    return sentence_of_last.c_str();
}

}  // namespace ports::dp
