// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/figures.hpp"

#include "rmem/base/random.hpp"
#include "tools/measure/billboard_channel.hpp"

#include "billboard/endpoint.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <future>
#include <memory>
#include <numeric>
#include <tuple>

namespace tools {

namespace {

using rmem::kLineBytes;
using rmem::now_ns;

void round_trip(unsigned rank, void* message, std::size_t bytes, Thinking& thinking) {
    if (rank == 0) {
        thinking();
        bbp_send(1, message, bytes);
        bbp_recv(1, message, bytes, nullptr);
    } else if (rank == 1) {
        bbp_recv(0, message, bytes, nullptr);
        thinking();
        bbp_send(0, message, bytes);
    }
}

/// The floor and ours in turn, between the same two processors. `scale` turns the time of one
/// operation into the unit of the figure.
template <class Ours>
void run_rounds(RankContext& rank, const Plan& plan, double scale, Ours&& ours) {
    Floor floor(rank.user, rank.rank, plan.think_ns);
    std::vector<double> floors, times;
    const double batch = static_cast<double>(plan.batch);
    for (std::size_t round = 0; round < plan.rounds + plan.rounds / 10; ++round) {
        checked(bbp_barrier());
        const double hop =
            time_of(plan.batch, [&] { floor.bounce(); }) / batch / 2 - plan.think_ns / 2;
        checked(bbp_barrier());
        const double own = time_of(plan.batch, ours) / batch * scale - plan.think_ns / 2;
        if (round < plan.rounds / 10) continue;  // warm-up
        floors.push_back(hop);
        times.push_back(own);
    }
    if (rank.rank != 0) return;
    rank.results.put("floor", floors);
    rank.results.put("ours", times);
}

template <class Operation>
void run_singles(RankContext& rank, const char* name, std::size_t samples, double scale,
                 Operation&& operation) {
    std::vector<double> singles(samples);
    checked(bbp_barrier());
    for (double& single : singles) single = time_of(1, operation) * scale;
    if (rank.rank == 0) rank.results.put(name, singles);
}

/// Two copies through the segment, pipelined over two processors by pieces: the time of a perfect
/// stream of copies in and out. The message follows two lines of progress words.
class PipelinedCopies {
public:
    PipelinedCopies(RankContext& rank, std::size_t bytes)
        : rank_(rank.rank),
          filled_(*reinterpret_cast<std::atomic<std::uint32_t>*>(rank.user + kLineBytes)),
          emptied_(*reinterpret_cast<std::atomic<std::uint32_t>*>(rank.user + 2 * kLineBytes)),
          through_(rank.user + 4 * kLineBytes),
          pieces_(static_cast<std::uint32_t>(bytes / kPiece)) {}

    void run(std::byte* own) {
        for (std::uint32_t i = 0; i < pieces_; ++i, ++count_) {
            std::byte* at = through_ + (count_ % kSlots) * kPiece;
            if (rank_ == 0) {
                // (3) - this acquire-load synchronizes-with the release-store (6)
                while (count_ - emptied_.load(std::memory_order_acquire) >= kSlots)
                    rmem::cpu_relax();
                copy_memory(at, own + i * kPiece, kPiece);
                // (4) - this release-store synchronizes-with the acquire-load (5)
                filled_.store(count_ + 1, std::memory_order_release);
            } else {
                // (5) - this acquire-load synchronizes-with the release-store (4)
                while (filled_.load(std::memory_order_acquire) == count_) rmem::cpu_relax();
                copy_memory(own + i * kPiece, at, kPiece);
                // (6) - this release-store synchronizes-with the acquire-load (3)
                emptied_.store(count_ + 1, std::memory_order_release);
            }
        }
    }

    static constexpr std::size_t kPiece = 32 * 1024;

private:
    static constexpr std::uint32_t kSlots = 32;  // as much as a message

