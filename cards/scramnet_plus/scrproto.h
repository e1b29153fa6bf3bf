/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCRAMNET_PLUS_SCRPROTO_H
#define SCRAMNET_PLUS_SCRPROTO_H

/*
 * The calls. What holds for all of them is in scrplus.h.
 *
 * Calls that return int return 0, or -1 where they refuse, if nothing else is said. On a card that
 * is not mapped all refuse.
 */

#include "scr.h"
#include "scrhwd.h"

#include <stdint.h>
#include <stdio.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef SCRAMNET_API
#if defined(__GNUC__)
#define SCRAMNET_API __attribute__((visibility("default")))
#else
#define SCRAMNET_API
#endif
#endif

/* ---- Opening */

/* Says which unit the next call maps: 0 without it. -1: another is mapped, or `card` is none. */
SCRAMNET_API int sp_cfg_read(int card);
/* Maps the registers and the memory of that unit. -1: another is mapped; -3: the memory cannot be
 * mapped; -4: there is no such unit, or it cannot be opened. */
SCRAMNET_API int sp_scram_init(int card);
/* On some systems of the vendor's it has no argument: unit 0. */
#define sp_scram_init(...) (sp_scram_init)(__VA_ARGS__ + 0)
/* Each by itself: MAP, UNMAP. The unit is let go when neither is mapped. */
SCRAMNET_API int scr_reg_mm(int arg);
SCRAMNET_API int scr_mem_mm(int arg);
/* What kind of card it is: 1, a SCRAMNet+. */
SCRAMNET_API int sp_plus_find(void);

/* The same for programs that look: 1 and 0. */
SCRAMNET_API extern int sp_plus_flag;
SCRAMNET_API extern int scr_registers_mapped;
SCRAMNET_API extern int scr_memory_mapped;
/* For poll(2): readable while interrupts wait behind the one that CSR5 shows. And for ioctl(2),
 * with WAIT_INTERRUPT and INTSIG. -1: no word has been enabled yet. */
SCRAMNET_API extern int scr_csr_fd;

/* ---- Memory */

/* Offset 0 of the mapped memory; null where it is not mapped. */
SCRAMNET_API SCR_LONG_PTR get_base_mem(void);
/* In bytes; 0 where no unit is mapped. */
SCRAMNET_API unsigned long sp_mem_size(void);

/* MEM: zero for the whole memory, as writes of this node; ACR: for all ACRs. */
SCRAMNET_API void scr_mclr_mm(int arg);
/* The same with another value: a long word of the memory, an ACR. */
SCRAMNET_API void scr_smem_mm(int arg, unsigned long value);
/* The memory (MEM), or the ACRs (ACR, a byte each), from a file and into one, as they are. A file
 * may be shorter than what is loaded, and not longer. */
SCRAMNET_API int scr_load_mm(char* path, int arg);
SCRAMNET_API int scr_save_mm(char* path, int arg);

/* Between the memory and a buffer: whole long words. A write waits for room in the ring, 2 s at
 * most; with CSR8_DHLD it does not wait. The last word shows last at other nodes. */
SCRAMNET_API int scr_dma_read(void* user, unsigned long scr_offset, unsigned long num_bytes);
SCRAMNET_API int scr_dma_write(void* user, unsigned long scr_offset, unsigned long num_bytes);

/* How the two above turn a long word round: 1 (done), 0. Pointers do not. */
#define Long_mode 0 /* not at all        */
#define Word_mode 1 /* its halves        */
#define Byte_mode 2 /* all of its bytes  */
SCRAMNET_API int sp_stm_mm(unsigned char mode);
SCRAMNET_API unsigned char sp_gtm_mm(void);

/* ---- Registers, 0 to 15. One that there is not reads as 0xFFFF. */

SCRAMNET_API unsigned short scr_csr_read(char csr_number);
SCRAMNET_API void scr_csr_write(char csr_number, unsigned short value);
SCRAMNET_API void scr_rw_mm(struct rw_scr* access);
/* All registers, the interrupt FIFO and the byte order as they are at first; neither the memory nor
 * the ACRs. */
