// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The card behind a handle: a node of a ring, the settings of the board, and its events. Handles
/// of one process have one where its node has no rank left for another.
///
/// Thread safety: any thread, but the destructor. Calls of the node that rmem.h gives to one thread
///   at a time come one after the other; peeks, and reads without swapping, take no lock.
/// Errors: RFM2G_STATUS, with the sentence in rmem_last_error().
/// Trust: offsets, lengths and widths are a program's, and checked here.
/// Units: bytes. An offset is a program's, in the window; a place is in the ring's memory.

#include "cards/common/card_node.hpp"
#include "cards/common/interrupt_numbers.hpp"
#include "cards/rfm2g/events.hpp"
#include "cards/rfm2g/host.hpp"
#include "cards/rfm2g/rfm2g_api.h"
#include "cards/rfm2g/rfm2g_regs.h"
#include "cards/rfm2g/status.hpp"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <new>

namespace cards::rfm2g {

inline constexpr std::uint32_t kMapPageBytes = 4096;
inline constexpr std::uint32_t kMemoryOffsetBytes = 64U << 20;
inline constexpr std::size_t kControlRegisterBytes = 64;
inline constexpr std::size_t kRuntimeRegisterBytes = 512;
/// The first of those whose windows slide.
inline constexpr std::uint8_t kBoardRevision = 0x8C;
inline constexpr std::uint8_t kPlxRevision = 0xAD;

/// A handle's own settings, which nothing else depends on.
struct Kept {
    std::atomic<std::uint32_t> dma_threshold{0xFFFFFFFF};
    std::atomic<bool> swaps_dma{false};
    std::atomic<bool> swaps_pio{false};
    std::atomic<std::uint32_t> debug_flags{0};
};

class Device final : private EventSource {
public:
    /// `window_bytes`: 0 for all of the memory.
    Device(unsigned unit, OwnNode node, std::uint32_t window_bytes);
    ~Device();
    Device(const Device&) = delete;
    Device& operator=(const Device&) = delete;

    /// The node keeps its events from now on; a code of rmem.h.
    [[nodiscard]] int accept_events();
    /// With what has come.
    [[nodiscard]] Events& events();
    /// Those of a handle that is being closed, and its callbacks.
    void end_waits(const Calls& calls) { events_.end(calls); }

    unsigned unit() const { return node_.unit(); }
    RFM2G_NODE node_id() const { return static_cast<RFM2G_NODE>(node_.id()); }

    // ---- Transfers
    template <class Value>
    [[nodiscard]] RFM2G_STATUS peek(std::uint32_t offset, Value& value) {
        const View seen = view();
        if (!is_seen(seen, offset, sizeof value)) return check_place(offset, sizeof value);
        const std::size_t place = std::size_t{seen.first} + offset;
        if constexpr (kIsRemote) return get(place, &value, sizeof value);
        std::uint64_t words = rmem_load(node_, place / kWordBytes * kWordBytes);
        if constexpr (sizeof value > kWordBytes)
            words |= std::uint64_t{rmem_load(node_, place + kWordBytes)} << 32;
        value = static_cast<Value>(words >> place % kWordBytes * 8);
        return RFM2G_SUCCESS;
    }
    template <class Value>
    [[nodiscard]] RFM2G_STATUS poke(std::uint32_t offset, Value value) {
        const View seen = view();
        if (!is_seen(seen, offset, sizeof value)) return check_place(offset, sizeof value);
        return put(std::size_t{seen.first} + offset, &value, sizeof value);
    }
    [[nodiscard]] RFM2G_STATUS read(std::uint32_t offset, void* to, std::uint32_t bytes);
    [[nodiscard]] RFM2G_STATUS write(std::uint32_t offset, const void* from, std::uint32_t bytes);
    [[nodiscard]] RFM2G_STATUS send(RFM2G_NODE to, RFM2GEVENTTYPE event, std::uint32_t data);

    // ---- Pointers
    [[nodiscard]] RFM2G_STATUS map(volatile void** pointer, std::uint64_t offset,
                                   std::uint64_t pages);
    [[nodiscard]] RFM2G_STATUS unmap(volatile void** pointer);

    // ---- The board's settings
    [[nodiscard]] bool setting(std::uint32_t lcsr_bit);
    void set(std::uint32_t lcsr_bit, bool on);
    [[nodiscard]] unsigned memory_offset();
    [[nodiscard]] RFM2G_STATUS set_memory_offset(unsigned steps);
    [[nodiscard]] std::uint32_t window_offset();
    std::uint32_t window_bytes() const { return window_bytes_; }
    [[nodiscard]] RFM2G_STATUS set_window_offset(std::uint32_t offset);
    [[nodiscard]] RFM2G_STATUS check_ring();
    [[nodiscard]] bool clear_own_data();
    std::uint32_t memory_bytes() const { return node_.memory_bytes(); }

    Kept& kept() { return kept_; }

