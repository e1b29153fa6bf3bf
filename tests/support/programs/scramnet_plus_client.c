/* SPDX-License-Identifier: Apache-2.0 */
/* A client of SCRAMNet+ cards, by scrplus.h alone. For its peer's interrupts, of a word of each,
 * the descriptor is waited for (`wait`), or the FIFO of interrupts looked at in turns (`look`). */
#define _POSIX_C_SOURCE 200809L
#include "cards/scramnet_plus/scrplus.h"

#include "card_client.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void expect(int result, const char* what) {
    if (result != 0) give_up("%s: %d", what, result);
}

static void open_card(const char* unit) {
    unsigned char id = 0, count = 0;
    expect(sp_scram_init(atoi(unit)), "opening");
    memory = get_base_mem();
    memory_bytes = (uint32_t)sp_mem_size();
    scr_id_mm(&id, &count);
    self = id;
    scr_csr_write(SCR_CSR0, CSR0_INSRT | CSR0_RXEN | CSR0_TXEN);
}

static void close_card(void) {
    expect(scr_mem_mm(UNMAP), "unmapping the memory");
    expect(scr_reg_mm(UNMAP), "unmapping the registers");
}

/* ---- Ways to move a block
 * A pointer's way is one loop over the block. */
#define EACH(type, to, from)                            \
    for (uint32_t i = 0; i < bytes / sizeof(type); ++i) \
    ((volatile type*)(to))[i] = ((volatile type*)(from))[i]

static void write_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    SCR_LONG_PTR const to = memory + offset / 4;
    switch (way) {
        case 0: EACH(uint16_t, to, data); break;
        case 1: EACH(uint8_t, to, data); break;
        default: expect(scr_dma_write(data, offset, bytes), "writing by DMA");
    }
}

static void read_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    SCR_LONG_PTR const from = memory + offset / 4;
    switch (way) {
        case 0: EACH(uint16_t, data, from); break;
        case 1: EACH(uint8_t, data, from); break;
        default: expect(scr_dma_read(data, offset, bytes), "reading by DMA");
    }
}

/* ---- An interrupt to and fro */
static const uint32_t kWords = 0x100; /* the first word, counted in long words */
static int waits;

static void send_value(uint32_t value) {
    /* A transfer, since plain stores do not interrupt on every link. */
    expect(scr_dma_write(&value, (kWords + self) * 4, sizeof value), "sending");
}

static void take_value(uint32_t value) {
    const double since = seconds();
    uint32_t address = 0;
    while (scr_read_int_fifo(&address) == 0) {
        struct pollfd wait = {scr_csr_fd, POLLIN, 0};
        if (waits && poll(&wait, 1, 30000) != 1) give_up("no interrupt %u within 30 s", value);
        if (!waits) look_again(since, "an interrupt", peer);
    }
    const uint32_t found = memory[kWords + peer];
    if (address != (kWords + peer) * 4 || found != value)
        give_up("%u at 0x%x in place of %u", found, address, value);
}

static void listen_for(const char* how) {
    waits = strcmp(how, "wait") == 0;
    scr_acr_write(kWords + self, ACR_TIE);
    scr_acr_write(kWords + peer, ACR_RIE);
    scr_csr_write(SCR_CSR0, scr_csr_read(SCR_CSR0) | CSR0_NIE | CSR0_HIE | CSR0_MME);
    scr_fifo_mm(RST_FIFO, NULL);
}

static void play_rounds(uint32_t count) {
    take_turns(count, send_value, take_value);
}

/* ---- Speeds: by DMA, and through a pointer */
enum { kMaxBytes = 1 << 20, kMaxStored = 1 << 11 };
static uint32_t buffer[kMaxBytes / 4];

static void write_dma(uint32_t bytes) {
    expect(scr_dma_write(buffer, 0, bytes), "writing by DMA");
}
static void read_dma(uint32_t bytes) {
    expect(scr_dma_read(buffer, 0, bytes), "reading by DMA");
}
static void store(uint32_t bytes) {
    for (uint32_t i = 0; i < bytes / 4; ++i) memory[i] = i;
}
static void load(uint32_t bytes) {
    for (uint32_t i = 0; i < bytes / 4; ++i) buffer[i] = memory[i];
}

/* ---- What the card tells of itself: its registers, what CSR1 has latched, its counter in each
 * mode, its ACRs. */
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

static void tell(void) {
    unsigned char id = 0, count = 0;
    unsigned enabled = 0;
    int failures = 0;
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
}

const struct Card card_calls = {
    .open = open_card,
    .close = close_card,
    .ways = 3,
    .write = write_block,
    .read = read_block,
    .listen = listen_for,
    .play_rounds = play_rounds,
    .speeds = {{"DMA write", write_dma, kMaxBytes},
               {"DMA read", read_dma, kMaxBytes},
               {"pointer write", store, kMaxStored},
               {"pointer read", load, kMaxStored}},
    .tell = tell,
};
