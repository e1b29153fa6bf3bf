// SPDX-License-Identifier: Apache-2.0
#include "cards/scgt/device.hpp"

#include "cards/scgt/results.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace cards::scgt {

namespace {

constexpr uint32 kSwaps = SCGT_RW_DMA_BYTE_SWAP | SCGT_RW_DMA_WORD_SWAP;

/// As the flags say, in place.
void swap(std::byte* data, uint32 bytes, uint32 flags) {
    if ((flags & SCGT_RW_DMA_BYTE_SWAP) != 0) {
        for (uint32 at = 0; at < bytes; at += kWordBytes)
            std::reverse(data + at, data + at + kWordBytes);
    }
    if ((flags & SCGT_RW_DMA_WORD_SWAP) != 0) {
        for (uint32 at = 0; bytes - at >= 2 * kWordBytes; at += 2 * kWordBytes)
            std::rotate(data + at, data + at + kWordBytes, data + at + 2 * kWordBytes);
    }
}

}  // namespace

/// Rounds as the access does.
uint32 Device::check_transfer(Access access, uint32& offset, const void* buffer, uint32& bytes,
                              uint32 flags) const {
    const uint32 unit = access == Access::byte ? 1 : access == Access::half_word ? 2 : kWordBytes;
    if (access == Access::dma) {
        if ((flags & SCGT_RW_DMA_PHYS_ADDR) != 0) {
            return refuse(SCGT_DMA_UNSUPPORTED,
                          "a program here has no physical addresses; give an address of its own");
        }
        if (offset % unit != 0 || bytes % unit != 0) {
            return refuse(SCGT_BAD_PARAMETER,
                          fmt::format("a DMA moves whole words, and {} bytes at {:#x} are none; "
                                      "give multiples of 4, or use SCGR_RW_PIO_8_BIT",
                                      bytes, offset));
        }
    }
    offset = offset / unit * unit;
    bytes = bytes / unit * unit;
    if (!node_.covers(offset, bytes)) return SCGT_BAD_PARAMETER;
    if (buffer == nullptr && bytes != 0)
        return refuse(SCGT_BAD_PARAMETER, "the buffer is a null pointer; give an address");
    return SCGT_SUCCESS;
}

template <class Call>
[[gnu::always_inline]] inline uint32 Device::send_out(Call&& call) {
    using namespace link_control;
    return result_of(node_.send_out([&] {
        const uint32 laser =
            (settings_.link_control & kLinkSelectBit) != 0 ? kLaser1Bit : kLaser0Bit;
        const uint32 needed = kTransmitBit | laser;
        if ((settings_.link_control & needed) == needed) [[likely]]
            return call();
        return rmem::fail(RMEM_EPEER,
                          "the transmitter, or the laser of the active link, is off, and nothing "
                          "can be written here that does not travel; SCGT_TRANSMIT_ENABLE and "
                          "SCGT_LASER_0_ENABLE change that");
    }));
}

uint32 Device::put(std::size_t place, const void* from, std::size_t bytes) {
    return send_out([&] { return node_.write(place, from, bytes); });
}

/// What lies in one word at a time.
uint32 Device::write_in_order(uint32 offset, const std::byte* from, uint32 bytes, uint32& moved) {
    while (moved < bytes) {
        const uint32 place = offset + moved;
        const uint32 piece = std::min(kWordBytes - place % kWordBytes, bytes - moved);
        if (const uint32 result = put(place, from + moved, piece); result != SCGT_SUCCESS)
            return result;
        moved += piece;
    }
    return SCGT_SUCCESS;
}

uint32 Device::write_dma(uint32 offset, const std::byte* from, uint32 bytes, uint32 flags,
                         uint32& moved) {
    std::vector<std::byte> swapped;
    if ((flags & kSwaps) != 0) {
        swapped.assign(from, from + bytes);
        swap(swapped.data(), bytes, flags);
        from = swapped.data();
    }
    while (moved < bytes) {
        const auto piece = static_cast<uint32>(CardNode::piece_of(bytes - moved));
        if (const uint32 result = put(offset + moved, from + moved, piece); result != SCGT_SUCCESS)
            return result;
        moved += piece;
    }
    // relaxed is enough: a number for get_statistics
    dma_writes_.fetch_add(1, std::memory_order_relaxed);
    return SCGT_SUCCESS;
}

