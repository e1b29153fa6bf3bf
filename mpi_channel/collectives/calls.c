/* SPDX-License-Identifier: Apache-2.0 */
#define _GNU_SOURCE
#include "mpi_channel/collectives/calls.h"

#include <dlfcn.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* Measured limits: docs/measurements. */
#define BCAST_MOST (64 * 1024)
#define REDUCE_MOST (4 * 1024)
#define GATHER_MOST (4 * 1024)
#define MEMBERS_MOST 16 /* of what takes a message of each to each */

/* A block of MPI_Allgather that is sent from its own place: MPICH calls it an error. */
#ifdef OPEN_MPI
enum { REFUSES_OWN_PLACE = 0 };
#else
enum { REFUSES_OWN_PLACE = 1 };
#endif

/* ---- Which of them */

enum { USE_BARRIER = 1, USE_BCAST = 2, USE_REDUCE = 4, USE_ALLREDUCE = 8, USE_ALLGATHER = 16 };

static unsigned read_settings(void) {
    static const struct {
        const char* name;
        unsigned use;
    } names[] = {{"barrier", USE_BARRIER},     {"bcast", USE_BCAST},         {"reduce", USE_REDUCE},
                 {"allreduce", USE_ALLREDUCE}, {"allgather", USE_ALLGATHER}, {"all", ~0u}};
    static const char key[] = "collectives=";
    const char* text = NULL;
    for (const char* at = getenv("RMEM_MPI"); at != NULL; at = strchr(at, ',')) {
        at += *at == ',';
        if (strncmp(at, key, sizeof key - 1) == 0) text = at + sizeof key - 1; /* the last holds */
    }
    if (text == NULL) return ~0u;
    unsigned uses = 0;
    while (*text != '\0' && *text != ',') {
        const size_t length = strcspn(text, "+,");
        for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
            if (strlen(names[i].name) == length && strncmp(text, names[i].name, length) == 0)
                uses |= names[i].use;
        }
        text += length + (text[length] == '+');
    }
    return uses;
}

static int is_used(unsigned use) {
    static unsigned uses, is_read;
    /* (1) pairs with the release-store (2): then the settings are here */
    if (!__atomic_load_n(&is_read, __ATOMIC_ACQUIRE)) {
        uses = read_settings();
        /* (2) releases the settings to the acquire-load (1); other threads write the same */
        __atomic_store_n(&is_read, 1, __ATOMIC_RELEASE);
    }
    return (uses & use) != 0;
}

/* ---- The provider */

static int find_provider(struct dl_phdr_info* info, size_t size, void* found) {
    (void)size;
    static const char name[] = "/libbbp-fi.so";
    const size_t length = strlen(info->dlpi_name);
    if (length < sizeof name - 1) return 0;
    if (strcmp(info->dlpi_name + length - (sizeof name - 1), name) != 0) return 0;
    *(void**)found = dlopen(info->dlpi_name, RTLD_NOW | RTLD_NOLOAD);
    return 1;
}

/* Of the library that libfabric has loaded; null: it has not. */
static const struct bbp_collectives* provider(void) {
    void* library = NULL;
    dl_iterate_phdr(find_provider, &library);
    if (library == NULL) return NULL;
    const struct bbp_collectives* (*get)(void) = NULL;
    *(void**)&get = dlsym(library, BBP_COLLECTIVES_SYMBOL);
    const struct bbp_collectives* calls = get == NULL ? NULL : get();
    if (calls == NULL || calls->version != BBP_COLLECTIVES_VERSION || calls->rank() < 0)
        return NULL;
    return calls;
}

/* ---- Communicators */

void bbp_comm_begin(struct bbp_comm* self, MPI_Comm comm, int size, int rank) {
    self->comm = comm;
    self->size = size;
    self->rank = rank;
    self->state = size < 2 ? BBP_NEVER : BBP_FRESH;
    self->calls = NULL;
    self->group = NULL;
    self->scratch = NULL;
    self->scratch_bytes = 0;
}

