/* SPDX-License-Identifier: Apache-2.0 */
/* The integrity game of RFM2g cards. */
#include "rfm2g_client.h"

#include <string.h>

/* Peeks and pokes of a width are one loop over the block. */
#define EACH(type, call, value)                                     \
    for (uint32_t at = 0; at < bytes; at += (uint32_t)sizeof(type)) \
    expect(call(card, offset + at, value((type*)(void*)((unsigned char*)data + at))), #call)
#define PLACE(pointer) (pointer)
#define VALUE(pointer) (*(pointer))

static void write_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    switch (way) {
        case 0: expect(RFM2gWrite(card, offset, data, bytes), "writing"); break;
        case 1:
            memcpy(dma_buffer, data, bytes);
            expect(RFM2gWrite(card, offset, dma_buffer, bytes), "writing by DMA");
            break;
        case 2: EACH(RFM2G_UINT8, RFM2gPoke8, VALUE); break;
        case 3: EACH(RFM2G_UINT16, RFM2gPoke16, VALUE); break;
        case 4: EACH(RFM2G_UINT32, RFM2gPoke32, VALUE); break;
        default: EACH(RFM2G_UINT64, RFM2gPoke64, VALUE);
    }
}

static void read_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    switch (way) {
        case 0: expect(RFM2gRead(card, offset, data, bytes), "reading"); break;
        case 1:
            expect(RFM2gRead(card, offset, dma_buffer, bytes), "reading by DMA");
            memcpy(data, dma_buffer, bytes);
            break;
        case 2: EACH(RFM2G_UINT8, RFM2gPeek8, PLACE); break;
        case 3: EACH(RFM2G_UINT16, RFM2gPeek16, PLACE); break;
        case 4: EACH(RFM2G_UINT32, RFM2gPeek32, PLACE); break;
        default: EACH(RFM2G_UINT64, RFM2gPeek64, PLACE);
    }
}

int main(int argc, char** argv) {
    const struct Player player = {.ways = 6, .write = write_block, .read = read_block};
    return play(argc, argv, &player);
}
