/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The shim for MPICH: preloaded (mpirun-bbp-mpich does so), it has the collective calls under their
 * own names, and what it does not do itself goes to MPICH by MPI's profiling interface.
 *
 * Of its own it has, from the program's first MPI_Init or MPI_Session_init to its last MPI_Finalize
 * or MPI_Session_finalize: a communicator of this rank alone, whose errors are returned; an
 * attribute, by whose end it learns of a communicator's; and a table of the communicators that have
 * called. They are made before the program has anything that it could free: a handle that is stale
 * would otherwise be that of one of them.
 */
#define _GNU_SOURCE
#include "mpi_channel/collectives/calls.h"

#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct known {
    struct bbp_comm comm; /* the first: one is found by the other */
    int is_told;          /* MPICH has told the error that is on its way */
};

static pthread_mutex_t mutex =
    PTHREAD_MUTEX_INITIALIZER; /* of all that follows but reading the table */
static int open_sessions = 0;  /* beginnings less endings */
static enum { NOT_YET, BEGUN, ENDED } state = NOT_YET;
static int keyval = MPI_KEYVAL_INVALID;
static MPI_Comm quiet = MPI_COMM_NULL;
static MPI_Session own_session = MPI_SESSION_NULL; /* that of `quiet`, without MPI_Init */

/* ---- The table */

/* MPICH has at most 2048 communicators at a time, and gives their handles, which are numbers,
 * again. */
enum { SLOTS = 8192, NEVER_USED = 0, REMOVED = -1 };

static struct {
    int handle;
    struct known* its;
} slots[SLOTS];

static unsigned next_slot(unsigned slot) {
    return (slot + 1) % SLOTS;
}

static unsigned first_slot(MPI_Comm comm) {
    return (unsigned)comm * 2654435761u % SLOTS;
}

/* Only who may use the handle reads what belongs to it, so it is not removed meanwhile. */
static struct known* find(MPI_Comm comm) {
    for (unsigned slot = first_slot(comm), i = 0; i < SLOTS; ++i, slot = next_slot(slot)) {
        /* (1) pairs with the release-store (2): a caller that finds the handle finds the rest */
        const int handle = __atomic_load_n(&slots[slot].handle, __ATOMIC_ACQUIRE);
        if (handle == comm) return slots[slot].its;
        if (handle == NEVER_USED) return NULL;
    }
    return NULL;
}

