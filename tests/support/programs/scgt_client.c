/* SPDX-License-Identifier: Apache-2.0 */
#include "scgt_client.h"

#include <stdlib.h>

scgtHandle card;
volatile uint32_t* memory;
uint32_t memory_bytes, self;

void expect(uint32 result, const char* what) {
    if (result != SCGT_SUCCESS) give_up("%s: %s", what, scgtGetErrStr(result));
}

void open_card(const char* unit) {
    expect(scgtOpen((uint32)strtoul(unit, NULL, 0), &card), "opening");
    memory = scgtMapMem(&card);
    if (memory == NULL) give_up("the memory cannot be mapped");
    memory_bytes = card.memMapSize;
    self = scgtGetState(&card, SCGT_NODE_ID);
}

void close_card(void) {
    expect(scgtClose(&card), "closing");
}
