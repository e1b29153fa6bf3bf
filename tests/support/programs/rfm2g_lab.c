// SPDX-License-Identifier: Apache-2.0

// A program as a lab has it for its RFM2g cards, by rfm2g_api.h alone, for Linux and for Windows:
//
//     rfm2g_lab transfers PATH               every width, large blocks, what is refused
//     rfm2g_lab game PATH PEER ROUNDS        blocks that must come whole, an interrupt behind each
//     rfm2g_lab mapped PATH PEER ROUNDS      the same through pointers
//     rfm2g_lab callback PATH PEER ROUNDS    interrupts to and fro between callbacks
//     rfm2g_lab lost PATH                    says "ready"; then its card goes away
//     rfm2g_lab speed PATH PEER ROUNDS       microseconds; the peer runs `callback`
//
// PEER is a node. The two of a game are at two nodes, and each has the other as its peer.

#include <rfm2g_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef _WIN32
#include <windows.h>
static double now_us(void) {
    LARGE_INTEGER ticks, per_second;
    QueryPerformanceCounter(&ticks);
    QueryPerformanceFrequency(&per_second);
    return 1e6 * (double)ticks.QuadPart / (double)per_second.QuadPart;
}
static void give_way(void) {
    Sleep(0);
}
static void sleep_a_little(void) {
    Sleep(1);
}
#else
#include <sched.h>
#include <threads.h>
#include <time.h>
static double now_us(void) {
    struct timespec now;
    timespec_get(&now, TIME_UTC);
    return 1e6 * (double)now.tv_sec + (double)now.tv_nsec / 1e3;
}
static void give_way(void) {
    sched_yield();
}
static void sleep_a_little(void) {
    const struct timespec little = {0, 1000000};
    thrd_sleep(&little, NULL);
}
#endif

enum { kWords = 1000, kAreaBytes = 65536, kPatienceMs = 60000 };

static RFM2GHANDLE card;
static RFM2G_NODE own;

