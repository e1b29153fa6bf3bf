/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCRAMNET_PLUS_SCRHWD_H
#define SCRAMNET_PLUS_SCRHWD_H

/*
 * Types, and the bits of the registers that SCRAMNet cards have had from the first on; those of
 * SCRAMNet+ are in scrplus.h, which has the contract.
 *
 * Marked s: a setting that does what it does on a card. Marked -: it is kept and reads back, and
 * does nothing. Of CSR1 all bits but two are latches, which reading clears.
 */

#include <stdint.h>

/* A long word is 32 bits, whatever the host's unsigned long is. */
typedef volatile uint32_t* SCR_LONG_PTR;
typedef volatile uint16_t* SCR_SHORT_PTR;
typedef volatile uint8_t* SCR_BYTE_PTR;

#define ACR_MASK 0x1f
#define ACR_SHIFT 0

/* ---- CSR0, enables and resets */

#define CSR0_RXEN 0x0001 /* -  receiver */
#define CSR0_TXEN 0x0002 /* -  transmitter */
#define CSR0_TWO 0x0004  /* -  */
#define CSR0_HIE 0x0008  /* s  interrupts of the host: of ORF, and of IARM */
#define CSR0_IME \
    0x0010 /* -  accesses to the memory reach the ACRs (scr_acr_read does in any case) */
#define CSR0_MME 0x0020   /* s  words with ACR_RIE interrupt */
#define CSR0_ORF 0x0040   /* s  with HIE: all words do, whatever their ACR */
#define CSR0_IOE 0x0080   /* -  errors interrupt */
#define CSR0_NIE 0x0100   /* s  own writes to words with ACR_TIE carry an interrupt */
#define CSR0_OTF 0x0200   /* s  with NIE: all own writes do */
#define CSR0_DDE 0x0400   /* s  data filter, above the first 4096 bytes: needs EN4K, too */
#define CSR0_EN4K 0x0800  /* s  and for these */
#define CSR0_RTRF 0x1000  /* -  resets the transceiver FIFO */
#define CSR0_RIF 0x2000   /* s  resets the interrupt FIFO, when it is written */
#define CSR0_RSMF 0x4000  /* -  resets the transmit FIFO */
#define CSR0_INSRT 0x8000 /* -  inserts the node into the ring */

/* ---- CSR1, as the first cards name it */

#define CSR1_SMFF 0x0001  /* CSR1_TXFF */
#define CSR1_SMFNE 0x0002 /* CSR1_TXFNE */
#define CSR1_SMHF 0x0004  /* CSR1_TXF78 */
#define CSR1_RTFF 0x0008  /* never */
#define CSR1_IFF 0x0010   /* CSR1_INTFF */
#define CSR1_SMFS 0x0020  /* CSR1_PV */
#define CSR1_CD 0x0040    /* the ring was broken, or has dropped the node */
#define CSR1_BB 0x0080    /* CSR1_BM */

/* ---- CSR2, modes */

#define CSR2_BTBS 0x0001  /* -  swapping, here and below: sp_stm_mm does that */
#define CSR2_BTWS 0x0002  /* -  */
#define CSR2_WTBS 0x0004  /* -  */
#define CSR2_WTWS 0x0008  /* -  */
#define CSR2_LTBS 0x0010  /* -  */
#define CSR2_LTWS 0x0020  /* -  */
#define CSR2_DFOLB 0x0040 /* -  no loopback of the fibre */
#define CSR2_EWLB 0x0080  /* -  loopback of the wire */
#define CSR2_DHMW \
    0x0100              /* s  with WOS: own writes show when they have come round (write me last) */
#define CSR2_WOS 0x0200 /* s  */
#define CSR2_ISEN 0x0400  /* -  own writes interrupt when they come round */
#define CSR2_ETCS 0x0800  /* CSR2_LLIM */
#define CSR2_HIPRO 0x2000 /* -  words of ACR_HIPRO travel when all of their bytes are written */
#define CSR2_BRST 0x8000  /* -  burst: errors are not corrected */

/* ---- CSR5, status of the interrupt FIFO; bits 0 to 6 are 16 to 22 of an address */

#define CSR5_RB 0x4000  /* never: the interrupt came at its second try */
#define CSR5_IFE 0x8000 /* an interrupt is in CSR4 and CSR5 */

#define SCR_MAX_DMA_LEN 0x100000

/* ---- Commands: of scr_int_mm, scr_wml_mm and scr_fifo_mm, and of ioctl(2) on scr_csr_fd; the
 * others are of no call */

/* Waits for an interrupt; the argument is null, or for how many there are: 1 */
#define WAIT_INTERRUPT 17
/* With SET_SIG and CLR_SIG: SIGUSR1 with an interrupt, where none waits */
#define INTSIG 1
#define SCR_LNK 2
#define TX_INT 3
#define RX_INT 4
#define INT_ERR 5
#define WRITE_ME_LAST 6
#define NTW_WRT_HST 6
#define WRITE_DIRECT 7
#define DATA_FLT 7
#define BYTE_SWP 8
#define ACT_ND 9
#define RW_CSR 10
#define RST_FIFO 11
#define AUX_RAM_LNK 12
#define INT_DIAG1 13
#define RD_FIFO 14
#define FLUSHSIG 15
#define ERR_INT 0x200

#endif /* SCRAMNET_PLUS_SCRHWD_H */
