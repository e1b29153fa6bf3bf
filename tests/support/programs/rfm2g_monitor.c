/* SPDX-License-Identifier: Apache-2.0 */
/* What an RFM2g card tells of itself: its configuration, its settings, its registers, and how many
 * events have come. */
#include "rfm2g_client.h"

#include <stdio.h>

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

int main(int argc, char** argv) {
    number_at(1, argc, argv, "UNIT");
    open_card(argv[1]);
    tell_configuration();
    tell_settings();
    tell_registers();
    tell_events();
    close_card();
    return 0;
}
