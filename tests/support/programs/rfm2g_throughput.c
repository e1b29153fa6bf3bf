/* SPDX-License-Identifier: Apache-2.0 */
/* How fast an RFM2g card is written to and read: by PIO, by DMA and by single words, from 4 bytes
 * to 1 MB, for MS milliseconds each. */
#include "rfm2g_client.h"

static unsigned char pio_buffer[kDmaBytes];

static void write_pio(uint32_t bytes) {
    expect(RFM2gWrite(card, 0, pio_buffer, bytes), "writing");
}
static void read_pio(uint32_t bytes) {
    expect(RFM2gRead(card, 0, pio_buffer, bytes), "reading");
}
static void write_dma(uint32_t bytes) {
    expect(RFM2gWrite(card, 0, dma_buffer, bytes), "writing by DMA");
}
static void read_dma(uint32_t bytes) {
    expect(RFM2gRead(card, 0, dma_buffer, bytes), "reading by DMA");
}
static void poke(uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += 4) expect(RFM2gPoke32(card, at, at), "poking");
}
static void peek(uint32_t bytes) {
    RFM2G_UINT32 word = 0;
    for (uint32_t at = 0; at < bytes; at += 4) expect(RFM2gPeek32(card, at, &word), "peeking");
}

int main(int argc, char** argv) {
    const uint32_t ms = number_at(2, argc, argv, "UNIT MS");
    open_card(argv[1]);
    const uint32_t most = memory_bytes < kDmaBytes ? memory_bytes : kDmaBytes;
    tell_speeds("PIO write", write_pio, most, ms);
    tell_speeds("PIO read", read_pio, most, ms);
    tell_speeds("DMA write", write_dma, most, ms);
    tell_speeds("DMA read", read_dma, most, ms);
    tell_speeds("poke", poke, 4, ms);
    tell_speeds("peek", peek, 4, ms);
    close_card();
    return 0;
}
