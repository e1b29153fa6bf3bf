// SPDX-License-Identifier: Apache-2.0
//
// A plain MPI program that knows nothing of rings: broadcasts, barriers, reductions and allgathers
// of all sorts of types, sizes and communicators against what each rank computes. 0: all equal.
//   mpi_collectives                 all of it
//   mpi_collectives unequal         allgathers to which rank 0 gives other bytes than others do:
//                                   each ends at all ranks, and those that were wrong with an error
//   mpi_collectives bcasts <n>      n broadcasts of 8 bytes by each rank, and what MPI itself does
//   mpi_collectives threads <n>     n rounds in each of four threads, each with a communicator
#include "tests/support/programs/mpi_program.h"

#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

static void fill(unsigned char* bytes, long size, int seed) {
    for (long i = 0; i < size; ++i) bytes[i] = byte_of(seed, i);
}

static int holds(const unsigned char* bytes, long size, int seed) {
    for (long i = 0; i < size; ++i)
        if (bytes[i] != byte_of(seed, i)) return 0;
    return 1;
}

static const long sizes[] = {0,    1,    40,    41,    100,   1000,  4095,  4096,
                             4097, 8192, 16363, 16364, 16365, 65535, 65536, 65537};
enum { SIZES = sizeof sizes / sizeof *sizes, MOST = 65537 };

/* ---- Bytes, all sizes and roots */

static void check_bytes(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    unsigned char *one = malloc(MOST), *many = malloc((size_t)MOST * (size_t)size);
    for (int i = 0; i < SIZES; ++i) {
        for (int root = 0; root < size; ++root) {
            if (rank == root)
                fill(one, sizes[i], root + i);
            else
                memset(one, 0xa5, (size_t)sizes[i]);
            MPI_Bcast(one, (int)sizes[i], MPI_BYTE, root, comm);
            expect(holds(one, sizes[i], root + i), "broadcast of so many bytes", sizes[i]);
        }
        fill(one, sizes[i], rank + i);
        memset(many, 0xa5, (size_t)sizes[i] * (size_t)size);
        MPI_Allgather(one, (int)sizes[i], MPI_BYTE, many, (int)sizes[i], MPI_BYTE, comm);
        for (int r = 0; r < size; ++r)
            expect(holds(many + r * sizes[i], sizes[i], r + i), "allgather of so many bytes",
                   sizes[i]);
        memset(many, 0xa5, (size_t)sizes[i] * (size_t)size);
        fill(many + rank * sizes[i], sizes[i], rank + i);
        MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, many, (int)sizes[i], MPI_BYTE, comm);
        for (int r = 0; r < size; ++r)
            expect(holds(many + r * sizes[i], sizes[i], r + i), "allgather in place", sizes[i]);
        MPI_Barrier(comm);
    }
    free(one);
    free(many);
}

/* ---- Least and most */

struct double_int {
    double value;
    int index;
};
struct two_int {
    int value, index;
};

static void check_places(MPI_Comm comm) {
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    struct double_int pair = {(rank * 5) % size, rank}, least;
    struct two_int ints = {(rank * 5) % size, rank}, most;
    MPI_Allreduce(&pair, &least, 1, MPI_DOUBLE_INT, MPI_MINLOC, comm);
    MPI_Allreduce(&ints, &most, 1, MPI_2INT, MPI_MAXLOC, comm);
    int most_at = 0;
    for (int r = 1; r < size; ++r)
        if ((r * 5) % size > (most_at * 5) % size) most_at = r;
    expect(least.value == 0 && least.index == 0, "MPI_MINLOC", least.index);
    expect(most.value == (most_at * 5) % size && most.index == most_at, "MPI_MAXLOC", most.index);
}

/* ---- Derived types */

struct gap {
    char c;
    double d;
    short s;
};