    // ---- Registers. The caller has checked set, offset and width.
    [[nodiscard]] RFM2G_STATUS read_register(RFM2GREGSETTYPE set, std::uint32_t offset,
                                             std::uint32_t width, std::uint32_t& value);
    [[nodiscard]] RFM2G_STATUS write_register(RFM2GREGSETTYPE set, std::uint32_t offset,
                                              std::uint32_t width, std::uint32_t value);
    /// Sets or clears the bits of `mask`.
    [[nodiscard]] RFM2G_STATUS change_register(RFM2GREGSETTYPE set, std::uint32_t offset,
                                               std::uint32_t width, std::uint32_t mask, bool on);

private:
    struct alignas(kMapPageBytes) Page {
        std::array<std::byte, kMapPageBytes> bytes;
    };
    struct DmaBuffer {
        std::unique_ptr<Page[]> pages;
        std::size_t bytes;
    };

    struct View {
        std::uint32_t first;  ///< the place of offset 0
        std::uint32_t bytes;  ///< that are seen
    };
    using ControlRegisters = std::array<std::byte, kControlRegisterBytes>;
    using RuntimeRegisters = std::array<std::byte, kRuntimeRegisterBytes>;
    using Lock = std::lock_guard<std::mutex>;

    [[nodiscard]] View view() const noexcept {
        // relaxed is enough: one thread that moves the window tells another of it by other means
        const std::uint64_t both = view_.load(std::memory_order_relaxed);
        return {static_cast<std::uint32_t>(both >> 32), static_cast<std::uint32_t>(both)};
    }
    /// A whole Value at a multiple of its width.
    [[nodiscard]] static bool is_seen(const View& seen, std::uint32_t offset,
                                      std::uint32_t width) noexcept {
        return width <= seen.bytes && offset <= seen.bytes - width && offset % width == 0;
    }
    [[nodiscard]] unsigned memory_offset_steps() const;
    void set_view(std::uint32_t window_offset, std::uint32_t memory_offset_steps);
    [[nodiscard]] RFM2G_STATUS check_range(std::uint32_t offset, std::uint64_t bytes) const;
    [[nodiscard]] RFM2G_STATUS check_place(std::uint32_t offset, std::uint32_t width) const;
    template <class Call>
    [[nodiscard]] RFM2G_STATUS send_out(Call&& call, RFM2G_STATUS failure);
    [[nodiscard]] RFM2G_STATUS get(std::size_t place, void* to, std::size_t bytes) const;
    [[nodiscard]] RFM2G_STATUS put(std::size_t place, const void* from, std::size_t bytes);
    [[nodiscard]] RFM2G_STATUS put_swapped(std::size_t place, const std::byte* from,
                                           std::size_t bytes);
    [[nodiscard]] bool is_dma(const void* buffer, std::uint32_t bytes);
    [[nodiscard]] bool is_swapped(bool is_dma) const;
    [[nodiscard]] RFM2G_STATUS check_transfer(std::uint32_t offset, std::uint32_t bytes,
                                              bool is_dma) const;

    void bring() override;
    RFM2G_STATUS descriptor(int& descriptor) override;
    RFM2G_STATUS start_thread() override;
    void look_for_faults() override;

    [[nodiscard]] bool own_data(std::uint64_t& sent);
    [[nodiscard]] std::uint32_t lcsr();
    [[nodiscard]] RFM2G_STATUS set_lcsr(std::uint32_t word);
    [[nodiscard]] ControlRegisters control_registers();
    [[nodiscard]] RuntimeRegisters runtime_registers();
    [[nodiscard]] RFM2G_STATUS get(RFM2GREGSETTYPE set, std::uint32_t offset, std::uint32_t width,
                                   std::uint32_t& value);
    [[nodiscard]] RFM2G_STATUS put(RFM2GREGSETTYPE set, std::uint32_t offset, std::uint32_t width,
                                   std::uint32_t value);
    [[nodiscard]] RFM2G_STATUS write_control(std::uint32_t offset, std::uint32_t width,
                                             std::uint32_t value);
    [[nodiscard]] RFM2G_STATUS write_runtime(std::uint32_t offset, std::uint32_t width,
                                             std::uint32_t value);
    [[nodiscard]] RFM2G_STATUS command(unsigned code);
    [[nodiscard]] RFM2G_STATUS send_round(RFM2G_STATUS failure);

    Events events_;
    const CardNode node_;  ///< behind the events, which it brings until it is closed
    const std::uint32_t window_bytes_;
    std::atomic<std::uint64_t> view_;
    Kept kept_;

    std::mutex registers_mutex_;  ///< one access to registers at a time; before the next
    std::mutex bring_mutex_;      ///< events stay in their order; before the next
    bool has_thread_ = false;     ///< of the node, which brings events
    int descriptor_ = -1;         ///< that tells of them

    std::uint32_t target_data_ = 0;  ///< registers NTD and NTN; under the registers' lock
    std::uint8_t target_node_ = 0;

    // Under the node's lock.
    std::uint32_t lcsr_ = 0;
    std::uint32_t window_offset_ = 0;
    std::uint64_t own_sent_ = 0;                   ///< when OWNDATA was cleared
    CountedErrors cleared_faults_;                 ///< whose bits of LCSR were
    CountedErrors reported_faults_;                ///< that were events
    std::byte* memory_ = nullptr;                  ///< for plain stores; null: nobody has asked
    std::map<std::byte*, DmaBuffer> dma_buffers_;  ///< by their first bytes
};

}  // namespace cards::rfm2g
