// SPDX-License-Identifier: Apache-2.0

/// How late the `ring` link runs: two processes on two processors, and when each write was visible
/// beside when the wire model says it was due.
///
///     ring-lateness [profile [samples]]        (scramnet-burst, 200000)
///
/// One JSON line per pattern: `pingpong` (a node answers each write) and `stream` (one node writes
/// every 2 us, the other watches). `late_ns` are the percentiles of visible minus due, among writes
/// that fell due while the engine ran without a gap of more than 1.5 us; the others are `by_host`.
/// `least_ns` is the shortest propagation that a reader saw with its own clock, and `floor_ns` the
/// model's shortest: the program fails if a write was early.

#include "rmem/link/ring/memory.hpp"
#include "rmem/ring/node_slot.hpp"
#include "tools/measure/rank_group.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>

namespace {

using namespace rmem;

constexpr std::int64_t kStreamNs = 2'000;
constexpr std::int64_t kPatienceNs = 60'000'000'000;
constexpr double kMostSeconds = 1e6;  // as many samples as one asks for
constexpr std::size_t kReady = 256;   // a word of each node
constexpr std::size_t kLeast = 512;   // a word of each node: the shortest propagation it saw

/// The low half of the clock, never 0, so that each write changes the word.
std::uint32_t stamp() {
    return static_cast<std::uint32_t>(now_ns()) | 1U;
}

/// One of the two nodes: writes word `id`, reads word `1 - id`.
class Party {
public:
    Party(const RingConfig& config, unsigned id)
        : id_(id),
          member_(Ring::open(config, Deadline::in(kPatienceNs)), {id, id}),
          memory_(member_) {
        memory_.post_word(kReady + id * 4, 1);
        await(kReady + (1 - id) * 4, 0);
    }

    void pingpong(unsigned rounds) {
        for (unsigned i = 0; i < rounds; ++i) {
            if (id_ == 0) write();
            read();
            if (id_ == 1) write();
        }
    }
    void stream(unsigned writes) {
        if (id_ == 1) {
            while (seen_ != kEnd) read();
            return;
        }
        std::int64_t next = now_ns();
        for (unsigned i = 0; i < writes; ++i) {
            while (now_ns() < next) memory_.progress();
            next = std::max(next + kStreamNs, now_ns());
            write();
        }
        memory_.post_word(0, kEnd);
    }
    /// Tells the other what was seen, and waits for it.
    void finish() {
        memory_.post_word(kLeast + id_ * 4, std::max(least_, 1U));
        await(kLeast + (1 - id_) * 4, 0);
        if (!memory_.flush(Deadline::in(kPatienceNs)))
            throw Error(Errc::timed_out, "the other node is stuck");
    }

    Ring& ring() { return member_.ring(); }
    std::uint32_t least_of(unsigned node) { return memory_.load(kLeast + node * 4); }

private:
    static constexpr std::uint32_t kEnd = 2;

    void write() {
        memory_.post_word(id_ * 4, stamp());
        memory_.commit();
    }
    void read() {
        seen_ = await((1 - id_) * 4, seen_);
        if (seen_ == kEnd) return;
        // The stamp was taken before the write's own time, and this one after the word was read.
        least_ = std::min(least_, static_cast<std::uint32_t>(now_ns()) - seen_);
    }
    std::uint32_t await(std::size_t offset, std::uint32_t old) {
        const Deadline deadline = Deadline::in(kPatienceNs);
        std::uint32_t value = 0;
        memory_.begin_wait();
        while ((value = memory_.load(offset)) == old) {
            if (memory_.wait(deadline) == Step::expired)
                throw Error(Errc::timed_out, "the other node is silent");
        }
        memory_.end_wait();
        return value;
    }

    unsigned id_;
    Membership member_;
    RingMemory memory_;
    std::uint32_t seen_ = 0;
    std::uint32_t least_ = UINT32_MAX;
};

/// The model's shortest propagation between neighbours, rounded down.
std::uint64_t floor_ns(const TimingProfile& profile) {
    if (profile.instant != 0) return 0;
    return (profile.insertion_ps + packet_ps(profile, 1) + profile.cable_ps) / 1000;
}

bool report(const std::string& pattern, Party& party, unsigned node) {
    const RingConfig& config = party.ring().config();
    const NodeSlot& slot = party.ring().node(node);
    const auto applied = slot.link.get(LinkCounter::writes_applied);
    const auto by_host = slot.link.get(LinkCounter::late_by_host);
    const std::uint64_t least = party.least_of(node), floor = floor_ns(config.timing);
    const Histogram& late = slot.lateness;
    fmt::print(
        "{{\"bench\":\"ring_lateness\",\"pattern\":\"{}\",\"profile\":\"{}\",\"node\":{},"
        "\"writes\":{},"
        "\"late_ns\":{{\"p50\":{},\"p90\":{},\"p99\":{},\"p99.9\":{},\"max\":{}}},"
        "\"by_host_percent\":{:.3f},\"late_published\":{},\"propagation_p50_ns\":{},\"least_ns\":{}"
        ","
        "\"floor_ns\":{},\"takeovers\":{}}}\n",
        pattern, to_string(config.timing), node, applied, late.quantile(.5), late.quantile(.9),
        late.quantile(.99), late.quantile(.999), late.max(),
        applied == 0 ? 0. : 100. * static_cast<double>(by_host) / static_cast<double>(applied),
        slot.link.get(LinkCounter::late_published), slot.propagation.quantile(.5), least, floor,
        slot.link.get(LinkCounter::engine_takeovers));
    std::fflush(stdout);
    if (least >= floor) return true;
    fmt::print(stderr, "ring-lateness: node {} saw a write after {} ns; the wire takes {}\n", node,
               least, floor);
    return false;
}

bool run(const std::string& profile, const std::string& pattern, unsigned samples) {
    bench::GroupOptions options;
    options.link = "ring";
    options.deadline_s = kMostSeconds;
    RingConfig config;
    config.link = LinkKind::ring;
    config.nodes = config.ranks = 2;
    config.user_bytes = 4096;
    config.timing = parse_timing(profile);
    const bool is_stream = pattern == "stream";
    bench::Results results;
    run_processes(options, 2, results, [&](unsigned id, const std::string& ring) {
        RingConfig own = config;
        own.name = ring;
        Party party(own, id);
        // Now, because a rank that may use one processor of two does not spin.
        bench::pin_to(bench::processor_of(options, id));
        if (is_stream) {
            party.stream(samples);
        } else {
            party.pingpong(samples);
        }
        party.finish();
        if (id != 0) return;
        const bool good = is_stream || report(pattern, party, 0);
        if (!report(pattern, party, 1) || !good) results.put("early", {});
    });
    return !results.all().contains("early");
}

}  // namespace

int main(int argc, char** argv) {
    std::string profile = "scramnet-burst";
    unsigned samples = 200'000;
    CLI::App app{"How late the ring link runs, beside the wire model"};
    app.add_option("profile", profile, "Timing profile (rmem profiles)")->capture_default_str();
    app.add_option("samples", samples, "Writes of each pattern")
        ->check(CLI::Range(1U, 1U << 30U))
        ->capture_default_str();
    CLI11_PARSE(app, argc, argv);
    try {
        const bool pingpong = run(profile, "pingpong", samples);
        return run(profile, "stream", samples) && pingpong ? EXIT_SUCCESS : EXIT_FAILURE;
    } catch (const std::exception& e) {
        fmt::print(stderr, "ring-lateness: {}\n", e.what());
        return EXIT_FAILURE;
    }
}
