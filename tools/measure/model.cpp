// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/model.hpp"

#include "billboard/bbp.h"
#include "dp/dp.h"
#include "rmem/base/clock.hpp"
#include "rmem/ring/waiting.hpp"

#include <fcntl.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <numeric>

namespace bench {

namespace {

using rmem::now_ns;

constexpr std::size_t kIterations = 200;
constexpr std::size_t kFill = 32;              ///< messages of a stream, until the network is full
constexpr std::size_t kStream = 64;            ///< and those that are timed
constexpr std::size_t kColdBytes = 64U << 20;  ///< more than caches hold
constexpr std::size_t kComputing =
    10'000'000;  ///< steps of a computation: some ten ms, more than it takes to be attended
constexpr std::size_t kPoolBytes =
    16U << 20;  ///< a stream finds room, even if the host takes its reader's processor
constexpr int kDpid = 1, kQuiet = 2;
constexpr std::array kSizes = {1, 64, 256, 512, 1024, 1500, 4096};

/// Of the middle 80 %.
double middle(std::vector<double> values) {
    std::sort(values.begin(), values.end());
    const auto tenth = static_cast<std::ptrdiff_t>(values.size() / 10);
    const auto from = values.begin() + tenth, to = values.end() - tenth;
    return std::accumulate(from, to, 0.0) / static_cast<double>(to - from);
}

double median(std::vector<double> values) {
    const auto half = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), half, values.end());
    return *half;
}

template <class Operation>
double own_time_of(Operation&& operation) {
    const std::int64_t start = now_ns();
    operation();
    return static_cast<double>(now_ns() - start);
}

/// Of the processor, which other threads of this process have used meanwhile.
template <class Operation>
double others_time_of(Operation&& operation) {
    const auto ns_of = [](clockid_t clock) {
        timespec t{};
        clock_gettime(clock, &t);
        return std::int64_t{t.tv_sec} * 1'000'000'000 + t.tv_nsec;
    };
    const auto others_ns = [&] {
        return ns_of(CLOCK_PROCESS_CPUTIME_ID) - ns_of(CLOCK_THREAD_CPUTIME_ID);
    };
    const auto start = others_ns();
    operation();
    return static_cast<double>(others_ns() - start);
}

template <class Operation>
double gap_of(std::size_t times, Operation&& operation) {
    return own_time_of([&] {
               for (std::size_t n = 0; n < times; ++n) operation();
           }) /
           static_cast<double>(times);
}

/// The cost of a look at the clock is in each of them once.
double clock_ns() {
    std::vector<double> looks;
    for (std::size_t i = 0; i < kIterations; ++i) looks.push_back(own_time_of([] {}));
    return middle(looks);
}

void need(int result, const char* call) {
    if (result >= 0) return;
    throw rmem::Error(rmem::Errc::system, std::string(call) + ": " + std::strerror(errno));
}

class Model {
public:
    /// `is_direct`: a store is the transfer. `has_senders`: g_r is measured with more of them.
    Model(RankContext& rank, bool is_direct, bool has_senders)
        : rank_(rank),
          is_direct_(is_direct),
          has_senders_(has_senders),
          peer_(1 - static_cast<int>(rank.rank)) {}

    void run() {
        one_way_of_bbp();
        if (rank_.rank < 2) buffers();
        checked(bbp_barrier());
        if (rank_.rank < 2) {
            fd_ = dp_open(kDpid);
            quiet_ = dp_open(kQuiet);
            if (fd_ < 0 || quiet_ < 0) throw rmem::Error(rmem::Errc::system, dp_last_error());
            dpmmap_t pool{nullptr, kPoolBytes};
            need(dp_mmap(fd_, &pool), "dp_mmap");
            dp_target(fd_, peer_, kDpid);
            dp_target(quiet_, peer_, kQuiet);
            fcntl(quiet_, F_SETFL, O_NONBLOCK);
            dp_parameters();
        }
        if (rank_.rank != 0) return;
        copies();
        for (const auto& [name, values] : series_) rank_.results.put(name, values);
    }

private:
    bool is_sender() const { return rank_.rank == 0; }
    void say(const std::string& name, double value) { series_[name].push_back(value); }

