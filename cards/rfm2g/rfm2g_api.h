/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2G_API_H
#define RFM2G_API_H

/*
 * The RFM2g interface of the 5565 family of reflective memory cards, over the reflective memory of
 * this library: a program for such a card is compiled with this header and linked with -lrfm2g.
 *
 *     RFM2GHANDLE card = NULL;
 *     if (RFM2gOpen("/dev/rfm2g0", &card) != RFM2G_SUCCESS) return 1;
 *     RFM2gPoke32(card, 0x100, 42);                     (appears at 0x100 of every other node)
 *     RFM2gSendEvent(card, RFM2G_NODE_ALL, RFM2GEVENT_INTR1, 7);    (after what was written)
 *     RFM2gClose(&card);
 *
 * Units         "/dev/rfm2g0", "/dev/rfm2g/0", "\\\\.\\rfm2g0" and "RFM2G_0" are unit 0: the node
 *               that `rmem node --unit 0` keeps, or that RMEM_RING and RMEM_NODE name (rmem(7)).
 *               Each open handle is a rank of that node; where none is left, handles of one
 *               process share one, and are one card.
 * Order         The writes of a node, and its events among them, arrive in their order.
 * Words         A word of 4 bytes is never seen in part; a write of a part of one sends all of it.
 *               RFM2gPeek64 and RFM2gPoke64 are two words.
 * Room          RFM2gWrite and RFM2gPoke… wait while the ring is behind, at most 2 s.
 * Events        The four interrupts and the reset are sent by nodes, and wait on the board until
 *               they are taken: 127 of each interrupt, one reset. The driver takes one of an event
 *               once it is enabled (RFM2gEnableEvent), and hands it to the one waiter or callback
 *               that the event may have. What came before is there, too: RFM2gClearEvent forgets
 *               it. Each handle of a node gets all of them.
 *               The others are faults of the network (rfm2g(7) says of which); BAD_DATA and
 *               SYNC_LOSS are disabled when they have come, until they are enabled again.
 * Callbacks     run in threads of the library: an event's one at a time, and other events wait
 *               meanwhile. They may make all calls but RFM2gClose, of whichever handle, and do
 *               not wait in RFM2gWaitForEvent: both are RFM2G_NOT_SUPPORTED there.
 * State         LED, transmitter, loopback, dark on dark, parity, windows, byte swapping and
 *               events are of a handle; of a card they are of all that have opened it.
 * Pointers      RFM2gUserMemory gives one to the memory. On link `direct` a store costs what a
 *               store costs; on the others it is captured (rmem_stores(3)).
 * Threads       Any thread may make any call at any time. RFM2gClose ends waits, and returns when
 *               other threads have left their calls; then the handle is none, and so is a copy.
 *               In a fork()ed child calls fail; it opens a handle of its own.
 * Errors        RFM2G_STATUS (rfm2g_errno.h), RFM2gErrorMsg for its meaning, and
 *               rmem_last_error() (rmem/rmem.h) for what was found and what to do. On a handle
 *               every call may return RFM2G_NULL_DESCRIPTOR, RFM2G_BAD_PARAMETER_1 where it is
 *               none, and RFM2G_BAD_PARAMETER_n where argument n is a null pointer.
 * Source        GE 523-000447-000 (the common API), the Linux driver R09.00 where they differ, and
 *               the hardware manual of the PCIE-5565PIORC.
 */

#include "rfm2g_osspec.h"

/* ---- Opening */

/* RFM2G_NO_RFM2G_BOARD: there is no such unit; a line on stderr says how to start one.
 * RFM2G_NOT_OPEN: it has no rank free, or its ring cannot be joined; so is that. */
STDRFM2GCALL RFM2gOpen(char* DevicePath, RFM2GHANDLE* rh);
/* Ends waits, callbacks and calls of the handle first. Sets *rh to null. */
STDRFM2GCALL RFM2gClose(RFM2GHANDLE* rh);

/* ---- Configuration */

