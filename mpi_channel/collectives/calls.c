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

/* ---- Which of them --------------------------------------------------------------------------- */

enum { USE_BARRIER = 1, USE_BCAST = 2, USE_REDUCE = 4, USE_ALLREDUCE = 8, USE_ALLGATHER = 16 };

static unsigned read_settings(void) {
    static const struct {
        const char* name;
        unsigned use;
    } names[] = {{"barrier", USE_BARRIER},     {"bcast", USE_BCAST},         {"reduce", USE_REDUCE},
                 {"allreduce", USE_ALLREDUCE}, {"allgather", USE_ALLGATHER}, {"all", ~0u}};
    const char* text = getenv("RMEM_MPI_COLLECTIVES");
    if (text == NULL || *text == '\0') return ~0u;
    unsigned uses = 0;
    while (*text != '\0') {
        const size_t length = strcspn(text, ",");
        for (size_t i = 0; i < sizeof names / sizeof names[0]; ++i) {
            if (strlen(names[i].name) == length && strncmp(text, names[i].name, length) == 0)
                uses |= names[i].use;
        }
        text += length + (text[length] == ',');
    }
    return uses;
}

static int is_used(unsigned use) {
    static unsigned uses, is_read;
    if (!__atomic_load_n(&is_read, __ATOMIC_ACQUIRE)) { /* (C1) pairs with (C2) */
        uses = read_settings();
        __atomic_store_n(&is_read, 1,
                         __ATOMIC_RELEASE); /* (C2) pairs with (C1); others write the same */
    }
    return (uses & use) != 0;
}

/* ---- The provider ---------------------------------------------------------------------------- */

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

/* ---- Communicators --------------------------------------------------------------------------- */

void bbp_comm_begin(struct bbp_comm* self, MPI_Comm comm) {
    self->comm = comm;
    self->state = BBP_FRESH;
    self->calls = NULL;
    self->group = NULL;
    self->scratch = NULL;
    self->scratch_bytes = 0;
}

void bbp_comm_end(struct bbp_comm* self) {
    if (self->group != NULL) self->calls->close(self->group);
    free(self->scratch);
    bbp_comm_begin(self, self->comm);
}

/* The members' ranks in the ring, which are those in MPI_COMM_WORLD; null: one is of another world. */
static int* ring_ranks(MPI_Comm comm, int size) {
    MPI_Group world, group;
    int* own = malloc(2 * sizeof(int) * (size_t)size);
    if (own == NULL) return NULL;
    int* ranks = own + size;
    for (int i = 0; i < size; ++i) own[i] = i;
    PMPI_Comm_group(MPI_COMM_WORLD, &world);
    PMPI_Comm_group(comm, &group);
    PMPI_Group_translate_ranks(group, size, own, world, ranks);
    PMPI_Group_free(&group);
    PMPI_Group_free(&world);
    int is_whole = 1;
    for (int i = 0; i < size; ++i) is_whole &= ranks[i] != MPI_UNDEFINED;
    memcpy(own, ranks, sizeof(int) * (size_t)size);
    if (is_whole) return own;
    free(own);
    return NULL;
}

/* What the members have to agree upon before the group is open at all of them. */
static int open_group(struct bbp_comm* self) {
    enum { ID, RESERVED, CANNOT, FIRST_VALUES };
    int threads = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&threads);
    self->calls = provider();
    if (self->calls != NULL && threads == MPI_THREAD_MULTIPLE && !self->calls->is_shared())
        self->calls = NULL;
    int* members = ring_ranks(self->comm, self->size);
    int can = self->calls != NULL && members != NULL && members[self->rank] == self->calls->rank();
    unsigned long long values[FIRST_VALUES] = {0};
    if (can && self->rank == 0) values[ID] = self->calls->new_id();
    values[RESERVED] = can ? self->calls->reserved_barriers() : 0;
    values[CANNOT] = !can;
    int result = self->plain_or(self, values, FIRST_VALUES);
    if (result == MPI_SUCCESS && values[CANNOT] == 0) {
        /* A barrier that is free at all; another thread may take it meanwhile, which the second round finds out. */
        int barrier = BBP_NO_BARRIER;
        if (~values[RESERVED] != 0) barrier = __builtin_ctzll(~values[RESERVED]);
        unsigned long long refused =
            barrier == BBP_NO_BARRIER || self->calls->reserve_barrier((unsigned)barrier) != 0;
        result = self->plain_or(self, &refused, 1);
        if (result == MPI_SUCCESS) {
            self->group = self->calls->open((uint32_t)values[ID], members, self->size,
                                            refused ? BBP_NO_BARRIER : barrier);
            unsigned long long failed = self->group == NULL;
            result = self->plain_or(self, &failed, 1);
            if (failed && self->group != NULL) {
                self->calls->close(self->group);
                self->group = NULL;
            }
        }
    }
    free(members);
    self->state = self->group != NULL ? BBP_OPEN : BBP_NEVER;
    return result;
}

