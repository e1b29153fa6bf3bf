// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The `direct` link: all nodes of a host share one bank, so a store is the transfer.
///
/// Contract: rmem/link/memory.hpp. Thread safety: one thread at a time.
/// Nothing here waits, calls or branches but `notify` (one predicted branch) and interrupts (one).

#include "rmem/base/copy.hpp"
#include "rmem/link/memory.hpp"
#include "rmem/ring/propagation_samples.hpp"
#include "rmem/ring/ring.hpp"

#include <atomic>

namespace rmem {

class DirectMemory {
public:
    struct Options {};
    using Ring = rmem::Ring;
    using Membership = rmem::Membership;
    static constexpr bool kReplicated = false;
    static constexpr bool kFar = false;
    static constexpr bool kHasDescriptors = true;
    static constexpr std::size_t kExpectedBytes = 4096;  ///< of hints

    explicit DirectMemory(Membership& member, const Options& = {})
        : ring_(member.ring()),
          bank_(member.ring().bank(member.node())),
          waiter_(member.ring(), member.rank()),
          samples_(member) {}

    std::uint32_t load(std::size_t offset) const noexcept {
        // (1) - this acquire-load synchronizes-with the release-store (2) of the word's writer
        return word(offset).load(std::memory_order_acquire);
    }
    const std::byte* data(std::size_t offset, std::size_t) const noexcept { return bank_ + offset; }
    std::byte* own(std::size_t offset) const noexcept { return bank_ + offset; }

    [[nodiscard]] static constexpr bool room(std::size_t) noexcept { return true; }
    void write(std::size_t offset, const void* from, std::size_t bytes) noexcept {
        copy_bytes(bank_ + offset, from, bytes);
    }
    static void publish(std::size_t, std::size_t) noexcept {}
    void post_word(std::size_t offset, std::uint32_t value) noexcept {
        // (2) - this release-store synchronizes-with the acquire-load (1)
        word(offset).store(value, std::memory_order_release);
    }
    void write_lazy(std::size_t offset, std::uint32_t value) noexcept { post_word(offset, value); }
    void expect_write(std::size_t offset, std::size_t bytes) const noexcept {
        for_lines(offset, bytes, take_line);
    }
    void expect_read(std::size_t offset, std::size_t bytes) const noexcept {
        for_lines(offset, bytes, hand_line);
    }
    static void commit() noexcept {}
    static void progress() noexcept {}
    static constexpr bool in_flight() noexcept { return false; }
    void notify(unsigned rank) const noexcept { waiter_.notify(rank); }

    void stamp(std::size_t offset, std::uint32_t value) noexcept {
        samples_.stamp_message(offset, value);
    }
    void seen(std::size_t offset, std::uint32_t value, std::int64_t waited_since_ns) noexcept {
        samples_.seen(offset, value, waited_since_ns);
    }

    bool is_alive(unsigned rank) const noexcept { return ring_.is_alive(rank); }

    unsigned brief_polls() const noexcept { return waiter_.brief_polls(); }
    bool is_crowded() noexcept { return waiter_.is_crowded(); }
    void give_way() noexcept { waiter_.give_way(); }
    void begin_wait() noexcept { waiter_.begin(); }
    Step wait(Deadline deadline) noexcept { return waiter_.step(deadline); }
    void end_wait() noexcept { waiter_.end(); }
    static std::int64_t now_ns() noexcept { return rmem::now_ns(); }

private:
    std::atomic<std::uint32_t>& word(std::size_t offset) const noexcept {
        return *reinterpret_cast<std::atomic<std::uint32_t>*>(bank_ + offset);
    }

    template <class Hint>
    void for_lines(std::size_t offset, std::size_t bytes, Hint hint) const noexcept {
        const std::byte* at = bank_ + offset;
        const std::byte* end = at + (bytes < kExpectedBytes ? bytes : kExpectedBytes);
        for (; at < end; at += kLineBytes) hint(at);
    }

    Ring& ring_;
    std::byte* bank_;
    Waiter waiter_;
    PropagationSamples samples_;
};

static_assert(Memory<DirectMemory>);

}  // namespace rmem
