/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCRAMNET_PLUS_SCRPLUS_H
#define SCRAMNET_PLUS_SCRPLUS_H

/*
 * The interface of SCRAMNet+ cards (SC150, SC150e), over reflective memory: a program for such a
 * card is compiled with this header and linked with -lscramnet_plus.
 *
 *     SCR_LONG_PTR memory;
 *     uint32_t address;
 *
 *     if (sp_scram_init(0) != 0) return 1;             (a line on stderr says what to start)
 *     memory = get_base_mem();
 *     memory[0x40] = 42;                               (appears at 0x100 of every node)
 *     scr_acr_write(0x80, ACR_RIE);                    (of the word at 0x200)
 *     scr_csr_write(SCR_CSR0, CSR0_INSRT | CSR0_RXEN | CSR0_TXEN | CSR0_HIE | CSR0_MME);
 *     if (scr_read_int_fifo(&address)) answer();       (address is 0x200)
 *     scr_mem_mm(UNMAP);
 *     scr_reg_mm(UNMAP);
 *
 * Units         A process has one card at a time: the unit that sp_scram_init or sp_cfg_read
 *               names, or unit 0. Which node is which is said by `rmem node --unit`; without, unit
 *               0 is the node of RMEM_RING and RMEM_NODE (rmem(7)).
 * Order         Other nodes see what one node writes in its order.
 * Words         The unit is a long word of 4 bytes: a write of a part of one sends all of it, as
 *               on a card. An interrupt is of a word.
 * Plain stores  through get_base_mem() travel; what they cost: rmem_stores(3). On link `direct`
 *               they interrupt nobody: there scr_dma_write does.
 * The node      takes part in the ring from its mapping to its unmapping. CSR0_INSRT, TXEN and RXEN
 *               are kept and read back, and hold nothing up. At its exit a program waits, at most
 *               1 s, until what it wrote has arrived.
 * Registers     and ACRs are kept by the process. Writing bits that do nothing here
 *               (scramnet_plus(7) says which) is no error: they read back.
 * Interrupts    are addresses, in a FIFO of 1024, one for each process. What ACRs do is of the
 *               node: of the processes that share it one alone should use them. Calls and registers
 *               that look at the FIFO bring them in; poll(2) on scr_csr_fd waits, and ioctl(2)
 *               with WAIT_INTERRUPT.
 * Threads       Any thread may call; unmapping waits for calls under way. CSR5 and CSR4 are two
 *               reads: one thread should take.
 * Fork          In a fork()ed child nothing is mapped; it may map the unit itself.
 * Errors        Results of scrproto.h; the sentence behind one is rmem_last_error() (rmem/rmem.h),
 *               also of the calls that return nothing.
 * Source        The vendor's headers for Unix and Windows (core 1.64), and the hardware reference
 *               of the SC150e (2007). What CSR8_FREE, CSR9_ERRC and CSR9_TRGC select together, and
 *               that ACRs have the numbers of long words, is taken from programs.
 */

#include "scr.h"
#include "scrhwd.h"
#include "scrproto.h"

#ifndef FALSE
#define FALSE 0
#endif
#ifndef TRUE
#define TRUE 1
#endif

#define SCR_CSR7 7
#define SCR_CSR8 8
#define SCR_CSR9 9
#define SCR_CSR10 10
#define SCR_CSR11 11
#define SCR_CSR12 12
#define SCR_CSR13 13
#define SCR_CSR14 14
#define SCR_CSR15 15
#define SCR_CSR16 16

/* ---- CSR1: what has been since it was last read. Writing it, whatever, arms interrupts. */

#define CSR1_TXFF 0x0001  /* a write found no room, or was lost because of that */
#define CSR1_TXFNE 0x0002 /* no latch: own writes are still under way */
#define CSR1_TXF78 0x0004 /* with CSR1_TXFF */
#define CSR1_INTFF 0x0010 /* interrupts were lost, before the one that shows now */
#define CSR1_PV 0x0020    /* never: no protocol violation */
#define CSR1_BM 0x0080    /* a message was not valid */
#define CSR1_RXO 0x0100   /* never: no overflow of the receiver */
#define CSR1_TXRTY 0x0200 /* never: what a link sends again it does not count here */
#define CSR1_TXRTO 0x0400 /* never */
#define CSR1_GPCO 0x1000  /* CSR13 went over 0xFFFF */
#define CSR1_IARM 0x4000  /* no latch: armed, and none has come since */
#define CSR1_FOBN 0x8000  /* never: a node that ends does not break the ring */

