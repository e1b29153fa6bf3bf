/* SPDX-License-Identifier: Apache-2.0 */
/* Each of two cards writes frames into a block of its own, in each way, and tells the other of each
 * by an interrupt; which finds no word of an older frame in it. */
#include "scgt_client.h"

#include <stdio.h>
#include <stdlib.h>

#define WORDS 512
#define BYTES (WORDS * 4)

static uint32 words[WORDS];

static void write_frame(uint32 frame) {
    static const uint32 ways[] = {0, SCGT_RW_PIO, SCGR_RW_PIO_16_BIT, SCGR_RW_PIO_8_BIT};
    scgtInterrupt interrupt = {SCGT_BROADCAST_INTR, 0, self % 32, frame, 0};
    uint32 moved = 0;
    for (uint32 i = 0; i < WORDS; ++i) words[i] = frame;
    expect(scgtWrite(&card, self * BYTES, words, BYTES, ways[frame % 4], &moved, &interrupt),
           "writing");
    if (moved != BYTES) exit(1);
}

/* Whether no word is of a frame before that. */
static int is_whole(uint32 frame) {
    expect(scgtRead(&card, peer * BYTES, words, BYTES, 0, NULL), "reading");
    for (uint32 i = 0; i < WORDS; ++i) {
        if (words[i] < frame) return 0;
    }
    return 1;
}

/* Waits for the next interrupts, and tells the newest frame that has come whole. */
static uint32 take_frames(uint32 newest) {
    scgtInterrupt got[16];
    uint32 taken = 0;
    expect(scgtGetInterrupt(&card, &reader, got, 16, 30000, &taken), "waiting");
    for (uint32 i = 0; i < taken; ++i) {
        const int is_next = got[i].val == newest + 1 && got[i].sourceNodeID == peer;
        if (!is_next || got[i].id != peer % 32 || !is_whole(got[i].val)) {
            printf("frame %u of node %u is wrong\n", got[i].val, got[i].sourceNodeID);
            exit(1);
        }
        newest = got[i].val;
    }
    return newest;
}

int main(int argc, char** argv) {
    uint32 newest = 0;
    begin(argc, argv);
    if (scgtMapMem(&card) == NULL) return 1;
    for (uint32 frame = 1; frame <= count; ++frame) {
        write_frame(frame);
        while (newest + 8 < frame) newest = take_frames(newest);
    }
    while (newest < count) newest = take_frames(newest);
    printf("%u frames\n", count);
    return (int)scgtClose(&card);
}
