// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A rank of a ring of our own, on the link that the environment names, for the systems that use
/// it.

#include "bench/harness/steps.hpp"

#include <billboard/bbp.h>

#include <numeric>
#include <string>
#include <vector>

namespace bench {

inline void check_bbp(int result) {
    require(result >= 0, "bbp", [] { return bbp_last_error(); });
}
inline std::string name_of_ring() {
    return "bench-" + std::to_string(getpid());
}

/// Joined until it is destroyed.
class Joined : Unique {
public:
    Joined(const Setup& setup, const std::string& ring, int rank) {
        setenv("RMEM_RING", ring.c_str(), 1);
        setenv("RMEM_RANKS", std::to_string(setup.ranks).c_str(), 1);
        setenv("RMEM_RANK", std::to_string(rank).c_str(), 1);
        check_bbp(bbp_init(nullptr, nullptr));
    }
    ~Joined() { bbp_finalize(); }
};

/// The billboard's calls between ranks that have joined.
class BillboardChannel {
public:
    BillboardChannel(int rank, int ranks)
        : rank_(rank), other_(rank == 0 ? 1 : 0), others_(std::size_t(ranks) - 1) {
        std::iota(others_.begin(), others_.end(), 1);
    }

    void send(const void* data, std::size_t size) { send_to(other_, data, size); }
    bool try_send(const void* data, std::size_t size) {
        const int result = bbp_trysend(other_, data, size);
        if (result != BBP_EAGAIN) check_bbp(result);
        return result != BBP_EAGAIN;
    }
    void receive(void* data, std::size_t size) {
        std::size_t found = 0;
        check_bbp(bbp_recv(other_, data, size, &found));
    }
    template <class Look>
    void receive_view(std::size_t, Look&& look) {
        const void* data = nullptr;
        std::size_t size = 0;
        check_bbp(bbp_view(other_, &data, &size));
        look(data);
        check_bbp(bbp_release(data));
    }
    void send_to(int rank, const void* data, std::size_t size) {
        check_bbp(bbp_send(rank, data, size));
    }
    void receive_any(void* data, std::size_t size) {
        check_bbp(bbp_recv(BBP_ANY, data, size, nullptr));
    }
    void multicast(void* data, std::size_t size) {
        if (rank_ == 0)
            check_bbp(bbp_mcast(others_.data(), int(others_.size()), data, size));
        else
            check_bbp(bbp_recv(0, data, size, nullptr));
    }
    /// So that further ranks wait as ranks do.
    void share(std::uint64_t& word) { multicast(&word, sizeof word); }
    void barrier() { check_bbp(bbp_barrier()); }

private:
    int rank_, other_;
    std::vector<int> others_;
};

}  // namespace bench