void bbp_comm_end(struct bbp_comm* self) {
    if (self->group != NULL) self->calls->close(self->group);
    free(self->scratch);
    bbp_comm_begin(self, self->comm, self->size, self->rank);
}

/* The provider, if calls may use it at all. */
static const struct bbp_collectives* usable_provider(void) {
    const struct bbp_collectives* calls = provider();
    return calls == NULL || (bbp_mpi_threads_may_meet() && !calls->is_shared()) ? NULL : calls;
}

/* The members agree on this before the group is open at all of them. Each tells its rank in the
 * ring, which need not be that in any communicator; members of different rings have no
 * group. */
static int open_group(struct bbp_comm* self) {
    enum { ID, RESERVED, CANNOT, RING, OTHER_RINGS, FIRST_MEMBER };
    const size_t count = FIRST_MEMBER + (size_t)self->size;
    unsigned long long* const values = calloc(count, sizeof *values);
    int* const members = malloc(sizeof *members * (size_t)self->size);
    if (values == NULL || members == NULL) {
        free(values);
        free(members);
        return MPI_ERR_NO_MEM;
    }
    self->calls = usable_provider();
    values[CANNOT] = self->calls == NULL;
    if (self->calls != NULL) {
        if (self->rank == 0) values[ID] = self->calls->new_id();
        values[RESERVED] = self->calls->reserved_barriers();
        values[RING] = self->calls->ring();
        values[OTHER_RINGS] = ~values[RING];
        values[FIRST_MEMBER + self->rank] = (unsigned long long)self->calls->rank();
    }
    int result = bbp_mpi_or(self, values, (int)count);
    if (result == MPI_SUCCESS && values[CANNOT] == 0 && (values[RING] & values[OTHER_RINGS]) == 0) {
        for (int i = 0; i < self->size; ++i) members[i] = (int)values[FIRST_MEMBER + i];
        /* A barrier that is free at all; another thread may take it meanwhile, which the second
         * round finds out. */
        int barrier = BBP_NO_BARRIER;
        if (~values[RESERVED] != 0) barrier = __builtin_ctzll(~values[RESERVED]);
        unsigned long long refused =
            barrier == BBP_NO_BARRIER || self->calls->reserve_barrier((unsigned)barrier) != 0;
        result = bbp_mpi_or(self, &refused, 1);
        if (result == MPI_SUCCESS) {
            self->group = self->calls->open((uint32_t)values[ID], members, self->size,
                                            refused ? BBP_NO_BARRIER : barrier);
            unsigned long long failed = self->group == NULL;
            result = bbp_mpi_or(self, &failed, 1);
            if ((failed || result != MPI_SUCCESS) && self->group != NULL) {
                self->calls->close(self->group);
                self->group = NULL;
            }
        }
    }
    free(values);
    free(members);
    self->state = self->group != NULL ? BBP_OPEN : BBP_NEVER;
    return result;
}

/* BBP_PLAIN: this communicator is none for multicasts; else 0, or an MPI error. */
static int ready(struct bbp_comm* self, unsigned use) {
    if (self->state == BBP_OPEN) return is_used(use) ? MPI_SUCCESS : BBP_PLAIN;
    if (self->state == BBP_NEVER || !is_used(use)) return BBP_PLAIN;
    const int result = open_group(self);
    if (result != MPI_SUCCESS) return result;
    return self->state == BBP_OPEN ? MPI_SUCCESS : BBP_PLAIN;
}

static char* scratch(struct bbp_comm* self, size_t bytes) {
    if (self->scratch_bytes < bytes) {
        free(self->scratch);
        self->scratch = malloc(bytes);
        self->scratch_bytes = self->scratch == NULL ? 0 : bytes;
    }
    return self->scratch;
}

/* ---- What comes in
 * ---------------------------------------------------------------------------- */

