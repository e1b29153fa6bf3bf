/* SPDX-License-Identifier: Apache-2.0 */
/* How fast a card is written to and read: by DMA and PIO, in transfers of several sizes, timed by
 * its own net timer.
 *
 *     scgt_throughput UNIT BYTES     (to write in each size)
 */
#include <scgtapi.h>

#include <stdio.h>
#include <stdlib.h>

#define MOST 65536
#define TICKS_PER_SECOND 125e6

typedef uint32 (*Transfer)(scgtHandle*, uint32 bytes, uint32 flags);

static unsigned char data[MOST];

static uint32 write_some(scgtHandle* card, uint32 bytes, uint32 flags) {
    uint32 moved = 0;
    const uint32 result = scgtWrite(card, 0, data, bytes, flags, &moved, NULL);
    return result == SCGT_SUCCESS ? moved : 0;
}

static uint32 read_some(scgtHandle* card, uint32 bytes, uint32 flags) {
    uint32 moved = 0;
    const uint32 result = scgtRead(card, 0, data, bytes, flags, &moved);
    return result == SCGT_SUCCESS ? moved : 0;
}

/* MB/s, or less than 0 where something went wrong. */
static double measure(scgtHandle* card, Transfer transfer, uint32 all, uint32 bytes, uint32 flags) {
    const uint32 begin = scgtGetState(card, SCGT_NET_TIMER_VAL);
    for (uint32 done = 0; done < all; done += bytes) {
        if (transfer(card, bytes, flags) != bytes) return -1;
    }
    const uint32 ticks = scgtGetState(card, SCGT_NET_TIMER_VAL) - begin;
    return ticks == 0 ? -1 : all / 1e6 / (ticks / TICKS_PER_SECOND);
}

int main(int argc, char** argv) {
    static const struct {
        const char* name;
        Transfer transfer;
        uint32 flags;
    } ways[] = {{"DMA write", write_some, 0},
                {"DMA read", read_some, 0},
                {"PIO write", write_some, SCGT_RW_PIO},
                {"PIO read", read_some, SCGT_RW_PIO}};
    scgtHandle card;
    if (argc < 3) return 2;
    const uint32 all = (uint32)strtoul(argv[2], NULL, 0) / MOST * MOST;
    if (scgtOpen((uint32)strtoul(argv[1], NULL, 0), &card) != SCGT_SUCCESS) return 1;
    if (scgtMapMem(&card) == NULL) return 1;
    for (size_t way = 0; way < sizeof ways / sizeof *ways; ++way) {
        for (uint32 bytes = 4; bytes <= MOST; bytes *= 128) {
            const double speed = measure(&card, ways[way].transfer, all, bytes, ways[way].flags);
            printf("%-10s %6u bytes %10.1f MB/s\n", ways[way].name, bytes, speed);
            if (speed < 0) return 1;
        }
    }
    return (int)scgtClose(&card);
}
