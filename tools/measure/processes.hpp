// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What processes share that measure something together: memory, and a place to meet.
/// It uses nothing of the library, so that it is the same beside any system that is measured.
///
/// Thread safety: one thread of each process. Errors: `std::system_error`, where it is not said
/// otherwise.

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <string>
#include <utility>

namespace tools {

/// Memory of this process and all that it starts from then on: zeros, touched.
void* map_common(std::size_t bytes);
void unmap_common(void* at, std::size_t bytes) noexcept;

/// One T that these have in common.
template <class T>
class Common {
public:
    template <class... Arguments>
    explicit Common(Arguments&&... arguments)
        : it_(new (map_common(sizeof(T))) T(std::forward<Arguments>(arguments)...)) {}
    ~Common() { unmap_common(it_, sizeof(T)); }
    Common(const Common&) = delete;
    Common& operator=(const Common&) = delete;

    T& operator*() const noexcept { return *it_; }
    T* operator->() const noexcept { return it_; }

private:
    T* it_;
};

/// Futexes between processes.
void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t value);
void futex_wake(std::atomic<std::uint32_t>* word);

/// Where processes meet beside what they measure; it lies in common memory. One that waits looks
/// for a moment and then sleeps, or, where there is a `poll`, calls it until all have come.
class Meeting {
public:
    using Poll = std::function<void()>;
    explicit Meeting(unsigned processes) noexcept : processes_(processes) {}

    void meet(const Poll& poll = {});
    /// Rank 0's word for all.
    void share(int rank, std::uint64_t& word, const Poll& poll = {});
    /// Of two: gives `mine`, of at most kMaxLetter bytes, to the other one and returns what it
    /// gave.
    std::string exchange(int rank, const std::string& mine);

    static constexpr std::size_t kMaxLetter = 8192;

private:
    unsigned processes_;
    alignas(64) std::atomic<std::uint32_t> arrived_{0};
    alignas(64) std::atomic<std::uint32_t> generation_{0};
    std::uint64_t word_ = 0;
    std::size_t length_[2]{};
    char letter_[2][kMaxLetter]{};
};

}  // namespace tools