/* The usual ones without asking. False: none to send or receive with. */
static int get_type(MPI_Datatype type, struct bbp_type* its) {
    size_t size = 0;
    if (type == MPI_BYTE || type == MPI_CHAR) size = 1;
    if (type == MPI_INT) size = sizeof(int);
    if (type == MPI_DOUBLE) size = sizeof(double);
    if (type == MPI_FLOAT) size = sizeof(float);
    if (size == 0) return type != MPI_DATATYPE_NULL && bbp_mpi_type(type, its);
    *its = (struct bbp_type){size, (MPI_Aint)size, 1};
    return 1;
}

/* The MPI itself refuses what is unsound here, in its own words. */
static int is_sound(const struct bbp_comm* self, int count, int root) {
    return count >= 0 && root >= 0 && root < self->size;
}

/* Of MPI_BOTTOM, which is null, only elements of a derived type are anywhere. */
static int is_sound_buffer(const void* buffer, const struct bbp_type* its) {
    return buffer != MPI_IN_PLACE && (buffer != NULL || !its->is_plain);
}

enum { ARITHMETIC = 1, LOGICAL = 2, BITS = 4, PLACES = 8, OF_THE_PROGRAM = 16 };

static unsigned kind_of(MPI_Op op) {
    if (op == MPI_SUM || op == MPI_MIN || op == MPI_MAX || op == MPI_PROD) return ARITHMETIC;
    if (op == MPI_LAND || op == MPI_LOR || op == MPI_LXOR) return LOGICAL;
    if (op == MPI_BAND || op == MPI_BOR || op == MPI_BXOR) return BITS;
    if (op == MPI_MINLOC || op == MPI_MAXLOC) return PLACES;
    if (op == MPI_OP_NULL || op == MPI_REPLACE || op == MPI_NO_OP) return 0;
    return OF_THE_PROGRAM;
}

static unsigned kinds_for(MPI_Datatype type) {
    if (type == MPI_DOUBLE || type == MPI_FLOAT || type == MPI_LONG_DOUBLE) return ARITHMETIC;
    if (type == MPI_INT || type == MPI_UNSIGNED || type == MPI_LONG || type == MPI_UNSIGNED_LONG ||
        type == MPI_LONG_LONG || type == MPI_UNSIGNED_LONG_LONG || type == MPI_SHORT ||
        type == MPI_UNSIGNED_SHORT || type == MPI_SIGNED_CHAR || type == MPI_UNSIGNED_CHAR ||
        type == MPI_INT8_T || type == MPI_INT16_T || type == MPI_INT32_T || type == MPI_INT64_T ||
        type == MPI_UINT8_T || type == MPI_UINT16_T || type == MPI_UINT32_T || type == MPI_UINT64_T)
        return ARITHMETIC | LOGICAL | BITS;
    if (type == MPI_BYTE) return BITS;
    return type == MPI_2INT ? PLACES : 0;
}

/* Else it is the MPI's to compute it, or to say what is wrong: at all members, before anything was
 * sent. */
static int can_combine(MPI_Datatype type, MPI_Op op) {
    const unsigned kind = kind_of(op);
    return kind == OF_THE_PROGRAM ? bbp_mpi_is_op(op, type) : (kind & kinds_for(type)) != 0;
}

/* ---- Calls */

static int finish(struct bbp_comm* self, int result) {
    while (result == BBP_COLLECTIVES_AGAIN) {
        result = self->calls->go_on(self->group);
        if (result == BBP_COLLECTIVES_AGAIN) bbp_mpi_progress(self);
    }
    if (result == 0) return MPI_SUCCESS;
    return result == BBP_COLLECTIVES_OTHER_SIZE ? MPI_ERR_TRUNCATE : MPI_ERR_OTHER;
}

int bbp_barrier_call(struct bbp_comm* self) {
    const int is_ready = ready(self, USE_BARRIER);
    if (is_ready != MPI_SUCCESS) return is_ready;
    return finish(self, self->calls->barrier(self->group));
}

