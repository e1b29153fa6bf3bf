// SPDX-License-Identifier: Apache-2.0

/// Registers: what is read is computed from what is so, what is written is done.

#include "cards/rfm2g/device.hpp"
#include "cards/rfm2g/rfm2g_regs.h"
#include "cards/rfm2g/status.hpp"

#include <cstring>

namespace cards::rfm2g {

namespace {

constexpr std::uint32_t kPioSwap = 1U << 5;
constexpr std::uint32_t kDmaSwap = 1U << 7;
constexpr std::uint32_t kSettings =
    RFM2G_LCSR_LED | RFM2G_LCSR_XMTDIS | RFM2G_LCSR_DOD | RFM2G_LCSR_LOOP | RFM2G_LCSR_PTY;
constexpr std::uint32_t kFaultBits = RFM2G_LCSR_BADDATA | RFM2G_LCSR_RCVFULL | RFM2G_LCSR_SNCLOST;

/// Where an interrupt's sender and data are read.
struct Senders {
    RFM2GEVENTTYPE event;
    std::uint32_t data_at;
    std::uint32_t sender_at;
};
constexpr std::array kSenders = {Senders{RFM2GEVENT_INTR1, rfm2g_isd1, rfm2g_sid1},
                                 Senders{RFM2GEVENT_INTR2, rfm2g_isd2, rfm2g_sid2},
                                 Senders{RFM2GEVENT_INTR3, rfm2g_isd3, rfm2g_sid3},
                                 Senders{RFM2GEVENT_INTR4, rfm2g_initd, rfm2g_initn}};

/// Registers as they lie behind each other.
template <class Registers, class Value>
void set_at(Registers& registers, std::uint32_t at, Value value) {
    std::memcpy(registers.data() + at, &value, sizeof value);
}
template <class Value, class Registers>
Value value_at(const Registers& registers, std::uint32_t at) {
    Value value;
    std::memcpy(&value, registers.data() + at, sizeof value);
    return value;
}

/// An access of `width` at `offset` touches the register of `bytes` at `at`.
bool touches(std::uint32_t offset, std::uint32_t width, std::uint32_t at, std::uint32_t bytes) {
    return offset < at + bytes && at < offset + width;
}

}  // namespace

// ---- LCSR

std::uint32_t Device::lcsr() {
    constexpr std::uint32_t kStep = RFM2G_LCSR_CFG / 3;
    const auto lock = node_.lock();
    std::uint32_t word = lcsr_;
    if (memory_bytes() > kMemoryOffsetBytes)
        word |= memory_bytes() > 2 * kMemoryOffsetBytes ? 2 * kStep : kStep;
    if ((lcsr_ & RFM2G_LCSR_LOOP) != 0 || node_.present_nodes() > 1) word |= RFM2G_LCSR_SIGDET;
    word |= cleared_faults_.news() & kFaultBits;
    std::uint64_t sent = 0;
    if (own_data(sent)) word |= RFM2G_LCSR_OWNDATA;
    return word;
}

RFM2G_STATUS Device::set_lcsr(std::uint32_t word) {
    const auto steps = (word & (RFM2G_LCSR_OFF0 | RFM2G_LCSR_OFF1)) / RFM2G_LCSR_OFF0;
    if (const auto status = set_memory_offset(steps); status != RFM2G_SUCCESS) return status;
    const auto lock = node_.lock();
    lcsr_ = (lcsr_ & ~kSettings) | (word & kSettings);
    cleared_faults_.tell(~word & kFaultBits);
    std::uint64_t sent = 0;
    if ((word & RFM2G_LCSR_OWNDATA) == 0 && own_data(sent)) own_sent_ = sent;
    return RFM2G_SUCCESS;
}

// ---- The sets

Device::ControlRegisters Device::control_registers() {
    bring();
    ControlRegisters registers{};
    set_at(registers, rfm2g_brv, kBoardRevision);
    set_at(registers, rfm2g_bid, std::uint8_t{RFM2G_BID_5565});
    set_at(registers, rfm2g_nid, static_cast<std::uint8_t>(node_.id()));
    set_at(registers, rfm2g_lcsr, lcsr());
    set_at(registers, rfm2g_lisr, events_.lisr());
    set_at(registers, rfm2g_lier, events_.lier());
    for (const Senders& senders : kSenders) {
        const auto oldest = events_.oldest(senders.event, false);
        if (!oldest) continue;
        set_at(registers, senders.data_at, oldest->data);
        set_at(registers, senders.sender_at, static_cast<std::uint8_t>(oldest->from));
    }
    set_at(registers, rfm2g_ntd, target_data_);
    set_at(registers, rfm2g_ntn, target_node_);
    return registers;
}

Device::RuntimeRegisters Device::runtime_registers() {
    RuntimeRegisters registers{};
    // relaxed is enough: settings, which nothing else hangs on
    const std::uint32_t swaps = (kept_.swaps_pio.load(std::memory_order_relaxed) ? kPioSwap : 0) |
                                (kept_.swaps_dma.load(std::memory_order_relaxed) ? kDmaSwap : 0);
    set_at(registers, rfmor_endian_desc, swaps);
    const std::uint32_t lier = events_.lier();
    std::uint32_t interrupts = 0;
    if (lier != 0) interrupts |= RFMOR_INTCSR_ENABLEINT | RFMOR_INTCSR_ENABLELOCINT;
    if ((lier & events_.lisr()) != 0) interrupts |= RFMOR_INTCSR_LOCINT;
    set_at(registers, rfmor_intcsr, interrupts);
    set_at(registers, rfmor_revision, std::uint32_t{kPlxRevision});
    set_at(registers, rfmor_las1rr, ~(window_bytes_ - 1));
    set_at(registers, rfmor_las1ba, window_offset() | RFMOR_LAS1BA_ENABLE_LAS1);
    return registers;
}

/// The interrupt that the registers of the target describe.
RFM2G_STATUS Device::command(unsigned code) {
    const RFM2G_NODE to = (code & RFM2G_NIC_GLOBAL) == 0 ? target_node_ : RFM2G_NODE_ALL;
    const std::uint32_t data = target_data_;
    switch (code & ~static_cast<unsigned>(RFM2G_NIC_GLOBAL)) {
        case RFM2G_NIC_RSTREQ: return send(to, RFM2GEVENT_RESET, data);
        case RFM2G_NIC_INT1: return send(to, RFM2GEVENT_INTR1, data);
        case RFM2G_NIC_INT2: return send(to, RFM2GEVENT_INTR2, data);
        case RFM2G_NIC_INT3: return send(to, RFM2GEVENT_INTR3, data);
        case RFM2G_NIC_INITINT: return send(to, RFM2GEVENT_INTR4, data);
        case RFM2G_NIC_RSVD: return send_round(RFM2G_DRIVER_ERROR);
        default: return RFM2G_SUCCESS;
    }
}

RFM2G_STATUS Device::write_control(std::uint32_t offset, std::uint32_t width, std::uint32_t value) {
    ControlRegisters registers = control_registers();
    std::memcpy(registers.data() + offset, &value, width);
    const auto is_written = [&](std::uint32_t at, std::uint32_t bytes) {
        return touches(offset, width, at, bytes);
    };
    if (is_written(rfm2g_lcsr, 4)) {
        const auto status = set_lcsr(value_at<std::uint32_t>(registers, rfm2g_lcsr));
        if (status != RFM2G_SUCCESS) return status;
    }
    if (is_written(rfm2g_lisr, 4))
        events_.keep_of_lisr(value_at<std::uint32_t>(registers, rfm2g_lisr));
    if (is_written(rfm2g_lier, 4)) events_.set_lier(value_at<std::uint32_t>(registers, rfm2g_lier));
    target_data_ = value_at<std::uint32_t>(registers, rfm2g_ntd);
    target_node_ = value_at<std::uint8_t>(registers, rfm2g_ntn);
    for (const Senders& senders : kSenders) {
        if (!is_written(senders.sender_at, 1)) continue;
        while (events_.oldest(senders.event, true)) {
        }
    }
    if (is_written(rfm2g_nic, 1)) return command(value_at<std::uint8_t>(registers, rfm2g_nic));
    return RFM2G_SUCCESS;
}

RFM2G_STATUS Device::write_runtime(std::uint32_t offset, std::uint32_t width, std::uint32_t value) {
    RuntimeRegisters registers = runtime_registers();
    std::memcpy(registers.data() + offset, &value, width);
    if (touches(offset, width, rfmor_endian_desc, 4)) {
        const auto swaps = value_at<std::uint32_t>(registers, rfmor_endian_desc);
        // relaxed is enough: as in runtime_registers()
        kept_.swaps_pio.store((swaps & kPioSwap) != 0, std::memory_order_relaxed);
        kept_.swaps_dma.store((swaps & kDmaSwap) != 0, std::memory_order_relaxed);
    }
    if (!touches(offset, width, rfmor_las1ba, 4)) return RFM2G_SUCCESS;
    return set_window_offset(value_at<std::uint32_t>(registers, rfmor_las1ba) &
                             RFMOR_LAS1RR_RANGE_MASK);
}

// ---- Accesses

RFM2G_STATUS Device::get(RFM2GREGSETTYPE set, std::uint32_t offset, std::uint32_t width,
                         std::uint32_t& value) {
    value = 0;
    if (set == RFM2GMEM) {
        const RFM2G_STATUS status = check_range(offset, width);
        if (status != RFM2G_SUCCESS) return status;
        return get(std::size_t{view().first} + offset, &value, width);
    }
    if (set == RFM2GCTRLREGMEM) {
        std::memcpy(&value, control_registers().data() + offset, width);
    } else {
        std::memcpy(&value, runtime_registers().data() + offset, width);
    }
    return RFM2G_SUCCESS;
}

RFM2G_STATUS Device::put(RFM2GREGSETTYPE set, std::uint32_t offset, std::uint32_t width,
                         std::uint32_t value) {
    if (set == RFM2GCTRLREGMEM) return write_control(offset, width, value);
    if (set == RFM2GCFGREGMEM) return write_runtime(offset, width, value);
    const RFM2G_STATUS status = check_range(offset, width);
    if (status != RFM2G_SUCCESS) return status;
    return put(std::size_t{view().first} + offset, &value, width);
}

RFM2G_STATUS Device::read_register(RFM2GREGSETTYPE set, std::uint32_t offset, std::uint32_t width,
                                   std::uint32_t& value) {
    const Lock lock(registers_mutex_);
    const RFM2G_STATUS status = get(set, offset, width, value);
    for (const Senders& senders : kSenders) {
        if (set == RFM2GCTRLREGMEM && touches(offset, width, senders.sender_at, 1))
            static_cast<void>(events_.oldest(senders.event, true));
    }
    return status;
}

RFM2G_STATUS Device::write_register(RFM2GREGSETTYPE set, std::uint32_t offset, std::uint32_t width,
                                    std::uint32_t value) {
    const Lock lock(registers_mutex_);
    return put(set, offset, width, value);
}

RFM2G_STATUS Device::change_register(RFM2GREGSETTYPE set, std::uint32_t offset, std::uint32_t width,
                                     std::uint32_t mask, bool on) {
    const Lock lock(registers_mutex_);
    std::uint32_t value = 0;
    const RFM2G_STATUS status = get(set, offset, width, value);
    if (status != RFM2G_SUCCESS) return status;
    return put(set, offset, width, on ? value | mask : value & ~mask);
}

}  // namespace cards::rfm2g
