/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2G_REGS_H
#define RFM2G_REGS_H

/*
 * Registers for RFM2gReadReg and RFM2gWriteReg: offsets and bits of the 5565.
 *
 * What is read is computed from what is so: the state of the node, the settings of the handle, the
 * events that wait. Marked w: writing does what it does on a board. The others, and those that are
 * not here, ignore it; marked - : they read as 0, too.
 */

#define DEVICE_ID_PCI5565 0x5565

/* ---- Control and status registers (RFM2GCTRLREGMEM) */

#define RFM2G_REGSIZE 0x40

#define rfm2g_brv 0x00      /* board revision, 8 bits */
#define rfm2g_bid 0x01      /* board id, 8 bits */
#define rfm2g_build_id 0x02 /* 16 bits */
#define rfm2g_nid 0x04      /* node id, 8 bits */
#define rfm2g_lcsr 0x08     /* w: local control and status */
#define rfm2g_lisr 0x10     /* w: events that wait; a 0 forgets one, but for INT1 to INT4 */
#define rfm2g_lier 0x14     /* w: events that are enabled */
#define rfm2g_ntd 0x18      /* w: target data of an interrupt to send */
#define rfm2g_ntn 0x1c      /* w: target node, 8 bits */
#define rfm2g_nic 0x1d      /* w: its command, 8 bits: writing it sends */
#define rfm2g_isd1 0x20     /* data of the oldest INT1 that waits */
#define rfm2g_sid1 0x24     /* w: its sender, 8 bits; reading takes it, writing forgets all */
#define rfm2g_isd2 0x28
#define rfm2g_sid2 0x2c
#define rfm2g_isd3 0x30
#define rfm2g_sid3 0x34
#define rfm2g_initd 0x38 /* of INT4 */
#define rfm2g_initn 0x3c

#define RFM2G_BID_5565 0x65

#define RFM2G_LCSR_LED 0x80000000U     /* w */
#define RFM2G_LCSR_XMTDIS 0x40000000U  /* w: the transmitter is off */
#define RFM2G_LCSR_DOD 0x20000000U     /* w: dark on dark */
#define RFM2G_LCSR_LOOP 0x10000000U    /* w: loopback */
#define RFM2G_LCSR_PTY 0x08000000U     /* w: parity */
#define RFM2G_LCSR_CFG 0x00300000U     /* memory: 0 up to 64 MB, 1 128, 2 256 */
#define RFM2G_LCSR_OFF1 0x00020000U    /* w: the memory offset */
#define RFM2G_LCSR_OFF0 0x00010000U    /* w */
#define RFM2G_LCSR_RCVFULL 0x00000020U /* w: as the next but SIGDET: since it was written as 0 */
#define RFM2G_LCSR_SNCLOST 0x00000008U
#define RFM2G_LCSR_SIGDET 0x00000004U /* another node is alive, or loopback */
#define RFM2G_LCSR_BADDATA 0x00000002U
#define RFM2G_LCSR_OWNDATA 0x00000001U

#define RFM2G_LISR_AUTOCLR 0x8000U /* - */
#define RFM2G_LISR_GBLINT 0x4000U  /* always set */
#define RFM2G_LISR_PTYERR 0x2000U
#define RFM2G_LISR_WRINIB 0x1000U
#define RFM2G_LISR_SNCLOST 0x0800U
#define RFM2G_LISR_RXFULL 0x0400U
#define RFM2G_LISR_RXAFULL 0x0200U
#define RFM2G_LISR_BADDATA 0x0100U
#define RFM2G_LISR_INITINT 0x0080U
#define RFM2G_LISR_ROGUE_PKT 0x0040U
#define RFM2G_LISR_RSTREQ 0x0008U
#define RFM2G_LISR_INT3 0x0004U
#define RFM2G_LISR_INT2 0x0002U
#define RFM2G_LISR_INT1 0x0001U
#define RFM2G_LISR_UNUSED RFM2G_LISR_GBLINT
#define RFM2G_LISR_DISABLE 0xFFFF03F3U

