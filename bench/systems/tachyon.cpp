// SPDX-License-Identifier: Apache-2.0
//
// Tachyon, whose sources are given to CMake: a bus for each direction, both ends spin.
#include "bench/harness/harness.hpp"

#include <tachyon.h>

namespace {

using namespace bench;

constexpr std::size_t capacity = std::size_t{1} << 18;  // a larger one is not in the cache
constexpr std::size_t piece_bytes = capacity / 64;      // of which 32 may be read and not yet told

void check(tachyon_error_t result, const char* what) {
    require(result == TACHYON_SUCCESS, what, [&] { return "error " + std::to_string(result); });
}

tachyon_bus_t* listen_at(const std::string& path) {
    tachyon_bus_t* bus = nullptr;
    check(tachyon_bus_listen(path.c_str(), capacity, &bus), "tachyon_bus_listen");
    return bus;
}
tachyon_bus_t* connect_to(const std::string& path) {
    tachyon_bus_t* bus = nullptr;
    while (access(path.c_str(), F_OK) != 0) usleep(1000);
    for (int tries = 1000; tries > 0; --tries, usleep(1000))
        if (tachyon_bus_connect(path.c_str(), &bus) == TACHYON_SUCCESS) return bus;
    fail("tachyon_bus_connect: nobody listens");
}

class TachyonChannel : Unique {
public:
    TachyonChannel(int rank, const std::string& there, const std::string& back) {
        if (rank == 0) {
            out_ = listen_at(there);
            in_ = connect_to(back);
        } else {
            in_ = connect_to(there);
            out_ = listen_at(back);
        }
        tachyon_bus_set_polling_mode(out_, 1);
        tachyon_bus_set_polling_mode(in_, 1);
    }
    ~TachyonChannel() {
        tachyon_bus_destroy(out_);
        tachyon_bus_destroy(in_);
    }

    void send(const void* data, std::size_t size) {
        post_send(data, size);
        finish_sends();
    }
    void post_send(const void* data, std::size_t size) {
        const auto* from = static_cast<const std::byte*>(data);
        for (; size > piece_bytes; from += piece_bytes, size -= piece_bytes)
            post_piece(from, piece_bytes);
        post_piece(from, std::max<std::size_t>(size, 1));  // it has no empty message
    }
    void finish_sends() { tachyon_flush(out_); }

    void receive(void* data, std::size_t size) {
        auto* to = static_cast<std::byte*>(data);
        for (std::size_t got = 0, here; got < std::max<std::size_t>(size, 1); got += here) {
            here = receive_piece(to + got);
        }
    }

private:
    void post_piece(const std::byte* from, std::size_t size) {
        void* place;
        while ((place = tachyon_acquire_tx(out_, size)) == nullptr) {
            finish_sends();
            cpu_relax();
        }
        std::memcpy(place, from, size);
        check(tachyon_commit_tx(out_, size, 1), "tachyon_commit_tx");
    }
    std::size_t receive_piece(std::byte* to) {
        std::uint32_t type = 0;
        std::size_t size = 0;
        const void* place;
        while ((place = tachyon_acquire_rx_spin(in_, &type, &size, 10'000)) == nullptr) {
        }
        std::memcpy(to, place, size);
        check(tachyon_commit_rx(in_), "tachyon_commit_rx");
        return size;
    }

    tachyon_bus_t *out_ = nullptr, *in_ = nullptr;
};

}  // namespace

int bench::measure(const Setup& setup) {
    const std::string there = scratch_file("there"), back = scratch_file("back");
    return measure_ranks(setup,
                         [&](int rank, Meeting&) { return TachyonChannel(rank, there, back); });
}
