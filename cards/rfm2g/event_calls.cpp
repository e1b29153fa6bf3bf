// SPDX-License-Identifier: Apache-2.0

/// Events: the C calls.

#include "cards/rfm2g/handle.hpp"

#include <fmt/format.h>

#include <functional>
#include <type_traits>

namespace cards::rfm2g {

namespace {

RFM2G_STATUS no_event(RFM2G_STATUS status, unsigned event) {
    return refuse(status,
                  fmt::format("there is no event {} for this call; rfm2g_defs.h has them", event));
}

/// Calls `body` with the events; where it returns nothing it has succeeded.
template <class Body>
RFM2G_STATUS on_event(RFM2GHANDLE rh, RFM2GEVENTTYPE event, Body&& body) noexcept {
    return on_device(rh, [&](Device& device) {
        if (!Events::is_event(event))
            return no_event(RFM2G_BAD_PARAMETER_2, static_cast<unsigned>(event));
        using Result = std::invoke_result_t<Body, Events&, RFM2GEVENTTYPE>;
        if constexpr (std::is_same_v<Result, RFM2G_STATUS>) {
            return std::invoke(body, device.events(), event);
        } else {
            std::invoke(body, device.events(), event);
            return RFM2G_SUCCESS;
        }
    });
}

/// The same, for each where RFM2GEVENT_LAST stands for all.
template <class Body>
RFM2G_STATUS on_events(RFM2GHANDLE rh, RFM2GEVENTTYPE event, Body&& body) noexcept {
    const bool is_all = event == RFM2GEVENT_LAST;
    return on_event(rh, is_all ? RFM2GEVENT_RESET : event, [&](Events& events, RFM2GEVENTTYPE) {
        if (!is_all) std::invoke(body, events, event);
        for (int each = 0; is_all && each < RFM2GEVENT_LAST; ++each)
            std::invoke(body, events, static_cast<RFM2GEVENTTYPE>(each));
    });
}

}  // namespace

}  // namespace cards::rfm2g

using namespace cards::rfm2g;

extern "C" {

RFM2G_STATUS RFM2gEnableEvent(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType) {
    return on_event(rh, EventType, &Events::enable);
}
RFM2G_STATUS RFM2gDisableEvent(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType) {
    return on_event(rh, EventType, &Events::disable);
}

RFM2G_STATUS RFM2gSendEvent(RFM2GHANDLE rh, RFM2G_NODE ToNode, RFM2GEVENTTYPE EventType,
                            RFM2G_UINT32 ExtendedData) {
    return on_device(rh, [&](Device& device) {
        if (!Events::is_event(EventType) || !Events::is_sent(EventType))
            return no_event(RFM2G_BAD_PARAMETER_3, static_cast<unsigned>(EventType));
        return device.send(ToNode, EventType, ExtendedData);
    });
}

RFM2G_STATUS RFM2gWaitForEvent(RFM2GHANDLE rh, RFM2GEVENTINFO* EventInfo) {
    return on_device_for(rh, EventInfo, RFM2G_BAD_PARAMETER_2, [&](Device&) {
        return on_event(rh, EventInfo->Event, [&](Events& events, RFM2GEVENTTYPE event) {
            Events::Received what;
            const RFM2G_STATUS status = events.wait(event, EventInfo->Timeout, what, calls_of(rh));
            if (status != RFM2G_SUCCESS) return status;
            EventInfo->ExtendedInfo = what.data;
            EventInfo->NodeId = what.from;
            return status;
        });
    });
}

RFM2G_STATUS RFM2gEnableEventCallback(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType,
                                      RFM2G_EVENT_FUNCPTR pEventFunc) {
    return on_event(rh, EventType, [&](Events& events, RFM2GEVENTTYPE event) {
        if (pEventFunc == nullptr) return no_place(RFM2G_BAD_PARAMETER_3);
        return events.set_callback(event, pEventFunc, rh, calls_of(rh));
    });
}
RFM2G_STATUS RFM2gDisableEventCallback(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType) {
    return on_event(rh, EventType, &Events::clear_callback);
}

RFM2G_STATUS RFM2gClearEvent(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType) {
    return on_events(rh, EventType, &Events::clear);
}
RFM2G_STATUS RFM2gFlushEventQueue(RFM2GHANDLE rh, RFM2GEVENTTYPE Event) {
    return RFM2gClearEvent(rh, Event);
}
RFM2G_STATUS RFM2gCancelWaitForEvent(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType) {
    return on_event(rh, EventType, &Events::cancel);
}

RFM2G_STATUS RFM2gClearEventCount(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType) {
    return on_events(rh, EventType, &Events::clear_count);
}
RFM2G_STATUS RFM2gClearEventStats(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType) {
    return RFM2gClearEventCount(rh, EventType);
}
RFM2G_STATUS RFM2gGetEventCount(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType, RFM2G_UINT32* Count) {
    return on_event(rh, EventType, [&](Events& events, RFM2GEVENTTYPE event) {
        if (Count == nullptr) return no_place(RFM2G_BAD_PARAMETER_3);
        *Count = events.statistics(event).EventCount;
        return RFM2G_SUCCESS;
    });
}
RFM2G_STATUS RFM2gGetEventStats(RFM2GHANDLE rh, RFM2GQINFO* Qinfo) {
    return on_device_for(rh, Qinfo, RFM2G_BAD_PARAMETER_2, [&](Device&) {
        const RFM2G_UINT8 named = Qinfo->Event;
        if (named >= RFM2GEVENT_LAST) return no_event(RFM2G_BAD_PARAMETER_2, named);
        return on_event(
            rh, static_cast<RFM2GEVENTTYPE>(named),
            [&](Events& events, RFM2GEVENTTYPE event) { *Qinfo = events.statistics(event); });
    });
}

}  // extern "C"