#define RFM2G_LIER_AUTO_CLR RFM2G_LISR_AUTOCLR /* - */
#define RFM2G_LIER_PTYERR RFM2G_LISR_PTYERR
#define RFM2G_LIER_WRINIB RFM2G_LISR_WRINIB
#define RFM2G_LIER_SNCLOST RFM2G_LISR_SNCLOST
#define RFM2G_LIER_RXFULL RFM2G_LISR_RXFULL
#define RFM2G_LIER_RXAFULL RFM2G_LISR_RXAFULL
#define RFM2G_LIER_BAD_DATA RFM2G_LISR_BADDATA
#define RFM2G_LIER_INITINT RFM2G_LISR_INITINT
#define RFM2G_LIER_ROGUE_PKT RFM2G_LISR_ROGUE_PKT
#define RFM2G_LIER_RSTREQ RFM2G_LISR_RSTREQ
#define RFM2G_LIER_INT3 RFM2G_LISR_INT3
#define RFM2G_LIER_INT2 RFM2G_LISR_INT2
#define RFM2G_LIER_INT1 RFM2G_LISR_INT1

#define RFM2G_NIC_RSTREQ 0x00
#define RFM2G_NIC_INT1 0x01
#define RFM2G_NIC_INT2 0x02
#define RFM2G_NIC_INT3 0x03
#define RFM2G_NIC_RSVD 0x04 /* goes round, and raises nothing */
#define RFM2G_NIC_INITINT 0x07
#define RFM2G_NIC_GLOBAL 0x08 /* with one of these: to all others */

/* ---- Runtime registers (RFM2GCFGREGMEM) */

#define RFM2G_IOREGSIZE 0x40

#define rfmor_endian_desc 0x0C /* w: byte swapping: bit 5 of PIO, bit 7 of DMA */
#define rfmor_lbrd0 0x18       /* - */
#define rfmor_intcsr 0x68      /* which interrupts the board raises */
#define rfmor_cntrl 0x6c       /* - */
#define rfmor_revision 0x74
#define rfmor_DmaMode0 0x80 /* - , as all of DMA */
#define rfmor_DmaPciAddr0 0x84
#define rfmor_DmaLocAddr0 0x88
#define rfmor_DmaCount0 0x8c
#define rfmor_DmaPtr0 0x90
#define rfmor_Dma0Csr 0xa8
#define rfmor_Dma1Csr 0xa9
#define rfmor_DmaArb 0xac
#define rfmor_DmaThresh 0xb0
#define rfmor_DmaDac0 0xb4
#define rfmor_las1rr 0xf0 /* the window's size, as its mask */
#define rfmor_las1ba 0xf4 /* w: the window's offset, bit 0: enabled */

#define RFMOR_INTCSR_LSERR 0x00000001U
#define RFMOR_INTCSR_ENABLEPTY 0x00000040U
#define RFMOR_INTCSR_PTYSTATUS 0x00000080U
#define RFMOR_INTCSR_ENABLEINT 0x00000100U
#define RFMOR_INTCSR_ENABLELOCINT 0x00000800U
#define RFMOR_INTCSR_LOCINT 0x00008000U
#define RFMOR_INTCSR_ENABLEDMA0INT 0x00040000U
#define RFMOR_INTCSR_ENABLEDMA1INT 0x00080000U
#define RFMOR_INTCSR_DMA0INT 0x00200000U
#define RFMOR_INTCSR_DMA1INT 0x00400000U

#define RFMOR_DMAMODE_32BIT_BUS 0x00000003U
#define RFMOR_DMAMODE_TA_READY 0x00000040U
#define RFMOR_DMAMODE_BTERM 0x00000080U
#define RFMOR_DMAMODE_LOCAL_BURST 0x00000100U
#define RFMOR_DMAMODE_DONE_INT 0x00000400U
#define RFMOR_DMAMODE_INT_TO_PCI 0x00020000U
#define RFMOR_DMAPTR_TO_PCI 0x00000008U
#define RFMOR_DMACSR_ENABLE 0x00000001U
#define RFMOR_DMACSR_START 0x00000002U
#define RFMOR_DMACSR_CLEAR_INT 0x00000008U

#define RFMOR_LAS1RR_RANGE_MASK 0xFFFFFFF0U
#define RFMOR_LAS1RR_RANGE_2M 0xFFE00000U
#define RFMOR_LAS1RR_RANGE_16M 0xFF000000U
#define RFMOR_LAS1RR_RANGE_64M 0xFC000000U
#define RFMOR_LAS1RR_RANGE_128M 0xF8000000U
#define RFMOR_LAS1RR_RANGE_256M 0xF0000000U
#define RFMOR_LAS1BA_ENABLE_LAS1 0x00000001U

#define RFM2GOR_CNTRL_READCMD_MASK 0x0000000FU
#define RFM2GOR_CNTRL_MRMUL_CMD 0x0000000CU

#endif /* RFM2G_REGS_H */
