// SPDX-License-Identifier: Apache-2.0

/// Opening, configuration and transfers: the C calls.

#include "cards/common/unit.hpp"
#include "cards/rfm2g/handle.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/base/quantity.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

namespace cards::rfm2g {

RFM2G_STATUS no_handle(RFM2GHANDLE rh) {
    if (rh == nullptr) {
        return refuse(RFM2G_NULL_DESCRIPTOR,
                      "the handle is a null pointer; give one that RFM2gOpen has stored");
    }
    if (Handles::of_process().is_inherited(place_of(rh)))
        return refuse(RFM2G_NOT_OPEN, rmem::kForkedChild);
    return refuse(RFM2G_BAD_PARAMETER_1,
                  "the handle is none that RFM2gOpen has stored, or it is closed");
}

RFM2G_STATUS no_place(RFM2G_STATUS status) {
    return refuse(status, fmt::format("argument {} is a null pointer; give an address",
                                      static_cast<int>(status) - RFM2G_BAD_PARAMETER_1 + 1));
}

namespace {

constexpr unsigned kMaxUnit = 255;

/// The number at the end of "/dev/rfm2g0", "/dev/rfm2g/0", "\\.\rfm2g0" or "RFM2G_0".
std::optional<unsigned> unit_of(std::string_view path) {
    constexpr std::string_view kName = "rfm2g";
    constexpr std::size_t kMaxDigits = 3;
    const std::size_t digits =
        path.size() - std::min(path.size(), path.find_last_not_of("0123456789") + 1);
    if (digits == 0 || digits > kMaxDigits) return std::nullopt;
    const auto number =
        static_cast<unsigned>(std::atoi(std::string(path.substr(path.size() - digits)).c_str()));
    std::string before(path.substr(0, path.size() - digits));
    if (before.ends_with('/') || before.ends_with('_')) before.pop_back();
    std::transform(before.begin(), before.end(), before.begin(),
                   [](unsigned char c) { return std::tolower(c); });
    if (number > kMaxUnit || !before.ends_with(kName)) return std::nullopt;
    return number;
}

/// The unit of a name that is the site's own, such as /dev/daqd-rfm1, by "daqd-rfm1=1,…".
std::optional<unsigned> unit_named(std::string_view path) {
    const std::string given = setting_of_units("RMEM_RFM2G_NAMES");
    const std::string_view name = path.substr(path.find_last_of("/\\") + 1);
    std::istringstream pairs(given);
    for (std::string pair; std::getline(pairs, pair, ',');) {
        const std::size_t equals = pair.find('=');
        if (equals == std::string::npos)
            throw rmem::Error(rmem::Errc::bad_environment,
                              fmt::format("RMEM_RFM2G_NAMES: '{}' names no unit; give name=unit, "
                                          "and commas between, such as daqd-rfm=0,daqd-rfm1=1",
                                          pair));
        if (std::string_view(pair).substr(0, equals) == name)
            return rmem::parse_unsigned("RMEM_RFM2G_NAMES", pair.substr(equals + 1), kMaxUnit);
    }
    return unit_of(path);
}

/// The switch of the board. Throws bad_environment.
std::uint32_t window_setting() {
    constexpr const char* kName = "RMEM_RFM2G_WINDOW";
    constexpr std::size_t kMegabyte = std::size_t{1} << 20;
    const char* const text = rmem::environment_setting(kName);
    if (text == nullptr) return 0;
    const std::size_t bytes = rmem::parse_size(kName, text);
    for (const unsigned size : {2U, 16U, 64U}) {
        if (bytes == size * kMegabyte) return static_cast<std::uint32_t>(bytes);
    }
    throw rmem::Error(rmem::Errc::bad_environment,
                      fmt::format("{}: '{}' is not valid; give 2M, 16M or 64M, or nothing for all "
                                  "of the memory",
                                  kName, text));
}

template <std::size_t Size>
void copy_text(char (&to)[Size], std::string_view text) {
    const std::size_t length = std::min(text.size(), Size - 1);
    std::memcpy(to, text.data(), length);
    to[length] = '\0';
}

std::string version() {
    return fmt::format("rmem {}.{}.{}", RMEM_VERSION_MAJOR, RMEM_VERSION_MINOR, RMEM_VERSION_PATCH);
}

std::uint32_t lcsr(Device& device) {
    std::uint32_t word = 0;
    static_cast<void>(device.read_register(RFM2GCTRLREGMEM, rfm2g_lcsr, RFM2G_LONG, word));
    return word;
}

void describe(RFM2GCONFIG& config, const char* path, Device& device) {
    config.NodeId = device.node_id();
    config.BoardId = RFM2G_BID_5565;
    config.Unit = static_cast<RFM2G_UINT8>(device.unit());
    config.PlxRevision = kPlxRevision;
    config.MemorySize = device.memory_bytes();
    copy_text(config.Device, path);
    copy_text(config.Name, "rmem");
    copy_text(config.DriverVersion, version());
    config.BoardRevision = kBoardRevision;
    config.Lcsr1 = lcsr(device);
    RFM2GPCICONFIG& bus = config.PciConfig;
    bus.rfm2gOrWindowSize = bus.rfm2gOrRegSize = kRuntimeRegisterBytes;
    bus.rfm2gCsWindowSize = bus.rfm2gCsRegSize = kControlRegisterBytes;
    bus.rfm2gWindowSize = device.window_bytes();
    bus.type = DEVICE_ID_PCI5565;
}

RFM2G_STATUS not_opened(unsigned unit, int code) {
    tell_why_not_opened("rfm2g", unit, code);
    return code == RMEM_ESYS ? RFM2G_NO_RFM2G_BOARD : status_of(code, RFM2G_NOT_OPEN);
}

RFM2G_STATUS open(const char* path, RFM2GHANDLE* rh) {
    const auto unit = unit_named(path);
    if (!unit) {
        static_cast<void>(rmem::fail(
            RMEM_ESYS, fmt::format("'{}' names no unit; give a path such as /dev/rfm2g0, "
                                   "or say by RMEM_RFM2G_NAMES which it is",
                                   path)));
        std::fprintf(stderr, "rfm2g: %s\n", rmem_last_error());
        return RFM2G_NO_RFM2G_BOARD;
    }
    const std::uint32_t window_bytes = window_setting();
    int code = RMEM_OK;
    Handles& handles = Handles::of_process();
    const unsigned place = handles.open(*unit, [&](const std::shared_ptr<Device>&) {
        OwnNode node = open_unit(*unit, code);
        if (node == nullptr) return std::shared_ptr<Device>();
        auto own = std::make_shared<Device>(*unit, std::move(node), window_bytes);
        code = own->accept_events();
        return code < 0 ? nullptr : own;
    });
    if (place == Handles::kNone) return not_opened(*unit, code);
    rfm2ghandle_s& handle = seen_of_handles[place];
    handle.fd = -1;
    if constexpr (!kIsRemote) handle.fd = open_descriptor(place);
    for (int event = 0; event < RFM2GEVENT_LAST; ++event) {
        handle.callbackInfo[event].Handle = &handle;
        handle.callbackInfo[event].Event = static_cast<RFM2GEVENTTYPE>(event);
    }
    describe(handle.Config, path, *handles.call(place));
    *rh = &handle;
    return RFM2G_SUCCESS;
}

/// Stores what does not change.
template <class Value, class Found>
RFM2G_STATUS give(RFM2GHANDLE rh, Value* place, Found&& found) noexcept {
    return on_device_for(rh, place, RFM2G_BAD_PARAMETER_2, [&](Device& device) {
        *place = static_cast<Value>(found(device));
        return RFM2G_SUCCESS;
    });
}

/// What a handle keeps, and nothing depends on.
template <class Place, class Value>
RFM2G_STATUS keep(RFM2GHANDLE rh, Place place, Value value) noexcept {
    return on_device(rh, [&](Device& device) {
        // relaxed is enough, here and below: settings, which nothing else hangs on
        (device.kept().*place).store(value, std::memory_order_relaxed);
        return RFM2G_SUCCESS;
    });
}
template <class Value, class Place>
RFM2G_STATUS give_kept(RFM2GHANDLE rh, Value* value, Place place) noexcept {
    return give(rh, value, [&](Device& device) {
        return (device.kept().*place).load(std::memory_order_relaxed);  // enough: as above
    });
}

template <class Value>
[[gnu::always_inline]] inline RFM2G_STATUS peek(RFM2GHANDLE rh, RFM2G_UINT32 offset,
                                                Value* value) noexcept {
    return on_device_for(rh, value, RFM2G_BAD_PARAMETER_3,
                         [&](Device& device) { return device.peek(offset, *value); });
}
template <class Value>
[[gnu::always_inline]] inline RFM2G_STATUS poke(RFM2GHANDLE rh, RFM2G_UINT32 offset,
                                                Value value) noexcept {
    return on_device(rh, [&](Device& device) { return device.poke(offset, value); });
}

RFM2G_STATUS nothing_to_map(RFM2G_STATUS status) {
    return refuse(status, "a pointer to nothing is asked for; give 1 or more");
}

constexpr std::uint64_t pages_of(RFM2G_UINT32 bytes) {
    return (std::uint64_t{bytes} + kMapPageBytes - 1) / kMapPageBytes;
}

RFM2G_STATUS map(RFM2GHANDLE rh, volatile void** pointer, RFM2G_UINT64 offset,
                 std::uint64_t pages) noexcept {
    return on_device_for(rh, pointer, RFM2G_BAD_PARAMETER_2, [&](Device& device) {
        if (pages == 0) return nothing_to_map(RFM2G_BAD_PARAMETER_4);
        return device.map(pointer, offset, pages);
    });
}

RFM2G_STATUS unmap(RFM2GHANDLE rh, volatile void** pointer, std::uint64_t pages) noexcept {
    return on_device_for(rh, pointer, RFM2G_BAD_PARAMETER_2, [&](Device& device) {
        if (*pointer == nullptr) return no_place(RFM2G_BAD_PARAMETER_2);
        if (pages == 0) return nothing_to_map(RFM2G_BAD_PARAMETER_3);
        return device.unmap(pointer);
    });
}

}  // namespace

}  // namespace cards::rfm2g

