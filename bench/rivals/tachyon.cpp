// SPDX-License-Identifier: Apache-2.0
//
// Tachyon, whose sources are given to CMake: a bus for each direction, both ends spin.
#include "method.hpp"

#include <tachyon.h>

namespace {

using namespace rivals;

constexpr std::size_t capacity = std::size_t{1} << 18;  // a larger one is not in the cache
constexpr std::size_t piece_bytes = capacity / 64;      // of which 32 may be read and not yet told

void check(tachyon_error_t result, const char* what) {
    require(result == TACHYON_SUCCESS, std::string(what) + ": error " + std::to_string(result));
}

class Bus {
public:
    static Bus listen(const std::string& path) {
        Bus bus;
        check(tachyon_bus_listen(path.c_str(), capacity, &bus.bus_), "tachyon_bus_listen");
        return bus;
    }
    static Bus connect(const std::string& path) {
        Bus bus;
        while (access(path.c_str(), F_OK) != 0) usleep(1000);
        for (int tries = 1000; tries > 0; --tries, usleep(1000))
            if (tachyon_bus_connect(path.c_str(), &bus.bus_) == TACHYON_SUCCESS) return bus;
        throw std::runtime_error("tachyon_bus_connect: nobody listens");
    }
    Bus(Bus&& other) noexcept : bus_(std::exchange(other.bus_, nullptr)) {}
    Bus& operator=(Bus&&) = delete;
    ~Bus() {
        if (bus_ != nullptr) tachyon_bus_destroy(bus_);
    }
    tachyon_bus_t* get() const { return bus_; }

private:
    Bus() = default;
    tachyon_bus_t* bus_ = nullptr;
};

class TachyonChannel {
public:
    TachyonChannel(int rank, const std::string& there, const std::string& back)
        : there_(rank == 0 ? Bus::listen(there) : Bus::connect(there)),
          back_(rank == 0 ? Bus::connect(back) : Bus::listen(back)),
          out_(rank == 0 ? there_ : back_),
          in_(rank == 0 ? back_ : there_) {
        tachyon_bus_set_polling_mode(out_.get(), 1);
        tachyon_bus_set_polling_mode(in_.get(), 1);
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
    void finish_sends() { tachyon_flush(out_.get()); }

    void receive(void* data, std::size_t size) {
        auto* to = static_cast<std::byte*>(data);
        for (std::size_t got = 0, here; got < std::max<std::size_t>(size, 1); got += here) {
            here = receive_piece(to + got);
        }
    }

private:
    void post_piece(const std::byte* from, std::size_t size) {
        void* place;
        while ((place = tachyon_acquire_tx(out_.get(), size)) == nullptr) {
            finish_sends();
            relax();
        }
        std::memcpy(place, from, size);
        check(tachyon_commit_tx(out_.get(), size, 1), "tachyon_commit_tx");
    }
    std::size_t receive_piece(std::byte* to) {
        std::uint32_t type = 0;
        std::size_t size = 0;
        const void* place;
        while ((place = tachyon_acquire_rx_spin(in_.get(), &type, &size, 10'000)) == nullptr) {
        }
        std::memcpy(to, place, size);
        check(tachyon_commit_rx(in_.get()), "tachyon_commit_rx");
        return size;
    }

    Bus there_, back_;
    Bus& out_;
    Bus& in_;
};

int measure(const Options& options) {
    const System system{"tachyon", RIVAL_VERSION};
    ScratchDirectory scratch;
    const std::string there = scratch.file("there"), back = scratch.file("back");
    return measure_pair(system, options,
                        [&](int rank, Meeting&) { return TachyonChannel(rank, there, back); });
}

}  // namespace

int main(int argc, char** argv) {
    return guarded("tachyon", [&] {
        return measure(parse_options(argc, argv, "Tachyon: a bus for each direction"));
    });
}
