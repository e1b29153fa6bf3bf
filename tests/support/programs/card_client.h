/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CARD_CLIENT_H
#define CARD_CLIENT_H
/* What the client programs of all cards share: all but the calls of a card. Each is one program:
 *
 *     client integrity UNIT MEMBERS ROUNDS [SPOILT]    a game that finds each broken word
 *     client bytes UNIT MEMBERS ROUNDS                 a barrier of one byte for each
 *     client ping_pong UNIT PEER COUNT HOW             interrupts to and fro
 *     client throughput UNIT MS                        speeds, for MS milliseconds each
 *     client monitor UNIT                              what the card tells of itself
 */

#include <stdint.h>

/* Prints what is broken, and ends the program. */
void give_up(const char* format, ...) __attribute__((noreturn, format(printf, 1, 2)));
double seconds(void);
/* For loops that look at the memory: gives the processor away, and up after half a minute. */
void look_again(double since, const char* for_what, uint32_t node);

/* A way to transfer, and the most bytes that it is measured with. */
struct Speed {
    const char* name;
    void (*transfer)(uint32_t bytes);
    uint32_t most;
};

/* The card, by <interface>_client.c; it sets what stands below it. */
struct Card {
    void (*open)(const char* unit);
    void (*close)(void);
    /* Ways to move data: rounds of the game take them in turn, and then stores and loads. */
    uint32_t ways;
    void (*write)(uint32_t way, uint32_t offset, void* from, uint32_t bytes);
    void (*read)(uint32_t way, uint32_t offset, void* to, uint32_t bytes);
    /* Is ready for the peer's interrupts, in the way that the command line says (HOW). */
    void (*listen)(const char* how);
    /* Rounds from 1 on, each added: the lower node sends its number, the higher sends it back. */
    void (*play_rounds)(uint32_t count);
    struct Speed speeds[6];
    void (*tell)(void);
};
extern const struct Card card_calls;
extern volatile uint32_t* memory; /* all of it, mapped */
extern uint32_t memory_bytes, self, peer;

/* Of play_rounds: a round that took this long, and all rounds of a card whose calls wait. */
void add_round(double took);
void take_turns(uint32_t count, void (*send)(uint32_t value), void (*take)(uint32_t value));

#endif