using namespace cards::rfm2g;

extern "C" {

RFM2G_STATUS RFM2gOpen(char* DevicePath, RFM2GHANDLE* rh) {
    if (DevicePath == nullptr) return no_place(RFM2G_BAD_PARAMETER_1);
    if (rh == nullptr) return no_place(RFM2G_BAD_PARAMETER_2);
    try {
        return open(DevicePath, rh);
    } catch (...) {
        return not_opened(kMaxUnit + 1, rmem::failed_with(std::current_exception()));
    }
}

RFM2G_STATUS RFM2gClose(RFM2GHANDLE* rh) {
    if (rh == nullptr) return no_place(RFM2G_BAD_PARAMETER_1);
    if (Events::is_in_callback()) {
        return refuse(RFM2G_NOT_SUPPORTED,
                      "a callback cannot close a handle; let another thread do it");
    }
    Handles& handles = Handles::of_process();
    const unsigned place = place_of(*rh);
    const auto end_waits = [place](Device& device, const cards::Calls& calls) {
        if constexpr (!kIsRemote) close_descriptor(place);
        device.end_waits(calls);
    };
    if (!handles.is_inherited(place) && !handles.close(place, end_waits)) return no_handle(*rh);
    *rh = nullptr;
    return RFM2G_SUCCESS;
}

// ---- Configuration

RFM2G_STATUS RFM2gGetConfig(RFM2GHANDLE rh, RFM2GCONFIG* Config) {
    return give(rh, Config, [&](Device& device) {
        RFM2GCONFIG config = rh->Config;
        config.Lcsr1 = lcsr(device);
        return config;
    });
}
RFM2G_STATUS RFM2gNodeID(RFM2GHANDLE rh, RFM2G_NODE* NodeIdPtr) {
    return give(rh, NodeIdPtr, [&](Device&) { return rh->Config.NodeId; });
}
RFM2G_STATUS RFM2gBoardID(RFM2GHANDLE rh, RFM2G_UINT8* BoardIdPtr) {
    return give(rh, BoardIdPtr, [&](Device&) { return rh->Config.BoardId; });
}
RFM2G_STATUS RFM2gSize(RFM2GHANDLE rh, RFM2G_UINT32* SizePtr) {
    return give(rh, SizePtr, [](Device& device) { return device.memory_bytes(); });
}
RFM2G_STATUS RFM2gFirst(RFM2GHANDLE rh, RFM2G_UINT32* FirstPtr) {
    return give(rh, FirstPtr, [](Device&) { return 0; });
}
RFM2G_STATUS RFM2gDeviceName(RFM2GHANDLE rh, char* NamePtr) {
    return on_device_for(rh, NamePtr, RFM2G_BAD_PARAMETER_2, [&](Device&) {
        std::strcpy(NamePtr, rh->Config.Device);
        return RFM2G_SUCCESS;
    });
}
RFM2G_STATUS RFM2gDllVersion(RFM2GHANDLE rh, char* VersionPtr) {
    return RFM2gDriverVersion(rh, VersionPtr);
}
RFM2G_STATUS RFM2gDriverVersion(RFM2GHANDLE rh, char* VersionPtr) {
    return on_device_for(rh, VersionPtr, RFM2G_BAD_PARAMETER_2, [&](Device&) {
        std::strcpy(VersionPtr, rh->Config.DriverVersion);
        return RFM2G_SUCCESS;
    });
}

RFM2G_STATUS RFM2gUserMemory(RFM2GHANDLE rh, volatile void** UserMemoryPtr, RFM2G_UINT64 Offset,
                             RFM2G_UINT32 Pages) {
    return map(rh, UserMemoryPtr, Offset, Pages);
}
RFM2G_STATUS RFM2gUserMemoryBytes(RFM2GHANDLE rh, volatile void** UserMemoryPtr,
                                  RFM2G_UINT64 Offset, RFM2G_UINT32 Bytes) {
    return map(rh, UserMemoryPtr, Offset, pages_of(Bytes));
}
RFM2G_STATUS RFM2gUnMapUserMemory(RFM2GHANDLE rh, volatile void** UserMemoryPtr,
                                  RFM2G_UINT32 Pages) {
    return unmap(rh, UserMemoryPtr, Pages);
}
RFM2G_STATUS RFM2gUnMapUserMemoryBytes(RFM2GHANDLE rh, volatile void** UserMemoryPtr,
                                       RFM2G_UINT32 Bytes) {
    return unmap(rh, UserMemoryPtr, pages_of(Bytes));
}

RFM2G_STATUS RFM2gGetDMAThreshold(RFM2GHANDLE rh, RFM2G_UINT32* Threshold) {
    return give_kept(rh, Threshold, &Kept::dma_threshold);
}
RFM2G_STATUS RFM2gSetDMAThreshold(RFM2GHANDLE rh, RFM2G_UINT32 Threshold) {
    return keep(rh, &Kept::dma_threshold, Threshold);
}
RFM2G_STATUS RFM2gGetDMAByteSwap(RFM2GHANDLE rh, RFM2G_BOOL* byteSwap) {
    return give_kept(rh, byteSwap, &Kept::swaps_dma);
}
RFM2G_STATUS RFM2gSetDMAByteSwap(RFM2GHANDLE rh, RFM2G_BOOL byteSwap) {
    return keep(rh, &Kept::swaps_dma, byteSwap != RFM2G_FALSE);
}
RFM2G_STATUS RFM2gGetPIOByteSwap(RFM2GHANDLE rh, RFM2G_BOOL* byteSwap) {
    return give_kept(rh, byteSwap, &Kept::swaps_pio);
}
RFM2G_STATUS RFM2gSetPIOByteSwap(RFM2GHANDLE rh, RFM2G_BOOL byteSwap) {
    return keep(rh, &Kept::swaps_pio, byteSwap != RFM2G_FALSE);
}
RFM2G_STATUS RFM2gGetDebugFlags(RFM2GHANDLE rh, RFM2G_UINT32* Flags) {
    return give_kept(rh, Flags, &Kept::debug_flags);
}
RFM2G_STATUS RFM2gSetDebugFlags(RFM2GHANDLE rh, RFM2G_UINT32 Flags) {
    return keep(rh, &Kept::debug_flags, Flags);
}

// ---- Transfers

RFM2G_STATUS RFM2gRead(RFM2GHANDLE rh, RFM2G_UINT32 Offset, void* Buffer, RFM2G_UINT32 Length) {
    return on_device_for(rh, Buffer, RFM2G_BAD_PARAMETER_3,
                         [&](Device& device) { return device.read(Offset, Buffer, Length); });
}
RFM2G_STATUS RFM2gWrite(RFM2GHANDLE rh, RFM2G_UINT32 Offset, void* Buffer, RFM2G_UINT32 Length) {
    return on_device_for(rh, Buffer, RFM2G_BAD_PARAMETER_3,
                         [&](Device& device) { return device.write(Offset, Buffer, Length); });
}
RFM2G_STATUS RFM2gPeek8(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT8* Value) {
    return peek(rh, Offset, Value);
}
RFM2G_STATUS RFM2gPeek16(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT16* Value) {
    return peek(rh, Offset, Value);
}
RFM2G_STATUS RFM2gPeek32(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT32* Value) {
    return peek(rh, Offset, Value);
}
RFM2G_STATUS RFM2gPeek64(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT64* Value) {
    return peek(rh, Offset, Value);
}
RFM2G_STATUS RFM2gPoke8(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT8 Value) {
    return poke(rh, Offset, Value);
}
RFM2G_STATUS RFM2gPoke16(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT16 Value) {
    return poke(rh, Offset, Value);
}
RFM2G_STATUS RFM2gPoke32(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT32 Value) {
    return poke(rh, Offset, Value);
}
RFM2G_STATUS RFM2gPoke64(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT64 Value) {
    return poke(rh, Offset, Value);
}

}  // extern "C"