int bbp_bcast_call(struct bbp_comm* self, void* buffer, int count, MPI_Datatype type, int root) {
    struct bbp_type its;
    if (!is_used(USE_BCAST) || !is_sound(self, count, root) || !get_type(type, &its))
        return BBP_PLAIN;
    const size_t bytes = its.size * (size_t)count;
    if (bytes == 0 || bytes > BCAST_MOST || !is_sound_buffer(buffer, &its)) return BBP_PLAIN;
    const int is_ready = ready(self, USE_BCAST);
    if (is_ready != MPI_SUCCESS) return is_ready;
    if (its.is_plain) return finish(self, self->calls->broadcast(self->group, buffer, bytes, root));
    char* const packed = scratch(self, bytes);
    if (packed == NULL) return MPI_ERR_NO_MEM;
    int result = MPI_SUCCESS;
    if (self->rank == root) result = bbp_mpi_pack(buffer, count, type, packed, bytes);
    if (result != MPI_SUCCESS) return result;
    result = finish(self, self->calls->broadcast(self->group, packed, bytes, root));
    if (result != MPI_SUCCESS || self->rank == root) return result;
    return bbp_mpi_unpack(packed, bytes, buffer, count, type);
}

/* Of the members' vectors, one behind the other, in the order of the ranks. */
static int combine(struct bbp_comm* self, const char* all, size_t bytes, void* result, int count,
                   MPI_Datatype type, MPI_Op op) {
    memcpy(result, all + (size_t)(self->size - 1) * bytes, bytes);
    for (int i = self->size - 2; i >= 0; --i) {
        const int error = bbp_mpi_combine(all + (size_t)i * bytes, result, count, type, op);
        if (error != MPI_SUCCESS) return error;
    }
    return MPI_SUCCESS;
}

/* Of a reduction; `receives`: the result is for this rank. */
static int are_sound_vectors(const void* send, const void* receive, int receives) {
    if (!receives) return send != NULL && send != MPI_IN_PLACE;
    return send != NULL && receive != NULL && receive != MPI_IN_PLACE && send != receive;
}

/* BBP_PLAIN, or 0 and the vector's bytes. */
static int reducible(struct bbp_comm* self, unsigned use, int count, MPI_Datatype type, MPI_Op op,
                     size_t* bytes) {
    struct bbp_type its;
    if (!get_type(type, &its) || !can_combine(type, op)) return BBP_PLAIN;
    *bytes = its.size * (size_t)count;
    if (!its.is_plain || *bytes == 0 || *bytes > REDUCE_MOST) return BBP_PLAIN;
    const int is_ready = ready(self, use);
    if (is_ready != MPI_SUCCESS) return is_ready;
    return self->size > MEMBERS_MOST || *bytes > self->calls->block_most() ? BBP_PLAIN
                                                                           : MPI_SUCCESS;
}

int bbp_reduce_call(struct bbp_comm* self, const void* send, void* receive, int count,
                    MPI_Datatype type, MPI_Op op, int root) {
    size_t bytes = 0;
    if (!is_used(USE_REDUCE) || !is_sound(self, count, root)) return BBP_PLAIN;
    const int is_root = self->rank == root;
    if (!are_sound_vectors(send, receive, is_root)) return BBP_PLAIN;
    int result = reducible(self, USE_REDUCE, count, type, op, &bytes);
    if (result != MPI_SUCCESS) return result;
    char* const all = is_root ? scratch(self, bytes * (size_t)self->size) : NULL;
    if (is_root && all == NULL) return MPI_ERR_NO_MEM;
    const void* own = send == MPI_IN_PLACE ? receive : send;
    result = finish(self, self->calls->gather(self->group, own, bytes, all, root));
    if (result != MPI_SUCCESS || !is_root) return result;
    return combine(self, all, bytes, receive, count, type, op);
}

