/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "card_client.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

void give_up(const char* format, ...) {
    va_list values;
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    exit(1);
}

uint32_t number_at(int place, int argc, char** argv, const char* usage) {
    char* end = NULL;
    const unsigned long number = place < argc ? strtoul(argv[place], &end, 0) : 0;
    if (end == NULL || end == argv[place] || *end != '\0') {
        printf("usage: %s %s\n", argv[0], usage);
        exit(2);
    }
    return (uint32_t)number;
}

double seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void look_again(double since, const char* for_what, uint32_t node) {
    if (seconds() - since > 30) give_up("%s of node %u has not come for 30 s", for_what, node);
    sched_yield();
}

/* ---- The integrity game */

enum { kBlockBytes = 2048, kDataAt = 64, kDataBytes = 1024, kWords = kDataBytes / 4 };
enum { kWritten, kChecked }; /* words of a block: up to which round that is so */
static const uint32_t kFoundBroken = 0xFFFFFFFF;

static volatile uint32_t* block_of(uint32_t member) {
    return memory + member * (kBlockBytes / 4);
}

static uint32_t pattern(uint32_t member, uint32_t round, uint32_t word) {
    return member << 24 | (round & 0xFFFF) << 8 | word;
}

static void check(const struct Player* player, uint32_t member, uint32_t round) {
    uint32_t words[kWords];
    const uint32_t way = round % (player->ways + 1);
    if (way < player->ways) {
        player->read(way, member * kBlockBytes + kDataAt, words, kDataBytes);
    } else {
        for (uint32_t i = 0; i < kWords; ++i) words[i] = block_of(member)[kDataAt / 4 + i];
    }
    for (uint32_t i = 0; i < kWords; ++i) {
        if (words[i] == pattern(member, round, i)) continue;
        block_of(self)[kChecked] = kFoundBroken;
        give_up("round %u: word %u of member %u is 0x%08x in place of 0x%08x", round, i, member,
                words[i], pattern(member, round, i));
    }
}

static void await(uint32_t members, uint32_t member, int what, uint32_t round) {
    const double since = seconds();
    volatile uint32_t* const block = block_of(member);
    while (block[what] != round) {
        for (uint32_t each = 0; each < members; ++each) {
            if (block_of(each)[kChecked] == kFoundBroken)
                give_up("member %u has found a broken word", each);
        }
        look_again(since, what == kWritten ? "the block" : "the check", member);
    }
}

int play(int argc, char** argv, const struct Player* player) {
    static const char usage[] = "UNIT MEMBERS ROUNDS [SPOILT]";
    const uint32_t members = number_at(2, argc, argv, usage);
    const uint32_t rounds = number_at(3, argc, argv, usage);
    const uint32_t spoilt = argc > 4 ? number_at(4, argc, argv, usage) : 0;
    open_card(argv[1]);
    volatile uint32_t* const own = block_of(self);
    const uint32_t last = own[kWritten] + rounds;
    uint32_t words[kWords];
    for (uint32_t round = last - rounds + 1; round <= last; ++round) {
        for (uint32_t i = 0; i < kWords; ++i) words[i] = pattern(self, round, i);
        const uint32_t way = round % (player->ways + 1);
        if (way < player->ways) {
            player->write(way, self * kBlockBytes + kDataAt, words, kDataBytes);
        } else {
            for (uint32_t i = 0; i < kWords; ++i) own[kDataAt / 4 + i] = words[i];
        }
        check(player, self, round);
        if (round == spoilt) own[kDataAt / 4 + 17] ^= 0x20;
        own[kWritten] = round;
        for (uint32_t member = 0; member < members; ++member) {
            await(members, member, kWritten, round);
            if (member != self) check(player, member, round);
        }
        own[kChecked] = round;
        for (uint32_t member = 0; member < members; ++member)
            await(members, member, kChecked, round);
    }
    printf("member %u of %u: %u rounds, %u blocks of %u bytes, none broken\n", self, members,
           rounds, rounds * members, (unsigned)kDataBytes);
    close_card();
    return 0;
}

/* ---- Round trips */

enum { kAway, kHere, kHasMet }; /* words of places */

void meet(volatile uint32_t* places, uint32_t peer) {
    const double since = seconds();
    places[self] = kHere;
    while (places[peer] == kAway) look_again(since, "the beginning", peer);
    places[self] = kHasMet;
}

void part(volatile uint32_t* places, uint32_t peer) {
    const double since = seconds();
    while (places[peer] == kHere) look_again(since, "the end", peer);
    places[self] = kAway;
}

void add_round(struct Rounds* rounds, double took) {
    if (rounds->count == 0 || took < rounds->least) rounds->least = took;
    if (took > rounds->most) rounds->most = took;
    rounds->sum += took;
    ++rounds->count;
}

void tell_rounds(const struct Rounds* rounds, const char* how) {
    printf("%s: %u rounds, %.1f us each, %.1f to %.1f\n", how, rounds->count,
           rounds->sum / rounds->count * 1e6, rounds->least * 1e6, rounds->most * 1e6);
}

/* ---- Speeds */

void tell_speeds(const char* way, void (*transfer)(uint32_t bytes), uint32_t most, uint32_t ms) {
    for (uint32_t bytes = 4; bytes <= most; bytes *= 8) {
        const double begin = seconds();
        double took = 0, moved = 0;
        while (took * 1e3 < ms) {
            transfer(bytes);
            moved += bytes;
            took = seconds() - begin;
        }
        printf("%-14s %8u bytes %10.2f us %10.1f MB/s\n", way, bytes, took / moved * bytes * 1e6,
               moved / took * 1e-6);
    }
}