static void check_derived(MPI_Comm comm) {
    enum { COUNT = 100 };
    int rank, size;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);

    MPI_Datatype vector, loose, gap, permuted, wide;
    MPI_Type_vector(COUNT, 2, 5, MPI_INT, &vector);
    MPI_Type_commit(&vector);
    int lengths[] = {1, 1, 1};
    MPI_Aint places[] = {offsetof(struct gap, c), offsetof(struct gap, d), offsetof(struct gap, s)};
    MPI_Datatype types[] = {MPI_CHAR, MPI_DOUBLE, MPI_SHORT};
    MPI_Type_create_struct(3, lengths, places, types, &loose);
    MPI_Type_create_resized(loose, 0, sizeof(struct gap), &gap);
    MPI_Type_commit(&gap);
    MPI_Aint turned[] = {8, 4, 0};
    MPI_Datatype ints[] = {MPI_INT, MPI_INT, MPI_INT};
    MPI_Type_create_struct(3, lengths, turned, ints, &permuted);
    MPI_Type_commit(&permuted);
    MPI_Type_create_resized(MPI_INT, 0, 12, &wide);
    MPI_Type_commit(&wide);

    for (int root = 0; root < size; ++root) {
        static int strided[5 * COUNT];
        for (int i = 0; i < 5 * COUNT; ++i) strided[i] = rank == root ? i : -1;
        if (rank == root) {
            MPI_Bcast(strided, 1, vector, root, comm);
        } else if (rank % 2) {
            MPI_Bcast(strided, 2 * COUNT, MPI_INT, root, comm);
            for (int i = 0; i < 2 * COUNT; ++i)
                expect(strided[i] == i / 2 * 5 + i % 2, "a vector, dense here", i);
            expect(strided[2 * COUNT] == -1, "beyond a vector", root);
        } else {
            MPI_Bcast(strided, 1, vector, root, comm);
            for (int i = 0; i < 5 * COUNT - 3; ++i)
                expect(strided[i] == (i % 5 < 2 ? i : -1), "a vector with its gaps", i);
        }

        static struct gap gaps[COUNT];
        memset(gaps, 0x77, sizeof gaps);
        for (int i = 0; rank == root && i < COUNT; ++i) {
            gaps[i].c = (char)i;
            gaps[i].d = i / 4.0;
            gaps[i].s = (short)-i;
        }
        MPI_Bcast(gaps, COUNT, gap, root, comm);
        for (int i = 0; i < COUNT; ++i) {
            expect(gaps[i].c == (char)i && gaps[i].d == i / 4.0 && gaps[i].s == (short)-i,
                   "a struct with gaps", i);
            expect(((char*)&gaps[i])[1] == 0x77, "a gap is not written", i);
        }

        int three[3] = {10, 11, 12};
        if (rank != root) memset(three, 0, sizeof three);
        MPI_Bcast(three, rank == root ? 1 : 3, rank == root ? permuted : MPI_INT, root, comm);
        if (rank != root)
            expect(three[0] == 12 && three[1] == 11 && three[2] == 10, "a permuted struct",
                   three[0]);

        int absolute = rank == root ? 4711 : 0, one = 1;
        MPI_Aint address;
        MPI_Datatype at;
        MPI_Get_address(&absolute, &address);
        const MPI_Datatype of = MPI_INT;
        MPI_Type_create_struct(1, &one, &address, &of, &at);
        MPI_Type_commit(&at);
        MPI_Bcast(MPI_BOTTOM, 1, at, root, comm);
        expect(absolute == 4711, "an absolute address", root);
        MPI_Type_free(&at);
    }

    int* spread = malloc(sizeof(int) * 3 * 50 * (size_t)size);
    int dense[50];
    for (int i = 0; i < 3 * 50 * size; ++i) spread[i] = -1;
    for (int i = 0; i < 50; ++i) dense[i] = rank * 1000 + i;
    MPI_Allgather(dense, 50, MPI_INT, spread, 50, wide, comm);
    for (int i = 0; i < 3 * 50 * size; ++i)
        expect(spread[i] == (i % 3 ? -1 : i / 150 * 1000 + i / 3 % 50), "allgather to spread ints",
               i);
    for (int r = 0; r < size; ++r)
        for (int i = 0; i < 50; ++i)
            if (r != rank) spread[(r * 50 + i) * 3] = 0;
    MPI_Allgather(MPI_IN_PLACE, 0, MPI_INT, spread, 50, wide, comm);
    for (int i = 0; i < 3 * 50 * size; ++i)
        expect(spread[i] == (i % 3 ? -1 : i / 150 * 1000 + i / 3 % 50), "the same in place", i);
    int* gathered = malloc(sizeof(int) * 50 * (size_t)size);
    MPI_Allgather(spread + 150 * rank, 50, wide, gathered, 50, MPI_INT, comm);
    for (int i = 0; i < 50 * size; ++i)
        expect(gathered[i] == i / 50 * 1000 + i % 50, "allgather of spread ints", i);
    free(gathered);
    free(spread);

    MPI_Type_free(&vector);
    MPI_Type_free(&loose);
    MPI_Type_free(&gap);
    MPI_Type_free(&permuted);
    MPI_Type_free(&wide);
}

