/* SPDX-License-Identifier: Apache-2.0 */
/* A client of RFM2g cards, by rfm2g_api.h alone. Its peer's interrupts are waited for (`wait`), or
 * answered in the callback (`callback`). */
#include "cards/rfm2g/rfm2g_api.h"

#include "card_client.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

enum { kDmaBytes = 1 << 20 };

static RFM2GHANDLE card;
static unsigned char* dma_buffer; /* transfers of 16 bytes and more from and to it are a DMA */

static void expect(RFM2G_STATUS status, const char* what) {
    if (status != RFM2G_SUCCESS) give_up("%s: %s", what, RFM2gErrorMsg(status));
}

static void open_card(const char* unit) {
    char path[64];
    volatile void* mapped = NULL;
    RFM2G_NODE node = 0;
    snprintf(path, sizeof path, "/dev/rfm2g%s", unit);
    expect(RFM2gOpen(path, &card), path);
    expect(RFM2gNodeID(card, &node), "asking for the node");
    self = node;
    expect(RFM2gSize(card, &memory_bytes), "asking for the size");
    expect(RFM2gUserMemoryBytes(card, &mapped, 0, memory_bytes), "mapping the memory");
    memory = mapped;
    /* The address is the one that the buffer has on the bus. */
    expect(RFM2gUserMemory(card, &mapped, 0x10000000 | RFM2G_DMA_MMAP_OFFSET, kDmaBytes / 4096),
           "mapping a DMA buffer");
    dma_buffer = (unsigned char*)mapped;
    expect(RFM2gSetDMAThreshold(card, 16), "setting the DMA threshold");
}

static void close_card(void) {
    expect(RFM2gClose(&card), "closing");
}

/* ---- Ways to move a block
 * Peeks and pokes of a width are one loop over the block. */
#define EACH(type, call, value)                                     \
    for (uint32_t at = 0; at < bytes; at += (uint32_t)sizeof(type)) \
    expect(call(card, offset + at, value((type*)(void*)((unsigned char*)data + at))), #call)
#define PLACE(pointer) (pointer)
#define VALUE(pointer) (*(pointer))

static void write_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    switch (way) {
        case 0: expect(RFM2gWrite(card, offset, data, bytes), "writing"); break;
        case 1:
            memcpy(dma_buffer, data, bytes);
            expect(RFM2gWrite(card, offset, dma_buffer, bytes), "writing by DMA");
            break;
        case 2: EACH(RFM2G_UINT8, RFM2gPoke8, VALUE); break;
        case 3: EACH(RFM2G_UINT16, RFM2gPoke16, VALUE); break;
        case 4: EACH(RFM2G_UINT32, RFM2gPoke32, VALUE); break;
        default: EACH(RFM2G_UINT64, RFM2gPoke64, VALUE);
    }
}

static void read_block(uint32_t way, uint32_t offset, void* data, uint32_t bytes) {
    switch (way) {
        case 0: expect(RFM2gRead(card, offset, data, bytes), "reading"); break;
        case 1:
            expect(RFM2gRead(card, offset, dma_buffer, bytes), "reading by DMA");
            memcpy(data, dma_buffer, bytes);
            break;
        case 2: EACH(RFM2G_UINT8, RFM2gPeek8, PLACE); break;
        case 3: EACH(RFM2G_UINT16, RFM2gPeek16, PLACE); break;
        case 4: EACH(RFM2G_UINT32, RFM2gPeek32, PLACE); break;
        default: EACH(RFM2G_UINT64, RFM2gPeek64, PLACE);
    }
}

/* ---- An interrupt to and fro */
static uint32_t last_round;
static double sent_at;
static atomic_uint taken;
static int waits;

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
    if (self < peer) add_round(seconds() - sent_at);
    if (self > peer || value < last_round) send_value(self > peer ? value : value + 1);
    atomic_store(&taken, value);
}

static void listen_for(const char* how) {
    waits = strcmp(how, "wait") == 0;
    expect(RFM2gClearEvent(card, RFM2GEVENT_INTR1), "clearing");
    if (!waits) {
        expect(RFM2gEnableEventCallback(card, RFM2GEVENT_INTR1, answer), "setting the callback");
    }
    expect(RFM2gEnableEvent(card, RFM2GEVENT_INTR1), "enabling");
}

