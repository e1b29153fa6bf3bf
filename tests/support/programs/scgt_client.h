/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCGT_CLIENT_H
#define SCGT_CLIENT_H

/* What the client programs of SCRAMNet GT cards begin with. */

#include "cards/scgt/scgtapi.h"

#include "card_client.h"

#include <stddef.h>

extern scgtHandle card;

/* Ends the program with a line where a call has failed. */
void expect(uint32 result, const char* what);

#endif
