/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RMEM_STORES_INSTRUMENTATION_H
#define RMEM_STORES_INSTRUMENTATION_H

/*
 * Between the hooks that rmem-cc links into a program (rmem/instrumented/) and the library.
 *
 * A compiler's hook comes before its store: it notes the store as pending, and the next hook of the
 * thread publishes it. (The next but one, if the next is before a load: where GCC copies a
 * structure, both hooks come before both accesses.) So of each thread at most the newest store is
 * pending; all earlier ones are on their way.
 * Thread safety: a pending store is its thread's; others look at it. Errors: none.
 */

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#ifndef RMEM_API
#if defined(__GNUC__)
#define RMEM_API __attribute__((visibility("default")))
#else
#define RMEM_API
#endif
#endif

/* The newest store of a thread into a captured view; bytes 0: it is published. */
typedef struct rmem_pending_store {
    volatile uintptr_t address;
    volatile uintptr_t bytes;
    volatile uintptr_t stores;    /* how many there were                                */
    volatile uintptr_t is_passed; /* a hook before a load has come since: the next one publishes */
} rmem_pending_store;

/* What the hooks of a program look at, and what they have. All views lie in [begin, begin + bytes);
 * not all of that is a view. */
typedef struct rmem_instrumentation {
    volatile uintptr_t begin;
    volatile uintptr_t bytes;
    rmem_pending_store* (*pending_of_thread)(void);
} rmem_instrumentation;

/* The program has hooks; a library that is linked as it is has its own, while it is loaded. */
RMEM_API void rmem_instrumentation_begins(rmem_instrumentation* hooks);
RMEM_API void rmem_instrumentation_ends(rmem_instrumentation* hooks);

/* A thread that has stored into the range, and that ends: its pending store is published then. */
RMEM_API void rmem_instrumented_thread_begins(rmem_pending_store* pending);
RMEM_API void rmem_instrumented_thread_ends(rmem_pending_store* pending);

/* These bytes, if they are of a view, were stored there. */
RMEM_API void rmem_publish_store(uintptr_t address, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif /* RMEM_STORES_INSTRUMENTATION_H */
