/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open MPI's collective component `bbp`: built from the headers that Debian's libopenmpi-dev has,
 * found by Open MPI through OMPI_MCA_mca_base_component_path. What it does not do itself goes to
 * the components that would have done it without this one.
 *
 * The program's handles are good ones: Open MPI has looked at them before its components are
 * called. Its own may be unfinished for any of MPI's functions (a datatype that nobody could ask
 * for its envelope), but not for those that its components share.
 */
#define _GNU_SOURCE
#include "mpi_channel/collectives/calls.h"

#include "ompi_config.h"

#include "ompi/communicator/communicator.h"
#include "ompi/datatype/ompi_datatype.h"
#include "ompi/mca/coll/base/base.h"
#include "ompi/mca/coll/base/coll_base_functions.h"
#include "ompi/mca/coll/coll.h"
#include "ompi/mca/osc/base/base.h"
#include "ompi/mca/osc/osc.h"
#include "ompi/runtime/mpiruntime.h"
#include "opal/runtime/opal_progress.h"

#include <stdlib.h>

static const int kPriority = 95; /* above those that Open MPI has */

typedef struct module {
    mca_coll_base_module_t super;
    struct bbp_comm comm;
    mca_coll_base_comm_coll_t plain; /* what was there before */
} bbp_module;

static void construct(struct module* module) {
    bbp_comm_begin(&module->comm, MPI_COMM_NULL, 0, 0);
    memset(&module->plain, 0, sizeof module->plain);
}

#define EACH_CALL(use) use(barrier) use(bcast) use(reduce) use(allreduce) use(allgather)

