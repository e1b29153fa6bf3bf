// SPDX-License-Identifier: Apache-2.0
//
// The ports, by variant, each as a program written for it would use it; each is used in processes
// of its own, since one with threads makes the endpoint's lock necessary, which those without do
// not have to pay for.
//
//   fm4, fm1, fm2    FM_send_4: four words; FM_send of FM 1.0: one frame; FM 2.x: one piece out,
//                    one FM_receive in
//   fm4_handlers, fm2_handlers   the same to a thousand handlers in an order that no table of
//                    branches foresees
//   gamma            an active port, whose handler signals: the paper's synchronous receive
//   dp, dp_pool      raw: the reader answers often enough for nothing to be dropped; with a pool
//                    for 8 MiB that nobody has read
//   gamma_beside, dp_beside   bbp_send in a process that has this port, whose thread it pays for
#include "bench/systems/ring.hpp"

#include <dp/dp.h>
#include <fm/fm1.h>
#include <fm/fm2.h>
#include <gamma/libgamma.h>

#include <array>
#include <cerrno>
#include <random>

namespace {

using namespace bench;

constexpr std::size_t kMaxHandlers = 1000;
constexpr std::size_t kMax = 65536;  ///< of a message here

/// What has come: how many messages, and the last one's first word, which proves an echo.
struct {
    int messages = 0;
    std::uint64_t word = 0;
} arrived;

/// Moving the bytes is paid by those that read them in place, too: a word of each line.
void arrive(const void* bytes, std::size_t size) {
    const std::uint64_t sum = look_at(bytes, size);
    asm volatile("" : : "r"(sum));
    std::memcpy(&arrived.word, bytes, std::min(size, sizeof arrived.word));
    ++arrived.messages;
}
void hand_over(void* data, std::size_t size) {
    std::memcpy(data, &arrived.word, std::min(size, sizeof arrived.word));
}

struct Port : Unique {
    Port(const Setup&, int rank) : peer(1 - rank) {}
    static void barrier() { checked(bbp_barrier()); }
    int peer;
};

// ---- Fast Messages

template <std::size_t number>
void on_words(int i0, int i1, int i2, int i3) {
    asm volatile("" : : "i"(number));  // no two have the same code, which linkers would fold
    const int words[] = {i0, i1, i2, i3};
    arrive(words, sizeof words);
}
void on_buffer(void* bytes, int size) {
    arrive(bytes, std::size_t(size));
}
/// Of FM 2.x, whose handlers are not told how long a message is.
std::size_t awaited_bytes;
template <std::size_t number>
int on_stream(FM_stream* stream, unsigned) {
    asm volatile("" : : "i"(number));
    alignas(kLineBytes) static std::byte into[kMax];
    FM_receive(into, stream, unsigned(awaited_bytes));
    std::memcpy(&arrived.word, into, sizeof arrived.word);
    ++arrived.messages;
    return FM_CONTINUE;
}
template <std::size_t... numbers>
constexpr auto all_words(std::index_sequence<numbers...>) {
    return std::array<FM_handler4, sizeof...(numbers)>{on_words<numbers>...};
}
template <std::size_t... numbers>
constexpr auto all_streams(std::index_sequence<numbers...>) {
    return std::array<FM_handler*, sizeof...(numbers)>{on_stream<numbers>...};
}
constexpr auto kWords = all_words(std::make_index_sequence<kMaxHandlers>{});
constexpr auto kStreams = all_streams(std::make_index_sequence<kMaxHandlers>{});

/// To `handlers` of them, one after the other in random order.
class FastMessages : public Port {
public:
    FastMessages(const Setup& setup, int rank) : Port(setup, rank) {
        FM_initialize();
        require(FM_numnodes != 0, "FM_initialize", [] { return bbp_last_error(); });
        order_.resize(setup.variant.ends_with("_handlers") ? kMaxHandlers : 1);
        std::iota(order_.begin(), order_.end(), 0);
        std::shuffle(order_.begin(), order_.end(), std::mt19937(1));
    }
    ~FastMessages() { FM_finalize(); }

protected:
    std::size_t next() {
        at_ = at_ + 1 == order_.size() ? 0 : at_ + 1;
        return order_[at_];
    }
    template <class Extract>
    static void receive_by(Extract&& extract, void* data, std::size_t size) {
        while (arrived.messages == 0) extract();
        --arrived.messages;
        hand_over(data, size);
    }

private:
    std::vector<std::size_t> order_;
    std::size_t at_ = 0;
};

struct Fm4 : FastMessages {
    using FastMessages::FastMessages;
    void send(const void* data, std::size_t size) {
        int words[4] = {};
        std::memcpy(words, data, std::min(size, sizeof words));
        FM_send_4(peer, kWords[next()], words[0], words[1], words[2], words[3]);
    }
    static void receive(void* data, std::size_t size) {
        receive_by([] { FM_extract(); }, data, size);
    }
};

struct Fm1 : FastMessages {
    using FastMessages::FastMessages;
    void send(const void* data, std::size_t size) {
        FM_send(peer, on_buffer, const_cast<void*>(data), int(size));
    }
    static void receive(void* data, std::size_t size) {
        receive_by([] { FM_extract(); }, data, size);
    }
};

class Fm2 : public FastMessages {
public:
    Fm2(const Setup& setup, int rank) : FastMessages(setup, rank) {
        for (FM_handler* const handler : kStreams)
            ids_.push_back(FM_register_handler(FM_ANY_ID, handler));
    }
    void send(const void* data, std::size_t size) {
        FM_stream* const stream = FM_begin_message(ULONG(peer), size, ids_[next()]);
        require(stream != nullptr, "FM_begin_message", [] { return bbp_last_error(); });
        FM_send_piece(stream, const_cast<void*>(data), size);
        FM_end_message(stream);
    }
    static void receive(void* data, std::size_t size) {
        awaited_bytes = size;
        receive_by([] { FM_extract(~0UL); }, data, size);
    }

private:
    std::vector<ULONG> ids_;
};

// ---- GAMMA and Directed Point

class Gamma : public Port {
public:
    Gamma(const Setup& setup, int rank) : Port(setup, rank) {
        // The host may take the receiver away for longer than gamma_send waits by default.
        setenv("RMEM_GAMMA", "patience=10s", 0);
        check(gamma_init(static_cast<unsigned char>(setup.ranks), 0, nullptr));
        check(gamma_setport(kPort, 0, peer, kPort, on_arrival, on_error, landing_.data(),
                            int(landing_.size())));
        check(gamma_sync());
    }
    ~Gamma() { gamma_exit(); }
    static void send(const void* data, std::size_t size) {
        check(gamma_send(kPort, const_cast<void*>(data), size));
    }
    void receive(void* data, std::size_t size) {
        check(gamma_wait(kPort, 1));
        std::memcpy(data, landing_.data(), std::min(size, sizeof(std::uint64_t)));
    }
    static void barrier() { check(gamma_sync()); }

private:
    static constexpr unsigned short kPort = 5;
    static void on_arrival() { gamma_signal(kPort); }
    static void on_error() { gamma_sigerr(kPort); }  // a waiting caller hears of what was lost
    static void check(int result) {
        require(result >= 0, "gamma", [] { return gamma_last_error(); });
    }
    std::vector<std::byte> landing_ = std::vector<std::byte>(kMax);
};

class Dp : public Port {
public:
    Dp(const Setup& setup, int rank) : Port(setup, rank), fd_(dp_open(1)) {
        require(fd_ >= 0, "dp_open", [] { return dp_last_error(); });
        dpmmap_t pool{nullptr, kPoolBytes};
        if (setup.variant == "dp_pool")
            require(dp_mmap(fd_, &pool) >= 0, "dp_mmap", [] { return std::strerror(errno); });
        checked(bbp_barrier());
        dp_target(fd_, peer, 1);
    }
    ~Dp() { dp_close(fd_); }
    void send(const void* data, std::size_t size) {
        // Full for long where the host has taken the receiver away: nothing was sent.
        while (dp_write(fd_, const_cast<void*>(data), int(size)) < 0)
            require(errno == ENOBUFS, "dp_write", [] { return std::strerror(errno); });
    }
    void receive(void* data, std::size_t size) {
        char* at = nullptr;
        const int length = dp_read(fd_, &at);
        require(length >= 0, "dp_read", [] { return std::strerror(errno); });
        arrive(at, std::size_t(length));
        dp_fsync(fd_, 1);
        hand_over(data, size);
    }

private:
    static constexpr std::size_t kPoolBytes = 8U << 20U;  ///< of messages that nobody has read
    int fd_;
};

// ---- What is measured

/// In its ring, from when both ranks have it until neither needs it.
template <class System>
class PortChannel : Joined, public System {
public:
    PortChannel(const Setup& setup, const std::string& ring, int rank)
        : Joined(setup, ring, rank), System(setup, rank) {
        checked(bbp_barrier());
    }
    ~PortChannel() { bbp_barrier(); }
};

template <class System>
struct Beside : System, BillboardChannel {
    Beside(const Setup& setup, int rank)
        : System(setup, rank), BillboardChannel(rank, setup.ranks) {}
    using BillboardChannel::barrier;
    using BillboardChannel::receive;
    using BillboardChannel::send;
};

template <class System>
int measure_port(const Setup& setup) {
    const std::string ring = name_of_ring();
    return measure_ranks(
        setup, [&](int rank, Meeting&) { return PortChannel<System>(setup, ring, rank); },
        Pinned::when_joined);
}

constexpr std::pair<const char*, int (*)(const Setup&)> kPorts[] = {
    {"fm4", measure_port<Fm4>},
    {"fm4_handlers", measure_port<Fm4>},
    {"fm1", measure_port<Fm1>},
    {"fm2", measure_port<Fm2>},
    {"fm2_handlers", measure_port<Fm2>},
    {"gamma", measure_port<Gamma>},
    {"dp", measure_port<Dp>},
    {"dp_pool", measure_port<Dp>},
    {"gamma_beside", measure_port<Beside<Gamma>>},
    {"dp_beside", measure_port<Beside<Dp>>}};

}  // namespace

int bench::measure(const Setup& setup) {
    for (const auto& [name, start] : kPorts)
        if (setup.variant == name) return start(setup);
    fail("BENCH_VARIANT names no port");
}
