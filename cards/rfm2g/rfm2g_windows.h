/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2G_WINDOWS_H
#define RFM2G_WINDOWS_H

/* A name that programs for Windows include. */

#include "rfm2g_api.h"

#endif /* RFM2G_WINDOWS_H */