static int insert(MPI_Comm comm, struct known* its) {
    int result = 0;
    pthread_mutex_lock(&mutex);
    for (unsigned slot = first_slot(comm), i = 0; i < SLOTS && !result;
         ++i, slot = next_slot(slot)) {
        if (slots[slot].handle != NEVER_USED && slots[slot].handle != REMOVED) continue;
        slots[slot].its = its;
        /* (2) releases what belongs to the handle to the acquire-load (1) */
        __atomic_store_n(&slots[slot].handle, comm, __ATOMIC_RELEASE);
        result = 1;
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

static void take_out(MPI_Comm comm) {
    pthread_mutex_lock(&mutex);
    for (unsigned slot = first_slot(comm), i = 0; i < SLOTS; ++i, slot = next_slot(slot)) {
        if (slots[slot].handle != comm) continue;
        /* relaxed is enough: nothing is read by what it says */
        __atomic_store_n(&slots[slot].handle, REMOVED, __ATOMIC_RELAXED);
        break;
    }
    pthread_mutex_unlock(&mutex);
}

/* ---- Beginning and end */

static int forget(MPI_Comm comm, int key, void* attribute, void* extra) {
    (void)key, (void)extra;
    take_out(comm);
    bbp_comm_end(&((struct known*)attribute)->comm);
    free(attribute);
    return MPI_SUCCESS;
}

static void make_quiet_of_world(void) {
    MPI_Group self;
    PMPI_Comm_group(MPI_COMM_SELF, &self);
    PMPI_Comm_create(MPI_COMM_SELF, self, &quiet);
    PMPI_Group_free(&self);
    PMPI_Comm_set_errhandler(quiet, MPI_ERRORS_RETURN);
}

/* A session of its own: the program's may end before others of the program. */
static void make_quiet_of_session(void) {
    MPI_Group self;
    if (PMPI_Session_init(MPI_INFO_NULL, MPI_ERRORS_RETURN, &own_session) != MPI_SUCCESS) return;
    PMPI_Group_from_session_pset(own_session, "mpi://SELF", &self);
    PMPI_Comm_create_from_group(self, "bbp", MPI_INFO_NULL, MPI_ERRORS_RETURN, &quiet);
    PMPI_Group_free(&self);
}

/* Under the mutex. A session of its own is only for a caller that sees the program's last one end.
 */
static void begin(int may_have_session) {
    int has_world = 0;
    PMPI_Initialized(&has_world);
    if (state == BEGUN || (!has_world && !may_have_session)) return;
    if (has_world) {
        make_quiet_of_world();
    } else {
        make_quiet_of_session();
    }
    PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &keyval, NULL);
    if (quiet == MPI_COMM_NULL) return;
    /* (3) releases the key and the quiet communicator to the acquire-load (5), until (4) */
    __atomic_store_n(&state, BEGUN, __ATOMIC_RELEASE);
}

static int begun(int result) {
    if (result != MPI_SUCCESS) return result;
    pthread_mutex_lock(&mutex);
    ++open_sessions;
    begin(1);
    pthread_mutex_unlock(&mutex);
    return MPI_SUCCESS;
}

/* Before what may be the last one ends; MPICH begins no second time. */
static void ending(void) {
    pthread_mutex_lock(&mutex);
    if (open_sessions > 0 && --open_sessions == 0 && state == BEGUN) {
        /* (4) ends what (3) began, before it goes, for the acquire-load (5) */
        __atomic_store_n(&state, ENDED, __ATOMIC_RELEASE);
        PMPI_Comm_free(&quiet);
        PMPI_Comm_free_keyval(&keyval);
        if (own_session != MPI_SESSION_NULL) PMPI_Session_finalize(&own_session);
    }
    pthread_mutex_unlock(&mutex);
}

/* Which MPI the program has brought: its libraries, as far as they are loaded. */
enum { HAS_MPICH = 1, HAS_OPEN_MPI = 2 };

static int look_at_library(struct dl_phdr_info* info, size_t size, void* found) {
    (void)size;
    const char* const slash = strrchr(info->dlpi_name, '/');
    const char* const name = slash == NULL ? info->dlpi_name : slash + 1;
    if (strncmp(name, "libmpich.so", strlen("libmpich.so")) == 0) {
        *(int*)found |= HAS_MPICH;
        /* Of a program that has loaded it for itself: the calls below are found anyway. */
        dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL);
    }
    if (strncmp(name, "libmpi.so", strlen("libmpi.so")) == 0) {
        void* const library = dlopen(info->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
        if (library != NULL && dlsym(library, "ompi_mpi_comm_world") != NULL)
            *(int*)found |= HAS_OPEN_MPI;
    }
    return 0;
}

/* Another MPI's handles would be used as MPICH's. */
static void demand_mpich(void) {
    int found = 0;
    dl_iterate_phdr(look_at_library, &found);
    if ((found & HAS_MPICH) != 0 || (found & HAS_OPEN_MPI) == 0) return;
    fprintf(stderr,
            "mpirun-bbp-mpich: this program is one of Open MPI (libmpi.so); run it with "
            "mpirun-bbp-openmpi, or build it with mpicc.mpich\n");
    exit(1);
}

/* MPICH keeps threads apart by a lock of its own, which these calls do not have: the provider,
 * which finds this, is to use its own. */
int bbp_calls_meet = 0;

int MPI_Init(int* argc, char*** argv) {
    demand_mpich();
    return begun(PMPI_Init(argc, argv));
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    demand_mpich();
    if (required == MPI_THREAD_MULTIPLE) bbp_calls_meet = 1;
    return begun(PMPI_Init_thread(argc, argv, required, provided));
}

/* MPICH's sessions may all have several threads. */
int MPI_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* session) {
    demand_mpich();
    bbp_calls_meet = 1;
    return begun(PMPI_Session_init(info, handler, session));
}

