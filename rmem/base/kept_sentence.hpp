// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The sentence for a thread's last failed call, in one place until the thread ends.
///
/// So a pointer that was given before a call is good after it: in printf("%d %s", call(),
/// last_error()) the arguments may be evaluated in any order. A sentence that is longer is cut.
/// A thread has memory for it from its first use on: what a library keeps for each thread itself
/// (static TLS) is little in programs that load it late, since a process has some 1600 bytes for
/// all such libraries.
/// Thread safety: one thread; not in a signal handler.

#include <algorithm>
#include <new>
#include <string_view>
#include <utility>

namespace rmem {

class KeptSentence {
public:
    static constexpr std::size_t kMaxBytes = 1023;

    constexpr KeptSentence() = default;
    KeptSentence(KeptSentence&& other) noexcept : text_(std::exchange(other.text_, nullptr)) {}
    KeptSentence& operator=(KeptSentence&& other) noexcept {
        std::swap(text_, other.text_);
        return *this;
    }
    ~KeptSentence() {
        delete[] std::exchange(text_, nullptr);
        // What fails after this, in a destructor at the process's end, begins again: so the
        // compiler may not leave that null out.
        asm volatile("" ::: "memory");
    }

    void keep(std::string_view sentence) noexcept {
        const std::size_t bytes = std::min(sentence.size(), kMaxBytes);
        if (has_memory()) *std::copy_n(sentence.begin(), bytes, text_) = 0;
    }
    const char* c_str() noexcept {
        return has_memory() ? text_ : "out of private memory, also for this sentence";
    }

private:
    [[nodiscard]] bool has_memory() noexcept {
        if (text_ == nullptr) text_ = new (std::nothrow) char[kMaxBytes + 1]{};
        return text_ != nullptr;
    }

    char* text_ = nullptr;
};

}  // namespace rmem