STDRFM2GCALL RFM2gGetConfig(RFM2GHANDLE rh, RFM2GCONFIG* Config);
STDRFM2GCALL RFM2gNodeID(RFM2GHANDLE rh, RFM2G_NODE* NodeIdPtr);
STDRFM2GCALL RFM2gBoardID(RFM2GHANDLE rh, RFM2G_UINT8* BoardIdPtr);
STDRFM2GCALL RFM2gSize(RFM2GHANDLE rh, RFM2G_UINT32* SizePtr);
/* The first offset that is a user's: 0. */
STDRFM2GCALL RFM2gFirst(RFM2GHANDLE rh, RFM2G_UINT32* FirstPtr);
/* At most 128 characters, and 16 for versions, with the end. */
STDRFM2GCALL RFM2gDeviceName(RFM2GHANDLE rh, char* NamePtr);
STDRFM2GCALL RFM2gDllVersion(RFM2GHANDLE rh, char* VersionPtr);
STDRFM2GCALL RFM2gDriverVersion(RFM2GHANDLE rh, char* VersionPtr);

/* A pointer to `Pages` of 4096 bytes from `Offset` on, a multiple of 4096, in the window and with
 * the memory offset of now. With RFM2G_DMA_MMAP_OFFSET added, Offset is the address of a DMA
 * buffer: the pointer is to memory of the process alone. RFM2G_OUT_OF_RANGE: beyond the memory;
 * RFM2G_MEM_NOT_MAPPED: beyond the window, or the stores cannot be captured;
 * RFM2G_NOT_SUPPORTED: of registers there is no pointer. */
STDRFM2GCALL RFM2gUserMemory(RFM2GHANDLE rh, volatile void** UserMemoryPtr, RFM2G_UINT64 Offset,
                             RFM2G_UINT32 Pages);
STDRFM2GCALL RFM2gUserMemoryBytes(RFM2GHANDLE rh, volatile void** UserMemoryPtr,
                                  RFM2G_UINT64 Offset, RFM2G_UINT32 Bytes);
/* Sets the pointer to null; the memory stays until RFM2gClose, a DMA buffer goes.
 * RFM2G_OS_ERROR: it is no such pointer. */
STDRFM2GCALL RFM2gUnMapUserMemory(RFM2GHANDLE rh, volatile void** UserMemoryPtr,
                                  RFM2G_UINT32 Pages);
STDRFM2GCALL RFM2gUnMapUserMemoryBytes(RFM2GHANDLE rh, volatile void** UserMemoryPtr,
                                       RFM2G_UINT32 Bytes);

/* A transfer between the memory and a DMA buffer is a DMA from this many bytes on; 0xFFFFFFFF, as
 * at first: never. A DMA has a byte swapping of its own, and goes on behind the window. */
STDRFM2GCALL RFM2gGetDMAThreshold(RFM2GHANDLE rh, RFM2G_UINT32* Threshold);
STDRFM2GCALL RFM2gSetDMAThreshold(RFM2GHANDLE rh, RFM2G_UINT32 Threshold);
/* RFM2gRead and RFM2gWrite reverse the bytes of each word of the memory. Peeks, pokes and pointers
 * do not. */
STDRFM2GCALL RFM2gGetDMAByteSwap(RFM2GHANDLE rh, RFM2G_BOOL* byteSwap);
STDRFM2GCALL RFM2gSetDMAByteSwap(RFM2GHANDLE rh, RFM2G_BOOL byteSwap);
STDRFM2GCALL RFM2gGetPIOByteSwap(RFM2GHANDLE rh, RFM2G_BOOL* byteSwap);
STDRFM2GCALL RFM2gSetPIOByteSwap(RFM2GHANDLE rh, RFM2G_BOOL byteSwap);

/* ---- Transfers. RFM2G_OUT_OF_RANGE: beyond the memory; RFM2G_OS_ERROR: beyond the window;
 * RFM2G_UNALIGNED_OFFSET: a peek or poke at no multiple of its width; RFM2G_WRITE_ERROR: the
 * transmitter is off, or the ring has dropped the node, or there was no room for 2 s. */

