/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SHAPES_H
#define STORE_SHAPES_H

/* The corpus of instrumented_test.sh: each shape stores into a slot of its own, in one way. */

#ifdef __cplusplus
extern "C" {
#endif

enum { SLOT = 2048 };

typedef struct shape {
    const char* name;
    void (*store)(unsigned char* slot);
} shape;

extern const shape shapes_in_c[], shapes_in_cpp[]; /* a null at the end */

/* What no compiler knows: 1, and bytes that are not 0. */
extern volatile int one;
extern unsigned char bytes[256];

#ifdef __cplusplus
}
#endif

#endif