/* ---- Communicators */

static void check_sum(MPI_Comm comm, const char* what) {
    int rank, size, sum = 0, word;
    MPI_Comm_rank(comm, &rank);
    MPI_Comm_size(comm, &size);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == size * (size - 1) / 2, what, sum);
    word = rank == size - 1 ? 77 : 0;
    MPI_Bcast(&word, 1, MPI_INT, size - 1, comm);
    expect(word == 77, what, word);
    MPI_Barrier(comm);
}

static void check_everything(MPI_Comm comm) {
    check_bytes(comm);
    check_places(comm);
    check_derived(comm);
}

static void check_inter(void) {
    MPI_Comm half, inter;
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    MPI_Intercomm_create(half, 0, MPI_COMM_WORLD, 1 - me % 2, 5, &inter);
    int word = me == 0 ? 99 : 0;
    MPI_Bcast(&word, 1, MPI_INT, me == 0 ? MPI_ROOT : me % 2 == 0 ? MPI_PROC_NULL : 0, inter);
    expect(me % 2 == 0 || word == 99, "broadcast to the other group", word);
    int sum = 0, theirs = 0;
    MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, inter);
    for (int r = 1 - me % 2; r < all; r += 2) theirs += r;
    expect(sum == theirs, "the other group's sum", sum);
    MPI_Barrier(inter);
    MPI_Comm_free(&inter);
    MPI_Comm_free(&half);
}

static void check_communicators(void) {
    MPI_Comm copy, reversed, half, pair = MPI_COMM_NULL;
    MPI_Comm_dup(MPI_COMM_WORLD, &copy);
    MPI_Comm_split(MPI_COMM_WORLD, 0, -me, &reversed);
    MPI_Comm_split(MPI_COMM_WORLD, me % 2, me, &half);
    check_everything(reversed);
    check_everything(half);
    check_sum(copy, "a copy of the world");
    check_sum(MPI_COMM_SELF, "alone");
    /* Overlapping ones: each rank with its neighbour, in turn. */
    for (int r = 0; r + 1 < all; ++r) {
        MPI_Comm_split(MPI_COMM_WORLD, me == r || me == r + 1 ? 0 : MPI_UNDEFINED, me, &pair);
        if (pair == MPI_COMM_NULL) continue;
        for (int i = 0; i < 20; ++i) {
            check_sum(pair, "neighbours");
            if (i % 5 == 0) check_sum(half == pair ? copy : pair, "neighbours again");
        }
        MPI_Comm_free(&pair);
    }
    for (int i = 0; i < 50; ++i) {
        check_sum(copy, "in turn");
        check_sum(half, "in turn");
        check_sum(reversed, "in turn");
    }
    MPI_Comm_free(&copy);
    MPI_Comm_free(&reversed);
    MPI_Comm_free(&half);

    /* More than the billboard has barriers, some of them open together. */
    MPI_Comm open[8];
    for (int i = 0; i < 160; ++i) {
        if (i >= 8) MPI_Comm_free(&open[i % 8]);
        if (i % 3)
            MPI_Comm_dup(MPI_COMM_WORLD, &open[i % 8]);
        else
            MPI_Comm_split(MPI_COMM_WORLD, me % 2, -me, &open[i % 8]);
        check_sum(open[i % 8], "of many communicators");
        check_sum(open[i / 2 % 8 <= i % 8 ? i / 2 % 8 : i % 8], "of many communicators, again");
    }
    for (int i = 0; i < 8; ++i) MPI_Comm_free(&open[i]);
    check_inter();
}

