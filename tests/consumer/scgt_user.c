/* SPDX-License-Identifier: Apache-2.0 */

/* A program for a SCRAMNet GT card, by the header that it knows. */

#include <scgtapi.h>
#include <stdio.h>

int main(void) {
    scgtHandle card;
    uint32 word = 42, got = 0, bytes = 0;
    uint32 status = scgtOpen(0, &card);
    if (status == SCGT_SUCCESS)
        status = scgtWrite(&card, 0x100, &word, sizeof word, 0, &bytes, NULL);
    if (status == SCGT_SUCCESS) status = scgtRead(&card, 0x100, &got, sizeof got, 0, &bytes);
    if (status != SCGT_SUCCESS || got != 42 || bytes != sizeof got) {
        printf("%s\n", scgtGetErrStr(status));
        return 1;
    }
    printf("%s\n", scgtGetApiRevStr());
    return scgtClose(&card) == SCGT_SUCCESS ? 0 : 1;
}
