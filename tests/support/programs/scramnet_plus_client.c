/* SPDX-License-Identifier: Apache-2.0 */
#include "scramnet_plus_client.h"

#include <stdlib.h>

volatile uint32_t* memory;
uint32_t memory_bytes, self;

void expect(int result, const char* what) {
    if (result != 0) give_up("%s: %d", what, result);
}

void open_card(const char* unit) {
    unsigned char id = 0, count = 0;
    expect(sp_scram_init(atoi(unit)), "opening");
    memory = get_base_mem();
    memory_bytes = (uint32_t)sp_mem_size();
    scr_id_mm(&id, &count);
    self = id;
    scr_csr_write(SCR_CSR0, CSR0_INSRT | CSR0_RXEN | CSR0_TXEN);
}

void close_card(void) {
    expect(scr_mem_mm(UNMAP), "unmapping the memory");
    expect(scr_reg_mm(UNMAP), "unmapping the registers");
}
