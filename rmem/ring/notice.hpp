// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A sentence in shared memory, for people: a remark of a node's engine about others that it
/// refuses.
///
///     board.notice.say("10.0.0.2 speaks with another key");   // the engine
///     std::string sentence = board.notice.text();             // any process
///
/// Writer: one. A reader that meets a change gets the sentence before or after it, or none.
/// Trust: the words may hold anything; they come back as printable text of at most kBytes.
/// Progress: no call waits. A segment of zeros has said nothing.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace rmem::udp {

/// Without what a terminal would not print.
inline std::string printable(std::string_view text) {
    std::string plain;
    for (const char c : text.substr(0, text.find('\0'))) {
        plain += c >= ' ' && c <= '~' ? c : '?';
    }
    return plain;
}

class Notice {
public:
    static constexpr std::size_t kBytes = 1024;

    void say(std::string_view sentence) noexcept {
        // relaxed is enough: one process writes, and a reader of a letter (3) sees this, too
        const std::uint32_t count = begun_.load(std::memory_order_relaxed) + 1;
        begun_.store(count, std::memory_order_relaxed);
        for (std::size_t i = 0; i < kBytes; ++i) {
            // (3) - this release-store synchronizes-with the acquire-load (4)
            text_[i].store(i < sentence.size() ? sentence[i] : '\0', std::memory_order_release);
        }
        // (1) - this release-store synchronizes-with the acquire-load (2)
        done_.store(count, std::memory_order_release);
    }

    std::string text() const {
        for (int tries = 0; tries < 3; ++tries) {
            // (2) - this acquire-load synchronizes-with the release-store (1)
            const std::uint32_t count = done_.load(std::memory_order_acquire);
            std::string copy;
            for (const std::atomic<char>& c : text_) {
                // (4) - this acquire-load synchronizes-with the release-store (3)
                copy += c.load(std::memory_order_acquire);
            }
            // relaxed is enough: as in say()
            if (begun_.load(std::memory_order_relaxed) == count) return printable(copy);
        }
        return "";
    }
    /// Changes with each sentence.
    std::uint32_t count() const noexcept {
        return done_.load(std::memory_order_relaxed);  // relaxed is enough: for people
    }

private:
    std::atomic<std::uint32_t> begun_, done_;
    std::array<std::atomic<char>, kBytes> text_;
};

}  // namespace rmem::udp
