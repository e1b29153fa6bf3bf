/* SPDX-License-Identifier: Apache-2.0 */
#include "rfm2g_client.h"

#include <stdio.h>

RFM2GHANDLE card;
volatile uint32_t* memory;
uint32_t memory_bytes, self;
unsigned char* dma_buffer;

void expect(RFM2G_STATUS status, const char* what) {
    if (status != RFM2G_SUCCESS) give_up("%s: %s", what, RFM2gErrorMsg(status));
}

void open_card(const char* unit) {
    char path[64];
    volatile void* mapped = NULL;
    RFM2G_NODE node = 0;
    snprintf(path, sizeof path, "/dev/rfm2g%s", unit);
    expect(RFM2gOpen(path, &card), path);
    expect(RFM2gNodeID(card, &node), "asking for the node");
    self = node;
    expect(RFM2gSize(card, &memory_bytes), "asking for the size");
    expect(RFM2gUserMemoryBytes(card, &mapped, 0, memory_bytes), "mapping the memory");
    memory = mapped;
    /* The address is the one that the buffer has on the bus. */
    expect(RFM2gUserMemory(card, &mapped, 0x10000000 | RFM2G_DMA_MMAP_OFFSET, kDmaBytes / 4096),
           "mapping a DMA buffer");
    dma_buffer = (unsigned char*)mapped;
    expect(RFM2gSetDMAThreshold(card, 16), "setting the DMA threshold");
}

void close_card(void) {
    expect(RFM2gClose(&card), "closing");
}
