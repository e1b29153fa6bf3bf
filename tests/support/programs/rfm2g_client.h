/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2G_CLIENT_H
#define RFM2G_CLIENT_H

/* What the client programs of RFM2g cards begin with. */

#include "cards/rfm2g/rfm2g_api.h"

#include "card_client.h"

extern RFM2GHANDLE card;
/* Memory that transfers of 16 bytes and more are a DMA of. */
extern unsigned char* dma_buffer;
enum { kDmaBytes = 1 << 20 };

/* Ends the program with a line where a call has failed. */
void expect(RFM2G_STATUS status, const char* what);

#endif
