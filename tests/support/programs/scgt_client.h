/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCGT_CLIENT_H
#define SCGT_CLIENT_H

/* What programs of two SCRAMNet GT cards begin with: `program UNIT PEER COUNT`, where PEER is the
 * other's node. */

#include "cards/scgt/scgtapi.h"

extern scgtHandle card;
extern uint32 self, peer, count;
extern scgtIntrHandle reader;

/* Ends the program with a line where a call has failed. */
void expect(uint32 result, const char* what);
/* Opens the card, and waits until both programs are there for interrupts. */
void begin(int argc, char** argv);

#endif