int MPI_Finalize(void) {
    ending();
    return PMPI_Finalize();
}

int MPI_Session_finalize(MPI_Session* session) {
    ending();
    return PMPI_Session_finalize(session);
}

/* ---- What calls.c asks for */

/* A message that a probe finds stays. On a communicator of one a probe looks at no network. */
void bbp_mpi_progress(struct bbp_comm* self) {
    int found = 0;
    PMPI_Iprobe(self->rank, 0, self->comm, &found, MPI_STATUS_IGNORE);
}

int bbp_mpi_or(struct bbp_comm* self, unsigned long long* values, int count) {
    const int result =
        PMPI_Allreduce(MPI_IN_PLACE, values, count, MPI_UNSIGNED_LONG_LONG, MPI_BOR, self->comm);
    ((struct known*)self)->is_told = result != MPI_SUCCESS;
    return result;
}

int bbp_mpi_threads_may_meet(void) {
    int threads = MPI_THREAD_SINGLE;
    PMPI_Query_thread(&threads);
    return threads == MPI_THREAD_MULTIPLE;
}

/* Packing nothing looks at the type; after that it can be asked for the rest. */
int bbp_mpi_type(MPI_Datatype type, struct bbp_type* its) {
    char nothing = 0;
    int position = 0, size = 0, integers, addresses, types, combiner;
    MPI_Aint low, true_low, true_extent;
    if (PMPI_Pack(&nothing, 0, type, &nothing, sizeof nothing, &position, quiet) != MPI_SUCCESS)
        return 0;
    PMPI_Type_size(type, &size);
    PMPI_Type_get_envelope(type, &integers, &addresses, &types, &combiner);
    PMPI_Type_get_extent(type, &low, &its->extent);
    PMPI_Type_get_true_extent(type, &true_low, &true_extent);
    its->size = size < 0 ? 0 : (size_t)size;
    its->is_plain = combiner == MPI_COMBINER_NAMED && low == 0 && true_low == 0 &&
                    its->extent == size && true_extent == size;
    return 1;
}

/* Reducing nothing looks at the operation. */
int bbp_mpi_is_op(MPI_Op op, MPI_Datatype type) {
    char from = 0, to = 0;
    return PMPI_Reduce(&from, &to, 0, type, op, 0, quiet) == MPI_SUCCESS;
}

/* MPICH packs nothing from MPI_BOTTOM, which is a null pointer: so the same elements as seen from
 * another place. Of a good type this fails for memory alone. */
static int seen_from(const void* place, int count, MPI_Datatype type, MPI_Datatype* moved) {
    const MPI_Aint shift = 0 - (MPI_Aint)place;
    const int result = PMPI_Type_create_hindexed(1, &count, &shift, type, moved);
    return result != MPI_SUCCESS ? result : PMPI_Type_commit(moved);
}

int bbp_mpi_pack(const void* from, int count, MPI_Datatype type, char* to, size_t bytes) {
    int position = 0;
    if (from == NULL) {
        MPI_Datatype moved;
        int result = seen_from(to, count, type, &moved);
        if (result != MPI_SUCCESS) return result;
        result = bbp_mpi_pack(to, 1, moved, to, bytes);
        PMPI_Type_free(&moved);
        return result;
    }
    const int result = PMPI_Pack(from, count, type, to, (int)bytes, &position, quiet);
    if (result != MPI_SUCCESS) return result;
    return (size_t)position == bytes ? MPI_SUCCESS : MPI_ERR_INTERN;
}

int bbp_mpi_unpack(char* from, size_t bytes, void* to, int count, MPI_Datatype type) {
    int position = 0;
    if (to == NULL) {
        MPI_Datatype moved;
        int result = seen_from(from, count, type, &moved);
        if (result != MPI_SUCCESS) return result;
        result = bbp_mpi_unpack(from, bytes, from, 1, moved);
        PMPI_Type_free(&moved);
        return result;
    }
    return PMPI_Unpack(from, (int)bytes, &position, to, count, type, quiet);
}