    // ---- One message at a time
    void write(int bytes) { write_to(fd_, bytes); }
    /// A network that stays full is waited for: the reader computes, or others have its processor.
    void write_to(int fd, int bytes) {
        int written = 0;
        do written = dp_write(fd, message_.data(), bytes);
        while (written < 0 && errno == ENOBUFS);
        need(written, "dp_write");
    }
    int read() {
        char* at = nullptr;
        const int length = dp_read(fd_, &at);
        need(length, "dp_read");
        dp_fsync(fd_, 1);
        return length;
    }
    void meet() {  // by dp alone, since bbp would take its messages aside
        if (is_sender()) {
            write(1);
            read();
        } else {
            read();
            write(1);
        }
    }

    void one_way_of_bbp() {
        if (rank_.rank > 1) return;
        char byte[8] = {};
        std::vector<double> trips;
        for (std::size_t i = 0; i < 10 * kIterations; ++i) {
            trips.push_back(own_time_of([&] {
                                for (int n = 0; n < 20; ++n) {
                                    if (is_sender()) bbp_send(peer_, byte, 8);
                                    bbp_recv(peer_, byte, 8, nullptr);
                                    if (!is_sender()) bbp_send(peer_, byte, 8);
                                }
                            }) /
                            40);
        }
        say("bbp_8", middle(trips));
    }
    double one_way(int bytes) {
        std::vector<double> trips;
        for (std::size_t i = 0; i < 10 * kIterations; ++i) {
            trips.push_back(own_time_of([&] {
                                for (int n = 0; n < 20; ++n) {
                                    if (is_sender()) write(bytes);
                                    read();
                                    if (!is_sender()) write(bytes);
                                }
                            }) /
                            40);
        }
        return middle(trips);
    }

    /// How much the network takes while nobody receives.
    void buffers() {
        for (const int bytes : kSizes) {
            std::size_t count = 0;
            if (is_sender()) {
                while (count < 100'000 &&
                       bbp_send_for(peer_, message_.data(), static_cast<std::size_t>(bytes),
                                    20'000'000) == BBP_OK)
                    ++count;
                say("B_L", static_cast<double>(count) * bytes);
                checked(bbp_barrier_group(kPair, 2, 1));
                checked(bbp_barrier_group(kPair, 2, 1));
            } else {
                checked(bbp_barrier_group(kPair, 2, 1));
                while (bbp_recv_for(peer_, message_.data(), message_.size(), nullptr, 50'000'000) >=
                       0) {
                }
                checked(bbp_barrier_group(kPair, 2, 1));
            }
        }
    }

    /// Until the requested messages have come: not so long that their sender misses an answer to
    /// them.
    std::int64_t time_of_arrival(std::size_t messages, double trip) {
        const double writing = static_cast<double>(messages) * std::max(series_["O_s"].back(), 0.0);
        return kLeastSettleNs + static_cast<std::int64_t>(2 * trip + writing);
    }

    /// O_s, while messages go to and fro.
    void writing(int bytes, double clock) {
        std::vector<double> writes;
        for (std::size_t i = 0; i < 10 * kIterations; ++i) {
            if (!is_sender()) read();
            writes.push_back(own_time_of([&] { write(bytes); }) - clock);
            if (is_sender()) read();
        }
        say("O_s", middle(writes));
    }

    /// O_r and U_r: the receiver lets the message come in, and reads it off the ring. Two more come
    /// with it: one for another endpoint, by reading which the one before it gets into the pool.
    void reading(int bytes, double clock, double trip) {
        std::vector<double> from_ring, from_pool;
        const std::int64_t settle = time_of_arrival(3, trip);
        for (std::size_t i = 0; i < kIterations; ++i) {
            meet();
            if (is_sender()) {
                write(bytes);
                write(bytes);
                write_to(quiet_, 1);
                read();
                continue;
            }
            const std::int64_t wait = now_ns();
            while (now_ns() - wait < settle) {  // they are on the ring, and nobody polls
            }
            from_ring.push_back(own_time_of([&] { read(); }) - clock);
            char* at = nullptr;
            while (dp_read(quiet_, &at) == 0) {
            }
            dp_fsync(quiet_, 1);
            from_pool.push_back(own_time_of([&] { read(); }) - clock);
            write(1);
        }
        if (is_sender()) {
            const double on_ring = told(), u_r = told();
            say("O_r", std::max(on_ring - u_r, 0.0));
            say("U_r", u_r);
        } else {
            tell(middle(from_ring));
            tell(middle(from_pool));
        }
    }

