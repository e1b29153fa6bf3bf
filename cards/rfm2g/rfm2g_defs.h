/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2G_DEFS_H
#define RFM2G_DEFS_H

/* What the calls of rfm2g_api.h take and give: values and structs as their programs know them. */

#include "rfm2g_errno.h"
#include "rfm2g_types.h"

#define RFM2G_ENABLE RFM2G_TRUE
#define RFM2G_DISABLE RFM2G_FALSE
#define RFM2G_ON RFM2G_TRUE
#define RFM2G_OFF RFM2G_FALSE

/* ---- Nodes */

#define RFM2G_NODE_MIN 0
#define RFM2G_NODE_MAX 255
#define RFM2G_NODE_SPECIAL_MIN 0xFFFE
#define RFM2G_NODE_UNKNOWN 0xFFFE
#define RFM2G_NODE_ALL 0xFFFF /* all nodes but the sender */
#define RFM2G_NODE_SPECIAL_MAX 0xFFFF

/* ---- Configuration */

/* The board on its bus. There is no bus: addresses and numbers are 0, sizes are true. */
typedef struct rfm2gPciConfig {
    RFM2G_UINT32 rfm2gOrWindowSize; /* runtime registers                   */
    RFM2G_UINT32 rfm2gOrRegSize;
    RFM2G_UINT32 rfm2gCsWindowSize; /* control and status registers        */
    RFM2G_UINT32 rfm2gCsRegSize;
    RFM2G_UINT32 rfm2gWindowSize; /* of the memory: that of the window   */
    RFM2G_UINT32 devfn;
    RFM2G_UINT16 type; /* 0x5565                              */
    RFM2G_UINT8 interruptNumber;
    RFM2G_UINT8 bus;
    RFM2G_UINT8 function;
    RFM2G_UINT8 revision;
    RFM2G_UINT32 rfm2gBase;
    RFM2G_UINT32 rfm2gCsBase;
    RFM2G_UINT32 rfm2gOrBase;
} RFM2GPCICONFIG;

typedef struct RFM2GCONFIG_ {
    RFM2G_NODE NodeId;
    RFM2G_UINT8 BoardId; /* 0x65: a 5565                        */
    RFM2G_UINT8 Unit;
    RFM2G_UINT8 PlxRevision;
    RFM2G_UINT32 MemorySize; /* bytes                               */
    char Device[128];        /* the path that it was opened by      */
    char Name[32];
    char DriverVersion[16];
    RFM2G_UINT8 BoardRevision;
    RFM2G_UINT8 RevisionId;
    RFM2G_UINT32 Lcsr1; /* a copy of the register              */
    RFM2GPCICONFIG PciConfig;
    RFM2G_UINT16 BuildId;
} RFM2GCONFIG;

/* ---- Events */

typedef enum rfm2gEventType {
    RFM2GEVENT_RESET, /* sent by a node, as the next four    */
    RFM2GEVENT_INTR1,
    RFM2GEVENT_INTR2,
    RFM2GEVENT_INTR3,
    RFM2GEVENT_INTR4,
    RFM2GEVENT_BAD_DATA,
    RFM2GEVENT_RXFIFO_FULL,
    RFM2GEVENT_ROGUE_PKT,
    RFM2GEVENT_RXFIFO_AFULL,
    RFM2GEVENT_SYNC_LOSS,
    RFM2GEVENT_MEM_WRITE_INHIBITED,
    RFM2GEVENT_LOCAL_MEM_PARITY_ERR,
    RFM2GEVENT_LAST /* how many there are; where a call says so: all of them */
} RFM2GEVENTTYPE;

typedef struct rfm2gEventInfo {
    RFM2G_UINT32 ExtendedInfo; /* what its sender gave along          */
    RFM2GEVENTTYPE Event;      /* which to wait for                   */
    RFM2G_UINT32 Timeout;      /* milliseconds                        */
    RFM2G_NODE NodeId;         /* its sender                          */
    void* pDrvSpec;            /* is left alone                       */
} RFM2GEVENTINFO;

/* ---- Parts of the board */

typedef enum rfm2gRegSetType {
    RFM2GCFGREGMEM, /* runtime registers                   */
    RFM2GCFGREGIO,
    RFM2GCTRLREGMEM, /* control and status registers        */
    RFM2GMEM,        /* the memory                          */
    RFM2GRESERVED0REG,
    RFM2GRESERVED1REG
} RFM2GREGSETTYPE;

/* In steps of 64 MB. */
typedef enum rfm2gMemWindowType {
    RFM2G_MEM_OFFSET0,
    RFM2G_MEM_OFFSET1,
    RFM2G_MEM_OFFSET2,
    RFM2G_MEM_OFFSET3
} RFM2G_MEM_OFFSETTYPE;

/* ---- Debug flags, which are kept and mean nothing */

#define RFM2G_DBERROR (1 << 0)
#define RFM2G_DBINIT (1 << 1)
#define RFM2G_DBINTR (1 << 2)
#define RFM2G_DBIOCTL (1 << 3)
#define RFM2G_DBMMAP (1 << 4)
#define RFM2G_DBOPEN (1 << 5)
#define RFM2G_DBCLOSE (1 << 6)
#define RFM2G_DBREAD (1 << 7)
#define RFM2G_DBWRITE (1 << 8)
#define RFM2G_DBPEEK (1 << 9)
#define RFM2G_DBPOKE (1 << 10)
#define RFM2G_DBSTRAT (1 << 11)
#define RFM2G_DBTIMER (1 << 12)
#define RFM2G_DBTRACE (1 << 13)
#define RFM2G_DBMUTEX (1 << 14)
#define RFM2G_DBINTR_NOT (1 << 15)
#define RFM2G_DBSLOW (1 << 16)
#define RFM2G_DBMINPHYS (1 << 17)
#define RFM2G_DBDMA (1 << 18)

#endif /* RFM2G_DEFS_H */
