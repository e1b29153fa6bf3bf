// SPDX-License-Identifier: Apache-2.0
//
// A plain MPI program that starts the one that is named on its command line, by MPI_Comm_spawn.
#include <mpi.h>

int main(int argc, char** argv) {
    MPI_Comm started;
    MPI_Init(&argc, &argv);
    if (argc > 1)
        MPI_Comm_spawn(argv[1], MPI_ARGV_NULL, 1, MPI_INFO_NULL, 0, MPI_COMM_SELF, &started,
                       MPI_ERRCODES_IGNORE);
    MPI_Finalize();
    return 0;
}
