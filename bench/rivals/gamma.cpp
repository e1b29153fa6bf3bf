// SPDX-License-Identifier: Apache-2.0
//
// GAMMA by the rivals' method, beside the billboard that it stands on: `run --with-program "gamma=… --cpus {cpus}"`, and with
// --over udp the environment of rmem_udp_no_key.
#include "method.hpp"
#include "node_process.hpp"

#include <gamma/libgamma.h>

namespace {

using namespace rivals;

constexpr unsigned short port = 5;

void check(int result) {
    require(result >= 0, gamma_last_error());
}

/// The buffers that the handler binds in turn: as many as messages may come before the program looks.
struct Landing {
    std::vector<std::byte> bytes;
    std::size_t stride = 0, places = 0, next = 0;

    std::byte* place(std::size_t i) { return bytes.data() + i % places * stride; }
};
Landing landing;

void came() {
    gamma_post_recv(port, landing.place(++landing.next), landing.stride);
    gamma_signal(port);
}

class GammaChannel {
public:
    GammaChannel(int rank, const std::string& ring, const Options& options) : node_(ring, rank) {
        setenv("RMEM_RING", ring.c_str(), 1);
        setenv("RMEM_RANKS", "2", 1);
        setenv("RMEM_RANK", std::to_string(rank).c_str(), 1);
        check(gamma_init(2, 0, nullptr));
        landing.stride = std::max({options.message_bytes, options.bytes, std::size_t{64}});
        landing.places = options.window + 2;
        landing.bytes.resize(landing.stride * landing.places);
        check(gamma_setport(port, 0, 1 - rank, port, came, nullptr, landing.place(0),
                            int(landing.stride)));
        check(gamma_sync());
    }
    ~GammaChannel() { gamma_exit(); }
    GammaChannel(const GammaChannel&) = delete;
    GammaChannel& operator=(const GammaChannel&) = delete;

    void send(const void* data, std::size_t size) {
        check(gamma_send_flowctl(port, const_cast<void*>(data), size));
    }

    void receive(void* data, std::size_t size) {
        receive_view(size, [&](const void* from) { std::memcpy(data, from, size); });
    }

    template <class Consumer>
    void receive_view(std::size_t, Consumer consume) {
        check(gamma_wait(port, 1));
        consume(landing.place(taken_++));
    }

    void barrier() { check(gamma_sync()); }

private:
    NodeProcess node_;  // first: it is there until the rank has left
    std::size_t taken_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
    return guarded("gamma", [&] {
        const Options options = parse_options(argc, argv, "GAMMA on the billboard");
        const std::string ring = "rivals-gamma-" + std::to_string(getpid());
        return measure_pair(System{"gamma", "0.1.0"}, options,
                            [&](int rank, Meeting&) { return GammaChannel(rank, ring, options); });
    });
}
