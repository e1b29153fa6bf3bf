// SPDX-License-Identifier: Apache-2.0
#include "cards/rfm2g/rfm2g_api.h"

#include <algorithm>
#include <iterator>

extern "C" {

const char* rfm2g_errlist[] = {
    "Success",
    "Not implemented",
    "Failed, for a reason that has no code of its own",
    "Timed out: the event did not come",
    "No memory left",
    "No pointer to this part of the memory can be had",
    "Refused by the operating system, or outside of the window",
    "The event is in use: a thread or a callback waits for it",
    "Not supported by this board",
    "The device is there, and could not be opened",
    "There is no such RFM2g board",
    "Argument 1 is a null pointer or not valid",
    "Argument 2 is a null pointer or not valid",
    "Argument 3 is a null pointer or not valid",
    "Argument 4 is a null pointer or not valid",
    "Argument 5 is a null pointer or not valid",
    "Argument 6 is a null pointer or not valid",
    "Argument 7 is a null pointer or not valid",
    "Argument 8 is a null pointer or not valid",
    "Argument 9 is a null pointer or not valid",
    "Out of range: beyond the end of the memory",
    "This offset must not be mapped",
    "The link test failed: nothing came round the ring",
    "The memory there is read-only",
    "The offset is no multiple of the width",
    "The address is no multiple of the width",
    "Seeking failed",
    "Reading failed",
    "Writing failed",
    "The handle that is to be initialized is not null",
    "The driver is not loaded",
    "The event, or its callback, is not enabled",
    "The event is enabled already",
    "Nobody waits for the event",
    "The board is no RFM2g board",
    "The handle is null",
    "The wait was canceled",
    "The DMA failed",
    "Not initialized",
    "The length is no multiple of 4",
    "A signal ended the wait",
    "A node cannot send an event to itself",
    "There is no such status code",
};

const int rfm2g_nerr = static_cast<int>(std::size(rfm2g_errlist));

static_assert(std::size(rfm2g_errlist) == RFM2G_MAX_ERROR_CODE + 1);

char* RFM2gErrorMsg(RFM2G_STATUS ErrorCode) {
    constexpr unsigned kNone = RFM2G_MAX_ERROR_CODE;
    return const_cast<char*>(rfm2g_errlist[std::min(static_cast<unsigned>(ErrorCode), kNone)]);
}

}  // extern "C"
