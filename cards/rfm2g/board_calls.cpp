// SPDX-License-Identifier: Apache-2.0

/// The board's settings, and its registers: the C calls.

#include "cards/rfm2g/handle.hpp"

#include <fmt/format.h>

#include <cstring>

namespace cards::rfm2g {

namespace {

RFM2G_STATUS get(RFM2GHANDLE rh, std::uint32_t lcsr_bit, RFM2G_BOOL* state) noexcept {
    return on_device_for(rh, state, RFM2G_BAD_PARAMETER_2, [&](Device& device) {
        *state = device.setting(lcsr_bit) ? RFM2G_ON : RFM2G_OFF;
        return RFM2G_SUCCESS;
    });
}

RFM2G_STATUS set(RFM2GHANDLE rh, std::uint32_t lcsr_bit, bool on) noexcept {
    return on_device(rh, [&](Device& device) {
        device.set(lcsr_bit, on);
        return RFM2G_SUCCESS;
    });
}

RFM2G_STATUS check_set(RFM2GREGSETTYPE set) {
    if (set == RFM2GCFGREGMEM || set == RFM2GCTRLREGMEM || set == RFM2GMEM) return RFM2G_SUCCESS;
    return refuse(RFM2G_BAD_PARAMETER_2,
                  fmt::format("there is no set {} of registers; give RFM2GCFGREGMEM, "
                              "RFM2GCTRLREGMEM or RFM2GMEM",
                              static_cast<int>(set)));
}

RFM2G_STATUS check_register(const Device& device, RFM2GREGSETTYPE set, std::uint32_t offset,
                            std::uint32_t width) {
    if (width != RFM2G_BYTE && width != RFM2G_WORD && width != RFM2G_LONG) {
        return refuse(RFM2G_BAD_PARAMETER_4,
                      fmt::format("registers are read by 1, 2 or 4 bytes, not by {}", width));
    }
    if (const auto status = check_set(set); status != RFM2G_SUCCESS) return status;
    const std::size_t bytes = set == RFM2GMEM         ? device.memory_bytes()
                              : set == RFM2GCFGREGMEM ? kRuntimeRegisterBytes
                                                      : kControlRegisterBytes;
    if (offset <= bytes - width) return RFM2G_SUCCESS;
    return refuse(
        RFM2G_BAD_PARAMETER_3,
        fmt::format("{} bytes at {:#x} are beyond the set, which has {}", width, offset, bytes));
}

/// Calls `body` where there is such a register.
template <class Body>
RFM2G_STATUS on_register(RFM2GHANDLE rh, RFM2GREGSETTYPE set, std::uint32_t offset,
                         std::uint32_t width, Body&& body) noexcept {
    return on_device(rh, [&](Device& device) {
        const RFM2G_STATUS status = check_register(device, set, offset, width);
        return status == RFM2G_SUCCESS ? body(device) : status;
    });
}

}  // namespace

}  // namespace cards::rfm2g

using namespace cards::rfm2g;