STDRFM2GCALL RFM2gRead(RFM2GHANDLE rh, RFM2G_UINT32 Offset, void* Buffer, RFM2G_UINT32 Length);
STDRFM2GCALL RFM2gWrite(RFM2GHANDLE rh, RFM2G_UINT32 Offset, void* Buffer, RFM2G_UINT32 Length);
STDRFM2GCALL RFM2gPeek8(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT8* Value);
STDRFM2GCALL RFM2gPeek16(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT16* Value);
STDRFM2GCALL RFM2gPeek32(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT32* Value);
STDRFM2GCALL RFM2gPeek64(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT64* Value);
STDRFM2GCALL RFM2gPoke8(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT8 Value);
STDRFM2GCALL RFM2gPoke16(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT16 Value);
STDRFM2GCALL RFM2gPoke32(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT32 Value);
STDRFM2GCALL RFM2gPoke64(RFM2GHANDLE rh, RFM2G_UINT32 Offset, RFM2G_UINT64 Value);

/* ---- Events. RFM2G_BAD_PARAMETER_2: there is no such event. */

#define RFM2G_INFINITE_TIMEOUT 0xFFFFFFFFU
#define RFM2G_NO_WAIT 0x0U

typedef void (*RFM2G_EVENT_FUNCPTR)(RFM2GHANDLE, RFM2GEVENTINFO*);

/* Enabling one that is enabled, and disabling one that is not, is no error. */
STDRFM2GCALL RFM2gEnableEvent(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType);
STDRFM2GCALL RFM2gDisableEvent(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType);
/* The reset or an interrupt, to a node or to RFM2G_NODE_ALL. One to a node that the ring does not
 * have reaches nobody. RFM2G_NODE_ID_SELF; RFM2G_BAD_PARAMETER_2: no node; RFM2G_BAD_PARAMETER_3:
 * no event that is sent; RFM2G_DRIVER_ERROR: as RFM2G_WRITE_ERROR of writes. */
STDRFM2GCALL RFM2gSendEvent(RFM2GHANDLE rh, RFM2G_NODE ToNode, RFM2GEVENTTYPE EventType,
                            RFM2G_UINT32 ExtendedData);
/* Waits for EventInfo->Event, at most EventInfo->Timeout milliseconds. RFM2G_TIMED_OUT,
 * RFM2G_EVENT_IN_USE, RFM2G_WAIT_EVENT_CANCELED, RFM2G_SIGNALED: a signal handler has run.
 * Waiting for an event that is not enabled is no error: another thread may enable it. */
STDRFM2GCALL RFM2gWaitForEvent(RFM2GHANDLE rh, RFM2GEVENTINFO* EventInfo);
/* RFM2G_EVENT_IN_USE: there is a callback, or a thread waits. */
STDRFM2GCALL RFM2gEnableEventCallback(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType,
                                      RFM2G_EVENT_FUNCPTR pEventFunc);
/* RFM2G_NOT_ENABLED: there is none. It may still be running. */
STDRFM2GCALL RFM2gDisableEventCallback(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType);
/* Forgets what has come of an event, or of all: RFM2GEVENT_LAST; so do the two below. */
STDRFM2GCALL RFM2gClearEvent(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType);
/* RFM2G_EVENT_NOT_IN_USE: no thread waits. */
STDRFM2GCALL RFM2gCancelWaitForEvent(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType);
/* How many the driver has taken. */
STDRFM2GCALL RFM2gClearEventCount(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType);
STDRFM2GCALL RFM2gGetEventCount(RFM2GHANDLE rh, RFM2GEVENTTYPE EventType, RFM2G_UINT32* Count);

/* ---- Utility */

/* A code's meaning; that of RFM2G_MAX_ERROR_CODE for what is none. */
RFM2G_LINKAGE
#if defined(__GNUC__)
__attribute__((visibility("default")))
#endif
char* RFM2gErrorMsg(RFM2G_STATUS ErrorCode);

STDRFM2GCALL RFM2gGetLed(RFM2GHANDLE rh, RFM2G_BOOL* Led);
STDRFM2GCALL RFM2gSetLed(RFM2GHANDLE rh, RFM2G_BOOL Led);
/* Sends something round, and waits at most 0.5 s until every live node has it:
 * RFM2G_LINK_TEST_FAIL. */
STDRFM2GCALL RFM2gCheckRingCont(RFM2GHANDLE rh);
/* Whether something of one's own has come round since the last call. */
STDRFM2GCALL RFM2gClearOwnData(RFM2GHANDLE rh, RFM2G_BOOL* state);
/* Off, writes and events are refused: they could not be kept from the others. A store through a
 * pointer travels in any case. */
