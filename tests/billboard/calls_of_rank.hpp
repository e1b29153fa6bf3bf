// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/support/conformance.hpp"

#include <cstddef>
#include <vector>

namespace rmem::test {

/// A call that names a rank, and gives it nothing.
struct CallOfRank {
    const char* name;
    bool asks;  ///< for a message
    int (*call)(int rank);
};
inline const std::vector<CallOfRank>& calls_of_rank() {
    static std::byte buffer[64] = {};
    static std::size_t size = 0;
    static const void* data = nullptr;
    static const std::vector<CallOfRank> all = {
        {"bbp_recv", true, [](int r) { return bbp_recv(r, buffer, sizeof buffer, &size); }},
        {"bbp_tryrecv", true, [](int r) { return bbp_tryrecv(r, buffer, sizeof buffer, &size); }},
        {"bbp_recv_for", true,
         [](int r) { return bbp_recv_for(r, buffer, sizeof buffer, &size, kLong); }},
        {"bbp_view", true, [](int r) { return bbp_view(r, &data, &size); }},
        {"bbp_tryview", true, [](int r) { return bbp_tryview(r, &data, &size); }},
        {"bbp_view_for", true, [](int r) { return bbp_view_for(r, &data, &size, kLong); }},
        {"bbp_msgavail", true, [](int r) { return bbp_msgavail(r); }},
        {"bbp_probe", true, [](int r) { return bbp_probe(r, &size); }},
        {"bbp_send", false, [](int r) { return bbp_send(r, buffer, 8); }},
        {"bbp_trysend", false, [](int r) { return bbp_trysend(r, buffer, 8); }},
        {"bbp_send_for", false, [](int r) { return bbp_send_for(r, buffer, 8, kLong); }},
        {"bbp_mcast", false, [](int r) { return bbp_mcast(&r, 1, buffer, 8); }},
        {"bbp_trymcast", false, [](int r) { return bbp_trymcast(&r, 1, buffer, 8); }},
        {"bbp_mcast_for", false, [](int r) { return bbp_mcast_for(&r, 1, buffer, 8, kLong); }}};
    return all;
}

}  // namespace rmem::test
