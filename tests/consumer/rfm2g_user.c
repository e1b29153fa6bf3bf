/* SPDX-License-Identifier: Apache-2.0 */

/* A program for an RFM2g card, by the headers that it knows. */

#include <rfm2g_api.h>
#include <rfm2g_regs.h>
#include <stdio.h>

int main(void) {
    char path[] = "/dev/rfm2g0";
    char version[16];
    RFM2GHANDLE card = NULL;
    RFM2G_UINT32 word = 0;
    RFM2G_UINT8 board = 0;
    RFM2G_STATUS status = RFM2gOpen(path, &card);
    if (status == RFM2G_SUCCESS) status = RFM2gPoke32(card, 0x100, 42);
    if (status == RFM2G_SUCCESS) status = RFM2gPeek32(card, 0x100, &word);
    if (status == RFM2G_SUCCESS) status = RFM2gReadReg(card, RFM2GCTRLREGMEM, rfm2g_bid, 1, &board);
    if (status == RFM2G_SUCCESS) status = RFM2gDllVersion(card, version);
    if (status != RFM2G_SUCCESS || word != 42 || board != RFM2G_BID_5565) {
        printf("%s\n", RFM2gErrorMsg(status));
        return 1;
    }
    printf("%s\n", version);
    return RFM2gClose(&card) == RFM2G_SUCCESS ? 0 : 1;
}
