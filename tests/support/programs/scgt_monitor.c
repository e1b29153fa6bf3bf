/* SPDX-License-Identifier: Apache-2.0 */
/* What a SCRAMNet GT card tells of itself: every state, the nodes of its ring, its statistics.
 *
 *     scgt_monitor UNIT
 */
#include <scgtapi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

static void tell_nodes(scgtHandle* card) {
    for (uint32 hops = 0; hops < 256; ++hops) {
        const uint32 status = scgtReadNMR(card, hops * 4);
        if ((status & 0x80000000U) == 0) break;
        printf("%u upstream: node %u behind node %u, link %s\n", hops + 1, status & 0xFF,
               status >> 8 & 0xFF, (status & 0x1000000) != 0 ? "up" : "down");
    }
}

static int tell_statistics(scgtHandle* card) {
    uint32 sizes[2];
    if (scgtGetStats(card, sizes, NULL, 0, 2) != SCGT_SUCCESS) return 1;
    uint32* const values = calloc(sizes[0], sizeof *values);
    char* const names = calloc(sizes[1], 1);
    if (values == NULL || names == NULL) return 1;
    if (scgtGetStats(card, values, names, 0, sizes[0]) != SCGT_SUCCESS) return 1;
    uint32 told = 0;
    for (char* name = strtok(names, ","); name != NULL; name = strtok(NULL, ","))
        printf("%-24s %u\n", name, values[told++]);
    free(names);
    free(values);
    return told == sizes[0] ? 0 : 1;
}

int main(int argc, char** argv) {
    scgtHandle card;
    scgtDeviceInfo info;
    const uint32 unit = argc > 1 ? (uint32)strtoul(argv[1], NULL, 0) : 0;
    if (scgtOpen(unit, &card) != SCGT_SUCCESS) return 1;
    if (scgtGetDeviceInfo(&card, &info) != SCGT_SUCCESS) return 1;
    printf("unit %u: %s, %u bytes, driver %s, interface %s\n", info.unitNum, info.boardLocationStr,
           info.popMemSize, info.driverRevisionStr, scgtGetApiRevStr());
    for (size_t i = 0; i < sizeof states / sizeof *states; ++i)
        printf("%-24s 0x%x\n", states[i].name, scgtGetState(&card, states[i].id));
    tell_nodes(&card);
    const int result = tell_statistics(&card);
    return scgtClose(&card) == SCGT_SUCCESS ? result : 1;
}
