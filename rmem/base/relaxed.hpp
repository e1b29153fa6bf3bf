// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Atomics that order nothing: what they say is a number for people, or a hint whose being old
/// costs time and no correctness. Whatever else depends on a value needs an atomic of its own, and
/// a reason. Both have the size and layout of their value, and lie in shared memory, too.
///
/// Thread safety: any thread, but only one writes a Counter (add_shared() apart).

#include <atomic>
#include <cstdint>

namespace rmem {

/// Adding costs no locked instruction, since it has one writer.
template <class T = std::uint64_t>
class Counter {
public:
    constexpr Counter(T value = 0) noexcept : value_(value) {}

    // relaxed is enough, throughout: one writer, and readers want a number, not an order
    T add(T n = 1) noexcept {
        const T sum = static_cast<T>(get() + n);
        set(sum);
        return sum;
    }
    void raise_to(T n) noexcept {
        if (n > get()) set(n);
    }
    void set(T n) noexcept { value_.store(n, std::memory_order_relaxed); }
    T get() const noexcept { return value_.load(std::memory_order_relaxed); }
    /// For several writers; returns what it was. (relaxed is enough: as above)
    T add_shared(T n = 1) noexcept { return value_.fetch_add(n, std::memory_order_relaxed); }
    void raise_shared_to(T n) noexcept {
        T seen = get();
        // relaxed is enough: as above
        while (n > seen && !value_.compare_exchange_weak(seen, n, std::memory_order_relaxed)) {
        }
    }

private:
    std::atomic<T> value_;
};

/// Written and read by any thread.
template <class T>
class Hint {
public:
    constexpr Hint(T value = T{}) noexcept : value_(value) {}

    // relaxed is enough, throughout: a reader may see an old one
    void set(T value) noexcept { value_.store(value, std::memory_order_relaxed); }
    T get() const noexcept { return value_.load(std::memory_order_relaxed); }

private:
    std::atomic<T> value_;
};

static_assert(sizeof(Counter<>) == 8 && alignof(Counter<>) == 8 && sizeof(Hint<bool>) == 1);

}  // namespace rmem
