// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A handle as programs have it, and the card behind it.
///
/// A handle is the address of a place, which is never given back; the library compares it, and
/// looks at nothing behind it before it has found the place in the table.
/// In a forked child it is its parent's: calls are refused, and nothing of it is touched.
/// Closing, and the calls that it waits for: cards/common/handle_table.hpp.
/// Thread safety: any thread.
/// Errors: RFM2G_STATUS, with the sentence in rmem_last_error().

#include "cards/common/handle_table.hpp"
#include "cards/rfm2g/device.hpp"
#include "cards/rfm2g/status.hpp"

#include <array>
#include <cstdint>
#include <exception>
#include <utility>

namespace cards::rfm2g {

using Handles = HandleTable<Device>;

/// What programs see of each place, and may read after a close, too.
inline constinit std::array<rfm2ghandle_s, Handles::kPlaces> seen_of_handles{};

/// What pread(2) reads the memory by, at a place that is open; not where kIsRemote. -1: none.
[[nodiscard]] int open_descriptor(unsigned place);
void close_descriptor(unsigned place) noexcept;

/// Of what is no handle none.
[[nodiscard]] inline unsigned place_of(RFM2GHANDLE rh) noexcept {
    const auto at = reinterpret_cast<std::uintptr_t>(rh) -
                    reinterpret_cast<std::uintptr_t>(seen_of_handles.data());
    if (at >= sizeof seen_of_handles || at % sizeof(rfm2ghandle_s) != 0) return Handles::kNone;
    return static_cast<unsigned>(at / sizeof(rfm2ghandle_s));
}
[[nodiscard]] inline const Calls& calls_of(RFM2GHANDLE rh) noexcept {
    return Handles::of_process().calls(place_of(rh));
}

[[gnu::cold]] RFM2G_STATUS no_handle(RFM2GHANDLE rh);
[[gnu::cold]] RFM2G_STATUS no_place(RFM2G_STATUS status);

/// Calls `body` with the card.
template <class Body>
[[gnu::always_inline]] inline RFM2G_STATUS on_device(RFM2GHANDLE rh, Body&& body) noexcept {
    const auto call = Handles::of_process().call(place_of(rh));
    if (!call) [[unlikely]]
        return no_handle(rh);
    try {
        return body(*call);
    } catch (...) {
        return status_of(rmem::failed_with(std::current_exception()), RFM2G_DRIVER_ERROR);
    }
}

/// The same, for a call that stores something at `place`, its argument `Status` says.
template <class Place, class Body>
[[gnu::always_inline]] inline RFM2G_STATUS on_device_for(RFM2GHANDLE rh, Place* place,
                                                         RFM2G_STATUS null, Body&& body) noexcept {
    return on_device(rh, [&](Device& device) {
        if (place == nullptr) [[unlikely]]
            return no_place(null);
        return body(device);
    });
}

}  // namespace cards::rfm2g