/* ---- CSR2: BURST is 0xC040, PLATINUM 0x4040, GOLD 0x0040; the plus protocols have VLEN, too. */

#define CSR2_LLIM 0x0800 /* -  messages of up to 1024 bytes, not 256 */
#define CSR2_VLEN 0x1000 /* -  messages of more than a word */
#define CSR2_MMSG 0x4000 /* -  several own messages at a time */

/* ---- CSR3: the own id above, the number of nodes below; with CSR8_IDMX the receive id, and the
 * age that messages begin with. CSR5, written: the network timeout. */

#define TAGE_MASK 0x00ff
#define TXRX_MASK 0xff00
#define MAX_ID 0xff
#define MAX_AGE 0xff

/* ---- CSR8 */

#define CSR8_IDMX 0x0001    /* s  see CSR3 */
#define CSR8_DHLD 0x0002    /* s  scr_dma_write does not wait for room */
#define CSR8_CSEL 0x0004    /* -  the card's EEPROM, here and below */
#define CSR8_EXCS 0x0008    /* -  */
#define CSR8_MWDO 0x0010    /* -  */
#define CSR8_EPRE 0x0020    /* -  */
#define CSR8_MCLK 0x0040    /* -  */
#define CSR8_EDIN 0x0080    /* -  */
#define CSR8_ARST 0x0100    /* -  */
#define CSR8_FREE 0x0200    /* s  see sp_set_cntr */
#define CSR8_IOVR 0x0400    /* s  words interrupt whether their writer has marked them or not */
#define CSR8_MESW 0x0800    /* -  mechanical switch */
#define CSR8_MSIZMSK 0x7000 /* 0: sp_mem_size() has the size */
#define CSR8_PHNT 0x8000    /* -  */

/* ---- CSR9: which errors are counted (CNTR_ERRORS); that they interrupt is kept alone */

#define CSR9_TXFF 0x0001
#define CSR9_TXFNE 0x0002
#define CSR9_TXF78 0x0004
#define CSR9_BIST 0x0008
#define CSR9_INTFF 0x0010
#define CSR9_PV 0x0020
#define CSR9_CD 0x0040
#define CSR9_BM 0x0080
#define CSR9_RXO 0x0100
#define CSR9_TXRTY 0x0200
#define CSR9_TXRTO 0x0400
#define CSR9_RTRF 0x0800 /* a cut cable was healed over the second ring */
#define CSR9_IUCO 0x1000
#define CSR9_TRGC 0x2000 /* s  see sp_set_cntr */
#define CSR9_ERRC 0x4000 /* s  */
#define CSR9_FOBN 0x8000

/* ---- CSR10 and CSR12: kept */

#define CSR10_SMAEN 0x0001
#define CSR12_VPEN 0x0001

/* ---- ACRs */

#define ACR_RIE 0x01   /* writes of others to the word interrupt here */
#define ACR_TIE 0x02   /* own writes to the word carry an interrupt */
#define ACR_TRIG1 0x04 /* -  the outputs for triggers, of which there are none */
#define ACR_TRIG2 0x08 /* -  */
#define ACR_HIPRO 0x10 /* -  */
#define ACR_TRIG3 0x20 /* -  */

/* ---- Arguments of the calls of SCRAMNet+ */

#define VP_SET 1
#define VP_RESET 2
#define VP_READ 3

#define CNTR_ERRORS 1 /* of those in CSR9 */
#define CNTR_TRIGS 2  /* there are none */
#define CNTR_TRANSIT \
    3 /* how long a message takes round the ring, in 26.66 ns: each read measures */
#define CNTR_NET_EVENTS 4 /* writes of others that have come */
#define CNTR_FREERUN 5    /* time, in 26.66 ns */
#define CNTR_FREERUN_T2 6 /* time, in 1.706 us; no trigger clears it */

#define GOLD 1
#define BURST 2
#define PLATINUM 3
#define GOLD_PLUS 4
#define BURST_PLUS 5
#define PLATINUM_PLUS 6

#endif /* SCRAMNET_PLUS_SCRPLUS_H */