extern "C" {

RFM2G_STATUS RFM2gGetLed(RFM2GHANDLE rh, RFM2G_BOOL* Led) {
    return get(rh, RFM2G_LCSR_LED, Led);
}
RFM2G_STATUS RFM2gSetLed(RFM2GHANDLE rh, RFM2G_BOOL Led) {
    return set(rh, RFM2G_LCSR_LED, Led != RFM2G_OFF);
}
RFM2G_STATUS RFM2gGetDarkOnDark(RFM2GHANDLE rh, RFM2G_BOOL* state) {
    return get(rh, RFM2G_LCSR_DOD, state);
}
RFM2G_STATUS RFM2gSetDarkOnDark(RFM2GHANDLE rh, RFM2G_BOOL state) {
    return set(rh, RFM2G_LCSR_DOD, state != RFM2G_OFF);
}
RFM2G_STATUS RFM2gGetTransmit(RFM2GHANDLE rh, RFM2G_BOOL* state) {
    const RFM2G_STATUS status = get(rh, RFM2G_LCSR_XMTDIS, state);
    if (status == RFM2G_SUCCESS) *state = *state == RFM2G_ON ? RFM2G_OFF : RFM2G_ON;
    return status;
}
RFM2G_STATUS RFM2gSetTransmit(RFM2GHANDLE rh, RFM2G_BOOL state) {
    return set(rh, RFM2G_LCSR_XMTDIS, state == RFM2G_OFF);
}
RFM2G_STATUS RFM2gGetLoopback(RFM2GHANDLE rh, RFM2G_BOOL* state) {
    return get(rh, RFM2G_LCSR_LOOP, state);
}
RFM2G_STATUS RFM2gSetLoopback(RFM2GHANDLE rh, RFM2G_BOOL state) {
    return set(rh, RFM2G_LCSR_LOOP, state != RFM2G_OFF);
}
RFM2G_STATUS RFM2gGetParityEnable(RFM2GHANDLE rh, RFM2G_BOOL* state) {
    return get(rh, RFM2G_LCSR_PTY, state);
}
RFM2G_STATUS RFM2gSetParityEnable(RFM2GHANDLE rh, RFM2G_BOOL state) {
    return set(rh, RFM2G_LCSR_PTY, state != RFM2G_OFF);
}

RFM2G_STATUS RFM2gCheckRingCont(RFM2GHANDLE rh) {
    return on_device(rh, [](Device& device) { return device.check_ring(); });
}
RFM2G_STATUS RFM2gClearOwnData(RFM2GHANDLE rh, RFM2G_BOOL* state) {
    return on_device_for(rh, state, RFM2G_BAD_PARAMETER_2, [&](Device& device) {
        *state = device.clear_own_data() ? RFM2G_ON : RFM2G_OFF;
        return RFM2G_SUCCESS;
    });
}

RFM2G_STATUS RFM2gGetMemoryOffset(RFM2GHANDLE rh, RFM2G_MEM_OFFSETTYPE* offset) {
    return on_device_for(rh, offset, RFM2G_BAD_PARAMETER_2, [&](Device& device) {
        *offset = static_cast<RFM2G_MEM_OFFSETTYPE>(device.memory_offset());
        return RFM2G_SUCCESS;
    });
}
RFM2G_STATUS RFM2gSetMemoryOffset(RFM2GHANDLE rh, RFM2G_MEM_OFFSETTYPE offset) {
    return on_device(rh, [&](Device& device) {
        const auto steps = static_cast<unsigned>(offset);
        if (steps <= RFM2G_MEM_OFFSET3) return device.set_memory_offset(steps);
        return refuse(
            RFM2G_BAD_PARAMETER_2,
            fmt::format("there is no memory offset {}; give RFM2G_MEM_OFFSET0 to 3", steps));
    });
}
RFM2G_STATUS RFM2gGetSlidingWindow(RFM2GHANDLE rh, RFM2G_UINT32* offset, RFM2G_UINT32* size) {
    return on_device_for(rh, offset, RFM2G_BAD_PARAMETER_2, [&](Device& device) {
        *offset = device.window_offset();
        if (size != nullptr) *size = device.window_bytes();
        return RFM2G_SUCCESS;
    });
}
RFM2G_STATUS RFM2gSetSlidingWindow(RFM2GHANDLE rh, RFM2G_UINT32 offset) {
    return on_device(rh, [&](Device& device) { return device.set_window_offset(offset); });
}

// ---- Registers

RFM2G_STATUS RFM2gReadReg(RFM2GHANDLE rh, RFM2GREGSETTYPE regset, RFM2G_UINT32 Offset,
                          RFM2G_UINT32 Width, void* Value) {
    return on_register(rh, regset, Offset, Width, [&](Device& device) {
        if (Value == nullptr) return no_place(RFM2G_BAD_PARAMETER_5);
        std::uint32_t value = 0;
        const RFM2G_STATUS status = device.read_register(regset, Offset, Width, value);
        if (status == RFM2G_SUCCESS) std::memcpy(Value, &value, Width);
        return status;
    });
}
RFM2G_STATUS RFM2gWriteReg(RFM2GHANDLE rh, RFM2GREGSETTYPE regset, RFM2G_UINT32 Offset,
                           RFM2G_UINT32 Width, RFM2G_UINT32 Value) {
    return on_register(rh, regset, Offset, Width, [&](Device& device) {
        return device.write_register(regset, Offset, Width, Value);
    });
}
RFM2G_STATUS RFM2gSetReg(RFM2GHANDLE rh, RFM2GREGSETTYPE regset, RFM2G_UINT32 Offset,
                         RFM2G_UINT32 Width, RFM2G_UINT32 Mask) {
    return on_register(rh, regset, Offset, Width, [&](Device& device) {
        return device.change_register(regset, Offset, Width, Mask, true);
    });
}
RFM2G_STATUS RFM2gClearReg(RFM2GHANDLE rh, RFM2GREGSETTYPE regset, RFM2G_UINT32 Offset,
                           RFM2G_UINT32 Width, RFM2G_UINT32 Mask) {
    return on_register(rh, regset, Offset, Width, [&](Device& device) {
        return device.change_register(regset, Offset, Width, Mask, false);
    });
}

RFM2G_STATUS RFM2gMapDeviceMemory(RFM2GHANDLE rh, RFM2GREGSETTYPE regset,
                                  volatile void** DeviceMemoryPtr) {
    return on_device(rh, [&](Device& device) {
        if (const auto status = check_set(regset); status != RFM2G_SUCCESS) return status;
        if (DeviceMemoryPtr == nullptr) return no_place(RFM2G_BAD_PARAMETER_3);
        if (regset == RFM2GCFGREGMEM) return device.map(DeviceMemoryPtr, RFM2G_BAR0_MMAP_OFFSET, 1);
        if (regset == RFM2GCTRLREGMEM)
            return device.map(DeviceMemoryPtr, RFM2G_BAR2_MMAP_OFFSET, 1);
        return device.map(DeviceMemoryPtr, 0, device.memory_bytes() / kMapPageBytes);
    });
}
RFM2G_STATUS RFM2gUnMapDeviceMemory(RFM2GHANDLE rh, RFM2GREGSETTYPE regset,
                                    volatile void** DeviceMemoryPtr) {
    return on_device(rh, [&](Device& device) {
        if (const auto status = check_set(regset); status != RFM2G_SUCCESS) return status;
        if (DeviceMemoryPtr == nullptr || *DeviceMemoryPtr == nullptr)
            return no_place(RFM2G_BAD_PARAMETER_3);
        return device.unmap(DeviceMemoryPtr);
    });
}

}  // extern "C"
