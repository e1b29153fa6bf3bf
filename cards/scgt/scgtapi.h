/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCGT_SCGTAPI_H
#define SCGT_SCGTAPI_H

/*
 * The interface of SCRAMNet GT cards (GT100, GT200), on reflective memory.
 *
 *     scgtHandle card;
 *     uint32 word = 42, moved;
 *     scgtInterrupt done = {SCGT_BROADCAST_INTR, 0, 5, 7, 0};
 *
 *     if (scgtOpen(0, &card) != SCGT_SUCCESS) return 1;     (a line on stderr says what to start)
 *     scgtWrite(&card, 0x100, &word, 4, 0, &moved, &done);  (appears at 0x100 of every node, and
 *                                                            interrupt 5 after it)
 *     scgtClose(&card);
 *
 * Units         0 to 15: which node is which is said by `rmem node --unit`; without, unit 0 is the
 *               node of RMEM_RING and RMEM_NODE (rmem(7)). What a process opens of one unit is one
 *               card, with one set of settings and one queue of interrupts.
 * Order         Other nodes see what one node writes in its order, and an interrupt after the data
 *               of its call. Within a transfer of several words: a DMA's last word shows last, the
 *               words before it in any order; a PIO's words show in theirs.
 * Words         The unit is a word of 4 bytes, which is never seen in part. A PIO of 8 or 16 bits,
 *               or a store of as many, sends these bytes: others may own the rest of the word.
 * Plain stores  through the pointer of scgtMapMem travel; what they cost: rmem_stores(3).
 * Settings      belong to the process, and not to the node. Those that a node in software cannot
 *               have are refused: SCGT_CALL_UNSUPPORTED (scgt(7) has the table).
 * Interrupts    go to each process that shares the node and calls scgtGetInterrupt.
 * Waiting       A call that finds no room in the ring waits for it, 2 s at most (SCGT_TIMEOUT).
 * Threads       Any thread may call. scgtClose ends what others wait for by that handle, and
 *               returns when they have left their calls.
 * Fork          In a fork()ed child the handles of its parent are SCGT_BAD_PARAMETER; the child
 *               may open the unit itself.
 * Errors        A code of those below; the sentence behind it is rmem_last_error() (rmem/rmem.h).
 * Source        The vendor's driver for Linux (API revision 1.0), and the GT200 hardware reference.
 *               Names, values, layouts and what calls do are as there, where nothing else is said.
 */

#include "systypes.h"

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define SCGT_API __attribute__((visibility("default")))
#else
#define SCGT_API
#endif

/* ---- Results
 *
 *   SYSTEM_ERROR              there is no such unit, or it cannot be opened
 *   DRIVER_ERROR              the node refused something
 *   TIMEOUT                   no interrupt came, or the ring had no room
 *   CALL_UNSUPPORTED          no node in software has this setting, or this register
 *   INSUFFICIENT_RESOURCES    no memory, or no free rank of the unit's node
 *   LINK_ERROR                nothing leaves: the transmitter or the laser is off, or the ring has
 *                             dropped the node; as an interrupt: errors of the link
 *   MISSED_INTERRUPTS         the reader was too slow; it goes on at the oldest
 *   DRIVER_MISSED_INTERRUPTS  as an interrupt alone: this node has lost some
 *   DMA_UNSUPPORTED           physical addresses are no program's
 *   HARDWARE_ERROR            does not happen here
 */
#define SCGT_SUCCESS 0
#define SCGT_SYSTEM_ERROR 1
#define SCGT_BAD_PARAMETER 2
#define SCGT_DRIVER_ERROR 3
#define SCGT_TIMEOUT 4
#define SCGT_CALL_UNSUPPORTED 5
#define SCGT_INSUFFICIENT_RESOURCES 6
#define SCGT_LINK_ERROR 7
#define SCGT_MISSED_INTERRUPTS 8
#define SCGT_DRIVER_MISSED_INTERRUPTS 9
#define SCGT_DMA_UNSUPPORTED 10
#define SCGT_HARDWARE_ERROR 11