static void play_rounds(uint32_t count) {
    RFM2GEVENTINFO event = {.Event = RFM2GEVENT_INTR1, .Timeout = 30000};
    last_round = count;
    if (self < peer) send_value(1);
    while (waits && atomic_load(&taken) < count) {
        expect(RFM2gWaitForEvent(card, &event), "waiting");
        answer(card, &event);
    }
    const double since = seconds();
    while (atomic_load(&taken) < count) look_again(since, "the last round", peer);
}

/* ---- Speeds: by PIO, by DMA and by single words */
static unsigned char pio_buffer[kDmaBytes];

static void write_pio(uint32_t bytes) {
    expect(RFM2gWrite(card, 0, pio_buffer, bytes), "writing");
}
static void read_pio(uint32_t bytes) {
    expect(RFM2gRead(card, 0, pio_buffer, bytes), "reading");
}
static void write_dma(uint32_t bytes) {
    expect(RFM2gWrite(card, 0, dma_buffer, bytes), "writing by DMA");
}
static void read_dma(uint32_t bytes) {
    expect(RFM2gRead(card, 0, dma_buffer, bytes), "reading by DMA");
}
static void poke(uint32_t bytes) {
    for (uint32_t at = 0; at < bytes; at += 4) expect(RFM2gPoke32(card, at, at), "poking");
}
static void peek(uint32_t bytes) {
    RFM2G_UINT32 word = 0;
    for (uint32_t at = 0; at < bytes; at += 4) expect(RFM2gPeek32(card, at, &word), "peeking");
}

/* ---- What the card tells of itself: its configuration, its settings, its registers, and how many
 * events have come. */
static void tell_configuration(void) {
    RFM2GCONFIG config;
    RFM2G_UINT8 board = 0;
    RFM2G_UINT32 first = 0;
    char name[128], library[16], driver[16];
    expect(RFM2gGetConfig(card, &config), "RFM2gGetConfig");
    expect(RFM2gBoardID(card, &board), "RFM2gBoardID");
    expect(RFM2gFirst(card, &first), "RFM2gFirst");
    expect(RFM2gDeviceName(card, name), "RFM2gDeviceName");
    expect(RFM2gDllVersion(card, library), "RFM2gDllVersion");
    expect(RFM2gDriverVersion(card, driver), "RFM2gDriverVersion");
    printf("unit %u: %s (%s), node %u, board 0x%x, revision %u, build %u\n", config.Unit, name,
           config.Name, config.NodeId, board, config.BoardRevision, config.BuildId);
    printf("memory of %u bytes from %u on, window of %u\n", config.MemorySize, first,
           config.PciConfig.rfm2gWindowSize);
    printf("library %s, driver %s\n", library, driver);
}

