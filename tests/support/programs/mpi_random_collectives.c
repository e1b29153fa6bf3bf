// SPDX-License-Identifier: Apache-2.0
//
// A plain MPI program of random collective calls, the same for a seed: random operations, sizes,
// types, roots, in place and not, on random communicators. Each rank prints digests of all that it
//   has received, so that two runs can be compared. mpi_random_collectives <seed> <calls>
#include "tests/support/programs/mpi_program.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { COMMS = 6, TENTHS = 10, BCAST_MOST = 80000, BLOCK_MOST = 6000, RANKS_MOST = 16, GUARD = 64 };
enum { LONG_DOUBLE = 10 }; /* bytes of its number */

static unsigned long long state, digest = 1469598103934665603ULL;

/* The same numbers at all ranks. */
static unsigned random_below(unsigned bound) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return (unsigned)(state >> 33) % bound;
}

static void take(const void* bytes, size_t size) {
    const unsigned char* byte = bytes;
    for (size_t i = 0; i < size; ++i) digest = (digest ^ byte[i]) * 1099511628211ULL;
}

/* ---- Types */

struct gap {
    short s;
    double d;
};

static MPI_Datatype pair, triple, vector, gap;

static void make_types(void) {
    MPI_Type_contiguous(2, MPI_INT, &pair);
    MPI_Type_commit(&pair);
    MPI_Type_contiguous(3, MPI_INT, &triple);
    MPI_Type_commit(&triple);
    MPI_Type_vector(5, 2, 3, MPI_SHORT, &vector);
    MPI_Type_commit(&vector);
    const int lengths[] = {1, 1};
    const MPI_Aint places[] = {offsetof(struct gap, s), offsetof(struct gap, d)};
    const MPI_Datatype parts[] = {MPI_SHORT, MPI_DOUBLE};
    MPI_Datatype loose;
    MPI_Type_create_struct(2, lengths, places, parts, &loose);
    MPI_Type_create_resized(loose, 0, sizeof(struct gap), &gap);
    MPI_Type_free(&loose);
    MPI_Type_commit(&gap);
}

static MPI_Datatype random_type(void) {
    const MPI_Datatype types[] = {MPI_BYTE, MPI_INT, MPI_DOUBLE, MPI_2INT, triple, vector, gap};
    return types[random_below(sizeof types / sizeof *types)];
}

/* Often small, often at one of the limits between the ways. */
static int random_size(int most) {
    static const int limits[] = {0, 8, 40, 1000, 4096, 8192, 16364, 16384, 32768, 65536};
    int size = 0;
    switch (random_below(3)) {
        case 0: size = (int)random_below(64); break;
        case 1:
            size = limits[random_below(sizeof limits / sizeof *limits)] + (int)random_below(5) - 2;
            break;
        default: size = (int)random_below((unsigned)most); break;
    }
    return size < 0 ? 0 : size > most ? most : size;
}

/* Elements of a type in about this many bytes of memory. */
static int count_in(int bytes, MPI_Datatype type) {
    MPI_Aint low, extent;
    MPI_Type_get_extent(type, &low, &extent);
    return bytes / (int)extent;
}

/* ---- Operations */

/* a·x + b after each other, modulo a prime: the order matters. */
struct line {
    int a, b;
};

static void compose(void* in, void* inout, int* count, MPI_Datatype* type) {
    (void)type;
    const struct line* f = in;
    struct line* g = inout;
    for (int i = 0; i < *count; ++i)
        g[i] = (struct line){f[i].a * g[i].a % 997, (f[i].b * g[i].a + g[i].b) % 997};
}

struct reduction {
    MPI_Datatype type;
    MPI_Op op;
};

static MPI_Op composition;

static struct reduction random_reduction(void) {
    const struct reduction reductions[] = {
        {MPI_INT, MPI_SUM},           {MPI_INT, MPI_MAX},
        {MPI_INT, MPI_BXOR},          {MPI_INT, MPI_LAND},
        {MPI_INT, MPI_LXOR},          {MPI_SIGNED_CHAR, MPI_BAND},
        {MPI_UNSIGNED_CHAR, MPI_BOR}, {MPI_SHORT, MPI_PROD},
        {MPI_LONG, MPI_MIN},          {MPI_UNSIGNED_LONG_LONG, MPI_LOR},
        {MPI_FLOAT, MPI_MAX},         {MPI_DOUBLE, MPI_SUM},
        {MPI_LONG_DOUBLE, MPI_SUM},   {MPI_2INT, MPI_MINLOC},
        {MPI_2INT, MPI_MAXLOC},       {MPI_2INT, composition},
        {pair, composition},
    };
    return reductions[random_below(sizeof reductions / sizeof *reductions)];
}

/* Sums of these are exact, and products equal whatever is multiplied first. */
static void fill_vector(void* to, MPI_Datatype type, int count, unsigned seed) {
    for (int i = 0; i < count; ++i) {
        const int value = (int)((seed + (unsigned)i) * 2654435761U >> 20) % 500;
        if (type == MPI_DOUBLE)
            ((double*)to)[i] = value / 4.0;
        else if (type == MPI_FLOAT)
            ((float*)to)[i] = (float)value;
        else if (type == MPI_LONG_DOUBLE)
            ((long double*)to)[i] = value / 4.0L;
        else if (type == MPI_LONG || type == MPI_UNSIGNED_LONG_LONG)
            ((long*)to)[i] = value;
        else if (type == MPI_SHORT)
            ((short*)to)[i] = (short)value;
        else if (type == MPI_UNSIGNED_CHAR || type == MPI_SIGNED_CHAR)
            ((unsigned char*)to)[i] = (unsigned char)value;
        else if (type == MPI_2INT || type == pair)
            ((struct line*)to)[i] = (struct line){value + 1, me};
        else
            ((int*)to)[i] = value;
    }
}