STDRFM2GCALL RFM2gGetTransmit(RFM2GHANDLE rh, RFM2G_BOOL* state);
STDRFM2GCALL RFM2gSetTransmit(RFM2GHANDLE rh, RFM2G_BOOL state);
/* On, the node is alone: writes and events are refused as above, and RFM2gCheckRingCont tests
 * nothing. */
STDRFM2GCALL RFM2gGetLoopback(RFM2GHANDLE rh, RFM2G_BOOL* state);
STDRFM2GCALL RFM2gSetLoopback(RFM2GHANDLE rh, RFM2G_BOOL state);
/* Kept, and without effect: there is no light, and no parity of the memory. */
STDRFM2GCALL RFM2gGetDarkOnDark(RFM2GHANDLE rh, RFM2G_BOOL* state);
STDRFM2GCALL RFM2gSetDarkOnDark(RFM2GHANDLE rh, RFM2G_BOOL state);
STDRFM2GCALL RFM2gGetParityEnable(RFM2GHANDLE rh, RFM2G_BOOL* state);
STDRFM2GCALL RFM2gSetParityEnable(RFM2GHANDLE rh, RFM2G_BOOL state);
/* Offset 0 of this handle is 64 MB, … of the ring's memory. RFM2G_OUT_OF_RANGE: it has less. */
STDRFM2GCALL RFM2gGetMemoryOffset(RFM2GHANDLE rh, RFM2G_MEM_OFFSETTYPE* offset);
STDRFM2GCALL RFM2gSetMemoryOffset(RFM2GHANDLE rh, RFM2G_MEM_OFFSETTYPE offset);
/* The part of the memory that is seen, at offset 0 of this handle: all of it, or as much as
 * RMEM_RFM2G_WINDOW says, which stands for the board's switch. `size` may be null. The offset is a
 * multiple of the size: RFM2G_BAD_PARAMETER_2; RFM2G_OUT_OF_RANGE: beyond the memory. */
STDRFM2GCALL RFM2gGetSlidingWindow(RFM2GHANDLE rh, RFM2G_UINT32* offset, RFM2G_UINT32* size);
STDRFM2GCALL RFM2gSetSlidingWindow(RFM2GHANDLE rh, RFM2G_UINT32 offset);

/* ---- For the vendor's support. Offsets and bits: rfm2g_regs.h.
 * RFM2G_BAD_PARAMETER_2: there is no such set; _3: beyond its end; _4: the width is not 1, 2, 4. */

STDRFM2GCALL RFM2gGetDebugFlags(RFM2GHANDLE rh, RFM2G_UINT32* Flags);
STDRFM2GCALL RFM2gSetDebugFlags(RFM2GHANDLE rh, RFM2G_UINT32 Flags);
STDRFM2GCALL RFM2gReadReg(RFM2GHANDLE rh, RFM2GREGSETTYPE regset, RFM2G_UINT32 Offset,
                          RFM2G_UINT32 Width, void* Value);
STDRFM2GCALL RFM2gWriteReg(RFM2GHANDLE rh, RFM2GREGSETTYPE regset, RFM2G_UINT32 Offset,
                           RFM2G_UINT32 Width, RFM2G_UINT32 Value);
STDRFM2GCALL RFM2gSetReg(RFM2GHANDLE rh, RFM2GREGSETTYPE regset, RFM2G_UINT32 Offset,
                         RFM2G_UINT32 Width, RFM2G_UINT32 Mask);
STDRFM2GCALL RFM2gClearReg(RFM2GHANDLE rh, RFM2GREGSETTYPE regset, RFM2G_UINT32 Offset,
                           RFM2G_UINT32 Width, RFM2G_UINT32 Mask);
/* A pointer to the memory (RFM2GMEM). Of registers there is none: RFM2G_NOT_SUPPORTED. */
STDRFM2GCALL RFM2gMapDeviceMemory(RFM2GHANDLE rh, RFM2GREGSETTYPE regset,
                                  volatile void** DeviceMemoryPtr);
STDRFM2GCALL RFM2gUnMapDeviceMemory(RFM2GHANDLE rh, RFM2GREGSETTYPE regset,
                                    volatile void** DeviceMemoryPtr);

#endif /* RFM2G_API_H */