/* BBP_PLAIN: this communicator is none for multicasts; else 0, or an MPI error. */
static int ready(struct bbp_comm* self, unsigned use) {
    if (self->state == BBP_OPEN) return is_used(use) ? MPI_SUCCESS : BBP_PLAIN;
    if (self->state == BBP_NEVER || !is_used(use)) return BBP_PLAIN;
    int is_inter = 0;
    PMPI_Comm_test_inter(self->comm, &is_inter);
    PMPI_Comm_size(self->comm, &self->size);
    PMPI_Comm_rank(self->comm, &self->rank);
    if (is_inter || self->size < 2) {
        self->state = BBP_NEVER;
        return BBP_PLAIN;
    }
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

/* ---- Datatypes ------------------------------------------------------------------------------- */

struct type {
    size_t size;
    int is_plain; /* its elements lie in memory as they are sent */
};

static struct type type_of(MPI_Datatype type) {
    if (type == MPI_BYTE || type == MPI_CHAR) return (struct type){1, 1};
    if (type == MPI_INT) return (struct type){sizeof(int), 1};
    if (type == MPI_DOUBLE) return (struct type){sizeof(double), 1};
    if (type == MPI_FLOAT) return (struct type){sizeof(float), 1};
    int size = 0, integers, addresses, types, combiner;
    MPI_Aint low, extent, true_low, true_extent;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    PMPI_Type_get_extent(type, &low, &extent);
    PMPI_Type_get_true_extent(type, &true_low, &true_extent);
    struct type result = {size < 0 ? 0 : (size_t)size, 0};
    result.is_plain = combiner == MPI_COMBINER_NAMED && low == 0 && true_low == 0 &&
                      extent == size && true_extent == size;
    return result;
}

/* MPICH packs nothing from MPI_BOTTOM, which is a null pointer: so the same elements as seen from another place. */
static int seen_from(const void* place, int count, MPI_Datatype type, MPI_Datatype* moved) {
    const MPI_Aint shift = 0 - (MPI_Aint)place;
    const int result = PMPI_Type_create_hindexed(1, &count, &shift, type, moved);
    return result != MPI_SUCCESS ? result : PMPI_Type_commit(moved);
}

static int pack(struct bbp_comm* self, const void* from, int count, MPI_Datatype type, char* to,
                size_t bytes) {
    int position = 0;
    if (from == NULL) {
        MPI_Datatype moved;
        int result = seen_from(to, count, type, &moved);
        if (result != MPI_SUCCESS) return result;
        result = pack(self, to, 1, moved, to, bytes);
        PMPI_Type_free(&moved);
        return result;
    }
    const int result = PMPI_Pack(from, count, type, to, (int)bytes, &position, self->comm);
    if (result != MPI_SUCCESS) return result;
    return (size_t)position == bytes ? MPI_SUCCESS : MPI_ERR_INTERN;
}

static int unpack(struct bbp_comm* self, char* from, size_t bytes, void* to, int count,
                  MPI_Datatype type) {
    int position = 0;
    if (to == NULL) {
        MPI_Datatype moved;
        int result = seen_from(from, count, type, &moved);
        if (result != MPI_SUCCESS) return result;
        result = unpack(self, from, bytes, from, 1, moved);
        PMPI_Type_free(&moved);
        return result;
    }
    return PMPI_Unpack(from, (int)bytes, &position, to, count, type, self->comm);
}

/* What these find unsound it is the MPI's to refuse, in its own words. */
static int is_sound(struct bbp_comm* self, int count, MPI_Datatype type, int root) {
    if (count < 0 || type == MPI_DATATYPE_NULL || root < 0) return 0;
    if (self->state == BBP_FRESH) {
        PMPI_Comm_size(self->comm, &self->size);
        PMPI_Comm_rank(self->comm, &self->rank);
    }
    return root < self->size;
}

static int is_sound_buffer(const void* buffer, MPI_Datatype type, struct type its) {
    if (buffer == MPI_IN_PLACE) return 0;
    return its.is_plain ? buffer != NULL : bbp_is_committed(type);
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

/* Else it is the MPI's to compute it, or to say what is wrong: at all members, before anything was sent. */
static int can_combine(MPI_Datatype type, MPI_Op op) {
    const unsigned kind = kind_of(op);
    return kind == OF_THE_PROGRAM || (kind & kinds_for(type)) != 0;
}

/* ---- Calls ----------------------------------------------------------------------------------- */

static int finish(struct bbp_comm* self, int result) {
    while (result == BBP_COLLECTIVES_AGAIN) {
        result = self->calls->go_on(self->group);
        if (result == BBP_COLLECTIVES_AGAIN) bbp_mpi_progress();
    }
    return result == 0 ? MPI_SUCCESS : MPI_ERR_OTHER;
}

int bbp_barrier_call(struct bbp_comm* self) {
    const int is_ready = ready(self, USE_BARRIER);
    if (is_ready != MPI_SUCCESS) return is_ready;
    return finish(self, self->calls->barrier(self->group));
}

int bbp_bcast_call(struct bbp_comm* self, void* buffer, int count, MPI_Datatype type, int root) {
    if (!is_used(USE_BCAST) || !is_sound(self, count, type, root)) return BBP_PLAIN;
    const struct type its = type_of(type);
    const size_t bytes = its.size * (size_t)count;
    if (bytes == 0 || bytes > BCAST_MOST || !is_sound_buffer(buffer, type, its)) return BBP_PLAIN;
    const int is_ready = ready(self, USE_BCAST);
    if (is_ready != MPI_SUCCESS) return is_ready;
    if (its.is_plain) return finish(self, self->calls->broadcast(self->group, buffer, bytes, root));
    char* const packed = scratch(self, bytes);
    if (packed == NULL) return MPI_ERR_NO_MEM;
    int result = MPI_SUCCESS;
    if (self->rank == root) result = pack(self, buffer, count, type, packed, bytes);
    if (result != MPI_SUCCESS) return result;
    result = finish(self, self->calls->broadcast(self->group, packed, bytes, root));
    if (result != MPI_SUCCESS || self->rank == root) return result;
    return unpack(self, packed, bytes, buffer, count, type);
}

/* Of the members' vectors, one behind the other, in the order of the ranks. */
static int combine(struct bbp_comm* self, const char* all, size_t bytes, void* result, int count,
                   MPI_Datatype type, MPI_Op op) {
    memcpy(result, all + (size_t)(self->size - 1) * bytes, bytes);
    for (int i = self->size - 2; i >= 0; --i) {
        const int error =
            PMPI_Reduce_local((void*)(all + (size_t)i * bytes), result, count, type, op);
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
    if (!can_combine(type, op)) return BBP_PLAIN;
    const struct type its = type_of(type);
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
    if (!is_used(USE_REDUCE) || !is_sound(self, count, type, root)) return BBP_PLAIN;
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
    if (!is_used(USE_ALLREDUCE) || !is_sound(self, count, type, 0)) return BBP_PLAIN;
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

int bbp_allgather_call(struct bbp_comm* self, const void* send, int send_count,
                       MPI_Datatype send_type, void* receive, int receive_count,
                       MPI_Datatype receive_type) {
    if (!is_used(USE_ALLGATHER) || !is_sound(self, receive_count, receive_type, 0))
        return BBP_PLAIN;
    if (send != MPI_IN_PLACE && !is_sound(self, send_count, send_type, 0)) return BBP_PLAIN;
    const struct type to = type_of(receive_type);
    const size_t bytes = to.size * (size_t)receive_count;
    if (bytes == 0 || bytes > GATHER_MOST) return BBP_PLAIN;
    MPI_Aint low = 0, extent = (MPI_Aint)to.size;
    if (!to.is_plain) PMPI_Type_get_extent(receive_type, &low, &extent);
    const int is_in_place = send == MPI_IN_PLACE;
    char* const its_own = (char*)receive + (MPI_Aint)self->rank * receive_count * extent;
    const struct type from = is_in_place ? to : type_of(send_type);
    if (!is_sound_buffer(receive, receive_type, to)) return BBP_PLAIN;
    if (!is_in_place && (from.size * (size_t)send_count != bytes || send == its_own ||
                         !is_sound_buffer(send, send_type, from)))
        return BBP_PLAIN;
    int result = ready(self, USE_ALLGATHER);
    if (result != MPI_SUCCESS) return result;
    if (self->size > MEMBERS_MOST || bytes > self->calls->block_most()) return BBP_PLAIN;
    /* The own block packed, and all of them. */
    char* const packed = scratch(self, bytes * (size_t)(1 + self->size));
    if (packed == NULL) return MPI_ERR_NO_MEM;
    const void* own = is_in_place ? its_own : send;
    if (!from.is_plain) {
        result = pack(self, own, is_in_place ? receive_count : send_count,
                      is_in_place ? receive_type : send_type, packed, bytes);
        if (result != MPI_SUCCESS) return result;
        own = packed;
    }
    char* const all = to.is_plain ? receive : packed + bytes;
    if (is_in_place && to.is_plain) own = memcpy(packed, own, bytes); /* `all` holds it already */
    result = finish(self, self->calls->gather(self->group, own, bytes, all, BBP_EVERYBODY));
    if (result != MPI_SUCCESS || to.is_plain) return result;
    for (int i = 0; result == MPI_SUCCESS && i < self->size; ++i) {
        result = unpack(self, all + (size_t)i * bytes, bytes,
                        (char*)receive + (MPI_Aint)i * receive_count * extent, receive_count,
                        receive_type);
    }
    return result;
}
