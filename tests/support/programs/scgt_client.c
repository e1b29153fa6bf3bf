/* SPDX-License-Identifier: Apache-2.0 */
/* A client of SCRAMNet GT cards, by scgtapi.h alone. Its peer's interrupts are waited for. */
#include "card_client.h"

#include <scgtapi.h>

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static scgtHandle card;

static void expect(uint32 result, const char* what) {
    if (result != SCGT_SUCCESS) give_up("%s: %s", what, scgtGetErrStr(result));
}

static void open_card(const char* unit) {
    expect(scgtOpen((uint32)strtoul(unit, NULL, 0), &card), "opening");
    memory = scgtMapMem(&card);
    if (memory == NULL) give_up("the memory cannot be mapped");
    memory_bytes = card.memMapSize;
    self = scgtGetState(&card, SCGT_NODE_ID);
}

static void close_card(void) {
    expect(scgtClose(&card), "closing");
}

/* ---- Ways to move a block */
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

/* ---- An interrupt to and fro */
static scgtIntrHandle reader = (scgtIntrHandle)-1;

static void send_value(uint32_t value) {
    scgtInterrupt interrupt = {SCGT_UNICAST_INTR, 0, peer, value, 0};
    expect(scgtWrite(&card, 0, NULL, 0, 0, NULL, &interrupt), "sending");
}

static void take_value(uint32_t value) {
    scgtInterrupt got;
    uint32 taken = 0;
    expect(scgtGetInterrupt(&card, &reader, &got, 1, 30000, &taken), "waiting");
    if (got.type != SCGT_UNICAST_INTR || got.sourceNodeID != peer || got.val != value)
        give_up("%u of node %u came in place of %u", got.val, got.sourceNodeID, value);
}

static void listen_for(const char* how) {
    scgtInterrupt none;
    uint32 taken = 0;
    (void)how;
    if (scgtGetInterrupt(&card, &reader, &none, 1, 0, &taken) != SCGT_TIMEOUT) give_up("one came");
}

static void play_rounds(uint32_t count) {
    take_turns(count, send_value, take_value);
}

/* ---- Speeds */
enum { kMaxBytes = 1 << 20, kMaxByPio = 1 << 11 };
static unsigned char buffer[kMaxBytes];

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

/* ---- What the card tells of itself: every state, the nodes of its ring, its statistics. */
#define ENTRY(state) \
    { SCGT_##state, #state }
static const struct {
    uint32 id;
    const char* name;
} states[] = {
    ENTRY(NODE_ID),
    ENTRY(ACTIVE_LINK),
    ENTRY(NUM_LINK_ERRS),
    ENTRY(EWRAP),
    ENTRY(WRITE_ME_LAST),
    ENTRY(UNICAST_INT_MASK),
    ENTRY(BROADCAST_INT_MASK),
    ENTRY(INT_SELF_ENABLE),
    ENTRY(RING_SIZE),
    ENTRY(UPSTREAM_NODE_ID),
    ENTRY(NET_TIMER_VAL),
    ENTRY(LATENCY_TIMER_VAL),
    ENTRY(SM_TRAFFIC_CNT),
    ENTRY(SPY_SM_TRAFFIC_CNT),
    ENTRY(SPY_NODE_ID),
    ENTRY(TRANSMIT_ENABLE),
    ENTRY(RECEIVE_ENABLE),
    ENTRY(RETRANSMIT_ENABLE),
    ENTRY(LASER_0_ENABLE),
    ENTRY(LASER_1_ENABLE),
    ENTRY(LINK_UP),
    ENTRY(LASER_0_SIGNAL_DET),
    ENTRY(LASER_1_SIGNAL_DET),
    ENTRY(D64_ENABLE),
    ENTRY(BYTE_SWAP_ENABLE),
    ENTRY(WORD_SWAP_ENABLE),
    ENTRY(LINK_ERR_INT_ENABLE),
    ENTRY(READ_BYPASS_ENABLE),
};

static void tell_nodes(void) {
    for (uint32 hops = 0; hops < 256; ++hops) {
        const uint32 status = scgtReadNMR(&card, hops * 4);
        if ((status & 0x80000000U) == 0) break;
        printf("%u upstream: node %u behind node %u, link %s\n", hops + 1, status & 0xFF,
               status >> 8 & 0xFF, (status & 0x1000000) != 0 ? "up" : "down");
    }
}

static void tell_statistics(void) {
    uint32 sizes[2];
    expect(scgtGetStats(&card, sizes, NULL, 0, 2), "asking for the statistics");
    uint32* const values = calloc(sizes[0], sizeof *values);
    char* const names = calloc(sizes[1], 1);
    if (values == NULL || names == NULL) give_up("no memory");
    expect(scgtGetStats(&card, values, names, 0, sizes[0]), "taking the statistics");
    uint32 told = 0;
    for (char* name = strtok(names, ","); name != NULL; name = strtok(NULL, ","))
        printf("%-24s %u\n", name, values[told++]);
    free(names);
    free(values);
    if (told != sizes[0]) give_up("%u of %u statistics have names", told, sizes[0]);
}

static void tell(void) {
    scgtDeviceInfo info;
    expect(scgtGetDeviceInfo(&card, &info), "asking for the device");
    printf("unit %u: %s, %u bytes, driver %s, interface %s\n", info.unitNum, info.boardLocationStr,
           info.popMemSize, info.driverRevisionStr, scgtGetApiRevStr());
    for (size_t i = 0; i < sizeof states / sizeof *states; ++i)
        printf("%-24s 0x%x\n", states[i].name, scgtGetState(&card, states[i].id));
    tell_nodes();
    tell_statistics();
}

const struct Card card_calls = {
    .open = open_card,
    .close = close_card,
    .ways = 4,
    .write = write_block,
    .read = read_block,
    .listen = listen_for,
    .play_rounds = play_rounds,
    .speeds = {{"DMA write", write_dma, kMaxBytes},
               {"DMA read", read_dma, kMaxBytes},
               {"PIO write", write_pio, kMaxByPio},
               {"PIO read", read_pio, kMaxByPio}},
    .tell = tell,
};
