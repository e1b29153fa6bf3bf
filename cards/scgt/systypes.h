/* SPDX-License-Identifier: Apache-2.0 */
#ifndef SCGT_SYSTYPES_H
#define SCGT_SYSTYPES_H

/* The types of scgtapi.h, under the names and of the sizes that its programs know. */

typedef long long int64;
typedef unsigned long long uint64;
typedef int int32;
typedef unsigned int uint32;
typedef short int16;
typedef unsigned short uint16;
typedef char int8;
typedef unsigned char uint8;
typedef unsigned long uintpsize; /* as large as a pointer */

#define PTR_TO_UINT64(ptr) ((uint64)((uintpsize)(ptr)))
#define UINT64_TO_PTR(ptr_type, val64) ((ptr_type*)((uintpsize)(val64)))

#endif /* SCGT_SYSTYPES_H */