SCRAMNET_API void scr_reset_mm(void);

/* RST_LNK takes the node from the ring; else TX_ENB, RX_ENB and FLT_… insert it. */
SCRAMNET_API void scr_lnk_mm(int cmd);
/* FLT_ALL, FLT_HGH, FLT_OFF */
SCRAMNET_API void scr_dfltr_mm(int arg);
/* WRITE_ME_LAST, WRITE_DIRECT; RST_NWH is the latter. */
SCRAMNET_API void scr_wml_mm(int arg);
#define scr_nwh_mm scr_wml_mm
/* ACR, MEM: CSR0_IME. */
SCRAMNET_API void scr_acr_mm(int arg);
/* The node's id, and how many nodes there are with a program that runs. */
SCRAMNET_API void scr_id_mm(unsigned char* id, unsigned char* count);
/* CSR1_FOBN, without clearing CSR1. */
SCRAMNET_API int scr_fswin_mm(void);
/* A line for each bit of a value of CSR1. */
SCRAMNET_API void scr_error_mm(FILE* to, unsigned short csr1);

/* ---- Interrupts */

/* The ACR of a long word, by its number: ACR_RIE, … */
SCRAMNET_API unsigned char scr_acr_read(unsigned long mem_loc);
SCRAMNET_API void scr_acr_write(unsigned long mem_loc, unsigned char value);
/* TX_INT, RX_INT with INTACR, INTALL or RST_INT (RX_INT: | INTOWN); INT_ERR with SET_INT or
 * RST_INT. */
SCRAMNET_API void scr_int_mm(int cmd, int arg);
/* Takes the oldest from the FIFO: 1, and the offset of the word that was written; 0: none. */
SCRAMNET_API int scr_read_int_fifo(uint32_t* address);
/* RST_FIFO empties the FIFO; RD_FIFO takes the oldest and reads CSR1. */
SCRAMNET_API void scr_fifo_mm(int cmd, struct rd_fifo* fifo);

/* ---- SCRAMNet+ */

/* GOLD, … PLATINUM_PLUS: the bits of CSR2. */
SCRAMNET_API int sp_protocol(unsigned mode);
/* CNTR_…: what CSR13 counts, from 0 on. */
SCRAMNET_API int sp_set_cntr(int mode);
/* The ids of CSR3; this node stays the one that it is. */
SCRAMNET_API int sp_txrx_id(unsigned char id);
SCRAMNET_API int sp_rx_id(unsigned id);
/* The hops that a message may make: 1 to 256. Kept, as the age in CSR3 that messages begin with. */
SCRAMNET_API int sp_msg_life(unsigned hops);
/* Kept: writes CSR5. */
SCRAMNET_API int sp_net_to(unsigned short timeout);
/* VP_SET, VP_RESET, VP_READ, which returns the page. There is page 0 alone. */
SCRAMNET_API int sp_set_vp(int request, unsigned page);
/* Kept, in CSR10 and CSR11. */
SCRAMNET_API int sp_set_sm_addr(unsigned long address);
/* -1: a node in software does not test itself. */
SCRAMNET_API int sp_bist_rd(int* bits);

#ifdef __cplusplus
}

/* With the arguments that the vendor's header for Windows has, char and unsigned long. */
template <class Number>
void scr_id_mm(Number* id, Number* count) {
    unsigned char own = static_cast<unsigned char>(*id);
    unsigned char all = static_cast<unsigned char>(*count);
    scr_id_mm(&own, &all);
    *id = static_cast<Number>(own);
    *count = static_cast<Number>(all);
}
template <class Number>
int scr_read_int_fifo(Number* address) {
    uint32_t found = 0;
    const int taken = scr_read_int_fifo(&found);
    if (taken == 1) *address = found;
    return taken;
}
#endif

#endif /* SCRAMNET_PLUS_SCRPROTO_H */
