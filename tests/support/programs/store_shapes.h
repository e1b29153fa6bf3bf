/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SHAPES_H
#define STORE_SHAPES_H

/* The corpus of instrumented_test.sh: each shape stores into a slot of its own, in one way.
 *
 *     SHAPE(name) {
 *         slot[0] = 1;
 *     }
 */

#ifdef __cplusplus
extern "C" {
#endif

enum { SLOT = 2048 };

typedef struct shape {
    const char* name;
    void (*store)(unsigned char* slot);
} shape;

/* The linker gathers all shapes of both languages. */
extern shape __start_shapes[], __stop_shapes[];
#define SHAPE(name)                                                         \
    static void name(unsigned char* slot);                                  \
    static __attribute__((section("shapes"), used, aligned(sizeof(shape)))) \
    shape shape_##name = {#name, name};                                     \
    static __attribute__((noinline)) void name(unsigned char* slot)

/* What no compiler knows: 1, and bytes that are not 0. */
extern volatile int one;
extern unsigned char bytes[256];

#ifdef __cplusplus
}
#endif

#endif
