/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RFM2G_TYPES_H
#define RFM2G_TYPES_H

/* The types of rfm2g_api.h, under the names and of the sizes that its programs know. */

typedef unsigned char RFM2G_UINT8;
typedef unsigned short RFM2G_UINT16;
typedef unsigned int RFM2G_UINT32;
typedef unsigned long long RFM2G_UINT64;
typedef signed char RFM2G_INT8;
typedef short RFM2G_INT16;
typedef int RFM2G_INT32;
typedef long long RFM2G_INT64;
typedef char RFM2G_CHAR;
#ifdef _WIN32
typedef unsigned long long RFM2G_ADDR; /* unsigned long holds no address there */
#else
typedef unsigned long RFM2G_ADDR;
#endif

typedef unsigned char RFM2G_BOOL;
#define RFM2G_TRUE 1
#define RFM2G_FALSE 0

typedef RFM2G_UINT16 RFM2G_NODE;

/* Bytes of one access. */
typedef enum rfm2gDataWidth {
    RFM2G_BYTE = 1,
    RFM2G_WORD = 2,
    RFM2G_LONG = 4,
    RFM2G_LONGLONG = 8
} RFM2GDATAWIDTH;

/* Windows has its own. */
#if !defined(MAX_PATH) && !defined(_WIN32)
#define MAX_PATH 128
#endif

#endif /* RFM2G_TYPES_H */