/* ---- With messages under way */

static void check_pending(void) {
    enum { LONG = 3 << 20 };
    for (int i = 0; i < 20; ++i) {
        int word = i, came = -1;
        MPI_Request request;
        if (me == 0) {
            MPI_Ssend(&word, 1, MPI_INT, 1, 3, MPI_COMM_WORLD);
            MPI_Barrier(MPI_COMM_WORLD);
        } else if (me == 1) {
            MPI_Irecv(&came, 1, MPI_INT, 0, 3, MPI_COMM_WORLD, &request);
            MPI_Barrier(MPI_COMM_WORLD);
            MPI_Wait(&request, MPI_STATUS_IGNORE);
            expect(came == i, "a message received beside a barrier", came);
        } else {
            MPI_Barrier(MPI_COMM_WORLD);
        }
    }
    unsigned char *out = malloc(LONG), *in = malloc(LONG), *piece = malloc(4000);
    const int to = (me + 1) % all, from = (me + all - 1) % all;
    for (int round = 0; round < 4; ++round) {
        MPI_Request requests[2];
        fill(out, LONG, me + round);
        if (round % 2 == 0) MPI_Irecv(in, LONG, MPI_BYTE, from, 4, MPI_COMM_WORLD, &requests[0]);
        MPI_Isend(out, LONG, MPI_BYTE, to, 4, MPI_COMM_WORLD, &requests[1]);
        for (int i = 0; i < 30; ++i) {
            if (me == i % all) fill(piece, 4000, i);
            MPI_Bcast(piece, 4000, MPI_BYTE, i % all, MPI_COMM_WORLD);
            expect(holds(piece, 4000, i), "a broadcast beside long messages", i);
        }
        if (round % 2) MPI_Irecv(in, LONG, MPI_BYTE, from, 4, MPI_COMM_WORLD, &requests[0]);
        MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
        expect(holds(in, LONG, from + round), "a long message beside broadcasts", round);
    }
    free(out);
    free(in);
    free(piece);
    for (int i = 0; i < 2000; ++i) {
        int word = me == 0 ? i : -1;
        MPI_Bcast(&word, 1, MPI_INT, 0, MPI_COMM_WORLD);
        expect(word == i, "one of many broadcasts", i);
    }
}

/* ---- Errors */

static int class_of(int code) {
    int class = MPI_SUCCESS;
    MPI_Error_class(code, &class);
    return class;
}

static void check_class(int code, int class, const char* what) {
    expect(class_of(code) == class, what, class_of(code));
}

static void check_errors(int is_fresh) {
    int word = 1, words[64] = {0};
    double number = 1, sum;
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    if (!is_fresh) MPI_Barrier(comm);
    check_class(MPI_Bcast(&word, 1, MPI_INT, all, comm), MPI_ERR_ROOT, "a root too many");
    check_class(MPI_Bcast(&word, 1, MPI_INT, 1 << 20, comm), MPI_ERR_ROOT, "a root far away");
    check_class(MPI_Bcast(&word, 1, MPI_INT, -77, comm), MPI_ERR_ROOT, "a negative root");
    check_class(MPI_Bcast(&word, -1, MPI_INT, 0, comm), MPI_ERR_COUNT, "a negative count");
    check_class(MPI_Bcast(&word, 1, MPI_DATATYPE_NULL, 0, comm), MPI_ERR_TYPE, "no type");
    check_class(MPI_Reduce(&word, words, 1, MPI_INT, MPI_SUM, all, comm), MPI_ERR_ROOT,
                "reduce: a root too many");
    check_class(MPI_Reduce(&word, words, 1, MPI_INT, MPI_OP_NULL, 0, comm), MPI_ERR_OP,
                "reduce: no operation");
    check_class(MPI_Allreduce(&word, words, 1, MPI_INT, MPI_OP_NULL, comm), MPI_ERR_OP,
                "allreduce: no operation");
    check_class(MPI_Reduce(&number, &sum, 1, MPI_DOUBLE, MPI_BAND, 0, comm), MPI_ERR_OP,
                "reduce: bits of a double");
    check_class(MPI_Allreduce(&number, &sum, 1, MPI_DOUBLE, MPI_BAND, comm), MPI_ERR_OP,
                "allreduce: bits of a double");
    check_sum(comm, "after errors");
    MPI_Comm_free(&comm);
}

