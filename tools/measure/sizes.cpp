// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/sizes.hpp"

#include "billboard/bbp.h"
#include "billboard/boards/layout.hpp"
#include "rmem/base/clock.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "tools/measure/floor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <numeric>
#include <string_view>

namespace bench {

namespace {

constexpr std::string_view kBurst = "burst-";
constexpr std::int64_t kPauseNs = 3'000;  ///< before a burst: its receiver has found nothing
constexpr std::size_t kMostInRound = std::size_t{1} << 20;  ///< bytes
constexpr std::size_t kHops = 100;                          ///< of the floor, in each round

/// One rank's part in all of it.
class Rhythms {
public:
    Rhythms(RankContext& rank, const SizesPlan& plan)
        : rank_(rank), plan_(plan), floor_(rank.user, rank.rank), others_(rank.ranks - 1) {
        const std::size_t most = *std::max_element(plan.sizes.begin(), plan.sizes.end());
        out_.resize(std::max(most, sizeof(std::uint64_t)), std::byte{1});
        in_ = out_;
        std::iota(others_.begin(), others_.end(), 1);
    }

    void measure(std::size_t bytes) {
        bytes_ = bytes;
        const std::size_t fewer = bytes == 0 ? plan_.most_in_round : kMostInRound / bytes;
        count_ = std::clamp<std::size_t>(fewer, 4, plan_.most_in_round);
        std::vector<double> hops, copies;
        std::vector<std::vector<double>> times(plan_.rhythms.size());
        for (std::size_t round = 0; round <= plan_.rounds; ++round) {
            checked(bbp_barrier());
            const double hop = time_of(kHops, [&] { floor_.bounce(); }) / kHops / 2;
            checked(bbp_barrier());  // or one rank's copies would slow down the other's hops
            const double copy =
                leads() ? time_of(count_, [&] { copy_memory(); }) / double(count_) : 0;
            std::vector<double> own;
            for (const std::string& rhythm : plan_.rhythms) {
                checked(bbp_barrier());
                own.push_back(take(rhythm));
            }
            if (round == 0) continue;  // warm-up
            hops.push_back(hop);
            copies.push_back(copy);
            for (std::size_t i = 0; i < own.size(); ++i) times[i].push_back(own[i]);
        }
        if (rank_.rank != 0) return;
        const auto put = [&](std::string_view what, const std::vector<double>& values) {
            rank_.results.put(fmt::format("{}: {}", bytes, what), values);
        };
        put("hop", hops);
        put("memcpy", copies);
        for (std::size_t i = 0; i < times.size(); ++i) put(plan_.rhythms[i], times[i]);
    }

private:
    /// What it took at rank 0.
    double take(const std::string& rhythm) {
        if (rhythm == "pingpong") return pingpong();
        if (rhythm == "stream") return stream(count_);
        if (rhythm == "window") return stream(kWindow);
        if (rhythm == "fan-in") return fan_in();
        if (rhythm == "fan-out") return fan_out();
        if (rhythm == "all-to-all") return all_to_all();
        std::size_t length = 0;
        std::from_chars(rhythm.data() + kBurst.size(), rhythm.data() + rhythm.size(), length);
        return burst(length);
    }

    bool leads() const { return rank_.rank == 0; }
    bool follows() const { return rank_.rank == 1; }
    void send(int to) { checked(bbp_send(to, out_.data(), bytes_)); }
    void receive(int from) { checked(bbp_recv(from, in_.data(), bytes_, nullptr)); }
    void answer(int to) { checked(bbp_send(to, nullptr, 0)); }
    void await_answer(int from) { checked(bbp_recv(from, nullptr, 0, nullptr)); }
    void copy_memory() {
        std::memcpy(in_.data(), out_.data(), bytes_);
        asm volatile("" : : "r"(in_.data()) : "memory");
    }

