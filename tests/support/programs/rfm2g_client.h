/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2G_CLIENT_H
#define RFM2G_CLIENT_H

/* What the client programs of RFM2g cards begin with. */

#include "cards/rfm2g/rfm2g_api.h"

#include "card_client.h"

extern RFM2GHANDLE card;
extern RFM2G_NODE self;
/* All of the memory, mapped; and memory that transfers of 16 bytes and more are a DMA of. */
extern volatile uint32_t* memory;
extern RFM2G_UINT32 memory_bytes;
extern unsigned char* dma_buffer;
enum { kDmaBytes = 1 << 20 };

/* Ends the program with a line where a call has failed. */
void expect(RFM2G_STATUS status, const char* what);
void open_card(const char* unit);

#endif
