// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The cost model of Directed Point, measured by the methods of its paper (3.1, 3.2, 5.2), on any
/// link.
///
/// Method: each value is taken kIterations times; the first and last tenth of the sorted ones are
/// left out, and the mean of the middle is used, as in the paper (5). Parameters of messages are
/// measured between ranks 0 and 1 for each size, and fitted by a line.
///
///   O_s        time inside dp_write, while messages go to and fro and the receiver waits
///   O_r        time that dp_read takes longer for a message on the ring than for one in the pool;
///              the message is alone
///   O_r_run    the same for one of several that have come: they share the cost of a look at the
///              network
///   O_r_async  processor time of the library's threads for each message that comes while the
///              receiver computes, more than without messages (the median). The paper measures by
///              how much the computation takes longer
///   U_r        time inside dp_read and dp_fsync of a message that lies in the pool
///   g_s        from message to message of a long stream, at its sender: less than O_s where a link
///              coalesces messages, and so the predictions hold for long messages, not for a few
///              packets there
///   g_r        the least time from message to message at a receiver: of two senders (ranks 0 and 2
///              of three), as in the paper, where each has a processor; elsewhere of one, in its
///              stream or when the network is full of its messages
///   L          half a round trip less O_s, O_r and U_r; 0 where that is less than their error, and
///              on `direct`: there the receiver's loads are the transfer, so it is within O_r.
///              Predictions use the half round trip itself.
///   B_L        bytes that the network takes from one sender before it says that it is full
///   M_ctc, M_ctm, M_mtm   copies from cache to cache, from cache to memory, from memory to memory
///
/// Units: ns and bytes. Errors: as tools/measure/rank_group.hpp.

#include "tools/measure/prediction.hpp"
#include "tools/measure/rank_group.hpp"

namespace bench {

/// Series: bytes, each parameter by its name; long_bytes, long_packets, packet_bytes, long_ns
/// (T_p2p); bbp_8 and dp_8, one way of 8 bytes; g_r_senders.
void measure_model(const GroupOptions& options, Results& results);

}  // namespace bench
