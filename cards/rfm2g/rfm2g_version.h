/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2G_VERSION_H
#define RFM2G_VERSION_H

/* The vendor's release whose names, values and layouts these headers have; builds look for it. What
 * the library itself is, RFM2gDllVersion says. */
#define RFM2G_PRODUCT_VERSION "R09.00"

#endif /* RFM2G_VERSION_H */