    unsigned rank_;
    std::atomic<std::uint32_t>& filled_;
    std::atomic<std::uint32_t>& emptied_;
    std::byte* through_;
    std::uint32_t pieces_;
    std::uint32_t count_ = 0;
};

void view_one(unsigned rank, std::byte* message, std::size_t bytes) {
    if (rank == 0) {
        bbp_send(1, message, bytes);
        return;
    }
    const void* data = nullptr;
    std::size_t len = 0;
    checked(bbp_view(0, &data, &len));
    checked(bbp_release(data));
}

}  // namespace

void measure_floor(const GroupOptions& options, const Plan& plan, Results& results) {
    run_ranks(options, results, [&](RankContext& rank) {
        Floor floor(rank.user, rank.rank);
        run_singles(rank, "single", plan.samples, 0.5, [&] { floor.bounce(); });
        std::vector<std::byte> from(plan.bytes), to(plan.bytes);
        run_rounds(rank, plan, 1.0, [&] { copy_memory(to.data(), from.data(), plan.bytes); });
    });
}

void measure_pingpong(const GroupOptions& options, const Plan& plan, Results& results) {
    run_ranks(options, results, [&](RankContext& rank) {
        std::vector<std::byte> message(plan.bytes + 1);
        Thinking thinking(plan.think_ns, rank.rank);
        const auto both = [&] { round_trip(rank.rank, message.data(), plan.bytes, thinking); };
        run_rounds(rank, plan, 0.5, both);
        if (plan.think_ns != 0) return;  // single ones cannot be told from their work
        run_singles(rank, "single", plan.samples, 0.5, both);
        Floor floor(rank.user + 8 * kLineBytes, rank.rank);
        run_singles(rank, "floor_single", plan.samples, 0.5, [&] { floor.bounce(); });
    });
}

void measure_rate(const GroupOptions& options, const Plan& plan, Results& results) {
    run_ranks(options, results, [&](RankContext& rank) {
        std::vector<std::byte> message(plan.bytes + 1);
        run_rounds(rank, plan, 1.0, [&] {
            if (rank.rank == 0) bbp_send(1, message.data(), plan.bytes);
            if (rank.rank == 1) bbp_recv(0, message.data(), plan.bytes, nullptr);
        });
    });
}

void measure_bandwidth(const GroupOptions& options, const Plan& plan, Results& results) {
    if (plan.bytes > kUserBytes / 8 || plan.bytes % PipelinedCopies::kPiece != 0) {
        throw rmem::Error(
            rmem::Errc::invalid_argument,
            fmt::format("bandwidth is measured with multiples of {} bytes up to {}, not {}",
                        PipelinedCopies::kPiece, kUserBytes / 8, plan.bytes));
    }
    run_ranks(options, results, [&](RankContext& rank) {
        std::vector<std::byte> message(plan.bytes, std::byte{1});
        PipelinedCopies copies(rank, plan.bytes);
        std::vector<double> one, two, stream, view;
        for (std::size_t round = 0; round < plan.rounds; ++round) {
            const auto timed = [&](std::vector<double>& series, auto&& operation) {
                checked(bbp_barrier());
                const std::int64_t start = now_ns();
                for (std::size_t i = 0; i < plan.batch; ++i) operation();
                checked(bbp_barrier());  // until the receiver has it
                series.push_back(static_cast<double>(now_ns() - start) /
                                 static_cast<double>(plan.batch));
            };
            // Into the segment, a place after the other, as messages lie in a partition.
            std::size_t copies_made = 0;
            timed(one, [&] {
                constexpr std::size_t kPlaces = 4;
                std::byte* place = rank.user + kUserBytes / 2 +
                                   (copies_made++ % kPlaces) * (kUserBytes / 2 / kPlaces);
                if (rank.rank == 0) copy_memory(place, message.data(), plan.bytes);
            });
            timed(two, [&] { copies.run(message.data()); });
            timed(stream, [&] {
                if (rank.rank == 0) bbp_send(1, message.data(), plan.bytes);
                if (rank.rank == 1) bbp_recv(0, message.data(), plan.bytes, nullptr);
            });
            timed(view, [&] { view_one(rank.rank, message.data(), plan.bytes); });
        }
        if (rank.rank != 0) return;
        rank.results.put("memcpy", one);
        rank.results.put("pipelined", two);
        rank.results.put("stream", stream);
        rank.results.put("view", view);
    });
}

void measure_mcast(const GroupOptions& options, const Plan& plan, Results& results) {
    run_ranks(options, results, [&](RankContext& rank) {
        std::vector<std::byte> message(plan.bytes + 1);
        Floor floor(rank.user, rank.rank);
        std::vector<int> all(rank.ranks - 1);
        std::iota(all.begin(), all.end(), 1);
        std::vector<double> floors;
        std::vector<std::vector<double>> costs(rank.ranks);
        for (std::size_t round = 0; round < plan.rounds; ++round) {
            checked(bbp_barrier());
            floors.push_back(time_of(plan.batch, [&] { floor.bounce(); }) /
                             static_cast<double>(plan.batch) / 2);
            for (unsigned n = 1; n < rank.ranks; ++n) {
                // Few enough that no receiver has to make room: the sender's own cost.
                constexpr std::size_t kPosts = 4;
                checked(bbp_barrier());
                if (rank.rank == 0) {
                    costs[n].push_back(time_of(kPosts,
                                               [&] {
                                                   bbp_mcast(all.data(), static_cast<int>(n),
                                                             message.data(), plan.bytes);
                                               }) /
                                       kPosts);
                }
                checked(bbp_barrier());
                for (std::size_t i = 0; rank.rank != 0 && rank.rank <= n && i < kPosts; ++i) {
                    checked(bbp_recv(0, message.data(), plan.bytes, nullptr));
                }
            }
        }
        if (rank.rank != 0) return;
        rank.results.put("floor", floors);
        for (unsigned n = 1; n < rank.ranks; ++n) {
            rank.results.put(fmt::format("send_{}", n), costs[n]);
        }
    });
}

void measure_barrier(const GroupOptions& options, const Plan& plan, Results& results) {
    run_ranks(options, results, [&](RankContext& rank) {
        const auto meet = [] { bbp_barrier(); };
        run_rounds(rank, plan, 1.0, meet);
        run_singles(rank, "single", plan.samples, 1.0, meet);
    });
}

namespace {

/// Ranks 1, 2, … of a ring, all in this process: only so can a random one of many send at once on a
/// machine with few processors. They join side by side, since each waits for all.
std::vector<std::unique_ptr<billboard::Endpoint>> open_others(
    const std::shared_ptr<rmem::Ring>& ring) {
    const unsigned ranks = ring->config().ranks;
    std::vector<std::future<std::unique_ptr<billboard::Endpoint>>> joining;
    for (unsigned r = 1; r < ranks; ++r) {
        joining.push_back(std::async(std::launch::async, [&, r] {
            return billboard::Endpoint::open(ring, {r, r}, billboard::Settings::read(),
                                             rmem::Deadline::in(rmem::kDefaultJoinTimeoutNs));
        }));
    }
    std::vector<std::unique_ptr<billboard::Endpoint>> others(1);
    for (auto& one : joining) others.push_back(one.get());
    return others;
}

void any_receiver(billboard::Endpoint& me, const Plan& plan, Floor& floor, Results& results) {
    std::vector<std::byte> message(plan.bytes + 1);
    std::vector<double> floors, known, any, empty;
    const double batch = static_cast<double>(plan.batch);
    for (std::size_t round = 0; round < plan.rounds; ++round) {
        floors.push_back(time_of(plan.batch, [&] { floor.bounce(); }) / batch / 2);
        known.push_back(time_of(plan.batch,
                                [&] {
                                    checked(me.recv(1, message.data(), plan.bytes, nullptr));
                                    checked(me.send(1, message.data(), plan.bytes));
                                }) /
                        batch / 2);
        const double both = time_of(plan.batch, [&] {
            const int from = checked(me.recv(BBP_ANY, message.data(), plan.bytes, nullptr));
            checked(me.send(from, message.data(), plan.bytes));
        });
        any.push_back(both / batch - known.back());  // the way back has a known source
        empty.push_back(time_of(plan.batch, [&] { std::ignore = me.available(BBP_ANY); }) / batch);
        checked(me.send(1, message.data(), 0));
    }
    results.put("floor", floors);
    results.put("known", known);
    results.put("ours", any);
    results.put("empty", empty);
}

void any_senders(const std::vector<std::unique_ptr<billboard::Endpoint>>& others, const Plan& plan,
                 Floor& floor) {
    std::vector<std::byte> message(plan.bytes + 1);
    rmem::Random random(1);
    const auto there_and_back = [&](unsigned r) {
        checked(others[r]->send(0, message.data(), plan.bytes));
        checked(others[r]->recv(0, message.data(), plan.bytes, nullptr));
    };
    for (std::size_t round = 0; round < plan.rounds; ++round) {
        for (std::size_t i = 0; i < plan.batch; ++i) floor.bounce();
        for (std::size_t i = 0; i < plan.batch; ++i) there_and_back(1);
        const auto senders = static_cast<std::uint32_t>(others.size() - 1);
        for (std::size_t i = 0; i < plan.batch; ++i)
            there_and_back(1 + static_cast<unsigned>(random.below(senders)));
        checked(others[1]->recv(0, message.data(), plan.bytes, nullptr));
    }
}

}  // namespace

void measure_any(const GroupOptions& options, const Plan& plan, Results& results) {
    run_processes(options, 2, [&](unsigned process, const std::string&) {
        const auto settings = billboard::Settings::read();
        const auto config = billboard::ring_config(rmem::Environment::read(), settings);
        const auto deadline = rmem::Deadline::in(rmem::kDefaultJoinTimeoutNs);
        const auto ring = rmem::Ring::open(config, deadline);
        Floor floor(ring->bank(0), process);
        if (process == 1) return any_senders(open_others(ring), plan, floor);
        const auto me = billboard::Endpoint::open(ring, {0, 0}, settings, deadline);
        any_receiver(*me, plan, floor, results);
    });
}

}  // namespace tools
