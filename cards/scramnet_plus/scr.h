/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCRAMNET_PLUS_SCR_H
#define SCRAMNET_PLUS_SCR_H

/* Structures and arguments of the calls of scrproto.h. The contract is in scrplus.h. */

/* An access to a register, for scr_rw_mm. */
struct rw_scr {
    char rw_flag; /* REG_RD, REG_WRT */
    char csr_reg; /* its number */
    unsigned short csr_arg;
};

/* What scr_fifo_mm(RD_FIFO) reads: one interrupt, and CSR1 bit by bit. */
struct rd_fifo {
    union {
        unsigned int ntr_addr; /* the interrupt's address; 0 where there is none */
        unsigned short int ntr_fifo[2];
    } scr_fifo_ptr;
    char mt_flag; /* 1: there was none */
    char smff;    /* CSR1_SMFF, and so on */
    char smfne;
    char smfhf;
    char rtff;
    char iff;
    char smfs;
    char cd;
    char bb;
    char rxo;
    char dum1;
    char dum2;
};

struct scr_csr {
    unsigned short int csr_regs[16];
};

/* ---- Arguments */

#define REG_RD 1
#define REG_WRT 0
#define REG_MDFY 4

#define SCR_CSR0 0
#define SCR_CSR1 1
#define SCR_CSR2 2
#define SCR_CSR3 3
#define SCR_CSR4 4
#define SCR_CSR5 5
#define SCR_CSR6 6

#define INTALL 1
#define INTACR 4
#define INTOWN 8
#define RST_INT 16
#define CLR_INT 16
#define SET_INT 32

#define FLT_ALL 0xc00
#define FLT_OFF 0
#define FLT_HGH 0x400

#define RST_LNK 16
#define TX_ENB 2
#define RX_ENB 1

#define CLR_SIG 1
#define SET_SIG 0
#define RST_BSWP 1
#define RST_NWH 1

#define MAP 0
#define UNMAP 1
#define RESET 1

#define ACR 0x10
#define MEM 0

#define AUTO_VECTOR 0

#endif /* SCRAMNET_PLUS_SCR_H */
