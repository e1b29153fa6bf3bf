/* SPDX-License-Identifier: Apache-2.0 */
#ifndef __SYS_TYPES_H__
#define __SYS_TYPES_H__

/* The types of scgtapi.h, under the names and of the sizes that its programs know. The vendor's
 * tools bring a file of that name, whose guard this is, too: what is read first counts. */

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

/* Of that file, and of nothing here. */
#define NULLPTR NULL
#define WARNING_DISABLE(number)

#endif /* __SYS_TYPES_H__ */
