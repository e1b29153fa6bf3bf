/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a SCRAMNet GT card is written to and read: by DMA from 4 bytes to 1 MB, and by PIO, for
 * MS milliseconds each. */
#include "scgt_client.h"

enum { kMostBytes = 1 << 20, kMostByPio = 1 << 11 };
static unsigned char buffer[kMostBytes];

#define TRANSFER(name, call)                                                            \
    static void name(uint32_t bytes) {                                                  \
        uint32 moved = 0;                                                               \
        expect(call, #name);                                                            \
        if (moved != bytes) give_up(#name ": %u bytes of %u were moved", moved, bytes); \
    }
TRANSFER(write_dma, scgtWrite(&card, 0, buffer, bytes, 0, &moved, NULL))
TRANSFER(read_dma, scgtRead(&card, 0, buffer, bytes, 0, &moved))
TRANSFER(write_pio, scgtWrite(&card, 0, buffer, bytes, SCGT_RW_PIO, &moved, NULL))
TRANSFER(read_pio, scgtRead(&card, 0, buffer, bytes, SCGT_RW_PIO, &moved))

int main(int argc, char** argv) {
    const uint32_t ms = number_at(2, argc, argv, "UNIT MS");
    open_card(argv[1]);
    const uint32_t most = memory_bytes < kMostBytes ? memory_bytes : kMostBytes;
    tell_speeds("DMA write", write_dma, most, ms);
    tell_speeds("DMA read", read_dma, most, ms);
    tell_speeds("PIO write", write_pio, kMostByPio, ms);
    tell_speeds("PIO read", read_pio, kMostByPio, ms);
    close_card();
    return 0;
}
