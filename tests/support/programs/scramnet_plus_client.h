/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCRAMNET_PLUS_CLIENT_H
#define SCRAMNET_PLUS_CLIENT_H

/* What the client programs of SCRAMNet+ cards begin and end with. */

#include "cards/scramnet_plus/scrplus.h"

#include "card_client.h"

extern SCR_LONG_PTR memory;
extern unsigned char self;

/* Ends the program where a call was refused. */
void expect(int result, const char* what);
void open_card(int unit);
void close_card(void);

#endif
