/* SPDX-License-Identifier: Apache-2.0 */
/* A unicast interrupt goes to and fro between two SCRAMNet GT cards; the lower node begins. */
#include "scgt_client.h"

static uint32_t peer;
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

int main(int argc, char** argv) {
    static const char usage[] = "UNIT PEER COUNT";
    struct Rounds rounds = {0};
    scgtInterrupt none;
    uint32 taken = 0;
    peer = number_at(2, argc, argv, usage);
    const uint32_t count = number_at(3, argc, argv, usage);
    open_card(argv[1]);
    volatile uint32_t* const places = memory + memory_bytes / 4 - 256;
    if (scgtGetInterrupt(&card, &reader, &none, 1, 0, &taken) != SCGT_TIMEOUT) give_up("one came");
    meet(places, peer);
    for (uint32_t value = 1; value <= count; ++value) {
        const double begin = seconds();
        if (self < peer) send_value(value);
        take_value(value);
        if (self < peer) add_round(&rounds, seconds() - begin);
        if (self > peer) send_value(value);
    }
    part(places, peer);
    if (self < peer) tell_rounds(&rounds, "waiting");
    close_card();
    return 0;
}
