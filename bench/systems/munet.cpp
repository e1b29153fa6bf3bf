// SPDX-License-Identifier: Apache-2.0
//
// MU-Net: rank 0 has the sending and the receiving endpoint and polls; rank 1 is the daemon, on
// another processor. So each message makes its two hops between processors, and none of the three
// has to share one. By variant:
//   munet, munet_N   `relay`: a message of 8 bytes, with N further endpoints open that nobody uses
//   munet_dma        `call` of 64 KiB: mu_send_DMA, with buffers that have room for it
//   relay            the floor: rank 1 is a bare relay over two cache lines; `call` is a copy as
//                    mu_send_DMA makes it, into memory that another processor has read since it was
//                    written
#include "bench/harness/harness.hpp"

#include "ports/munet/daemon.hpp"
#include "ports/munet/munet.h"

#include <cerrno>
#include <cstdlib>
#include <memory>

namespace {

using namespace bench;

constexpr std::size_t kLongBytes = 65536;

struct alignas(kLineBytes) Line {
    std::atomic<std::uint64_t> word{0};
};
struct Shared {
    Line there, arrived;
    Line asked, read;  ///< a copy that rank 1 is to read, counting on from 1
    Line stop;
    char copies[4][kLongBytes];
};

class Served : Unique {
public:
    explicit Served(Shared& shared) : shared_(shared) {}
    void finish() {
        shared_.stop.word = 1;
        while (shared_.stop.word != 0) cpu_relax();
    }

protected:
    template <class Turn>
    void serve_by(Turn&& turn) {
        while (shared_.stop.word == 0) repeat(100, turn);
        shared_.stop.word = 0;
    }
    Shared& shared_;
};

class RelayChannel : public Served {
public:
    explicit RelayChannel(Shared& shared) : Served(shared) {}

    void call(std::size_t size) {
        ++number_;
        if (size < kLongBytes)
            shared_.there.word.store(number_, std::memory_order_release);
        else
            std::memcpy(shared_.copies[number_ % 4], mine_.data(), kLongBytes);
    }
    void settle(std::size_t size) {
        if (size < kLongBytes) {
            while (shared_.arrived.word.load(std::memory_order_acquire) != number_) cpu_relax();
        } else {
            shared_.asked.word = number_;
            while (shared_.read.word != number_) cpu_relax();
        }
    }
    void serve() {
        std::uint64_t last = shared_.arrived.word;
        serve_by([&] {
            const std::uint64_t word = shared_.there.word.load(std::memory_order_acquire);
            if (word != last) {
                last = word;
                shared_.arrived.word.store(word, std::memory_order_release);
            } else if (const std::uint64_t copy = shared_.asked.word; copy != shared_.read.word) {
                std::memcpy(mine_.data(), shared_.copies[copy % 4], kLongBytes);
                shared_.read.word = copy;
            } else {
                cpu_relax();
            }
        });
    }

private:
    std::vector<char> mine_ = std::vector<char>(kLongBytes);
    std::uint64_t number_ = 0;
};

class MuNetChannel : public Served {
public:
    MuNetChannel(Shared& shared, int rank, Meeting& meeting, const std::string& path,
                 const std::string& variant)
        : Served(shared) {
        const bool is_long = variant == "munet_dma";
        if (rank == 1) {
            ports::munet::DaemonConfig config;
            config.driver.path = path;
            config.spin = true;
            daemon_ = std::make_unique<ports::munet::Daemon>(config, nullptr);
            meeting.meet();
            serve();
            return;
        }
        meeting.meet();
        setenv("RMEM_MUNET", path.c_str(), 1);
        const std::size_t room = is_long ? 64 * kLongBytes : kLongBytes;
        out_ = open(is_long ? 4 * kLongBytes : 4096, room), in_ = open(4096, room);
        const std::size_t mark = variant.find_last_of('_') + 1;
        for (int further = std::atoi(variant.c_str() + mark); further > 0; --further)
            open(0, kLongBytes);
        check(mu_address(in_, &to_));
        finish();
    }
    ~MuNetChannel() {
        for (mu_endpoint_t* const each : all_) mu_destroy_endpoint(each);
    }

    void call(std::size_t size) {
        ++number_;
        if (size < kLongBytes)
            check(mu_send(out_, to_, &number_, sizeof number_));
        else
            check(mu_send_DMA(out_, to_, text_.data(), kLongBytes));
    }
    void settle(std::size_t size) {
        std::uint64_t found = number_;
        void* const to = size < kLongBytes ? &found : static_cast<void*>(text_.data());
        while (mu_recv(in_, to, std::max(size, sizeof found), nullptr) == -EAGAIN) cpu_relax();
        require(found == number_, "a message came out of order");
    }
    void serve() {
        serve_by([&] { daemon_->run_for(0); });
    }

private:
    static void check(int result) {
        require(result >= 0, "MU-Net", [] { return mu_last_error(); });
    }
    mu_endpoint_t* open(std::size_t send_bytes, std::size_t receive_bytes) {
        check(mu_create_endpoint(&all_.emplace_back(), send_bytes, receive_bytes));
        return all_.back();
    }

    std::unique_ptr<ports::munet::Daemon> daemon_;
    std::vector<mu_endpoint_t*> all_;
    mu_endpoint_t *out_ = nullptr, *in_ = nullptr;
    mu_addr_t to_{};
    std::uint64_t number_ = 0;
    std::vector<char> text_ = std::vector<char>(kLongBytes, 'x');
};

}  // namespace

int bench::measure(const Setup& setup) {
    const Common<Shared> common;
    Shared& memory = *common;
    if (setup.variant == "relay")
        return measure_ranks(setup, [&](int, Meeting&) { return RelayChannel(memory); });
    const std::string path = scratch_file("munet.sock");
    return measure_ranks(setup, [&](int rank, Meeting& meeting) {
        return MuNetChannel(memory, rank, meeting, path, setup.variant);
    });
}
