// SPDX-License-Identifier: Apache-2.0
#include "cards/common/handle_table.hpp"
#include "cards/common/unit.hpp"
#include "cards/scgt/device.hpp"
#include "cards/scgt/results.hpp"
#include "cards/scgt/scgtapi.h"
#include "rmem/version.h"

#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

namespace cards::scgt {

namespace {

constexpr unsigned kUnits = 16;
constexpr int kClosed = -1;
constexpr uint32 kNoValue = 0xFFFFFFFF;

#define SCGT_TEXT_OF(number) #number
#define SCGT_VERSION_TEXT(major, minor, patch) \
    SCGT_TEXT_OF(major) "." SCGT_TEXT_OF(minor) "." SCGT_TEXT_OF(patch)
constexpr const char* kRevision =
    "rmem " SCGT_VERSION_TEXT(RMEM_VERSION_MAJOR, RMEM_VERSION_MINOR, RMEM_VERSION_PATCH);
/// The vendor's revision of the interface, and whose it is.
constexpr const char* kApiRevision =
    "1.0-rmem-" SCGT_VERSION_TEXT(RMEM_VERSION_MAJOR, RMEM_VERSION_MINOR, RMEM_VERSION_PATCH);

using Handles = HandleTable<Device>;

unsigned place_of(const scgtHandle* handle) {
    return static_cast<unsigned>(handle->osHandle);
}

uint32 no_handle(const scgtHandle* handle) {
    return refuse(
        SCGT_BAD_PARAMETER,
        handle == nullptr
            ? "the handle is a null pointer; give the address of one"
            : "the handle is not open here; give one that scgtOpen has filled in, in this "
              "process, and that is not closed");
}

uint32 no_place(const char* what) {
    return refuse(SCGT_BAD_PARAMETER,
                  fmt::format("the place for {} is a null pointer; give an address", what));
}

/// Calls `body` with the card.
template <class Body>
uint32 on_device(const scgtHandle* handle, Body&& body) noexcept {
    if (handle == nullptr) return no_handle(handle);
    try {
        const auto call = Handles::of_process().call(place_of(handle));
        return call ? body(*call) : no_handle(handle);
    } catch (...) {
        return result_of(rmem::failed_with(std::current_exception()));
    }
}

/// Of a state or register; or kNoValue.
template <class Read>
uint32 value_of(const scgtHandle* handle, Read read, uint32 at) noexcept {
    uint32 value = kNoValue;
    const uint32 result =
        on_device(handle, [&](Device& device) { return (device.registers().*read)(at, value); });
    return result == SCGT_SUCCESS ? value : kNoValue;
}
uint32 set_value(const scgtHandle* handle, uint32 (Registers::*write)(uint32, uint32), uint32 at,
                 uint32 value) noexcept {
    return on_device(handle,
                     [&](Device& device) { return (device.registers().*write)(at, value); });
}

Device::Access access_of(uint32 flags) {
    if ((flags & SCGT_RW_PIO) != 0) return Device::Access::word;
    if ((flags & SCGR_RW_PIO_8_BIT) != 0) return Device::Access::byte;
    return (flags & SCGR_RW_PIO_16_BIT) != 0 ? Device::Access::half_word : Device::Access::dma;
}

/// Calls `body` with the card, the access, and the place for what is moved.
template <class Body>
uint32 transfer(const scgtHandle* handle, uint32 flags, uint32* moved, Body&& body) noexcept {
    uint32 unused = 0;
    uint32& bytes = moved != nullptr ? *moved : unused;
    bytes = 0;
    return on_device(handle, [&](Device& device) {
        const Device::Access access = access_of(flags);
        if (access != Device::Access::dma && handle->memMapPtr == nullptr) {
            return refuse(SCGT_BAD_PARAMETER,
                          "a PIO goes by the memory's pointer, and the handle has none; call "
                          "scgtMapMem first");
        }
        return body(device, access, bytes);
    });
}

void copy_text(char (&to)[128], const std::string& text) {
    to[text.copy(to, sizeof to - 1)] = '\0';
}

}  // namespace

}  // namespace cards::scgt

using namespace cards::scgt;