static void destruct(struct module* module) {
    bbp_comm_end(&module->comm);
#define RELEASE(name) \
    if (module->plain.coll_##name##_module != NULL) OBJ_RELEASE(module->plain.coll_##name##_module);
    EACH_CALL(RELEASE)
#undef RELEASE
}

static OBJ_CLASS_INSTANCE(bbp_module, mca_coll_base_module_t, construct, destruct);

/* ---- What calls.c asks for */

void bbp_mpi_progress(struct bbp_comm* self) {
    (void)self;
    opal_progress();
}

int bbp_mpi_or(struct bbp_comm* self, unsigned long long* values, int count) {
    bbp_module* const module = (bbp_module*)((char*)self - offsetof(bbp_module, comm));
    return module->plain.coll_allreduce(MPI_IN_PLACE, values, count, MPI_UNSIGNED_LONG_LONG,
                                        MPI_BOR, self->comm, module->plain.coll_allreduce_module);
}

int bbp_mpi_threads_may_meet(void) {
    return ompi_mpi_thread_multiple;
}

int bbp_mpi_type(MPI_Datatype type, struct bbp_type* its) {
    ptrdiff_t low, true_low, true_extent;
    ompi_datatype_type_size(type, &its->size);
    ompi_datatype_get_extent(type, &low, &its->extent);
    ompi_datatype_get_true_extent(type, &true_low, &true_extent);
    its->is_plain = ompi_datatype_is_predefined(type) && low == 0 && true_low == 0 &&
                    (size_t)its->extent == its->size && (size_t)true_extent == its->size;
    return 1;
}

int bbp_mpi_is_op(MPI_Op op, MPI_Datatype type) {
    (void)op, (void)type;
    return 1;
}

int bbp_mpi_pack(const void* from, int count, MPI_Datatype type, char* to, size_t bytes) {
    return ompi_datatype_sndrcv(from, count, type, to, (int)bytes, MPI_PACKED);
}

int bbp_mpi_unpack(char* from, size_t bytes, void* to, int count, MPI_Datatype type) {
    return ompi_datatype_sndrcv(from, (int)bytes, MPI_PACKED, to, count, type);
}

int bbp_mpi_combine(const void* with, void* into, int count, MPI_Datatype type, MPI_Op op) {
    return mca_coll_base_reduce_local(with, into, count, type, op, NULL);
}

/* ---- Calls */

static int barrier(struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    struct module* module = (struct module*)base;
    const int result = bbp_barrier_call(&module->comm);
    if (result != BBP_PLAIN) return result;
    return module->plain.coll_barrier(comm, module->plain.coll_barrier_module);
}

static int bcast(void* buffer, int count, struct ompi_datatype_t* type, int root,
                 struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    struct module* module = (struct module*)base;
    const int result = bbp_bcast_call(&module->comm, buffer, count, type, root);
    if (result != BBP_PLAIN) return result;
    return module->plain.coll_bcast(buffer, count, type, root, comm,
                                    module->plain.coll_bcast_module);
}

static int reduce(const void* send, void* receive, int count, struct ompi_datatype_t* type,
                  struct ompi_op_t* op, int root, struct ompi_communicator_t* comm,
                  mca_coll_base_module_t* base) {
    struct module* module = (struct module*)base;
    const int result = bbp_reduce_call(&module->comm, send, receive, count, type, op, root);
    if (result != BBP_PLAIN) return result;
    return module->plain.coll_reduce(send, receive, count, type, op, root, comm,
                                     module->plain.coll_reduce_module);
}

static int allreduce(const void* send, void* receive, int count, struct ompi_datatype_t* type,
                     struct ompi_op_t* op, struct ompi_communicator_t* comm,
                     mca_coll_base_module_t* base) {
    struct module* module = (struct module*)base;
    const int result = bbp_allreduce_call(&module->comm, send, receive, count, type, op);
    if (result != BBP_PLAIN) return result;
    return module->plain.coll_allreduce(send, receive, count, type, op, comm,
                                        module->plain.coll_allreduce_module);
}

static int allgather(const void* send, int send_count, struct ompi_datatype_t* send_type,
                     void* receive, int receive_count, struct ompi_datatype_t* receive_type,
                     struct ompi_communicator_t* comm, mca_coll_base_module_t* base) {
    struct module* module = (struct module*)base;
    const int result = bbp_allgather_call(&module->comm, send, send_count, send_type, receive,
                                          receive_count, receive_type);
    if (result != BBP_PLAIN) return result;
    return module->plain.coll_allgather(send, send_count, send_type, receive, receive_count,
                                        receive_type, comm, module->plain.coll_allgather_module);
}

/* ---- The component */

static int enable(mca_coll_base_module_t* base, struct ompi_communicator_t* comm) {
    struct module* module = (struct module*)base;
    bbp_comm_begin(&module->comm, comm, ompi_comm_size(comm), ompi_comm_rank(comm));
#define SAVE(name)                                                           \
    if (comm->c_coll->coll_##name == NULL) return OMPI_ERR_NOT_AVAILABLE;    \
    module->plain.coll_##name = comm->c_coll->coll_##name;                   \
    module->plain.coll_##name##_module = comm->c_coll->coll_##name##_module; \
    OBJ_RETAIN(module->plain.coll_##name##_module);
    EACH_CALL(SAVE)
#undef SAVE
    return OMPI_SUCCESS;
}

static int init_query(bool enable_progress_threads, bool enable_mpi_threads) {
    (void)enable_progress_threads;
    (void)enable_mpi_threads;
    return OMPI_SUCCESS;
}

/* Where the user has not chosen who makes windows (mpirun-bbp-openmpi's default), those of one host
 * go over the ring too, and Open MPI's component for shared memory, which would win, makes those
 * that must be shared. */
static ompi_osc_base_component_query_fn_t query_sm;

static int query_sm_if_shared(struct ompi_win_t* win, void** base, size_t size, int unit,
                              struct ompi_communicator_t* comm, struct opal_info_t* info,
                              int flavor) {
    if (flavor != MPI_WIN_FLAVOR_SHARED) return -1;
    return query_sm(win, base, size, unit, comm, info, flavor);
}

static void keep_windows_on_the_ring(void) {
    const char* const choice = getenv("OMPI_MCA_osc");
    mca_base_component_list_item_t* item;
    if (query_sm != NULL || ompi_mpi_thread_multiple) return;
    if (choice == NULL || strcmp(choice, "pt2pt,rdma,sm") != 0) return;
    OPAL_LIST_FOREACH(item, &ompi_osc_base_framework.framework_components,
                      mca_base_component_list_item_t) {
        ompi_osc_base_component_t* const its = (ompi_osc_base_component_t*)item->cli_component;
        if (strcmp(its->osc_version.mca_component_name, "sm") != 0) continue;
        query_sm = its->osc_query;
        its->osc_query = query_sm_if_shared;
    }
}

/* For MPI_COMM_WORLD it is called once all components are open, and by one thread. */
static mca_coll_base_module_t* comm_query(struct ompi_communicator_t* comm, int* priority) {
    keep_windows_on_the_ring();
    if (OMPI_COMM_IS_INTER(comm) || ompi_comm_size(comm) < 2) return NULL;
    struct module* module = OBJ_NEW(bbp_module);
    if (module == NULL) return NULL;
    *priority = kPriority;
    module->super.coll_module_enable = enable;
    module->super.coll_barrier = barrier;
    module->super.coll_bcast = bcast;
    module->super.coll_reduce = reduce;
    module->super.coll_allreduce = allreduce;
    module->super.coll_allgather = allgather;
    return &module->super;
}

/* Open MPI's one-sided messages (priority 10) refuse programs of several threads only after they
 * have been chosen. Where only such a program knows that it is one, it chooses its windows of
 * shared memory instead (component sm: 100): this component is opened before those of
 * windows are. */
static int open_component(void) {
    if (ompi_mpi_thread_multiple) setenv("OMPI_MCA_osc_rdma_priority", "50", 1);
    return OMPI_SUCCESS;
}

const mca_coll_base_component_2_0_0_t mca_coll_bbp_component = {
    .collm_version =
        {
            MCA_COLL_BASE_VERSION_2_0_0,
            .mca_component_name = "bbp",
            MCA_BASE_MAKE_VERSION(component, 0, 1, 0),
            .mca_open_component = open_component,
        },
    .collm_data = {.param_field = MCA_BASE_METADATA_PARAM_NONE, .reserved = {0}},
    .collm_init_query = init_query,
    .collm_comm_query = comm_query,
};