static void fail_at(int line, const char* what, RFM2G_STATUS found) {
    fprintf(stderr, "line %d: %s: %s\n", line, what, RFM2gErrorMsg(found));
    exit(1);
}
#define EXPECT(call, status)                                      \
    do {                                                          \
        const RFM2G_STATUS gotten = (call);                       \
        if (gotten != (status)) fail_at(__LINE__, #call, gotten); \
    } while (0)
#define DO(call) EXPECT(call, RFM2G_SUCCESS)
#define CHECK(truth)                                                 \
    do {                                                             \
        if (!(truth)) fail_at(__LINE__, #truth, RFM2G_DRIVER_ERROR); \
    } while (0)

static RFM2G_UINT32 area_of(RFM2G_NODE node) {
    return (RFM2G_UINT32)node * kAreaBytes;
}

static void transfers(void) {
    RFM2GCONFIG config;
    RFM2G_UINT8 byte = 0;
    RFM2G_UINT16 half = 0;
    RFM2G_UINT32 word = 0, size = 0, kBlock = 300000;
    RFM2G_UINT64 two = 0;
    RFM2G_BOOL state = RFM2G_OFF;
    unsigned char* sent = malloc(kBlock);
    unsigned char* found = malloc(kBlock);
    CHECK(sent != NULL && found != NULL);
    DO(RFM2gGetConfig(card, &config));
    DO(RFM2gSize(card, &size));
    CHECK(config.MemorySize == size && config.NodeId == own && size >= 2 * kBlock);

    DO(RFM2gPoke64(card, 0x100, 0x1122334455667788ULL));
    DO(RFM2gPeek64(card, 0x100, &two));
    CHECK(two == 0x1122334455667788ULL);
    DO(RFM2gPoke8(card, 0x101, 0xAB));
    DO(RFM2gPoke16(card, 0x106, 0xCDEF));
    DO(RFM2gPeek32(card, 0x100, &word));
    CHECK(word == 0x5566AB88);
    DO(RFM2gPeek8(card, 0x107, &byte));
    CHECK(byte == 0xCD);
    DO(RFM2gPeek16(card, 0x104, &half));
    CHECK(half == 0x3344);
    DO(RFM2gPoke32(card, 0x108, 42));
    DO(RFM2gReadReg(card, RFM2GMEM, 0x108, RFM2G_LONG, &word));
    CHECK(word == 42);

    for (RFM2G_UINT32 i = 0; i < kBlock; ++i) sent[i] = (unsigned char)(i * 7 + i / 256);
    DO(RFM2gWrite(card, 0x1003, sent, kBlock));
    DO(RFM2gRead(card, 0x1003, found, kBlock));
    CHECK(memcmp(sent, found, kBlock) == 0);
    DO(RFM2gSetPIOByteSwap(card, RFM2G_ON));
    DO(RFM2gRead(card, 0x1004, found, 4));
    for (int i = 0; i < 4; ++i) CHECK(found[i] == sent[4 - i]);
    DO(RFM2gWrite(card, 0x1003, sent, kBlock));
    DO(RFM2gRead(card, 0x1003, found, kBlock));
    CHECK(memcmp(sent, found, kBlock) == 0);
    DO(RFM2gSetPIOByteSwap(card, RFM2G_OFF));

    EXPECT(RFM2gPeek32(card, 0x102, &word), RFM2G_UNALIGNED_OFFSET);
    EXPECT(RFM2gPeek32(card, size, &word), RFM2G_OUT_OF_RANGE);
    EXPECT(RFM2gWrite(card, size - 1, sent, 2), RFM2G_OUT_OF_RANGE);
    EXPECT(RFM2gSendEvent(card, own, RFM2GEVENT_INTR1, 0), RFM2G_NODE_ID_SELF);
    EXPECT(RFM2gCancelWaitForEvent(card, RFM2GEVENT_INTR1), RFM2G_EVENT_NOT_IN_USE);
    DO(RFM2gCheckRingCont(card));
    DO(RFM2gClearOwnData(card, &state));
    DO(RFM2gReadReg(card, RFM2GCTRLREGMEM, rfm2g_nid, RFM2G_BYTE, &byte));
    CHECK(byte == own);
    free(sent);
    free(found);
}

static RFM2G_UINT32 wait_for(RFM2GEVENTTYPE type, RFM2G_NODE from) {
    RFM2GEVENTINFO event;
    memset(&event, 0, sizeof event);
    event.Event = type;
    event.Timeout = kPatienceMs;
    DO(RFM2gWaitForEvent(card, &event));
    CHECK(event.NodeId == from);
    return event.ExtendedInfo;
}

// Until the other is at the same.
static void meet(RFM2G_NODE peer, RFM2G_UINT32 what) {
    RFM2G_UINT32 there = 0;
    DO(RFM2gPoke32(card, area_of(own) + kAreaBytes - 4, what));
    while (there != what) {
        DO(RFM2gPeek32(card, area_of(peer) + kAreaBytes - 4, &there));
        give_way();
    }
}

static void game(RFM2G_NODE peer, RFM2G_UINT32 rounds) {
    static RFM2G_UINT32 block[kWords];
    DO(RFM2gEnableEvent(card, RFM2GEVENT_INTR1));
    meet(peer, 1);
    for (RFM2G_UINT32 round = 1; round <= rounds; ++round) {
        for (int turn = 0; turn < 2; ++turn) {
            if ((own < peer) == (turn == 0)) {
                for (int i = 0; i < kWords; ++i) block[i] = round + (RFM2G_UINT32)i;
                DO(RFM2gWrite(card, area_of(own), block, sizeof block));
                DO(RFM2gSendEvent(card, peer, RFM2GEVENT_INTR1, round));
            } else {
                CHECK(wait_for(RFM2GEVENT_INTR1, peer) == round);
                DO(RFM2gRead(card, area_of(peer), block, sizeof block));
                for (int i = 0; i < kWords; ++i) CHECK(block[i] == round + (RFM2G_UINT32)i);
            }
        }
    }
}

static volatile RFM2G_UINT32* map_area(RFM2G_NODE node) {
    volatile void* area = NULL;
    DO(RFM2gUserMemoryBytes(card, &area, area_of(node), kAreaBytes));
    return area;
}

// Word 0 of an area has the round whose data, behind it, its owner has read; data has no order.
static void mapped(RFM2G_NODE peer, RFM2G_UINT32 rounds) {
    DO(RFM2gPoke32(card, area_of(own) + 64, 7));
    volatile RFM2G_UINT32* const mine = map_area(own);
    volatile RFM2G_UINT32* const theirs = map_area(peer);
    CHECK(mine[16] == 7);
    DO(RFM2gEnableEvent(card, RFM2GEVENT_INTR2));
    DO(RFM2gPoke32(card, area_of(own), 0));
    meet(peer, 2);
    while (theirs[0] > 1) give_way();  // an earlier game's
    for (RFM2G_UINT32 round = 1; round <= rounds; ++round) {
        for (int i = 1; i <= kWords; ++i) mine[i] = round % 2 == 1 ? round + (RFM2G_UINT32)i : 0;
        for (int i = 1; i <= kWords; ++i) {
            while (theirs[i] != (round % 2 == 1 ? round + (RFM2G_UINT32)i : 0)) give_way();
        }
        mine[0] = round;
        while (theirs[0] < round) give_way();
        // An interrupt comes after what was stored before it.
        if (own < peer) {
            mine[kWords + 1] = round;
            DO(RFM2gSendEvent(card, peer, RFM2GEVENT_INTR2, round));
        } else {
            CHECK(wait_for(RFM2GEVENT_INTR2, peer) == round);
            CHECK(theirs[kWords + 1] == round);
        }
    }
    // A call sees what was stored through the pointer before it.
    RFM2G_UINT32 word = 0;
    mine[20] = 1234;
    DO(RFM2gPeek32(card, area_of(own) + 80, &word));
    CHECK(word == 1234);
    DO(RFM2gPoke32(card, area_of(own) + 80, 5678));
    CHECK(mine[20] == 5678);
    volatile void* pointer = mine;
    DO(RFM2gUnMapUserMemoryBytes(card, &pointer, kAreaBytes));
    CHECK(pointer == NULL);
    DO(RFM2gCheckRingCont(card));
}

// The callbacks play by themselves: each answers the other, until the last round.
static RFM2G_UINT32 last_round;
static _Atomic double ended_us;

static void answer(RFM2GHANDLE handle, RFM2GEVENTINFO* event) {
    const RFM2G_UINT32 round = event->ExtendedInfo;
    if (own > event->NodeId) {
        RFM2gSendEvent(handle, event->NodeId, event->Event, round);
    } else if (round < last_round) {
        RFM2gSendEvent(handle, event->NodeId, event->Event, round + 1);
    }
    if (round == last_round) ended_us = now_us();
}

static double callback(RFM2G_NODE peer, RFM2G_UINT32 rounds) {
    last_round = rounds;
    ended_us = 0;
    DO(RFM2gEnableEventCallback(card, RFM2GEVENT_INTR3, answer));
    DO(RFM2gEnableEvent(card, RFM2GEVENT_INTR3));
    meet(peer, 3);
    const double start_us = now_us();
    if (own < peer) DO(RFM2gSendEvent(card, peer, RFM2GEVENT_INTR3, 1));
    while (ended_us == 0) sleep_a_little();
    DO(RFM2gDisableEventCallback(card, RFM2GEVENT_INTR3));
    return (ended_us - start_us) / rounds;
}

static void lost(void) {
    RFM2G_UINT32 word = 0;
    RFM2GEVENTINFO event;
    RFM2G_STATUS status = RFM2G_SUCCESS;
    volatile void* area = NULL;
    memset(&event, 0, sizeof event);
    event.Event = RFM2GEVENT_INTR1;
    event.Timeout = RFM2G_INFINITE_TIMEOUT;
    DO(RFM2gUserMemoryBytes(card, &area, 0, 4096));
    DO(RFM2gEnableEvent(card, RFM2GEVENT_SYNC_LOSS));
    printf("ready\n");
    fflush(stdout);
    EXPECT(RFM2gWaitForEvent(card, &event), RFM2G_OS_ERROR);
    EXPECT(RFM2gPeek32(card, 0, &word), RFM2G_READ_ERROR);
    EXPECT(RFM2gRead(card, 0, &word, 4), RFM2G_READ_ERROR);
    EXPECT(RFM2gPoke32(card, 0, 1), RFM2G_WRITE_ERROR);
    EXPECT(RFM2gSendEvent(card, RFM2G_NODE_ALL, RFM2GEVENT_INTR1, 1), RFM2G_DRIVER_ERROR);
    EXPECT(RFM2gCheckRingCont(card), RFM2G_LINK_TEST_FAIL);
    event.Event = RFM2GEVENT_SYNC_LOSS;
    status = RFM2gWaitForEvent(card, &event);
    CHECK(status == RFM2G_SUCCESS || status == RFM2G_OS_ERROR);
    *(volatile RFM2G_UINT32*)area = 1;  // goes nowhere
}

static void speed(RFM2G_NODE peer, RFM2G_UINT32 rounds) {
    RFM2G_UINT32 word = 0;
    double start_us = now_us();
    for (RFM2G_UINT32 i = 0; i < rounds; ++i) DO(RFM2gPeek32(card, 0, &word));
    printf("Peek32 %.2f us\n", (now_us() - start_us) / rounds);
    start_us = now_us();
    for (RFM2G_UINT32 i = 0; i < rounds; ++i) DO(RFM2gPoke32(card, 0, i));
    DO(RFM2gPeek32(card, 0, &word));
    printf("Poke32 %.2f us\n", (now_us() - start_us) / rounds);
    start_us = now_us();
    for (RFM2G_UINT32 i = 0; i < rounds; ++i) DO(RFM2gWrite(card, 0, &i, sizeof i));
    DO(RFM2gPeek32(card, 0, &word));
    printf("Write of 4 bytes %.2f us\n", (now_us() - start_us) / rounds);
    printf("SendEvent to callback, one way %.2f us\n", callback(peer, rounds) / 2);
}

int main(int argc, char** argv) {
    if (argc < 3) return 2;
    const char* const what = argv[1];
    const RFM2G_NODE peer = (RFM2G_NODE)(argc > 3 ? atoi(argv[3]) : 0);
    const RFM2G_UINT32 rounds = (RFM2G_UINT32)(argc > 4 ? atoi(argv[4]) : 1);
    const RFM2G_STATUS opened = RFM2gOpen(argv[2], &card);
    if (opened != RFM2G_SUCCESS) {
        printf("not opened: %d, %s\n", (int)opened, RFM2gErrorMsg(opened));
        return 3;
    }
    DO(RFM2gNodeID(card, &own));
    if (strcmp(what, "transfers") == 0) transfers();
    if (strcmp(what, "game") == 0) game(peer, rounds);
    if (strcmp(what, "mapped") == 0) mapped(peer, rounds);
    if (strcmp(what, "callback") == 0) callback(peer, rounds);
    if (strcmp(what, "lost") == 0) lost();
    if (strcmp(what, "speed") == 0) speed(peer, rounds);
    DO(RFM2gClose(&card));
    printf("done\n");
    return 0;
}