#define SETTING(type, call)                                     \
    do {                                                        \
        type value = (type)0;                                   \
        expect(RFM2gGet##call(card, &value), "RFM2gGet" #call); \
        printf("%-16s 0x%x\n", #call, (unsigned)value);         \
    } while (0)

static void tell_settings(void) {
    RFM2G_UINT32 offset = 0, size = 0;
    RFM2G_BOOL own_data = RFM2G_FALSE;
    SETTING(RFM2G_UINT32, DMAThreshold);
    SETTING(RFM2G_BOOL, DMAByteSwap);
    SETTING(RFM2G_BOOL, PIOByteSwap);
    SETTING(RFM2G_BOOL, Led);
    SETTING(RFM2G_BOOL, Transmit);
    SETTING(RFM2G_BOOL, Loopback);
    SETTING(RFM2G_BOOL, DarkOnDark);
    SETTING(RFM2G_BOOL, ParityEnable);
    SETTING(RFM2G_MEM_OFFSETTYPE, MemoryOffset);
    SETTING(RFM2G_UINT32, DebugFlags);
    expect(RFM2gGetSlidingWindow(card, &offset, &size), "RFM2gGetSlidingWindow");
    printf("%-16s 0x%x at 0x%x\n", "SlidingWindow", size, offset);
    /* What the test has sent round is own data. */
    expect(RFM2gCheckRingCont(card), "RFM2gCheckRingCont");
    expect(RFM2gClearOwnData(card, &own_data), "RFM2gClearOwnData");
    printf("the ring is closed, own data %s\n", own_data ? "has come round" : "has not come");
}

#define REGISTER(name, set, width) \
    { rfm##name, set, width, #name }
static const struct {
    RFM2G_UINT32 offset;
    RFM2GREGSETTYPE set;
    RFM2G_UINT32 width;
    const char* name;
} registers[] = {
    REGISTER(2g_brv, RFM2GCTRLREGMEM, 1),        REGISTER(2g_bid, RFM2GCTRLREGMEM, 1),
    REGISTER(2g_build_id, RFM2GCTRLREGMEM, 2),   REGISTER(2g_nid, RFM2GCTRLREGMEM, 1),
    REGISTER(2g_lcsr, RFM2GCTRLREGMEM, 4),       REGISTER(2g_lisr, RFM2GCTRLREGMEM, 4),
    REGISTER(2g_lier, RFM2GCTRLREGMEM, 4),       REGISTER(2g_ntd, RFM2GCTRLREGMEM, 4),
    REGISTER(2g_ntn, RFM2GCTRLREGMEM, 1),        REGISTER(2g_nic, RFM2GCTRLREGMEM, 1),
    REGISTER(2g_isd1, RFM2GCTRLREGMEM, 4),       REGISTER(2g_isd2, RFM2GCTRLREGMEM, 4),
    REGISTER(2g_isd3, RFM2GCTRLREGMEM, 4),       REGISTER(2g_initd, RFM2GCTRLREGMEM, 4),
    REGISTER(or_endian_desc, RFM2GCFGREGMEM, 4), REGISTER(or_intcsr, RFM2GCFGREGMEM, 4),
    REGISTER(or_revision, RFM2GCFGREGMEM, 4),    REGISTER(or_las1rr, RFM2GCFGREGMEM, 4),
    REGISTER(or_las1ba, RFM2GCFGREGMEM, 4),
};

static void tell_registers(void) {
    for (size_t i = 0; i < sizeof registers / sizeof *registers; ++i) {
        union {
            RFM2G_UINT8 byte;
            RFM2G_UINT16 half;
            RFM2G_UINT32 word;
        } value = {0};
        expect(
            RFM2gReadReg(card, registers[i].set, registers[i].offset, registers[i].width, &value),
            registers[i].name);
        const unsigned number = registers[i].width == 1   ? value.byte
                                : registers[i].width == 2 ? value.half
                                                          : value.word;
        printf("rfm%-16s 0x%0*x\n", registers[i].name, 2 * (int)registers[i].width, number);
    }
}

static void tell_events(void) {
    static const char* const names[RFM2GEVENT_LAST] = {"RESET",
                                                       "INTR1",
                                                       "INTR2",
                                                       "INTR3",
                                                       "INTR4",
                                                       "BAD_DATA",
                                                       "RXFIFO_FULL",
                                                       "ROGUE_PKT",
                                                       "RXFIFO_AFULL",
                                                       "SYNC_LOSS",
                                                       "MEM_WRITE_INHIBITED",
                                                       "LOCAL_MEM_PARITY_ERR"};
    for (int event = 0; event < RFM2GEVENT_LAST; ++event) {
        RFM2GQINFO queue = {.Event = (RFM2G_UINT8)event};
        RFM2G_UINT32 count = 0;
        expect(RFM2gGetEventStats(card, &queue), "RFM2gGetEventStats");
        expect(RFM2gGetEventCount(card, (RFM2GEVENTTYPE)event, &count), "RFM2gGetEventCount");
        printf("event %-20s %u taken, %u of %u wait, at most %u%s\n", names[event], count,
               queue.EventsQueued, queue.QueueSize, queue.QueuePeak,
               queue.Overflowed ? ", overflowed" : "");
    }
}

static void tell(void) {
    tell_configuration();
    tell_settings();
    tell_registers();
    tell_events();
}

const struct Card card_calls = {
    .open = open_card,
    .close = close_card,
    .ways = 6,
    .write = write_block,
    .read = read_block,
    .listen = listen_for,
    .play_rounds = play_rounds,
    .speeds = {{"PIO write", write_pio, kDmaBytes},
               {"PIO read", read_pio, kDmaBytes},
               {"DMA write", write_dma, kDmaBytes},
               {"DMA read", read_dma, kDmaBytes},
               {"poke", poke, 4},
               {"peek", peek, 4}},
    .tell = tell,
};
