/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2G_DEFS_LINUX_H
#define RFM2G_DEFS_LINUX_H

/* For programs that include the vendor's file of this name: what a program has of it is in
 * rfm2g_osspec.h. The driver's ioctls are none of it. */
#include "rfm2g_osspec.h"

#endif /* RFM2G_DEFS_LINUX_H */