    /// g_s: from message to message of a long stream. And g_r of one sender: of the same stream, or
    /// of a network that is full when the receiver begins, whichever is less; O_r of a run is of
    /// the latter.
    void stream(int bytes, double trip) {
        std::vector<double> sends, receives, drains;
        const std::int64_t burst_ns = time_of_arrival(kBurst, trip);
        for (std::size_t i = 0; i < kIterations; ++i) {
            meet();
            if (is_sender()) {
                for (std::size_t n = 0; n < kFill; ++n) write(bytes);
                sends.push_back(gap_of(kStream, [&] { write(bytes); }));
                read();
                for (std::size_t n = 0; n < kBurst; ++n) write(bytes);
                read();
            } else {
                for (std::size_t n = 0; n < kFill; ++n) read();
                receives.push_back(gap_of(kStream, [&] { read(); }));
                write(1);
                const std::int64_t wait = now_ns();
                while (now_ns() - wait < burst_ns) {
                }
                drains.push_back(gap_of(kBurst, [&] { read(); }));
                write(1);
            }
        }
        if (is_sender()) {
            say("g_s", middle(sends));
            const double g_r = told();
            if (!has_senders_) say("g_r", g_r);
            // No longer than the time from one to the next, since the same thread does all of it.
            say("O_r_run", std::max(g_r - series_["U_r"].back(), 0.0));
        } else {
            tell(std::min(middle(receives), middle(drains)));
        }
    }

    /// O_r of a receiver that computes. A wall clock would see the host's moods above all.
    void computing(int bytes) {
        std::vector<double> each;
        for (std::size_t i = 0; i < kIterations / 10; ++i) {
            meet();
            if (is_sender()) {
                read();
                for (std::size_t n = 0; n < kDisturbing; ++n) write(bytes);
                read();
            } else {
                const double alone = others_time_of([&] { compute(); });
                const std::uint64_t before = arrived();
                write(1);
                const double disturbed = others_time_of([&] { compute(); });
                const auto came = static_cast<double>(arrived() - before);
                if (came > 0) each.push_back((disturbed - alone) / came);
                for (std::size_t n = 0; n < kDisturbing; ++n) read();
                write(1);
            }
        }
        if (is_sender()) {
            say("O_r_async", told());
        } else {
            tell(each.empty() ? 0.0 : std::max(median(each), 0.0));
        }
    }
    std::uint64_t arrived() const {
        dp_stat_t stat{};
        need(dp_stat(fd_, &stat), "dp_stat");
        return stat.arrived;
    }
    void compute() {
        for (std::size_t i = 0; i < kComputing; ++i) {
            asm volatile("" : "+r"(state_));
            state_ = state_ * 6364136223846793005U + 1442695040888963407U;
        }
    }

    /// T_p2p, as in 5.2: fragments out, a short answer back, less its single trip.
    void long_messages(double short_trip) {
        const int packet = std::min(dp_container(), 4096);
        for (const int packets : {1, 4, 16, 64, 256, 1024}) {
            std::vector<double> times;
            for (std::size_t i = 0; i < kIterations / 4; ++i) {
                meet();
                times.push_back(own_time_of([&] {
                                    for (int n = 0; n < packets; ++n)
                                        is_sender() ? write(packet) : static_cast<void>(read());
                                    is_sender() ? static_cast<void>(read()) : write(4);
                                }) -
                                short_trip);
            }
            say("packet_bytes", packet);
            say("long_packets", packets);
            say("long_bytes", static_cast<double>(packet) * packets);
            say("long_ns", middle(times));
        }
    }

    void dp_parameters() {
        const double clock = clock_ns();
        say("dp_8", one_way(8));
        const double short_trip = one_way(4);
        for (const int bytes : kSizes) {
            say("bytes", bytes);
            const double trip = one_way(bytes);
            writing(bytes, clock);
            reading(bytes, clock, trip);
            stream(bytes, trip);
            computing(bytes);
            say("one_way", trip);
            if (!is_sender()) continue;
            const double l =
                trip - series_["O_s"].back() - series_["O_r"].back() - series_["U_r"].back();
            say("L", !is_direct_ && l > trip * kLeastShare ? l : 0);
        }
        long_messages(short_trip);
        dp_close(quiet_);
        dp_close(fd_);
    }

    /// A number from rank 1 to rank 0.
    void tell(double value) { need(dp_write(fd_, &value, sizeof value), "dp_write"); }
    double told() {
        char* at = nullptr;
        double value = 0;
        need(dp_read(fd_, &at), "dp_read");
        std::memcpy(&value, at, sizeof value);
        dp_fsync(fd_, 1);
        return value;
    }

