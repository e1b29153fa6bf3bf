/* SPDX-License-Identifier: Apache-2.0 */
#include "rfm2g_client.h"

#include <stdio.h>

RFM2GHANDLE card;
RFM2G_NODE self;
volatile uint32_t* memory;
RFM2G_UINT32 memory_bytes;
unsigned char* dma_buffer;

void expect(RFM2G_STATUS status, const char* what) {
    if (status != RFM2G_SUCCESS) give_up("%s: %s", what, RFM2gErrorMsg(status));
}

void open_card(const char* unit) {
    char path[64];
    volatile void* mapped = NULL;
    snprintf(path, sizeof path, "/dev/rfm2g%s", unit);
    expect(RFM2gOpen(path, &card), path);
    expect(RFM2gNodeID(card, &self), "asking for the node");
    expect(RFM2gSize(card, &memory_bytes), "asking for the size");
    expect(RFM2gUserMemoryBytes(card, &mapped, 0, memory_bytes), "mapping the memory");
    memory = mapped;
    /* The address is the one that the buffer has on the bus. */
    expect(RFM2gUserMemory(card, &mapped, 0x10000000 | RFM2G_DMA_MMAP_OFFSET, kDmaBytes / 4096),
           "mapping a DMA buffer");
    dma_buffer = (unsigned char*)mapped;
    expect(RFM2gSetDMAThreshold(card, 16), "setting the DMA threshold");
}
