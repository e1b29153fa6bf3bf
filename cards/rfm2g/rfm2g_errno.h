/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2G_ERRNO_H
#define RFM2G_ERRNO_H

/*
 * What each call of rfm2g_api.h returns. The sentence behind a failure, with what was found and
 * what to do, is rmem_last_error() (rmem/rmem.h). Marked - : no call of this library returns it.
 */

#ifdef __cplusplus
extern "C" {
#endif

typedef enum RFM2G_STATUS_enum {
    RFM2G_SUCCESS = 0,
    RFM2G_NOT_IMPLEMENTED = 1,  /* -                                                      */
    RFM2G_DRIVER_ERROR = 2,     /* none of the others says it                             */
    RFM2G_TIMED_OUT = 3,        /* no event came in time                                  */
    RFM2G_LOW_MEMORY = 4,       /* no room, in shared memory or in that of the process    */
    RFM2G_MEM_NOT_MAPPED = 5,   /* there is no pointer to this part of the memory         */
    RFM2G_OS_ERROR = 6,         /* the system, or the window, refuses it                  */
    RFM2G_EVENT_IN_USE = 7,     /* another thread, or a callback, waits for the event     */
    RFM2G_NOT_SUPPORTED = 8,    /* nothing behind this interface can do it                */
    RFM2G_NOT_OPEN = 9,         /* there is such a unit, and it could not be opened       */
    RFM2G_NO_RFM2G_BOARD = 10,  /* there is no such unit                                  */
    RFM2G_BAD_PARAMETER_1 = 11, /* that argument, counted from 1, is null or not valid    */
    RFM2G_BAD_PARAMETER_2 = 12,
    RFM2G_BAD_PARAMETER_3 = 13,
    RFM2G_BAD_PARAMETER_4 = 14,
    RFM2G_BAD_PARAMETER_5 = 15,
    RFM2G_BAD_PARAMETER_6 = 16,     /* -                                                      */
    RFM2G_BAD_PARAMETER_7 = 17,     /* -                                                      */
    RFM2G_BAD_PARAMETER_8 = 18,     /* -                                                      */
    RFM2G_BAD_PARAMETER_9 = 19,     /* -                                                      */
    RFM2G_OUT_OF_RANGE = 20,        /* beyond the end of the memory                           */
    RFM2G_MAP_NOT_ALLOWED = 21,     /* -                                                      */
    RFM2G_LINK_TEST_FAIL = 22,      /* what was sent has not come round                       */
    RFM2G_MEM_READ_ONLY = 23,       /* -                                                      */
    RFM2G_UNALIGNED_OFFSET = 24,    /* the offset is no multiple of the width                 */
    RFM2G_UNALIGNED_ADDRESS = 25,   /* -                                                      */
    RFM2G_LSEEK_ERROR = 26,         /* -                                                      */
    RFM2G_READ_ERROR = 27,          /* the memory cannot be read                              */
    RFM2G_WRITE_ERROR = 28,         /* nothing was written: nobody would get it               */
    RFM2G_HANDLE_NOT_NULL = 29,     /* -                                                      */
    RFM2G_MODULE_NOT_LOADED = 30,   /* -                                                      */
    RFM2G_NOT_ENABLED = 31,         /* the event has no callback                              */
    RFM2G_ALREADY_ENABLED = 32,     /* -                                                      */
    RFM2G_EVENT_NOT_IN_USE = 33,    /* nobody waits for the event                             */
    RFM2G_BAD_RFM2G_BOARD_ID = 34,  /* -                                                      */
    RFM2G_NULL_DESCRIPTOR = 35,     /* the handle is null                                     */
    RFM2G_WAIT_EVENT_CANCELED = 36, /* RFM2gCancelWaitForEvent, or RFM2gClose, ended the wait */
    RFM2G_DMA_FAILED = 37,          /* -                                                      */
    RFM2G_NOT_INITIALIZED = 38,     /* -                                                      */
    RFM2G_UNALIGNED_LENGTH = 39,    /* -                                                      */
    RFM2G_SIGNALED = 40,            /* a signal ended the wait                                */
    RFM2G_NODE_ID_SELF = 41,        /* a node sends itself no event                           */
    RFM2G_MAX_ERROR_CODE = 42
} RFM2G_STATUS;

/* RFM2gErrorMsg's texts, by their codes. */
#if defined(_WIN32) && !defined(RFM2G_BUILDS_DLL)
#define RFM2G_DATA extern __declspec(dllimport)
#elif defined(__GNUC__) && !defined(_WIN32)
#define RFM2G_DATA __attribute__((visibility("default"))) extern
#else
#define RFM2G_DATA extern
#endif
RFM2G_DATA const char* rfm2g_errlist[];
RFM2G_DATA const int rfm2g_nerr;

#ifdef __cplusplus
}
#endif

#endif /* RFM2G_ERRNO_H */
