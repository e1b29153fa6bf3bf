// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The equations of Directed Point's cost model (3.1, 5.1), and the lines of its parameters. Units:
/// ns and bytes.
///
/// A message of k packets takes what one takes, and k - 1 times what the slower end needs from
/// packet to packet. The paper writes that for a network that is slower than its receiver (equation
/// 1) and for a receiver that is slower (equation 2), with one O_r for both. Here a receiver that
/// finds several packets takes them off the network together, so O_r of a packet that comes alone
/// and of one in a run differ, and only the latter can be held against a gap.

#include <algorithm>
#include <cstddef>
#include <vector>

namespace bench {

/// a + b * m.
struct Line {
    double fixed = 0, per_byte = 0;
    double at(double bytes) const { return fixed + per_byte * bytes; }
};
/// By least squares, of which each counts as much as `weight` of its value says.
template <class Weight>
Line fit(const std::vector<double>& bytes, const std::vector<double>& values, Weight&& weight) {
    double n = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
        const double w = weight(values[i]);
        n += w;
        x += w * bytes[i];
        y += w * values[i];
        xx += w * bytes[i] * bytes[i];
        xy += w * bytes[i] * values[i];
    }
    const double spread = n * xx - x * x;
    if (spread == 0) return {n == 0 ? 0 : y / n, 0};
    const double slope = (n * xy - x * y) / spread;
    return {(y - slope * x) / n, slope};
}
inline Line fit(const std::vector<double>& bytes, const std::vector<double>& values) {
    return fit(bytes, values, [](double) { return 1.0; });
}

/// The parameters of one packet.
struct Packet {
    double one_way;  ///< O_s + L + O_r + U_r of one that comes alone, which is how L is defined
    double o_r_run, u_r;  ///< of one in a run
    double g_s, g_r;
};
/// Which of the paper's equations holds, and what it predicts.
struct Prediction {
    int equation;  ///< 1 or 2
    double ns;
};
/// Of a message of k packets.
inline Prediction predict(const Packet& packet, double k) {
    const double gap = std::max(packet.g_s, packet.g_r);
    const double service = packet.o_r_run + packet.u_r;
    if (service < gap) return {1, packet.one_way + (k - 1) * gap};
    return {2, packet.one_way + (k - 1) * service};
}

}  // namespace bench
