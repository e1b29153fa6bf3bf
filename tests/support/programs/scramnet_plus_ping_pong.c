/* SPDX-License-Identifier: Apache-2.0 */
/* Two SCRAMNet+ cards interrupt each other to and fro by a word of each; the lower node begins. The
 * descriptor is waited for (`wait`), or the interrupt FIFO looked at again and again (`look`). */
#define _POSIX_C_SOURCE 200809L
#include "scramnet_plus_client.h"

#include <poll.h>
#include <string.h>

static const uint32_t kWords = 0x100; /* the first word, counted in long words */
static uint32_t peer, count;
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

int main(int argc, char** argv) {
    static const char usage[] = "UNIT PEER COUNT wait|look";
    struct Rounds rounds = {0};
    peer = number_at(2, argc, argv, usage);
    count = number_at(3, argc, argv, usage);
    waits = argc > 4 && strcmp(argv[4], "wait") == 0;
    open_card(argv[1]);
    volatile uint32_t* const places = memory + memory_bytes / 4 - 256;
    scr_acr_write(kWords + self, ACR_TIE);
    scr_acr_write(kWords + peer, ACR_RIE);
    scr_csr_write(SCR_CSR0, scr_csr_read(SCR_CSR0) | CSR0_NIE | CSR0_HIE | CSR0_MME);
    scr_fifo_mm(RST_FIFO, NULL);
    meet(places, peer);
    for (uint32_t value = 1; value <= count; ++value) {
        const double begin = seconds();
        if (self < peer) send_value(value);
        take_value(value);
        if (self < peer) add_round(&rounds, seconds() - begin);
        if (self > peer) send_value(value);
    }
    part(places, peer);
    if (self < peer) tell_rounds(&rounds, waits ? "waiting" : "looking");
    close_card();
    return 0;
}
