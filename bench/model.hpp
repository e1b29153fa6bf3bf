// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The cost model of Directed Point, measured by the methods of its paper (3.1, 3.2, 5.2), on any link.
///
/// Method: each value is taken kIterations times; the first and last tenth of the sorted ones are left out, and the mean of the
/// middle is used, as in the paper (5). Parameters of messages are measured between ranks 0 and 1 for each size, and fitted by a line.
///
///   O_s        time inside dp_write
///   O_r        time that dp_read takes longer for a message on the ring than for one in the pool
///   O_r_async  the same by the paper's method: what a computation takes longer while messages arrive
///   U_r        time inside dp_read and dp_fsync of a message that lies in the pool
///   g_s        from message to message of a long stream, at its sender
///   g_r        the least time from message to message at a receiver: of two senders (ranks 0 and 2 of three), as in the paper, where
///              each has a processor; elsewhere of one, in its stream or when the network is full of its messages
///   L          half a round trip less O_s, O_r and U_r; 0 where that is less than their error, and on `direct`: there the
///              receiver's loads are the transfer, so it is within O_r
///   B_L        bytes that the network takes from one sender before it says that it is full
///   M_ctc, M_ctm, M_mtm   copies from cache to cache, from cache to memory, from memory to memory
///
/// Units: ns and bytes. Errors: as bench/rank_group.hpp.

#include "bench/rank_group.hpp"

#include <map>
#include <string>
#include <vector>

namespace bench {

/// a + b * m, by least squares.
struct Line {
    double fixed = 0, per_byte = 0;
    double at(double bytes) const { return fixed + per_byte * bytes; }
};
Line fit(const std::vector<double>& bytes, const std::vector<double>& values);

/// Which of the paper's equations holds, and what it predicts.
struct Prediction {
    int equation;  ///< 1 or 2
    double ns;
};
/// Of a message of k packets: the parameters are those of one packet.
Prediction predict(double o_s, double o_r, double u_r, double g, double l, double k);

/// Series: bytes, each parameter by its name; long_bytes, long_packets, packet_bytes, long_ns (T_p2p); bbp_8 and dp_8, one way
/// of 8 bytes; g_r_senders.
void measure_model(const GroupOptions& options, Results& results);

}  // namespace bench
