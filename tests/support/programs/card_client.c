/* SPDX-License-Identifier: Apache-2.0 */
#define _POSIX_C_SOURCE 200809L
#include "card_client.h"

#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

volatile uint32_t* memory;
uint32_t memory_bytes, self, peer;

void give_up(const char* format, ...) {
    va_list values;
    va_start(values, format);
    vprintf(format, values);
    va_end(values);
    putchar('\n');
    exit(1);
}

/* A number among the program's arguments. */
static uint32_t number_at(int place, int argc, char** argv) {
    char* end = NULL;
    const unsigned long number = place < argc ? strtoul(argv[place], &end, 0) : 0;
    if (end == NULL || end == argv[place] || *end != '\0')
        give_up("argument %d is no number", place);
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

/* ---- The integrity game: in each round every member writes a block of its own, and reads and
 * compares those of all. The first broken word ends the game for all of them. A game goes on with
 * the round that the last one on this ring has ended with. Its members are the nodes from 0 on. */
enum { kBlockBytes = 2048, kDataAt = 64, kDataBytes = 1024, kWords = kDataBytes / 4 };
enum { kWritten, kChecked }; /* words of a block: up to which round that is so */
static const uint32_t kFoundBroken = 0xFFFFFFFF;

static volatile uint32_t* block_of(uint32_t member) {
    return memory + member * (kBlockBytes / 4);
}

static uint32_t pattern(uint32_t member, uint32_t round, uint32_t word) {
    return member << 24 | (round & 0xFFFF) << 8 | word;
}

static void check(uint32_t member, uint32_t round) {
    uint32_t words[kWords];
    const uint32_t way = round % (card_calls.ways + 1);
    if (way < card_calls.ways) {
        card_calls.read(way, member * kBlockBytes + kDataAt, words, kDataBytes);
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

/* In round `spoilt` this member changes a word behind the game's back. */
static void play(uint32_t members, uint32_t rounds, uint32_t spoilt) {
    volatile uint32_t* const own = block_of(self);
    const uint32_t last = own[kWritten] + rounds;
    uint32_t words[kWords];
    for (uint32_t round = last - rounds + 1; round <= last; ++round) {
        for (uint32_t i = 0; i < kWords; ++i) words[i] = pattern(self, round, i);
        const uint32_t way = round % (card_calls.ways + 1);
        if (way < card_calls.ways) {
            card_calls.write(way, self * kBlockBytes + kDataAt, words, kDataBytes);
        } else {
            for (uint32_t i = 0; i < kWords; ++i) own[kDataAt / 4 + i] = words[i];
        }
        check(self, round);
        if (round == spoilt) own[kDataAt / 4 + 17] ^= 0x20;
        own[kWritten] = round;
        for (uint32_t member = 0; member < members; ++member) {
            await(members, member, kWritten, round);
            if (member != self) check(member, round);
        }
        own[kChecked] = round;
        for (uint32_t member = 0; member < members; ++member)
            await(members, member, kChecked, round);
    }
    printf("member %u of %u: %u rounds, %u blocks of %u bytes, none broken\n", self, members,
           rounds, rounds * members, (unsigned)kDataBytes);
}

/* ---- A barrier of one byte of a word for each member, stored and looked at through the pointer:
 * once on a ring. Two rows in turn, since a member may be a round ahead. */
static void meet(uint32_t members, uint32_t rounds) {
    volatile uint8_t* const rows = (volatile uint8_t*)(memory + memory_bytes / 4 - 1024);
    for (uint32_t round = 1; round <= rounds; ++round) {
        volatile uint8_t* const row = rows + round % 2 * 64;
        const double since = seconds();
        row[self] = (uint8_t)round;
        for (uint32_t member = 0; member < members; ++member) {
            while (row[member] != (uint8_t)round) look_again(since, "the byte", member);
        }
    }
    printf("member %u of %u: met %u times\n", self, members, rounds);
}

/* ---- Round trips */
enum { kAway, kHere, kHasMet }; /* words of places, one of each node */
static struct {
    uint32_t count;
    double sum, least, most;
} rounds;

void add_round(double took) {
    if (rounds.count == 0 || took < rounds.least) rounds.least = took;
    if (took > rounds.most) rounds.most = took;
    rounds.sum += took;
    ++rounds.count;
}

void take_turns(uint32_t count, void (*send)(uint32_t value), void (*take)(uint32_t value)) {
    for (uint32_t value = 1; value <= count; ++value) {
        const double begin = seconds();
        if (self < peer) send(value);
        take(value);
        if (self < peer) add_round(seconds() - begin);
        if (self > peer) send(value);
    }
}

/* Both programs are there before the first round, and stay until both know of the end. */
static void ping_pong(uint32_t count, const char* how) {
    volatile uint32_t* const places = memory + memory_bytes / 4 - 256;
    card_calls.listen(how);
    double since = seconds();
    places[self] = kHere;
    while (places[peer] == kAway) look_again(since, "the beginning", peer);
    places[self] = kHasMet;
    card_calls.play_rounds(count);
    since = seconds();
    while (places[peer] == kHere) look_again(since, "the end", peer);
    places[self] = kAway;
    if (self > peer) return;
    printf("%s: %u rounds, %.1f us each, %.1f to %.1f\n", how, rounds.count,
           rounds.sum / rounds.count * 1e6, rounds.least * 1e6, rounds.most * 1e6);
}

/* ---- Speeds: a line for each size, as many transfers as there is time for, one at least. */
static void tell_speeds(const struct Speed* speed, uint32_t ms) {
    const uint32_t most = speed->most < memory_bytes ? speed->most : memory_bytes;
    for (uint32_t bytes = 4; bytes <= most; bytes *= 8) {
        const double begin = seconds();
        double took = 0, moved = 0;
        while (took * 1e3 < ms) {
            speed->transfer(bytes);
            moved += bytes;
            took = seconds() - begin;
        }
        printf("%-14s %8u bytes %10.2f us %10.1f MB/s\n", speed->name, bytes,
               took / moved * bytes * 1e6, moved / took * 1e-6);
    }
}

int main(int argc, char** argv) {
    if (argc < 3) give_up("it wants to know what to do, and with which unit");
    const char* const what = argv[1];
    card_calls.open(argv[2]);
    if (strcmp(what, "integrity") == 0) {
        play(number_at(3, argc, argv), number_at(4, argc, argv),
             argc > 5 ? number_at(5, argc, argv) : 0);
    } else if (strcmp(what, "ping_pong") == 0 && argc == 6) {
        peer = number_at(3, argc, argv);
        ping_pong(number_at(4, argc, argv), argv[5]);
    } else if (strcmp(what, "bytes") == 0) {
        meet(number_at(3, argc, argv), number_at(4, argc, argv));
    } else if (strcmp(what, "throughput") == 0) {
        const uint32_t ms = number_at(3, argc, argv);
        for (int i = 0; i < 6 && card_calls.speeds[i].name != NULL; ++i)
            tell_speeds(&card_calls.speeds[i], ms);
    } else if (strcmp(what, "monitor") == 0) {
        card_calls.tell();
    } else {
        give_up("there is no %s, or not with %d arguments", what, argc - 1);
    }
    card_calls.close();
    return 0;
}
