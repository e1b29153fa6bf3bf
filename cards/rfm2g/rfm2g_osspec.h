/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2G_OSSPEC_H
#define RFM2G_OSSPEC_H

/* The handle of rfm2g_api.h, and what the driver of Linux has alone. Programs have registers
 * from here, too: the driver's header includes them. */

#include "rfm2g_defs.h"
#include "rfm2g_regs.h"

#ifdef _WIN32
typedef void* rfm2gThread_t;
typedef void* rfm2gSemaphore_t;
#else
#include <pthread.h>
#include <semaphore.h>
typedef pthread_t rfm2gThread_t;
typedef sem_t rfm2gSemaphore_t;

/* The vendor's programs ask for the system by it; their Makefiles may have set it. */
#ifndef RFM2G_LINUX
#define RFM2G_LINUX 1
#endif
#endif

#ifdef __cplusplus
#define RFM2G_LINKAGE extern "C"
#else
#define RFM2G_LINKAGE
#endif
#if defined(_WIN32)
#define STDRFM2GCALL RFM2G_LINKAGE RFM2G_STATUS
#elif defined(__GNUC__)
#define STDRFM2GCALL RFM2G_LINKAGE __attribute__((visibility("default"))) RFM2G_STATUS
#else
#define STDRFM2GCALL RFM2G_LINKAGE RFM2G_STATUS
#endif

/* An older name. */
#define RFM2GEVENT_FIFO_AF RFM2GEVENT_RXFIFO_AFULL

/* ---- The handle. Programs read Config; the rest is the library's. */

typedef struct rfm2ghandle_s* RFM2GHANDLE;

typedef struct rfm2gCallbackInfo {
    int CallbackStat;
    void (*Callback)(void*, RFM2GEVENTINFO*);
    rfm2gThread_t thread;
    RFM2GHANDLE Handle;
    RFM2GEVENTTYPE Event;
    rfm2gSemaphore_t callbackdispachSemId; /* spelt so */
} rfm2gCallbackInfo_t, *RFM2GCALLBACKINFO;

typedef struct rfm2ghandle_s {
    RFM2G_INT32 fd; /* -1: there is no descriptor */
    RFM2GCONFIG Config;
    rfm2gCallbackInfo_t callbackInfo[RFM2GEVENT_LAST];
    RFM2G_UINT32 struct_id;
} rfm2ghandle_t;

/* ---- Offsets that RFM2gUserMemory takes for something else than the memory */

#define RFM2G_DMA_MMAP_OFFSET 1  /* added to an address: a DMA buffer */
#define RFM2G_BAR0_MMAP_OFFSET 2 /* runtime registers                 */
#define RFM2G_BAR2_MMAP_OFFSET 4 /* control and status registers      */

/* ---- The queue of an event */

typedef struct rfm2gQInfo {
    RFM2G_UINT8 Event; /* which: the caller's                             */
    RFM2G_BOOL Overflowed;
    RFM2G_UINT8 QueuePeak;
    RFM2G_UINT8 reserved;
    RFM2G_UINT32 EventCount;
    RFM2G_UINT32 EventsQueued;
    RFM2G_UINT32 QueueSize;
    RFM2G_UINT32 MaxQueueSize;
    RFM2G_UINT32 EventTimeout;
} RFM2GQINFO, *PRFM2GQINFO;

STDRFM2GCALL RFM2gGetEventStats(RFM2GHANDLE rh, RFM2GQINFO* Qinfo);
STDRFM2GCALL RFM2gFlushEventQueue(RFM2GHANDLE rh, RFM2GEVENTTYPE Event);
STDRFM2GCALL RFM2gClearEventStats(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType);

#endif /* RFM2G_OSSPEC_H */