/* Type and operation were looked at before anything was sent. */
int bbp_mpi_combine(const void* with, void* into, int count, MPI_Datatype type, MPI_Op op) {
    return PMPI_Reduce_local(with, into, count, type, op);
}

/* ---- Calls */

static struct known* meet(MPI_Comm comm) {
    int result = 0, is_inter = 0, size = 0, rank = 0;
    if (PMPI_Comm_compare(quiet, comm, &result) != MPI_SUCCESS) return NULL;
    PMPI_Comm_test_inter(comm, &is_inter);
    PMPI_Comm_size(comm, &size);
    PMPI_Comm_rank(comm, &rank);
    struct known* const its = malloc(sizeof *its);
    if (its == NULL) return NULL;
    bbp_comm_begin(&its->comm, comm, is_inter ? 0 : size, rank);
    its->is_told = 0;
    if (!insert(comm, its)) {
        free(its);
        return NULL;
    }
    if (PMPI_Comm_set_attr(comm, keyval, its) == MPI_SUCCESS) return its;
    take_out(comm);
    free(its);
    return NULL;
}

/* Also of a program whose MPI_Init was not seen here; not of one that is ending. */
static int is_on(void) {
    /* (5) pairs with the release-stores (3) and (4) */
    int now = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
    if (now == NOT_YET) {
        pthread_mutex_lock(&mutex);
        begin(0);
        now = state;
        pthread_mutex_unlock(&mutex);
    }
    return now == BEGUN;
}

/* Null: not to be had, the call is a plain one; MPICH says why it is none, if so. */
static struct bbp_comm* known(MPI_Comm comm) {
    if (comm == MPI_COMM_NULL || comm == NEVER_USED || comm == REMOVED || !is_on()) return NULL;
    struct known* its = find(comm);
    if (its == NULL) its = meet(comm);
    return its == NULL ? NULL : &its->comm;
}

/* Once, and in any case. */
static int report(MPI_Comm comm, int result) {
    if (result == MPI_SUCCESS) return result;
    struct known* const its = find(comm);
    if (!its->is_told) PMPI_Comm_call_errhandler(comm, result);
    its->is_told = 0;
    return result;
}

int MPI_Barrier(MPI_Comm comm) {
    struct bbp_comm* const its = known(comm);
    const int result = its == NULL ? BBP_PLAIN : bbp_barrier_call(its);
    return result == BBP_PLAIN ? PMPI_Barrier(comm) : report(comm, result);
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    struct bbp_comm* const its = known(comm);
    const int result = its == NULL ? BBP_PLAIN : bbp_bcast_call(its, buffer, count, type, root);
    return result == BBP_PLAIN ? PMPI_Bcast(buffer, count, type, root, comm) : report(comm, result);
}

int MPI_Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
    struct bbp_comm* const its = known(comm);
    const int result =
        its == NULL ? BBP_PLAIN : bbp_reduce_call(its, send, receive, count, type, op, root);
    return result == BBP_PLAIN ? PMPI_Reduce(send, receive, count, type, op, root, comm)
                               : report(comm, result);
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                  MPI_Comm comm) {
    struct bbp_comm* const its = known(comm);
    const int result =
        its == NULL ? BBP_PLAIN : bbp_allreduce_call(its, send, receive, count, type, op);
    return result == BBP_PLAIN ? PMPI_Allreduce(send, receive, count, type, op, comm)
                               : report(comm, result);
}

int MPI_Allgather(const void* send, int send_count, MPI_Datatype send_type, void* receive,
                  int receive_count, MPI_Datatype receive_type, MPI_Comm comm) {
    struct bbp_comm* const its = known(comm);
    const int result = its == NULL ? BBP_PLAIN
                                   : bbp_allgather_call(its, send, send_count, send_type, receive,
                                                        receive_count, receive_type);
    return result == BBP_PLAIN ? PMPI_Allgather(send, send_count, send_type, receive, receive_count,
                                                receive_type, comm)
                               : report(comm, result);
}