extern "C" {

// ---- Opening

const char* scgtapiRevisionStr = kApiRevision;

const char* scgtGetApiRevStr(void) {
    return scgtapiRevisionStr;
}

uint32 scgtOpen(uint32 unitNum, scgtHandle* pHandle) {
    if (pHandle == nullptr) return no_handle(pHandle);
    *pHandle = {kClosed, unitNum, nullptr, 0};
    if (unitNum >= kUnits) {
        return refuse(SCGT_BAD_PARAMETER,
                      fmt::format("there is no unit {}; they are 0 to {}", unitNum, kUnits - 1));
    }
    int code = RMEM_OK;
    try {
        const unsigned place = Handles::of_process().open(unitNum, [&](auto device) {
            if (device) return device;
            cards::OwnNode node = cards::open_unit(unitNum, code);
            return node ? std::make_shared<Device>(unitNum, std::move(node)) : nullptr;
        });
        if (place != Handles::kNone) pHandle->osHandle = static_cast<int>(place);
    } catch (...) {
        code = rmem::failed_with(std::current_exception());
    }
    if (pHandle->osHandle != kClosed) return SCGT_SUCCESS;
    cards::tell_why_not_opened("scgt", unitNum, code);
    const bool is_full = code == RMEM_ENOMEM || code == RMEM_EBUSY;
    return is_full ? SCGT_INSUFFICIENT_RESOURCES : SCGT_SYSTEM_ERROR;
}

uint32 scgtClose(scgtHandle* pHandle) {
    if (pHandle == nullptr) return no_handle(pHandle);
    if (pHandle->osHandle == kClosed) return SCGT_SUCCESS;
    const auto end_waits = [](Device& device, const cards::Calls&) { device.wake_readers(); };
    if (!Handles::of_process().close(place_of(pHandle), end_waits)) return no_handle(pHandle);
    pHandle->osHandle = kClosed;
    pHandle->memMapPtr = nullptr;
    return SCGT_SUCCESS;
}

uint32 scgtGetDeviceInfo(scgtHandle* pHandle, scgtDeviceInfo* pDeviceInfo) {
    return on_device(pHandle, [&](Device& device) -> uint32 {
        if (pDeviceInfo == nullptr) return no_place("what the card is");
        *pDeviceInfo = {};
        copy_text(pDeviceInfo->driverRevisionStr, kRevision);
        copy_text(pDeviceInfo->boardLocationStr, device.place());
        pDeviceInfo->unitNum = device.unit();
        pDeviceInfo->popMemSize = device.memory_bytes();
        pDeviceInfo->mappedMemSize =
            pHandle->memMapPtr != nullptr ? pHandle->memMapSize : device.memory_bytes();
        pDeviceInfo->numLinks = kLinks;
        pDeviceInfo->revisionID = kFirmware;
        return SCGT_SUCCESS;
    });
}

char* scgtGetErrStr(uint32 retcode) {
    static constexpr const char* kTexts[] = {
        "Success",
        "The card cannot be opened",
        "Bad parameter",
        "The driver refused",
        "Timed out",
        "Not supported here",
        "Out of resources",
        "Link error",
        "Interrupts missed by the reader",
        "Interrupts lost by the driver",
        "Not possible by DMA",
        "Hardware error",
    };
    static_assert(std::size(kTexts) == SCGT_HARDWARE_ERROR + 1);
    return const_cast<char*>(retcode < std::size(kTexts) ? kTexts[retcode] : "No such error");
}

// ---- Transfers

uint32 scgtWrite(scgtHandle* pHandle, uint32 gtMemoryOffset, void* pDataBuffer,
                 uint32 bytesToTransfer, uint32 flags, uint32* pBytesTransferred,
                 const scgtInterrupt* pInterrupt) {
    return transfer(pHandle, flags, pBytesTransferred,
                    [&](Device& device, Device::Access access, uint32& moved) {
                        return device.write(access, gtMemoryOffset, pDataBuffer, bytesToTransfer,
                                            flags, moved, pInterrupt);
                    });
}

uint32 scgtRead(scgtHandle* pHandle, uint32 gtMemoryOffset, void* pDataBuffer,
                uint32 bytesToTransfer, uint32 flags, uint32* pBytesTransferred) {
    return transfer(pHandle, flags, pBytesTransferred,
                    [&](Device& device, Device::Access access, uint32& moved) {
                        return device.read(access, gtMemoryOffset, pDataBuffer, bytesToTransfer,
                                           flags, moved);
                    });
}

void* scgtMapMem(scgtHandle* pHandle) {
    void* memory = nullptr;
    uint32 bytes = 0;
    const uint32 result = on_device(pHandle, [&](Device& device) {
        bytes = device.memory_bytes();
        return device.map(memory);
    });
    if (result != SCGT_SUCCESS) return nullptr;
    pHandle->memMapPtr = static_cast<uint32*>(memory);
    pHandle->memMapSize = bytes;
    return memory;
}

void scgtUnmapMem(scgtHandle* pHandle) {
    if (pHandle != nullptr) pHandle->memMapPtr = nullptr;
}

// ---- Interrupts

uint32 scgtGetInterrupt(scgtHandle* pHandle, scgtIntrHandle* intrHandle,
                        scgtInterrupt* interruptBuffer, uint32 numInterrupts, uint32 timeout,
                        uint32* numInterruptsRet) {
    return on_device(pHandle, [&](Device& device) {
        if (intrHandle == nullptr) return no_place("the reader's number");
        if (interruptBuffer == nullptr) return no_place("interrupts");
        if (numInterruptsRet == nullptr) return no_place("how many interrupts there are");
        return device.get_interrupts(*intrHandle, interruptBuffer, numInterrupts, timeout,
                                     *numInterruptsRet,
                                     Handles::of_process().calls(place_of(pHandle)));
    });
}

// ---- Registers

uint32 scgtGetState(scgtHandle* pHandle, uint32 stateID) {
    return value_of(pHandle, &Registers::get_state, stateID);
}
uint32 scgtSetState(scgtHandle* pHandle, uint32 stateID, uint32 val) {
    return set_value(pHandle, &Registers::set_state, stateID, val);
}
uint32 scgtReadCR(scgtHandle* pHandle, uint32 offset) {
    return value_of(pHandle, &Registers::read, offset);
}
uint32 scgtWriteCR(scgtHandle* pHandle, uint32 offset, uint32 val) {
    return set_value(pHandle, &Registers::write, offset, val);
}
uint32 scgtReadNMR(scgtHandle* pHandle, uint32 offset) {
    return value_of(pHandle, &Registers::read_status, offset);
}
uint32 scgtWriteNMR(scgtHandle* pHandle, uint32 offset, uint32 val) {
    return on_device(pHandle, [=](Device& device) { return device.write_management(offset, val); });
}

// ---- Statistics

uint32 scgtGetStats(scgtHandle* pHandle, uint32* statsArray, char* statNames, uint32 firstStatIndex,
                    uint32 numStats) {
    return on_device(pHandle, [&](Device& device) {
        return device.get_statistics(statsArray, statNames, firstStatIndex, numStats);
    });
}

}  // extern "C"
