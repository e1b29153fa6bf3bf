/* SPDX-License-Identifier: Apache-2.0 */
/* The integrity game of SCRAMNet+ cards, whose members are the nodes 0 to MEMBERS - 1. In round
 * SPOILT this one breaks a word. */
#include "scramnet_plus_client.h"

/* A pointer's way is one loop over the block. */
#define EACH(type, to, from)                            \
    for (uint32_t i = 0; i < bytes / sizeof(type); ++i) \
    ((volatile type*)(to))[i] = ((volatile type*)(from))[i]

static void write_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    SCR_LONG_PTR const to = memory + offset / 4;
    switch (way) {
        case 0: EACH(uint32_t, to, data); break;
        case 1: EACH(uint16_t, to, data); break;
        case 2: EACH(uint8_t, to, data); break;
        default: expect(scr_dma_write(data, offset, bytes), "writing by DMA");
    }
}

static void read_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    SCR_LONG_PTR const from = memory + offset / 4;
    switch (way) {
        case 0: EACH(uint32_t, data, from); break;
        case 1: EACH(uint16_t, data, from); break;
        case 2: EACH(uint8_t, data, from); break;
        default: expect(scr_dma_read(data, offset, bytes), "reading by DMA");
    }
}

int main(int argc, char** argv) {
    static const char usage[] = "UNIT MEMBERS ROUNDS [SPOILT]";
    struct Player player = {.ways = 4, .write = write_block, .read = read_block};
    player.members = number_at(2, argc, argv, usage);
    const uint32_t rounds = number_at(3, argc, argv, usage);
    const uint32_t spoilt = argc > 4 ? number_at(4, argc, argv, usage) : 0;
    open_card((int)number_at(1, argc, argv, usage));
    player.memory = memory;
    player.self = self;
    play(&player, rounds, spoilt);
    close_card();
    return 0;
}