    double pingpong() {
        const double time = time_of(count_, [&] {
            if (leads()) {
                send(1);
                receive(1);
            } else if (follows()) {
                receive(0);
                send(0);
            }
        });
        return time / double(count_) / 2;
    }
    double stream(std::size_t count) {
        const double time = time_of(1, [&] {
            for (std::size_t i = 0; i < count; ++i) {
                if (leads()) send(1);
                if (follows()) receive(0);
            }
            if (leads()) await_answer(1);
            if (follows()) answer(0);
        });
        return time / double(count);
    }
    /// Rank 0 receives, since it has the clock.
    double burst(std::size_t length) {
        if (follows()) {
            await_answer(0);
            for (const auto end = rmem::now_ns() + kPauseNs; rmem::now_ns() < end;)
                rmem::cpu_relax();
            for (std::size_t i = 0; i < length; ++i) send(0);
        }
        if (!leads()) return 0;
        answer(1);
        receive(1);
        return time_of(length - 1, [&] { receive(1); });
    }
    double fan_in() {
        const std::size_t all = count_ * others_.size();
        if (!leads()) {
            for (std::size_t i = 0; i < count_; ++i) send(0);
            return 0;
        }
        return time_of(all, [&] { receive(BBP_ANY); }) / double(all);
    }
    double fan_out() {
        if (!leads()) {
            for (std::size_t i = 0; i < count_; ++i) receive(0);
            answer(0);
            return 0;
        }
        const double time = time_of(1, [&] {
            for (std::size_t i = 0; i < count_; ++i) {
                checked(bbp_mcast(others_.data(), static_cast<int>(others_.size()), out_.data(),
                                  bytes_));
            }
            for (const int other : others_) await_answer(other);
        });
        return time / double(count_);
    }
    double all_to_all() {
        return time_of(1, [&] {
            unsigned left = rank_.ranks - 1;
            for (unsigned d = 1; d < rank_.ranks; ++d)
                send_taking(static_cast<int>((rank_.rank + d) % rank_.ranks), left);
            for (; left > 0; --left) receive(BBP_ANY);
        });
    }
    /// Where all send and none receives, none may find room.
    void send_taking(int to, unsigned& left) {
        for (;;) {
            const int sent = bbp_trysend(to, out_.data(), bytes_);
            if (sent != BBP_EAGAIN) {
                checked(sent);
                return;
            }
            const int from = bbp_tryrecv(BBP_ANY, in_.data(), bytes_, nullptr);
            if (from != BBP_EAGAIN) {
                checked(from);
                --left;
            }
        }
    }

    RankContext& rank_;
    const SizesPlan& plan_;
    Floor floor_;
    std::vector<int> others_;
    std::vector<std::byte> out_, in_;
    std::size_t bytes_ = 0, count_ = 0;
};

}  // namespace

std::vector<std::size_t> usual_sizes(std::size_t most) {
    using billboard::kHeadBytes, billboard::kInlineBytes, billboard::kMostLineBytes;
    std::vector<std::size_t> sizes = {0};
    for (std::size_t size = 1; size <= most; size *= 2) sizes.push_back(size);
    // A slot; a line, and its like on other links, with what is about a cache line; lines.
    constexpr std::size_t kOfLine = rmem::kLineBytes - 2 * rmem::kWordBytes;
    for (const std::size_t step : {kHeadBytes, kOfLine, kMostLineBytes}) {
        for (std::size_t size = step - 1; size <= step + 1; ++size) sizes.push_back(size);
    }
    for (std::size_t size = kInlineBytes; size <= rmem::kLineBytes + 1; ++size)
        sizes.push_back(size);
    std::erase_if(sizes, [most](std::size_t size) { return size > most; });
    std::sort(sizes.begin(), sizes.end());
    sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
    return sizes;
}

std::vector<std::string> rhythms_of(unsigned ranks) {
    if (ranks > 2) return {"pingpong", "stream", "fan-in", "fan-out", "all-to-all"};
    return {"pingpong", "stream", "window", "burst-2", "burst-8", "burst-64"};
}

void measure_sizes(const GroupOptions& options, const SizesPlan& plan, Results& results) {
    run_ranks(options, results, [&](RankContext& rank) {
        Rhythms rhythms(rank, plan);
        for (const std::size_t size : plan.sizes) rhythms.measure(size);
    });
}

}  // namespace bench
