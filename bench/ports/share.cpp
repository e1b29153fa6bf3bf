// SPDX-License-Identifier: Apache-2.0
#include "bench/ports/figures.hpp"
#include "bench/ports/rounds.hpp"
#include "bench/ports/streams.hpp"
#include "bench/ports/systems.hpp"
#include "bench/rivals/udp/datagrams.hpp"
#include "tools/measure/memory_case.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdlib>
#include <exception>
#include <string>

namespace bench {

namespace {

constexpr double kLeastShare = 0.85;  // what is asked for, of messages that are a frame of Ethernet
constexpr unsigned kFrameBytes = 1472;
constexpr double kUsualRate = 0.4;  ///< bytes a nanosecond, to tell seconds from messages
constexpr unsigned kBatches = 8;    ///< of a subject's turn
constexpr std::size_t kWindowBytes = 700'000, kPoolBytes = 8U << 20;  ///< of two windows
constexpr std::int64_t kPatienceNs = 2'000'000'000;

/// The stream as it would be if there were no protocol: datagrams by multicast, in calls of many.
/// Windows keep those on their way within the receiver's socket, so nothing is lost; were
/// something, the measurement would fail.
class Datagrams {
public:
    static constexpr const char* kName = "datagrams";
    static constexpr std::size_t kSmall = 8;

    Datagrams(unsigned rank, std::uint16_t port)
        : channel_(static_cast<int>(rank), rivals::Options(), port) {}
    void send(std::size_t bytes) { channel_.send(message_.data(), bytes); }
    void receive(std::size_t bytes) {
        await([&] {
            return channel_.try_receive(message_.data(), bytes) == static_cast<long>(bytes);
        });
    }
    void send_many(std::size_t bytes, std::size_t count) {
        channel_.send_many(message_.data(), bytes, count);
    }
    void receive_many(std::size_t bytes, std::size_t count) {
        await([&] {
            if (came_ < count)
                channel_.receive_many(buffer_, bytes, [&](const std::byte*, std::size_t length) {
                    came_ += length == bytes;
                });
            return came_ >= count;
        });
        came_ -= count;  // some of the next window may be there as well
    }

private:
    template <class Done>
    static void await(Done&& done) {
        const std::int64_t start = rmem::now_ns();
        for (unsigned turn = 1; !done(); ++turn) {
            rmem::cpu_relax();
            if (turn % 4096 == 0 && rmem::now_ns() - start > kPatienceNs)
                throw rmem::Error(rmem::Errc::system, "a datagram was lost");
        }
    }

    rivals::DatagramChannel channel_;
    std::vector<std::byte> message_ = std::vector<std::byte>(kMostBytes), buffer_;
    std::size_t came_ = 0;
};

/// bytes a nanosecond, batch by batch.
template <class System>
std::vector<double> rates_of(System& system, unsigned rank, std::size_t bytes,
                             const SharePlan& plan) {
    const std::size_t window = std::max<std::size_t>(kWindowBytes / bytes, 16);
    const auto windows =
        std::max<std::size_t>(static_cast<std::size_t>(plan.seconds * 1e9 * kUsualRate / kBatches /
                                                       static_cast<double>(bytes * window)),
                              2);
    std::vector<double> rates;
    stream(system, rank, bytes, window, 2);
    for (unsigned i = 0; i < kBatches; ++i) {
        const double ns = time_of(1, [&] { stream(system, rank, bytes, window, windows); });
        rates.push_back(static_cast<double>(bytes * window * windows) / ns);
    }
    return rates;
}

std::string series_of(unsigned bytes) {
    return fmt::format("rate_{}", bytes);
}

template <class System>
Subject streams_of(const SharePlan& plan) {
    return on_ring(System::kName, [=](RankContext& rank) {
        with_system<System>(rank, [&](System& system) {
            if constexpr (requires { system.take_pool(kPoolBytes); }) system.take_pool(kPoolBytes);
            checked(bbp_barrier());
            for (const unsigned bytes : plan.sizes) {
                const auto rates = rates_of(system, rank.rank, bytes, plan);
                if (rank.rank == 0) rank.results.put(series_of(bytes), rates);
            }
        });
    });
}

/// Two processes that meet in common memory instead of on a ring.
Subject bare_streams(const SharePlan& plan) {
    const auto session = [=](const GroupOptions& options, Results& results) {
        Meeting meeting(2);
        const std::uint16_t port = rivals::some_port();
        run_processes(options, 2, results, [&](unsigned rank, const std::string&) {
            pin_to(processor_of(options, rank));
            Datagrams datagrams(rank, port);
            for (const unsigned bytes : plan.sizes) {
                meeting.meet();
                const auto rates = rates_of(datagrams, rank, bytes, plan);
                if (rank == 0) results.put(series_of(bytes), rates);
            }
        });
    };
    return {Datagrams::kName, session};
}

template <class System>
Row row_of(const Rounds& rounds, unsigned bytes, bool is_port) {
    const bool is_asked = is_port && bytes <= kFrameBytes;
    const std::string series = series_of(bytes);
    const Spread rate = rounds.of(System::kName, series),
                 share = spread_of(quotients(rounds.medians(System::kName, series),
                                             rounds.medians(Datagrams::kName, series)));
    const Spread of_billboard = spread_of(
        quotients(rounds.medians(System::kName, series), rounds.medians(Billboard::kName, series)));
    return {{"system", System::kName},
            {"bytes", bytes},
            {"mb_s_p10", rate.p10 * 1e3},
            {"mb_s", rate.p50 * 1e3},
            {"mb_s_p90", rate.p90 * 1e3},
            {"share_p10", share.p10},
            {"share", share.p50},
            {"share_p90", share.p90},
            {"of_bbp", of_billboard.p50},
            {"asked", is_asked ? Row(kLeastShare) : Row()},
            {"met", is_asked ? Row(share.p50 >= kLeastShare) : Row()}};
}

}  // namespace

Table measure_share(GroupOptions options, const SharePlan& plan) {
    options.link = "udp";
    const std::string group = fmt::format("239.1.2.3:{}", 30'000 + ::getpid() % 20'000);
    ::setenv("RMEM_GROUP", group.c_str(), 0);  // NOLINT(concurrency-mt-unsafe): one thread
    const Rounds rounds("udp-share", options,
                        {bare_streams(plan), streams_of<Billboard>(plan), streams_of<Gamma>(plan),
                         streams_of<Dp>(plan)},
                        plan.rounds);
    Table table(
        "udp-share",
        "Streams over udp on loop-back, MB of 10^6 bytes a second. share: of the stream of "
        "bare datagrams (sendmmsg and recvmmsg of up to 32,\n"
        "none lost) of the same size, in the same windows; of_bbp: of the billboard's.\n"
        "Asked for what a frame of Ethernet can hold: larger datagrams are loop-back's alone. "
        "Papers: GAMMA 0.98, Directed Point 0.636 to 0.97.\n");
    for (const unsigned bytes : plan.sizes) {
        table.add(row_of<Datagrams>(rounds, bytes, false));
        table.add(row_of<Billboard>(rounds, bytes, false));
        table.add(row_of<Gamma>(rounds, bytes, true));
        table.add(row_of<Dp>(rounds, bytes, true));
    }
    return table;
}

}  // namespace bench
