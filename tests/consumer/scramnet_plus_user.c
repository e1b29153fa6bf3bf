/* SPDX-License-Identifier: Apache-2.0 */

/* A program for a SCRAMNet+ card, by the header that it knows. */

#include <scrplus.h>
#include <stdio.h>

int main(void) {
    SCR_LONG_PTR memory;
    uint32_t word = 42, got = 0;
    int result = sp_scram_init(0);
    if (result != 0) {
        printf("sp_scram_init: %d\n", result);
        return 1;
    }
    sp_stm_mm(Long_mode);
    scr_csr_write(SCR_CSR0, CSR0_INSRT | CSR0_RXEN | CSR0_TXEN);
    memory = get_base_mem();
    if (scr_dma_write(&word, 0x100, sizeof word) != 0 || memory[0x40] != 42) return 1;
    memory[0x41] = 43;
    if (scr_dma_read(&got, 0x104, sizeof got) != 0 || got != 43) return 1;
    printf("CSR0 is %#x of %lu bytes\n", (unsigned)scr_csr_read(SCR_CSR0), sp_mem_size());
    return scr_mem_mm(UNMAP) == 0 && scr_reg_mm(UNMAP) == 0 ? 0 : 1;
}
