/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2GDLL_STDC_H
#define RFM2GDLL_STDC_H

/* A name that programs for Windows include. */

#include "rfm2g_api.h"

#endif /* RFM2GDLL_STDC_H */
