/* SPDX-License-Identifier: Apache-2.0 */
/* Two RFM2g cards send each other an interrupt to and fro; the lower node begins. It is waited for
 * (`wait`), or answered in the callback (`callback`). */
#include "rfm2g_client.h"

#include <stdatomic.h>
#include <string.h>

static uint32_t peer, count;
static struct Rounds rounds;
static double sent_at;
static atomic_uint taken;

static void send_value(uint32_t value) {
    sent_at = seconds();
    expect(RFM2gSendEvent(card, (RFM2G_NODE)peer, RFM2GEVENT_INTR1, value), "sending");
}

/* One has come: the lower node begins the next round, the higher one ends this. */
static void answer(RFM2GHANDLE to, RFM2GEVENTINFO* event) {
    const uint32_t value = atomic_load(&taken) + 1;
    (void)to;
    if (event->NodeId != peer || event->ExtendedInfo != value) {
        give_up("%u of node %u came in place of %u", event->ExtendedInfo, event->NodeId, value);
    }
    if (self < peer) add_round(&rounds, seconds() - sent_at);
    if (self > peer || value < count) send_value(self > peer ? value : value + 1);
    atomic_store(&taken, value);
}

int main(int argc, char** argv) {
    static const char usage[] = "UNIT PEER COUNT wait|callback";
    RFM2GEVENTINFO event = {.Event = RFM2GEVENT_INTR1, .Timeout = 30000};
    peer = number_at(2, argc, argv, usage);
    count = number_at(3, argc, argv, usage);
    const int waits = argc > 4 && strcmp(argv[4], "wait") == 0;
    open_card(argv[1]);
    volatile uint32_t* const places = memory + memory_bytes / 4 - 256;
    expect(RFM2gClearEvent(card, RFM2GEVENT_INTR1), "clearing");
    if (!waits) {
        expect(RFM2gEnableEventCallback(card, RFM2GEVENT_INTR1, answer), "setting the callback");
    }
    expect(RFM2gEnableEvent(card, RFM2GEVENT_INTR1), "enabling");
    meet(places, peer);
    if (self < peer) send_value(1);
    while (waits && atomic_load(&taken) < count) {
        expect(RFM2gWaitForEvent(card, &event), "waiting");
        answer(card, &event);
    }
    const double since = seconds();
    while (atomic_load(&taken) < count) look_again(since, "the last round", peer);
    part(places, peer);
    if (self < peer) tell_rounds(&rounds, waits ? "waiting" : "callback");
    close_card();
    return 0;
}
