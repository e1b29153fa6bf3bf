/* SPDX-License-Identifier: Apache-2.0 */
/* The integrity game of SCRAMNet+ cards. */
#include "scramnet_plus_client.h"

/* A pointer's way is one loop over the block. */
#define EACH(type, to, from)                            \
    for (uint32_t i = 0; i < bytes / sizeof(type); ++i) \
    ((volatile type*)(to))[i] = ((volatile type*)(from))[i]

static void write_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    SCR_LONG_PTR const to = memory + offset / 4;
    switch (way) {
        case 0: EACH(uint16_t, to, data); break;
        case 1: EACH(uint8_t, to, data); break;
        default: expect(scr_dma_write(data, offset, bytes), "writing by DMA");
    }
}

static void read_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    SCR_LONG_PTR const from = memory + offset / 4;
    switch (way) {
        case 0: EACH(uint16_t, data, from); break;
        case 1: EACH(uint8_t, data, from); break;
        default: expect(scr_dma_read(data, offset, bytes), "reading by DMA");
    }
}

int main(int argc, char** argv) {
    const struct Player player = {.ways = 3, .write = write_block, .read = read_block};
    return play(argc, argv, &player);
}