/* ---- The other programs */

static void gather_unequally(void) {
    enum { TAKEN = 10, MOST_GIVEN = 5000 };
    static const int given[] = {1, TAKEN - 1, TAKEN + 1, MOST_GIVEN}; /* Open MPI ends 0 itself */
    static int words[MOST_GIVEN], gathered[64 * TAKEN];
    MPI_Comm comm;
    MPI_Comm_dup(MPI_COMM_WORLD, &comm);
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    for (unsigned i = 0; i < sizeof given / sizeof *given; ++i) {
        const int count = me == 0 ? given[i] : TAKEN;
        check_class(MPI_Allgather(words, count, MPI_INT, gathered, TAKEN, MPI_INT, comm),
                    MPI_ERR_TRUNCATE, "allgather: rank 0 gives other bytes");
        check_sum(comm, "after unequal bytes");
    }
    const int count = me == 0 ? 1 : TAKEN;
    check_class(MPI_Allgather(words, count, MPI_INT, gathered, count, MPI_INT, comm),
                MPI_ERR_TRUNCATE, "allgather: rank 0 gives and takes other bytes");
    check_sum(comm, "after other bytes");
    MPI_Comm_free(&comm);
}

static void broadcast_often(int count) {
    for (int i = 0; i < count; ++i) {
        for (int root = 0; root < all; ++root) {
            long words = me == root ? i * 10 + root : -1;
            MPI_Bcast(&words, 1, MPI_LONG, root, MPI_COMM_WORLD);
            expect(words == i * 10 + root, "a broadcast", i);
        }
    }
}

struct thread {
    pthread_t id;
    MPI_Comm comm;
    int number, rounds, faults;
};

static void* talk(void* argument) {
    struct thread* its = argument;
    for (int i = 0; i < its->rounds; ++i) {
        int sum = 0, word = me == i % all ? i * 4 + its->number : -1, next = -1;
        MPI_Bcast(&word, 1, MPI_INT, i % all, its->comm);
        MPI_Allreduce(&me, &sum, 1, MPI_INT, MPI_SUM, its->comm);
        MPI_Sendrecv(&word, 1, MPI_INT, (me + 1) % all, 1, &next, 1, MPI_INT, (me + all - 1) % all,
                     1, its->comm, MPI_STATUS_IGNORE);
        its->faults += word != i * 4 + its->number || sum != all * (all - 1) / 2 || next != word;
        MPI_Barrier(its->comm);
    }
    return NULL;
}

static void talk_at_once(int rounds) {
    enum { THREADS = 4 };
    struct thread threads[THREADS];
    for (int i = 0; i < THREADS; ++i) {
        threads[i] = (struct thread){.number = i, .rounds = rounds};
        MPI_Comm_dup(MPI_COMM_WORLD, &threads[i].comm);
    }
    for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i].id, NULL, talk, &threads[i]);
    for (int i = 0; i < THREADS; ++i) {
        pthread_join(threads[i].id, NULL);
        expect(threads[i].faults == 0, "in one of several threads", i);
        MPI_Comm_free(&threads[i].comm);
    }
}

int main(int argc, char** argv) {
    const int is_threaded = argc > 2 && strcmp(argv[1], "threads") == 0;
    begin(&argc, &argv, is_threaded ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE);
    if (is_threaded) {
        talk_at_once(atoi(argv[2]));
    } else if (argc == 2) {
        gather_unequally();
    } else if (argc > 2) {
        broadcast_often(atoi(argv[2]));
    } else {
        check_errors(1);
        check_errors(0);
        check_everything(MPI_COMM_WORLD);
        check_communicators();
        check_pending();
    }
    MPI_Finalize();
    return faults != 0;
}
