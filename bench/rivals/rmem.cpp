// SPDX-License-Identifier: Apache-2.0
//
// rmem itself, by the rivals' method: the billboard through its C library, on the direct link or on
// the one that RMEM_LINK names.
#include "method.hpp"
#include "node_process.hpp"

#include <billboard/bbp.h>

#include <numeric>

namespace {

using namespace rivals;

void check(int result) {
    require(result >= 0, bbp_last_error());
}

class BillboardChannel {
public:
    BillboardChannel(int rank, const std::string& ring, int ranks)
        : node_(ring, rank), rank_(rank), other_(1 - rank), others_(std::size_t(ranks) - 1) {
        std::iota(others_.begin(), others_.end(), 1);
        setenv("RMEM_RING", ring.c_str(), 1);
        setenv("RMEM_RANKS", std::to_string(ranks).c_str(), 1);
        setenv("RMEM_RANK", std::to_string(rank).c_str(), 1);
        check(bbp_init(nullptr, nullptr));
    }
    ~BillboardChannel() { bbp_finalize(); }
    BillboardChannel(const BillboardChannel&) = delete;
    BillboardChannel& operator=(const BillboardChannel&) = delete;

    void send(const void* data, std::size_t size) { check(bbp_send(other_, data, size)); }

    void receive(void* data, std::size_t size) {
        std::size_t found = 0;
        check(bbp_recv(other_, data, size, &found));
    }

    template <class Consumer>
    void receive_view(std::size_t, Consumer consume) {
        const void* data = nullptr;
        std::size_t size = 0;
        check(bbp_view(other_, &data, &size));
        consume(data);
        check(bbp_release(data));
    }

    void send_to(int rank, const void* data, std::size_t size) {
        check(bbp_send(rank, data, size));
    }
    void receive_any(void* data, std::size_t size) {
        check(bbp_recv(BBP_ANY, data, size, nullptr));
    }
    void multicast(void* data, std::size_t size) { share(data, size); }

    void barrier() { check(bbp_barrier()); }

    void share(void* data, std::size_t size) {
        if (rank_ == 0)
            check(bbp_mcast(others_.data(), int(others_.size()), data, size));
        else
            check(bbp_recv(0, data, size, nullptr));
    }

private:
    NodeProcess node_;  // first: it is there until the rank has left
    int rank_, other_;
    std::vector<int> others_;
};

/// A barrier of more than two, which share the two CPUs.
int measure_many(const System& system, const Options& options, const std::string& ring) {
    return in_processes(options, options.ranks, [&](int rank) {
        BillboardChannel channel(rank, ring, options.ranks);
        measure_channel(system, channel, rank, options.ranks, options);
        peer_may_leave = 1;
        channel.barrier();
    });
}

}  // namespace

int main(int argc, char** argv) {
    return guarded("rmem", [&] {
        const Options options = parse_options(argc, argv, "rmem: the billboard");
        const std::string ring = "rivals-" + std::to_string(getpid());
        const System system{"rmem", "0.1.0"};
        if (options.ranks > 2) return measure_many(system, options, ring);
        return measure_pair(system, options,
                            [&](int rank, Meeting&) { return BillboardChannel(rank, ring, 2); });
    });
}
