/* SPDX-License-Identifier: Apache-2.0 */
#include "scgt_client.h"

#include <stdio.h>
#include <stdlib.h>

scgtHandle card;
uint32 self, peer, count;
scgtIntrHandle reader = (scgtIntrHandle)-1;

void expect(uint32 result, const char* what) {
    if (result == SCGT_SUCCESS) return;
    printf("%s: %s\n", what, scgtGetErrStr(result));
    exit(1);
}

/* The last words of the memory say who is ready. */
void begin(int argc, char** argv) {
    scgtDeviceInfo info;
    scgtInterrupt unused;
    uint32 taken = 0, is_ready = 1;
    if (argc < 4) exit(2);
    expect(scgtOpen((uint32)strtoul(argv[1], NULL, 0), &card), "opening");
    peer = (uint32)strtoul(argv[2], NULL, 0);
    count = (uint32)strtoul(argv[3], NULL, 0);
    self = scgtGetState(&card, SCGT_NODE_ID);
    expect(scgtGetDeviceInfo(&card, &info), "asking what the card is");
    if (scgtGetInterrupt(&card, &reader, &unused, 1, 0, &taken) != SCGT_TIMEOUT) exit(1);
    const uint32 places = info.popMemSize - 8;
    expect(scgtWrite(&card, places + self % 2 * 4, &is_ready, 4, 0, NULL, NULL), "writing");
    do {
        expect(scgtRead(&card, places + peer % 2 * 4, &is_ready, 4, 0, NULL), "reading");
    } while (!is_ready);
}
