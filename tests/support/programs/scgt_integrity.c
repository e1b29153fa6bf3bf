/* SPDX-License-Identifier: Apache-2.0 */
/* The integrity game of SCRAMNet GT cards. */
#include "scgt_client.h"

static const uint32 kWays[] = {0, SCGT_RW_PIO, SCGR_RW_PIO_16_BIT, SCGR_RW_PIO_8_BIT};

static void write_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    uint32 moved = 0;
    expect(scgtWrite(&card, offset, data, bytes, kWays[way], &moved, NULL), "writing");
    if (moved != bytes) give_up("%u bytes of %u were written", moved, bytes);
}

static void read_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    uint32 moved = 0;
    expect(scgtRead(&card, offset, data, bytes, kWays[way], &moved), "reading");
    if (moved != bytes) give_up("%u bytes of %u were read", moved, bytes);
}

int main(int argc, char** argv) {
    const struct Player player = {.ways = 4, .write = write_block, .read = read_block};
    return play(argc, argv, &player);
}
