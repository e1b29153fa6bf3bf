/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCRAMNET_PLUS_CLIENT_H
#define SCRAMNET_PLUS_CLIENT_H

/* What the client programs of SCRAMNet+ cards begin and end with. */

#include "cards/scramnet_plus/scrplus.h"

#include "card_client.h"

/* Ends the program where a call was refused. */
void expect(int result, const char* what);

#endif