/* ---- States, of scgtGetState and scgtSetState; what each is here: scgt(7) */

#define SCGT_NODE_ID 0
#define SCGT_ACTIVE_LINK 1
#define SCGT_NUM_LINK_ERRS 2
#define SCGT_EWRAP 3
#define SCGT_WRITE_ME_LAST 4
#define SCGT_UNICAST_INT_MASK 5
#define SCGT_BROADCAST_INT_MASK 6
#define SCGT_INT_SELF_ENABLE 7
#define SCGT_RING_SIZE 8
#define SCGT_UPSTREAM_NODE_ID 9
#define SCGT_NET_TIMER_VAL 10
#define SCGT_LATENCY_TIMER_VAL 11
#define SCGT_SM_TRAFFIC_CNT 12
#define SCGT_SPY_SM_TRAFFIC_CNT 13
#define SCGT_SPY_NODE_ID 14
#define SCGT_TRANSMIT_ENABLE 15
#define SCGT_RECEIVE_ENABLE 16
#define SCGT_RETRANSMIT_ENABLE 17
#define SCGT_LASER_0_ENABLE 18
#define SCGT_LASER_1_ENABLE 19
#define SCGT_LINK_UP 20
#define SCGT_LASER_0_SIGNAL_DET 21
#define SCGT_LASER_1_SIGNAL_DET 22
#define SCGT_D64_ENABLE 23
#define SCGT_BYTE_SWAP_ENABLE 24
#define SCGT_WORD_SWAP_ENABLE 25
#define SCGT_LINK_ERR_INT_ENABLE 26
#define SCGT_READ_BYPASS_ENABLE 27

/* ---- Interrupts */

#define SCGT_UNICAST_INTR 0
#define SCGT_BROADCAST_INTR 1
#define SCGT_ERROR_INTR 2
#define SCGT_NO_INTR 3 /* to scgtWrite: none */

typedef struct _scgtInterrupt {
    uint32 type;
    uint32 sourceNodeID; /* set on arrival                                                   */
    uint32 id;           /* broadcast: its number, 0 to 31; unicast: the node to send it to, */
                         /* on arrival 0                                                     */
    uint32 val;          /* the sender's, or of an error its code                            */
    uint32 seqNum;       /* set on arrival: its number in the queue                          */
} scgtInterrupt;

/* Of a reader: the number of the next interrupt that it takes, or (uint32)-1: from now on. */
typedef uint32 scgtIntrHandle;

/* ---- Transfers: how; without a PIO flag it is a DMA
 *
 *   PIO              word by word; it needs scgtMapMem, as the PIOs of 8 and 16 bits do
 *   DMA_BYTE_SWAP    reverses the bytes of each word
 *   DMA_WORD_SWAP    exchanges the words of each pair, from the first one on; one left over stays
 *   DMA_PHYS_ADDR    is SCGT_DMA_UNSUPPORTED
 */
#define SCGT_RW_PIO 0x1
#define SCGT_RW_DMA_BYTE_SWAP 0x2
#define SCGT_RW_DMA_WORD_SWAP 0x4
#define SCGT_RW_DMA_PHYS_ADDR 0x8
#define SCGR_RW_PIO_8_BIT 0x10 /* SCGR is the vendor's spelling */
#define SCGR_RW_PIO_16_BIT 0x20

/* ---- Handles */

typedef int scgtOSHandle;

typedef struct _scgtHandle {
    scgtOSHandle osHandle; /* -1: closed                                */
    uint32 unitNum;        /* of scgtOpen                               */
    uint32* memMapPtr;     /* of scgtMapMem, or null                    */
    uint32 memMapSize;     /* bytes there                               */
} scgtHandle;