int bbp_allreduce_call(struct bbp_comm* self, const void* send, void* receive, int count,
                       MPI_Datatype type, MPI_Op op) {
    size_t bytes = 0;
    if (!is_used(USE_ALLREDUCE) || !is_sound(self, count, 0)) return BBP_PLAIN;
    if (!are_sound_vectors(send, receive, 1)) return BBP_PLAIN;
    int result = reducible(self, USE_ALLREDUCE, count, type, op, &bytes);
    if (result != MPI_SUCCESS) return result;
    char* const all = scratch(self, bytes * (size_t)self->size);
    if (all == NULL) return MPI_ERR_NO_MEM;
    const void* own = send == MPI_IN_PLACE ? receive : send;
    result = finish(self, self->calls->gather(self->group, own, bytes, all, BBP_EVERYBODY));
    if (result != MPI_SUCCESS) return result;
    return combine(self, all, bytes, receive, count, type, op);
}

/* Of a member that gives other bytes than it takes of each: a mistake of the program that no other
 * member sees. They are given what it has, and find out; the plain way would let them wait. */
static int gather_unequal(struct bbp_comm* self, const void* send, int count, MPI_Datatype type,
                          size_t bytes) {
    if (bytes > GATHER_MOST || bytes > self->calls->block_most()) bytes = 0;
    char* const packed = scratch(self, bytes * (size_t)(1 + self->size));
    if (packed == NULL && bytes != 0) return MPI_ERR_NO_MEM;
    int result = bytes == 0 ? MPI_SUCCESS : bbp_mpi_pack(send, count, type, packed, bytes);
    if (result != MPI_SUCCESS) return result;
    result = self->calls->gather(self->group, packed, bytes, packed + bytes, BBP_EVERYBODY);
    result = finish(self, result);
    return result == MPI_SUCCESS ? MPI_ERR_TRUNCATE : result;
}

int bbp_allgather_call(struct bbp_comm* self, const void* send, int send_count,
                       MPI_Datatype send_type, void* receive, int receive_count,
                       MPI_Datatype receive_type) {
    const int is_in_place = send == MPI_IN_PLACE;
    struct bbp_type to, from;
    if (!is_used(USE_ALLGATHER) || !is_sound(self, receive_count, 0) ||
        !get_type(receive_type, &to) || !is_sound_buffer(receive, &to))
        return BBP_PLAIN;
    const size_t bytes = to.size * (size_t)receive_count;
    if (bytes == 0 || bytes > GATHER_MOST) return BBP_PLAIN;
    char* const its_own = (char*)receive + (MPI_Aint)self->rank * receive_count * to.extent;
    if (is_in_place) {
        from = to;
    } else if (!is_sound(self, send_count, 0) || !get_type(send_type, &from) ||
               !is_sound_buffer(send, &from) || (send == its_own && REFUSES_OWN_PLACE)) {
        return BBP_PLAIN;
    }
    const size_t given = is_in_place ? bytes : from.size * (size_t)send_count;
    int result = ready(self, USE_ALLGATHER);
    if (result != MPI_SUCCESS) return result;
    if (self->size > MEMBERS_MOST || bytes > self->calls->block_most()) return BBP_PLAIN;
    if (given != bytes) return gather_unequal(self, send, send_count, send_type, given);
    /* The own block packed, and all of them. */
    char* const packed = scratch(self, bytes * (size_t)(1 + self->size));
    if (packed == NULL) return MPI_ERR_NO_MEM;
    const void* own = is_in_place ? its_own : send;
    if (!from.is_plain) {
        result = bbp_mpi_pack(own, is_in_place ? receive_count : send_count,
                              is_in_place ? receive_type : send_type, packed, bytes);
        if (result != MPI_SUCCESS) return result;
        own = packed;
    }
    char* const all = to.is_plain ? receive : packed + bytes;
    if (is_in_place && to.is_plain) own = memcpy(packed, own, bytes); /* `all` holds it already */
    result = finish(self, self->calls->gather(self->group, own, bytes, all, BBP_EVERYBODY));
    if (result != MPI_SUCCESS || to.is_plain) return result;
    for (int i = 0; result == MPI_SUCCESS && i < self->size; ++i) {
        result = bbp_mpi_unpack(all + (size_t)i * bytes, bytes,
                                (char*)receive + (MPI_Aint)i * receive_count * to.extent,
                                receive_count, receive_type);
    }
    return result;
}
