/* SPDX-License-Identifier: Apache-2.0 */
/* What a SCRAMNet+ card tells of itself: its registers, what CSR1 has latched, its counter in each
 * mode, its ACRs. */
#include "scramnet_plus_client.h"

#include <stdio.h>

static void tell_counters(void) {
    static const struct {
        int mode;
        const char* name;
    } counters[] = {{CNTR_ERRORS, "errors"},
                    {CNTR_TRIGS, "triggers"},
                    {CNTR_TRANSIT, "transit, in 26.66 ns"},
                    {CNTR_NET_EVENTS, "writes of others"},
                    {CNTR_FREERUN, "time, in 26.66 ns"},
                    {CNTR_FREERUN_T2, "time, in 1.706 us"}};
    for (size_t i = 0; i < sizeof counters / sizeof *counters; ++i) {
        expect(sp_set_cntr(counters[i].mode), "sp_set_cntr");
        printf("counter of %-22s %u\n", counters[i].name, scr_csr_read(SCR_CSR13));
    }
}

int main(int argc, char** argv) {
    unsigned char id = 0, count = 0;
    unsigned enabled = 0;
    int failures = 0;
    number_at(1, argc, argv, "UNIT");
    open_card(argv[1]);
    scr_id_mm(&id, &count);
    printf("node %u, %u nodes, %lu bytes, a card of kind %d, byte order %u\n", id, count,
           sp_mem_size(), sp_plus_find(), sp_gtm_mm());
    /* Reading CSR1 clears it, so it is told by its bits now. */
    const unsigned short latched = scr_csr_read(SCR_CSR1);
    scr_error_mm(stdout, latched);
    for (char csr = 0; csr <= SCR_CSR15; ++csr)
        printf("CSR%-2d 0x%04x\n", csr, csr == SCR_CSR1 ? latched : scr_csr_read(csr));
    tell_counters();
    for (unsigned long word = 0; word < sp_mem_size() / 4; ++word)
        enabled += scr_acr_read(word) != 0;
    printf("%u ACRs are set\n", enabled);
    printf("the bypass is %s\n", scr_fswin_mm() ? "in" : "out");
    if (sp_bist_rd(&failures) == 0) {
        printf("self-test: 0x%x\n", (unsigned)failures);
    } else {
        puts("no self-test");
    }
    close_card();
    return 0;
}
