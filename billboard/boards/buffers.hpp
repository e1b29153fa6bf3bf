// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The 32 message buffers of a rank's own data partition: private bookkeeping, no shared memory.
///
/// A buffer is allocated, filled, posted to one or more receivers, and free again when all of them
/// have acknowledged it. Acknowledgements are not looked at until room is short; then the caller
/// collects (the paper's garbage collection) and tries again. Extents are kept in address order.
/// Small ones are allocated after the last one while there is room, which is found at once; others
/// first fit: receivers acknowledge out of order, so a circular allocator would stall behind the
/// slowest receiver of one multicast, and large ones had better use memory again that is in the
/// cache.
///
/// Thread safety: one thread. Progress: every call is O(32). No allocation after construction.

#include "billboard/boards/layout.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace billboard {

class RMEM_API Buffers {
public:
    explicit Buffers(std::size_t data_bytes) noexcept : data_bytes_(data_bytes) {}

    static constexpr std::size_t kSmallBytes = 4096;

    /// A buffer of `bytes` (0 is fine); nothing when no index or no extent is free.
    [[nodiscard]] std::optional<unsigned> allocate(std::size_t bytes) noexcept;
    /// Frees every allocated buffer whose bit is clear in `busy`; those held stay.
    void collect(std::uint32_t busy) noexcept;
    void free(unsigned index) noexcept;

    /// A held buffer is not collected, even if the flags allow it: it is being composed.
    void hold(unsigned index) noexcept { held_ |= bit(index); }
    void release_hold(unsigned index) noexcept { held_ &= ~bit(index); }
    bool is_held(unsigned index) const noexcept { return (held_ & bit(index)) != 0; }

    std::size_t offset(unsigned index) const noexcept { return extents_[index].offset; }
    std::size_t size(unsigned index) const noexcept { return extents_[index].bytes; }
    /// Behind all that is allocated: where the next small buffer will probably be.
    std::size_t end() const noexcept;
    std::uint32_t allocated() const noexcept { return allocated_; }
    std::size_t data_bytes() const noexcept { return data_bytes_; }

    static constexpr std::uint32_t bit(unsigned index) noexcept {
        return std::uint32_t{1} << index;
    }

private:
    struct Extent {
        std::size_t offset = 0;
        std::size_t bytes = 0;
    };
    bool are_in_order() const noexcept;

    std::size_t data_bytes_;
    std::uint32_t allocated_ = 0;
    std::uint32_t held_ = 0;
    unsigned count_ = 0;                             ///< entries of in_order_
    std::array<std::uint8_t, kBuffers> in_order_{};  ///< allocated indices by address
    std::array<Extent, kBuffers> extents_{};
};

/// Holds a buffer while it exists.
class HeldBuffer {
public:
    HeldBuffer(Buffers& buffers, unsigned index) noexcept : buffers_(buffers), index_(index) {
        buffers_.hold(index_);
    }
    HeldBuffer(const HeldBuffer&) = delete;
    HeldBuffer& operator=(const HeldBuffer&) = delete;
    ~HeldBuffer() { buffers_.release_hold(index_); }

private:
    Buffers& buffers_;
    const unsigned index_;
};

}  // namespace billboard
