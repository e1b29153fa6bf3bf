// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The paper's figures, as columns of numbers.
///
///   1  one-way latency against size, small messages, by the billboard and by MPI
///   2  the same up to 16 KiB, where the other networks cross it
///   3  by MPI, beside Fast Ethernet and ATM (simulator/paper/mpi_experiments.hpp)
///   4  a message to one against a broadcast to all of four nodes
///   5  MPI_Bcast by messages and by multicast, beside Fast Ethernet
///   6  a barrier against the number of nodes, by the billboard and by MPI's messages
///
/// Units: times in picoseconds. Errors: Error(bad_size) for other numbers.

#include <cstdint>
#include <string>
#include <vector>

namespace simulator {

struct Figure {
    std::string title;
    std::vector<std::string> columns;  ///< the first is what the others are drawn against
    std::vector<std::vector<std::int64_t>> rows;  ///< a plain number, then times
};

Figure figure(unsigned number);

/// As a data file for gnuplot: comments that name the columns, then a line per row, in
/// microseconds.
std::string data_of(const Figure& figure);

}  // namespace simulator
