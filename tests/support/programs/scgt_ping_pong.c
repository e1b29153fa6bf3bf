/* SPDX-License-Identifier: Apache-2.0 */
/* A unicast interrupt goes to and fro between two cards; the lower node begins. */
#include "scgt_client.h"

#include <stdio.h>
#include <stdlib.h>

static void send_value(uint32 value) {
    scgtInterrupt interrupt = {SCGT_UNICAST_INTR, 0, peer, value, 0};
    expect(scgtWrite(&card, 0, NULL, 0, 0, NULL, &interrupt), "sending");
}

static void take_value(uint32 value) {
    scgtInterrupt got;
    uint32 taken = 0;
    expect(scgtGetInterrupt(&card, &reader, &got, 1, 30000, &taken), "waiting");
    if (got.type == SCGT_UNICAST_INTR && got.sourceNodeID == peer && got.val == value) return;
    printf("%u of node %u, type %u, in place of %u\n", got.val, got.sourceNodeID, got.type, value);
    exit(1);
}

int main(int argc, char** argv) {
    begin(argc, argv);
    for (uint32 value = 1; value <= count; ++value) {
        if (self < peer) send_value(value);
        take_value(value);
        if (self > peer) send_value(value);
    }
    printf("%u rounds\n", count);
    return (int)scgtClose(&card);
}
