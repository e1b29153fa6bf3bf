// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The paper's figures as far as the billboard alone gives them, as columns of numbers.
///
///   1  one-way latency against size, small messages
///   2  the same up to 16 KiB, where the other networks cross it
///   4  a message to one against a broadcast to all of four nodes
///   6  a barrier against the number of nodes
///
/// Units: times in picoseconds. Errors: Error(bad_size) for other numbers: 3 and 5 need an MPI.

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

/// As a data file for gnuplot: comments that name the columns, then a line per row, in microseconds.
std::string data_of(const Figure& figure);

}  // namespace simulator
