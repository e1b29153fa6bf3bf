/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMEM_MAPS_H
#define RMEM_MAPS_H

/*
 * The variables of a node's memory in C, by their names and types.
 *
 *     rmem_f64 altitude;
 *     if (rmem_find_f64(node, "aircraft/altitude", &altitude) < 0) { puts(rmem_last_error()); … }
 *     rmem_store_f64(altitude, 1000.0);          // appears in every other bank
 *     double now = rmem_load_f64(altitude);      // a load from the own bank
 *
 * Map           The ring's (`rmem run --map rig.toml`), or that of RMEM_MAP, which a ring gets that
 *               has none; another one than the ring's is refused.
 * Types         A name is looked up once, and its type compared: what is f64 in the map is no f32.
 *               From then on an access is rmem_write or rmem_read with the offset that was found.
 *               Scales and units are for people: what is loaded and stored is what lies in the
 *               memory.
 * Handles       Values, to be copied; good while the node is open.
 * Threads       Finding: any. Accesses: as rmem.h says of rmem_load and rmem_write.
 * Results       As in rmem/rmem.h: RMEM_EINVAL for a name that is not there (the sentence has the
 *               nearest), a wrong type, another map, or none.
 * C++           maps/names.hpp: rmem::Variable<double> altitude(node, "aircraft/altitude").
 */

#include "rmem/rmem.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

/* rmem_find_f64(node, "name", &handle), rmem_store_f64(handle, value), rmem_load_f64(handle); and
 * so for bool, u8, i8, u16, i16, u32, i32, f32, u64, i64 and f64. */
#define RMEM_VARIABLE(name, type)                                                         \
    typedef struct rmem_##name {                                                          \
        rmem_node* node;                                                                  \
        size_t offset;                                                                    \
    } rmem_##name;                                                                        \
    RMEM_API int rmem_find_##name(rmem_node* node, const char* path, rmem_##name* place); \
    static inline int rmem_store_##name(rmem_##name to, type value) {                     \
        if (sizeof value != sizeof(uint32_t))                                             \
            return rmem_write(to.node, to.offset, &value, sizeof value);                  \
        uint32_t word = 0;                                                                \
        memcpy(&word, &value, sizeof value);                                              \
        return rmem_write_word(to.node, to.offset, word);                                 \
    }                                                                                     \
    static inline type rmem_load_##name(rmem_##name from) {                               \
        type value = 0;                                                                   \
        if (sizeof value != sizeof(uint32_t)) {                                           \
            (void)rmem_read(from.node, from.offset, &value, sizeof value);                \
            return value;                                                                 \
        }                                                                                 \
        uint32_t word = rmem_load(from.node, from.offset);                                \
        memcpy(&value, &word, sizeof value);                                              \
        return value;                                                                     \
    }

RMEM_VARIABLE(u8, uint8_t)
RMEM_VARIABLE(i8, int8_t)
RMEM_VARIABLE(u16, uint16_t)
RMEM_VARIABLE(i16, int16_t)
RMEM_VARIABLE(u32, uint32_t)
RMEM_VARIABLE(i32, int32_t)
RMEM_VARIABLE(f32, float)
RMEM_VARIABLE(u64, uint64_t)
RMEM_VARIABLE(i64, int64_t)
RMEM_VARIABLE(f64, double)

typedef rmem_u8 rmem_bool; /* a byte, of which others may have stored any value */
RMEM_API int rmem_find_bool(rmem_node* node, const char* path, rmem_bool* place);
static inline int rmem_store_bool(rmem_bool to, bool value) {
    return rmem_store_u8(to, value);
}
static inline bool rmem_load_bool(rmem_bool from) {
    return rmem_load_u8(from) != 0;
}

/* A variable of any type as bytes: arrays, texts, structures, the other byte order. `bytes` must be
 * what it has. */
typedef struct rmem_block {
    rmem_node* node;
    size_t offset, bytes;
} rmem_block;
RMEM_API int rmem_find_block(rmem_node* node, const char* path, size_t bytes, rmem_block* place);
static inline int rmem_store_block(rmem_block to, const void* from) {
    return rmem_write(to.node, to.offset, from, to.bytes);
}
static inline int rmem_load_block(rmem_block from, void* to) {
    return rmem_read(from.node, from.offset, to, from.bytes);
}

/* Bits of a number ("aircraft/status.ready"). To store them is to load their word and to write it,
 * so all bits of a number have one writer. */
typedef struct rmem_bits {
    rmem_node* node;
    size_t word;
    uint32_t mask;
    unsigned shift, part;
} rmem_bits;
RMEM_API int rmem_find_bits(rmem_node* node, const char* path, rmem_bits* place);
static inline int rmem_store_bits(rmem_bits to, uint32_t value) {
    uint32_t others = rmem_load(to.node, to.word) & ~to.mask;
    return rmem_write_part(to.node, to.word, others | (value << to.shift & to.mask), to.part);
}
static inline uint32_t rmem_load_bits(rmem_bits from) {
    return (rmem_load(from.node, from.word) & from.mask) >> from.shift;
}

/* What the map says of a name: for rmem_watch, rmem_wait_change and rmem_publish, and for programs
 * that take any variable. */
typedef struct rmem_place {
    uint64_t offset, bytes;
    uint32_t count; /* of an array's elements, a text's bytes; else 1 */
    char type[64];  /* as in the map: "f64", "u16[8]", a structure's name */
    char unit[32];  /* "": none is said                                   */
    char owner[32]; /* "node 2", "rank 5" or "nobody"                     */
} rmem_place;
RMEM_API int rmem_find(rmem_node* node, const char* path, rmem_place* place);

/* Whether the map is the one that a program was made for: the hash is in the header that `rmem map
 * header` writes. */
RMEM_API int rmem_expect_map(rmem_node* node, uint64_t hash);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_MAPS_H */