typedef struct _scgtDeviceInfo {
    uint32 reserved;
    char driverRevisionStr[128];
    char boardLocationStr[128]; /* which node of how many                    */
    uint32 unitNum;
    uint32 popMemSize;    /* bytes of the memory                       */
    uint32 mappedMemSize; /* of which the pointer of scgtMapMem shows  */
    uint32 numLinks;
    uint32 revisionID;
} scgtDeviceInfo;

/* ---- Calls */

SCGT_API uint32 scgtOpen(uint32 unitNum, scgtHandle* pHandle);
/* Of a handle that is closed already it does nothing. */
SCGT_API uint32 scgtClose(scgtHandle* pHandle);

/* Writes, and then sends the interrupt (null: none). With 0 bytes, and no PIO flag, it sends the
 * interrupt alone. *pBytesTransferred (or null) is what was moved, also on failure.
 *   DMA     offset and length are multiples of 4, else SCGT_BAD_PARAMETER
 *   PIO     of 32 (16) bits: the offset is rounded down to 4 (2), the length truncated */
SCGT_API uint32 scgtWrite(scgtHandle* pHandle, uint32 gtMemoryOffset, void* pDataBuffer,
                          uint32 bytesToTransfer, uint32 flags, uint32* pBytesTransferred,
                          const scgtInterrupt* pInterrupt);
SCGT_API uint32 scgtRead(scgtHandle* pHandle, uint32 gtMemoryOffset, void* pDataBuffer,
                         uint32 bytesToTransfer, uint32 flags, uint32* pBytesTransferred);

/* The memory, for loads and stores; null on failure. */
SCGT_API void* scgtMapMem(scgtHandle* pHandle);
/* Others' pointers stay; the memory does until the last handle of the unit is closed. */
SCGT_API void scgtUnmapMem(scgtHandle* pHandle);

/* Takes up to numInterrupts that have come since this reader's last call, waiting `timeout` ms
 * ((uint32)-1: without limit) for the first. The queue keeps the last 1024. A reader that is
 * further behind gets SCGT_MISSED_INTERRUPTS, and those from the oldest on. Each handle of a reader
 * is independent. Interrupts come to this process from its first call on. */
SCGT_API uint32 scgtGetInterrupt(scgtHandle* pHandle, scgtIntrHandle* intrHandle,
                                 scgtInterrupt* interruptBuffer, uint32 numInterrupts,
                                 uint32 timeout, uint32* numInterruptsRet);

SCGT_API uint32 scgtGetDeviceInfo(scgtHandle* pHandle, scgtDeviceInfo* pDeviceInfo);

/* (uint32)-1 on failure. */
SCGT_API uint32 scgtGetState(scgtHandle* pHandle, uint32 stateID);
SCGT_API uint32 scgtSetState(scgtHandle* pHandle, uint32 stateID, uint32 val);

/* Registers: of control, and of network management. Offsets are rounded down to 4. Reading returns
 * (uint32)-1 on failure. */
SCGT_API uint32 scgtReadCR(scgtHandle* pHandle, uint32 offset);
SCGT_API uint32 scgtWriteCR(scgtHandle* pHandle, uint32 offset, uint32 val);
SCGT_API uint32 scgtReadNMR(scgtHandle* pHandle, uint32 offset);
SCGT_API uint32 scgtWriteNMR(scgtHandle* pHandle, uint32 offset, uint32 val);

SCGT_API char* scgtGetErrStr(uint32 retcode);

/* Numbers (or null) and names (or null: else with commas between, and a 0 at the end) of numStats
 * statistics from firstStatIndex on. Number 0 says how many there are, number 1 how many bytes all
 * names need. */
SCGT_API uint32 scgtGetStats(scgtHandle* pHandle, uint32* statsArray, char* statNames,
                             uint32 firstStatIndex, uint32 numStats);

extern SCGT_API const char* scgtapiRevisionStr;
SCGT_API const char* scgtGetApiRevStr(void);

#ifdef __cplusplus
}
#endif

#endif /* SCGT_SCGTAPI_H */