    // ---- Copies
    void copies() {
        std::vector<std::byte> from(kColdBytes, std::byte{1}), to(kColdBytes, std::byte{2});
        for (const int size : kSizes) {
            const auto bytes = static_cast<std::size_t>(size);
            const auto copy = [&](bool cold_from, bool cold_to) {
                std::vector<double> times;
                constexpr std::size_t kBatch = 64;
                std::size_t place = 0;
                for (std::size_t i = 0; i < kIterations; ++i) {
                    times.push_back(own_time_of([&] {
                                        for (std::size_t n = 0; n < kBatch; ++n) {
                                            place = (place + 8192) % (kColdBytes - 8192);
                                            std::memcpy(to.data() + (cold_to ? place : 0),
                                                        from.data() + (cold_from ? place : 0),
                                                        bytes);
                                            asm volatile("" : : "r"(to.data()) : "memory");
                                        }
                                    }) /
                                    kBatch);
                }
                return middle(times);
            };
            say("M_ctc", copy(false, false));
            say("M_ctm", copy(false, true));
            say("M_mtm", copy(true, true));
        }
    }

    static constexpr std::int64_t kLeastSettleNs = 1'000;
    static constexpr std::size_t kBurst = 8;  ///< messages that every network takes unread
    static constexpr double kLeastShare =
        0.05;  ///< of a trip, for L to be more than the others' error
    static constexpr std::size_t kDisturbing = 400;
    static constexpr int kPair[2] = {0, 1};
    RankContext& rank_;
    bool is_direct_, has_senders_;
    int peer_, fd_ = -1, quiet_ = -1;
    std::vector<char> message_ = std::vector<char>(65536);
    std::map<std::string, std::vector<double>> series_;
    std::uint64_t state_ = 1;
};

/// g_r by the paper's method: many send to one, and the time it sees from message to message is the
/// least it can be.
class ManyToOne {
public:
    explicit ManyToOne(RankContext& rank) : rank_(rank) {}

    void run() {
        fd_ = dp_open(kDpid);
        if (fd_ < 0) throw rmem::Error(rmem::Errc::system, dp_last_error());
        dpmmap_t pool{nullptr, kPoolBytes};
        need(dp_mmap(fd_, &pool), "dp_mmap");
        checked(bbp_barrier());
        if (rank_.rank == kReceiver) {
            for (const unsigned sender : kSenders) {
                dp_target_add(fd_, static_cast<int>(sender), kDpid);
            }
        } else {
            dp_target(fd_, kReceiver, kDpid);
        }
        std::vector<double> gaps;
        for (const int bytes : kSizes) gaps.push_back(gap(bytes));
        if (rank_.rank == 0) rank_.results.put("g_r", gaps);
        dp_close(fd_);
    }

private:
    static constexpr unsigned kReceiver = 1;
    static constexpr std::array kSenders = {0U, 2U};

    void write(int bytes) { need(dp_write(fd_, message_.data(), bytes), "dp_write"); }
    double read() {
        char* at = nullptr;
        double value = 0;
        const int length = dp_read(fd_, &at);
        need(length, "dp_read");
        if (length == sizeof value) std::memcpy(&value, at, sizeof value);
        dp_fsync(fd_, 1);
        return value;
    }
    /// The receiver tells the senders to begin, and in the end what it has seen.
    double gap(int bytes) {
        std::vector<double> gaps;
        for (std::size_t i = 0; i < kIterations; ++i) {
            if (rank_.rank == kReceiver) {
                write(sizeof(double));
                for (std::size_t n = 0; n < kSenders.size() * kFill; ++n) read();
                gaps.push_back(gap_of(kStream, [&] { read(); }));
                for (std::size_t n = 0; n < kStream; ++n) read();
            } else {
                read();
                for (std::size_t n = 0; n < kFill + kStream; ++n) write(bytes);
            }
        }
        if (rank_.rank != kReceiver) return read();
        const double seen = middle(gaps);
        std::memcpy(message_.data(), &seen, sizeof seen);
        write(sizeof seen);
        return seen;
    }

    RankContext& rank_;
    int fd_ = -1;
    std::vector<char> message_ = std::vector<char>(65536);
};

}  // namespace

void measure_model(const GroupOptions& options, Results& results) {
    const bool has_senders = rmem::allowed_processors() >= 3;
    const bool is_direct = options.link == "direct";
    run_ranks(options, results,
              [=](RankContext& rank) { Model(rank, is_direct, has_senders).run(); });
    results.put("g_r_senders", {has_senders ? 2.0 : 1.0});
    if (!has_senders) return;
    GroupOptions three = options;
    three.ranks = 3;
    run_ranks(three, results, [](RankContext& rank) { ManyToOne(rank).run(); });
}

}  // namespace bench
