// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A handle as programs have it, and the card behind it.
///
/// In a forked child it is its parent's: calls are refused, and nothing of it is touched.
/// Thread safety: functions, and each handle as its Device.
/// Errors: RFM2G_STATUS, with the sentence in rmem_last_error().

#include "cards/rfm2g/device.hpp"
#include "cards/rfm2g/status.hpp"
#include "rmem/base/at_fork.hpp"

#include <exception>
#include <utility>

namespace cards::rfm2g {

inline constexpr RFM2G_UINT32 kHandleId = 0x52464D32;     // "RFM2"
inline constexpr RFM2G_UINT32 kInheritedId = 0x666F726B;  // "fork"

struct Handle final : rfm2ghandle_s, private rmem::AtFork {
    Handle(OwnNode node, std::uint32_t window_bytes)
        : rfm2ghandle_s{}, device(this, std::move(node), window_bytes) {}

    Device device;

private:
    void in_child() noexcept override { struct_id = kInheritedId; }
};

[[gnu::cold]] RFM2G_STATUS no_handle(RFM2GHANDLE rh);
[[gnu::cold]] RFM2G_STATUS no_place(RFM2G_STATUS status);

/// Calls `body` with the card.
template <class Body>
[[gnu::always_inline]] inline RFM2G_STATUS on_device(RFM2GHANDLE rh, Body&& body) noexcept {
    if (rh == nullptr || rh->struct_id != kHandleId) [[unlikely]]
        return no_handle(rh);
    try {
        return body(static_cast<Handle*>(rh)->device);
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