uint32 Device::write(Access access, uint32 offset, const void* from, uint32 bytes, uint32 flags,
                     uint32& moved, const scgtInterrupt* interrupt) {
    moved = 0;
    const bool sends = interrupt != nullptr && interrupt->type != SCGT_NO_INTR;
    if (sends) {
        const bool is_broadcast = interrupt->type == SCGT_BROADCAST_INTR;
        const bool is_known = is_broadcast || interrupt->type == SCGT_UNICAST_INTR;
        if (!is_known || interrupt->id >= (is_broadcast ? kBroadcastNumbers : kMostNodes)) {
            return refuse(SCGT_BAD_PARAMETER,
                          fmt::format("no interrupt of type {} and id {} can be sent; send "
                                      "SCGT_BROADCAST_INTR 0 to 31, or SCGT_UNICAST_INTR to a "
                                      "node, 0 to 255",
                                      interrupt->type, interrupt->id));
        }
    }
    uint32 result = check_transfer(access, offset, from, bytes, flags);
    if (result != SCGT_SUCCESS) return result;
    if (access == Access::dma && bytes == 0 && !sends) {
        return refuse(SCGT_BAD_PARAMETER,
                      "there is nothing to write, and no interrupt to send; give one of them");
    }
    const auto* const data = static_cast<const std::byte*>(from);
    if (access != Access::dma) {
        result = write_in_order(offset, data, bytes, moved);
    } else if (bytes != 0) {
        result = write_dma(offset, data, bytes, flags, moved);
    }
    if (result != SCGT_SUCCESS || !sends) return result;
    return send(*interrupt);
}

uint32 Device::read(Access access, uint32 offset, void* to, uint32 bytes, uint32 flags,
                    uint32& moved) {
    moved = 0;
    uint32 result = check_transfer(access, offset, to, bytes, flags);
    if (result != SCGT_SUCCESS) return result;
    if (access == Access::dma && bytes == 0)
        return refuse(SCGT_BAD_PARAMETER, "there is nothing to read; give a length");
    result = result_of(rmem_read(node_, offset, to, bytes));
    if (result != SCGT_SUCCESS) return result;
    moved = bytes;
    if (access != Access::dma) return SCGT_SUCCESS;
    // relaxed is enough: a number for get_statistics
    dma_reads_.fetch_add(1, std::memory_order_relaxed);
    swap(static_cast<std::byte*>(to), bytes, flags);
    return SCGT_SUCCESS;
}

uint32 Device::map(void*& memory) const {
    return result_of(node_.map(memory));
}

// ---- Interrupts

uint32 Device::send(const scgtInterrupt& interrupt) {
    const bool is_broadcast = interrupt.type == SCGT_BROADCAST_INTR;
    // As on a ring of cards: what is for a node that is not there comes round, and that is all.
    const bool has_receiver =
        is_broadcast || (interrupt.id != node_.id() && interrupt.id < node_.nodes());
    const int to = is_broadcast ? RMEM_ALL_NODES : static_cast<int>(interrupt.id);
    const unsigned number = is_broadcast ? interrupt.id : kUnicastNumber;
    bool comes_here = false;
    const uint32 result = send_out([&]() -> int {
        const bool is_accepted = (accepted_numbers() >> number & 1) != 0;
        const bool is_own = is_broadcast || interrupt.id == node_.id();
        comes_here = is_own && is_accepted &&
                     (settings_.link_control & link_control::kInterruptSelfBit) != 0;
        return has_receiver ? rmem_send_interrupt(node_, to, number, interrupt.val) : RMEM_OK;
    });
    if (result != SCGT_SUCCESS) return result;
    // relaxed is enough: a number for a register
    interrupts_sent_.fetch_add(1, std::memory_order_relaxed);
    if (comes_here)
        arrive(interrupt.type, node_.id(), is_broadcast ? interrupt.id : 0, interrupt.val);
    return SCGT_SUCCESS;
}

}  // namespace cards::scgt
