// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/sizes.hpp"

#include "billboard/boards/layout.hpp"
#include "rmem/base/check.hpp"
#include "tools/measure/billboard_channel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

namespace tools {

namespace {

constexpr std::string_view kBurst = "burst-";
constexpr std::size_t kMaxInRound = std::size_t{1} << 20;  ///< bytes
constexpr std::size_t kHops = 100;                         ///< of the floor, in each round

/// A sample for each step, and what it took at rank 0.
class Once {
public:
    static constexpr bool kRepeats = false, kProves = false;

    template <class Operation>
    Times samples(const Step&, std::size_t length, Operation&& op) {
        return {time_of(length, op) / double(length)};
    }
    void tell(const Step&, const Times& times, double part, double) { ns_ = times.at(0) * part; }
    static Meeting* meeting() { return nullptr; }
    double ns() const noexcept { return ns_; }

private:
    double ns_ = 0;
};

/// A burst's length is in its name.
Step step_of(const std::string& rhythm, std::size_t bytes, std::size_t count) {
    if (rhythm.starts_with(kBurst))
        return {"burst", bytes, std::stoul(rhythm.substr(kBurst.size()))};
    if (rhythm == "window") return {"stream", bytes, kWindow};
    if (rhythm == "all-to-all") return {"all_to_all", bytes, 1};
    if (rhythm == "fan-in") return {"fan_in", bytes, count};
    if (rhythm == "fan-out") return {"fan_out", bytes, count};
    return {rhythm, bytes, count};
}

/// Messages of a size in all rhythms, round by round.
void measure_size(RankContext& rank, const SizesPlan& plan, std::size_t bytes, Floor& floor,
                  Rhythms<BillboardChannel, Once>& rhythms, const Once& sample) {
    const std::size_t fewer = bytes == 0 ? plan.most_in_round : kMaxInRound / bytes;
    const std::size_t count = std::clamp<std::size_t>(fewer, 4, plan.most_in_round);
    std::vector<std::byte> from(bytes + 1, std::byte{1}), to = from;
    std::vector<Times> times(plan.rhythms.size() + 2);  // those of the floors first
    for (std::size_t round = 0; round <= plan.rounds; ++round) {
        checked(bbp_barrier());
        std::vector<double> own = {time_of(kHops, [&] { floor.bounce(); }) / kHops / 2, 0};
        checked(bbp_barrier());  // or one rank's copies would slow down the other's hops
        if (rank.rank == 0)
            own[1] =
                time_of(count, [&] { copy_memory(to.data(), from.data(), bytes); }) / double(count);
        for (const std::string& rhythm : plan.rhythms) {
            checked(bbp_barrier());
            rhythms.take(step_of(rhythm, bytes, count));
            own.push_back(sample.ns());
        }
        if (round == 0) continue;  // warm-up
        for (std::size_t i = 0; i < own.size(); ++i) times[i].push_back(own[i]);
    }
    if (rank.rank != 0) return;
    rank.results.put(fmt::format("{}: hop", bytes), times[0]);
    rank.results.put(fmt::format("{}: memcpy", bytes), times[1]);
    for (std::size_t i = 0; i < plan.rhythms.size(); ++i)
        rank.results.put(fmt::format("{}: {}", bytes, plan.rhythms[i]), times[i + 2]);
}

}  // namespace

std::vector<std::size_t> usual_sizes(std::size_t most) {
    using billboard::kHeadBytes, billboard::kInlineBytes, billboard::kMaxLineBytes;
    std::vector<std::size_t> sizes = {0};
    for (std::size_t size = 1; size <= most; size *= 2) sizes.push_back(size);
    // A slot; a line, and its like on other links, with what is about a cache line; lines.
    constexpr std::size_t kOfLine = rmem::kLineBytes - 2 * rmem::kWordBytes;
    for (const std::size_t step : {kHeadBytes, kOfLine, kMaxLineBytes}) {
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
    RMEM_CHECK(!plan.sizes.empty() && !plan.rhythms.empty() && plan.rounds > 0);
    run_ranks(options, results, [&](RankContext& rank) {
        const int me = static_cast<int>(rank.rank), ranks = static_cast<int>(rank.ranks);
        BillboardChannel channel(me, ranks);
        Once sample;
        Rhythms rhythms(channel, me, ranks, sample);
        Floor floor(rank.user, rank.rank);
        for (const std::size_t size : plan.sizes)
            measure_size(rank, plan, size, floor, rhythms, sample);
    });
}

}  // namespace tools