/* ---- Calls */

static char send[BCAST_MOST + GUARD], receive[RANKS_MOST * BLOCK_MOST + BCAST_MOST + GUARD];

static void fill(char* to, size_t size, unsigned seed) {
    for (size_t i = 0; i < size; ++i) to[i] = (char)byte_of((int)seed, (long)i);
}

static void call_bcast(MPI_Comm comm, int rank, int root, unsigned seed) {
    const int bytes = random_size(BCAST_MOST);
    const MPI_Datatype type = random_type();
    memset(receive, 0x5a, (size_t)bytes + GUARD);
    if (rank == root) fill(receive, (size_t)bytes, seed);
    MPI_Bcast(receive, count_in(bytes, type), type, root, comm);
    /* What lies between a root's elements is its own. */
    if (rank != root) take(receive, (size_t)bytes + GUARD);
}

static void call_reduce(MPI_Comm comm, int rank, int root, unsigned seed, int to_all) {
    const struct reduction what = random_reduction();
    const int bytes = random_size(BLOCK_MOST), count = count_in(bytes, what.type);
    const int in_place = random_below(3) == 0 && (to_all || rank == root);
    memset(receive, 0x5a, (size_t)bytes + GUARD);
    fill_vector(in_place ? receive : send, what.type, count, seed);
    const void* from = in_place ? MPI_IN_PLACE : send;
    if (to_all)
        MPI_Allreduce(from, receive, count, what.type, what.op, comm);
    else
        MPI_Reduce(from, receive, count, what.type, what.op, root, comm);
    if (!to_all && rank != root) return;
    /* What an element has beyond its number is anything. */
    for (int i = 0; what.type == MPI_LONG_DOUBLE && i < count; ++i)
        memset(receive + 16 * i + LONG_DOUBLE, 0, 16 - LONG_DOUBLE);
    take(receive, (size_t)bytes + GUARD);
}

static void call_allgather(MPI_Comm comm, int rank, int size, unsigned seed) {
    const MPI_Datatype type = random_type();
    const int count = count_in(random_size(BLOCK_MOST), type);
    MPI_Aint low, extent;
    MPI_Type_get_extent(type, &low, &extent);
    const size_t block = (size_t)count * (size_t)extent;
    const int in_place = random_below(3) == 0;
    memset(receive, 0x5a, block * (size_t)size + GUARD);
    fill(in_place ? receive + (size_t)rank * block : send, block, seed);
    MPI_Allgather(in_place ? MPI_IN_PLACE : send, count, type, receive, count, type, comm);
    take(receive, block * (size_t)size + GUARD);
}

static void call_one(MPI_Comm comm, int number) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    const int root = (int)random_below(720720) % size;
    const unsigned seed = (unsigned)number * 31 + (unsigned)me;
    switch (random_below(5)) {
        case 0: call_bcast(comm, rank, root, seed); break;
        case 1: call_reduce(comm, rank, root, seed, 0); break;
        case 2: call_reduce(comm, rank, root, seed, 1); break;
        case 3: call_allgather(comm, rank, size, seed); break;
        default: MPI_Barrier(comm); break;
    }
}

static MPI_Comm random_comm(MPI_Comm other) {
    MPI_Comm made;
    switch (random_below(4)) {
        case 0: MPI_Comm_dup(MPI_COMM_WORLD, &made); break;
        case 1: MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &made); break;
        case 2:
            MPI_Comm_split(MPI_COMM_WORLD, me < (int)random_below((unsigned)all), -me, &made);
            break;
        default: MPI_Comm_dup(other, &made); break;
    }
    return made;
}

int main(int argc, char** argv) {
    begin(&argc, &argv, MPI_THREAD_SINGLE);
    if (argc != 3 || all > RANKS_MOST) MPI_Abort(MPI_COMM_WORLD, 2);
    state = strtoull(argv[1], NULL, 10);
    const int calls = atoi(argv[2]);
    make_types();
    MPI_Op_create(compose, 0, &composition);
    MPI_Comm comms[COMMS];
    for (int i = 0; i < COMMS; ++i) comms[i] = random_comm(MPI_COMM_WORLD);
    for (int i = 0; i < calls; ++i) {
        if (random_below(50) == 0) {
            MPI_Comm* const old = &comms[random_below(COMMS)];
            const MPI_Comm next = random_comm(comms[random_below(COMMS)]);
            MPI_Comm_free(old);
            *old = next;
        }
        const unsigned which = random_below(COMMS + 1);
        call_one(which == COMMS ? MPI_COMM_WORLD : comms[which], i);
        if ((i + 1) * TENTHS / calls != i * TENTHS / calls)
            printf("rank %d: digest of %d calls: %016llx\n", me, i + 1, digest);
    }
    for (int i = 0; i < COMMS; ++i) MPI_Comm_free(&comms[i]);
    MPI_Op_free(&composition);
    MPI_Type_free(&pair);
    MPI_Type_free(&triple);
    MPI_Type_free(&vector);
    MPI_Type_free(&gap);
    MPI_Finalize();
    return 0;
}
