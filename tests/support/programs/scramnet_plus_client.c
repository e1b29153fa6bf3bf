/* SPDX-License-Identifier: Apache-2.0 */
#include "scramnet_plus_client.h"

SCR_LONG_PTR memory;
unsigned char self;

void expect(int result, const char* what) {
    if (result != 0) give_up("%s: %d", what, result);
}

void open_card(int unit) {
    unsigned char count = 0;
    expect(sp_scram_init(unit), "opening");
    memory = get_base_mem();
    scr_id_mm(&self, &count);
    scr_csr_write(SCR_CSR0, CSR0_INSRT | CSR0_RXEN | CSR0_TXEN);
}

void close_card(void) {
    expect(scr_mem_mm(UNMAP), "unmapping the memory");
    expect(scr_reg_mm(UNMAP), "unmapping the registers");
}
