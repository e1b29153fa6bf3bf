/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CARD_CLIENT_H
#define CARD_CLIENT_H

/* What the client programs of all cards share: all but the calls of a card. */

#include <stdint.h>

/* Prints what is broken, and ends the program. */
void give_up(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));
/* A number among the program's arguments; without it the program ends and says how it is called. */
uint32_t number_at(int place, int argc, char** argv, const char* usage);
double seconds(void);
/* For loops that look at the memory: gives the processor away, and up after half a minute. */
void look_again(double since, const char* for_what, uint32_t node);

/* ---- The card, by <interface>_client.c */

/* All of the memory, mapped. */
extern volatile uint32_t* memory;
extern uint32_t memory_bytes, self;
void open_card(const char* unit);
void close_card(void);

/* ---- The integrity game: in each round every member writes a block of its own, and reads and
 * compares those of all. The first broken word ends the game for all of them. A game goes on with
 * the round that the last one on this ring has ended with. */

struct Player {
    /* Ways of this card to move data: rounds take them in turn, and then stores and loads. */
    uint32_t ways;
    void (*write)(uint32_t way, uint32_t offset, void* from, uint32_t bytes);
    void (*read)(uint32_t way, uint32_t offset, void* to, uint32_t bytes);
};
/* The game of a program `UNIT MEMBERS ROUNDS [SPOILT]`, whose members are the nodes from 0 on. In
 * round SPOILT this one changes a word behind the game's back. */
int play(int argc, char** argv, const struct Player* player);

/* ---- Round trips */

/* Both programs are there from its return on, and stay until both know it; `places` is memory for a
 * word of each node. */
void meet(volatile uint32_t* places, uint32_t peer);
void part(volatile uint32_t* places, uint32_t peer);

struct Rounds {
    uint32_t count;
    double sum, least, most;
};
void add_round(struct Rounds* rounds, double took);
void tell_rounds(const struct Rounds* rounds, const char* how);

/* ---- Speeds: a line for each size, as many transfers as there is time for, one at least. */

void tell_speeds(const char* way, void (*transfer)(uint32_t bytes), uint32_t most, uint32_t ms);

#endif
