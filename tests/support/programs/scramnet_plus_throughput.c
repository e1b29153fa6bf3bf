/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a SCRAMNet+ card is written to and read: by DMA from 4 bytes to 1 MB, and through a
 * pointer, for MS milliseconds each. */
#include "scramnet_plus_client.h"

enum { kMostBytes = 1 << 20, kMostStored = 1 << 11 };
static uint32_t buffer[kMostBytes / 4];

static void write_dma(uint32_t bytes) {
    expect(scr_dma_write(buffer, 0, bytes), "writing by DMA");
}
static void read_dma(uint32_t bytes) {
    expect(scr_dma_read(buffer, 0, bytes), "reading by DMA");
}
static void store(uint32_t bytes) {
    for (uint32_t i = 0; i < bytes / 4; ++i) memory[i] = i;
}
static void load(uint32_t bytes) {
    for (uint32_t i = 0; i < bytes / 4; ++i) buffer[i] = memory[i];
}

int main(int argc, char** argv) {
    const uint32_t ms = number_at(2, argc, argv, "UNIT MS");
    open_card(argv[1]);
    const uint32_t most = memory_bytes < kMostBytes ? memory_bytes : kMostBytes;
    tell_speeds("DMA write", write_dma, most, ms);
    tell_speeds("DMA read", read_dma, most, ms);
    tell_speeds("pointer write", store, kMostStored, ms);
    tell_speeds("pointer read", load, kMostStored, ms);
    close_card();
    return 0;
}
