// SPDX-License-Identifier: Apache-2.0
// `rmem bench`: measures the billboard beside the machine's own limit.

#include "tools/measure/bench.hpp"
#include "billboard/boards/layout.hpp"
#include "rmem/ring/config.hpp"
#include "tools/commands.hpp"
#include "tools/measure/figures.hpp"
#include "tools/measure/samples.hpp"
#include "tools/output.hpp"
#include "tools/usage.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>

namespace tools {

namespace {

constexpr const char* kBenchExamples = R"(
Figures:
  floor       one cache line bounced between the two processors, and memcpy
  pingpong    one way of a message there and back
  rate        messages one after the other, per message
  bandwidth   large messages: against one memcpy and two pipelined ones
  mcast       the sender's cost of each further receiver
  barrier     all ranks
  any         receive from BBP_ANY with a random sender, and an empty look (direct, ring)
  sizes       every size in every rhythm: to and fro, streams, windows, bursts; with more ranks
              fan-in, fan-out, all to all
  memory      stores, words to and fro, streams, blocks, interrupts, flushes, frames, idleness

Examples:
  rmem bench pingpong                              8 bytes over the direct link
  rmem bench pingpong --link ring --timing scramnet-burst
  rmem bench barrier -n 4 --samples 100000
  rmem bench bandwidth --bytes 64K
  rmem bench any -n 256 --spin 1000000 --json
  rmem bench sizes                                 0 B to 1 MiB, in six rhythms
  rmem bench sizes -n 4 --sizes 8,64,1K --rhythms fan-in,fan-out
  rmem bench memory --link ring --timing scramnet-burst
  rmem bench memory --all --page                   all links, as a page of tables
  rmem bench memory --only hop,flush -n 4 --busy 1

Exit codes: 0 done, 1 failed, 2 wrong command line.)";

using Measure = void (*)(const GroupOptions&, const Plan&, Results&);

struct BenchOptions {
    std::string figure;
    GroupOptions group;
    Plan plan;
    MemoryOptions memory;
    SizesOptions sizes;
    std::string most_block;
    std::string size;  ///< --bytes
    std::size_t bytes = 0;
    bool json = false;
};

constexpr std::size_t kSizesRounds = 30;
constexpr std::size_t kMaxBytes = std::size_t{1} << 30;  ///< each rank has it twice

Measure measure_of(const std::string& figure) {
    if (figure == "floor") return measure_floor;
    if (figure == "pingpong") return measure_pingpong;
    if (figure == "rate") return measure_rate;
    if (figure == "bandwidth") return measure_bandwidth;
    if (figure == "mcast") return measure_mcast;
    if (figure == "barrier") return measure_barrier;
    return measure_any;
}

std::string ns(double value) {
    return fmt::format("{:.1f}", value);
}

nlohmann::json summary(const Series& series) {
    nlohmann::json all = nlohmann::json::object();
    for (const auto& [name, values] : series) {
        all[name] = percentiles_json(values);
        if (series.contains("floor") && name != "floor" &&
            values.size() == series.at("floor").size()) {
            const auto& floor = series.at("floor");
            all[name]["ratio_to_floor"] = median_ratio(values, floor);
            all[name]["above_floor_ns"] = median_of_rounds(values, floor, std::minus<>());
        }
    }
    return all;
}

std::string table(const Series& series) {
    Table rows({"series", ">samples", ">p50 ns", ">p90", ">p99", ">p99.9", ">max", ">÷ floor",
                ">- floor ns"});
    const nlohmann::json all = summary(series);
    for (const auto& [name, values] : series) {
        const Percentiles p(values);
        const auto& said = all[name];
        const bool compared = said.contains("ratio_to_floor");
        rows.add({name, std::to_string(p.samples), ns(p.p50), ns(p.p90), ns(p.p99), ns(p.p999),
                  ns(p.max),
                  compared ? fmt::format("{:.2f}", said["ratio_to_floor"].get<double>()) : "",
                  compared ? ns(said["above_floor_ns"]) : ""});
    }
    return rows.text();
}

std::string bandwidth_note(const Series& series) {
    const double one = median_ratio(series.at("memcpy"), series.at("view"));
    const double two = median_ratio(series.at("pipelined"), series.at("stream"));
    return fmt::format(
        "stream ÷ two pipelined memcpys: {:.2f}\nread in place ÷ one memcpy: {:.2f}\n", two, one);
}

/// Of the processors that this process may run on.
void check_processors(const std::vector<unsigned>& wanted) {
    const auto allowed = usable_processors();
    for (const unsigned processor : wanted) {
        if (std::find(allowed.begin(), allowed.end(), processor) != allowed.end()) continue;
        throw UsageError(fmt::format(
            "--processors {}: this process may not run there, or there is no such processor; it "
            "may run on {}",
            processor, numbers_text(allowed)));
    }
}

/// What each rank would say one after the other, said once and before there are any.
void check(const BenchOptions& options) {
    const GroupOptions& group = options.group;
    rmem::RingConfig config;
    try {
        config.link = rmem::parse_link(group.link);
        billboard::parse_layout(group.layout);
        if (!group.timing.empty()) config.timing = rmem::parse_timing(group.timing);
        rmem::refuse_idle_settings(rmem::Environment{}, config);
    } catch (const rmem::Error& error) {
        throw UsageError(error.sentence());
    }
    if (config.link == rmem::LinkKind::sim) {
        throw UsageError(
            "--link sim cannot be measured: its calls take no time; `rmem sim paper` times the "
            "ring itself");
    }
    if (options.plan.think_ns != 0 && options.figure != "pingpong") {
        throw UsageError("--think is for pingpong only");
    }
    if (config.is_remote() && options.figure == "any") {
        throw UsageError(
            "any has all senders in one process, which on link udp is one rank's; "
            "use direct or ring");
    }
    if (options.bytes > kMaxBytes) {
        throw UsageError(fmt::format("--bytes {} is too large; give at most {}", options.size,
                                     rmem::size_setting(kMaxBytes)));
    }
    check_processors(group.processors);
}

void run(BenchOptions options) {
    const bool large = options.figure == "bandwidth";
    options.bytes = options.size.empty() ? large ? std::size_t{1} << 20 : 8
                                         : size_option("--bytes", options.size);
    check(options);
    options.plan.bytes = options.bytes;
    if (large) options.plan.batch = 20;
    // One message and the next are to fit into the sender's partition, where it is viewed whole.
    if (large && options.group.link != "direct")
        options.group.partition = std::to_string(4 * options.plan.bytes);
    if (options.group.link != "direct") {  // the wire is a thousand times slower
        options.plan.rounds = std::min<std::size_t>(options.plan.rounds, 50);
        options.plan.batch = std::min<std::size_t>(options.plan.batch, 100);
    }
    options.group.progress = !options.json;
    if (options.figure == "sizes") {
        options.sizes.rounds = std::min(options.plan.rounds, kSizesRounds);
        options.sizes.page = options.memory.page;
        return bench_sizes(options.group, options.sizes, options.json);
    }
    if (options.figure == "memory") {
        if (!options.most_block.empty())
            options.memory.plan.most_block = size_option("--most-block", options.most_block);
        options.memory.plan.samples = std::min(options.plan.samples, options.memory.plan.samples);
        return bench_memory(options.group, options.memory, options.json);
    }
    Results results;
    measure_of(options.figure)(options.group, options.plan, results);
    const Series series = results.all();
    if (options.json) {
        return show_json({{"figure", options.figure},
                          {"link", options.group.link},
                          {"layout", options.group.layout},
                          {"timing", options.group.timing},
                          {"ranks", options.group.ranks},
                          {"bytes", options.plan.bytes},
                          {"series", summary(series)}});
    }
    show(fmt::format("\n{}: {} ranks, link {}, layout {}, {} bytes; ns\n", options.figure,
                     options.group.ranks, options.group.link, options.group.layout,
                     options.plan.bytes) +
         table(series) + (large ? bandwidth_note(series) : ""));
}

}  // namespace

nlohmann::json percentiles_json(const std::vector<double>& values) {
    const Percentiles p(values);
    return {{"samples", p.samples}, {"p50_ns", p.p50},   {"p90_ns", p.p90},
            {"p99_ns", p.p99},      {"p999_ns", p.p999}, {"max_ns", p.max}};
}

void add_bench(cli::App& app) {
    auto options = std::make_shared<BenchOptions>();
    cli::App* bench = app.add_subcommand(kBench.word, kBench.description);
    bench->footer(kBenchExamples);
    bench->add_option("figure", options->figure, "What to measure")
        ->required()
        ->check(cli::is_member({"floor", "pingpong", "rate", "bandwidth", "mcast", "barrier", "any",
                                "sizes", "memory"}));
    bench->add_option("-n,--ranks", options->group.ranks, "Ranks")
        ->check(cli::range(2, 256))
        ->capture_default_str();
    bench->add_option("--bytes", options->size, "Bytes of a message (default 8; bandwidth 1M)");
    bench->add_option("--link", options->group.link, "direct, ring, udp or fabric")
        ->capture_default_str();
    bench->add_option("--layout", options->group.layout, "inline or paper")->capture_default_str();
    bench->add_option("--timing", options->group.timing, "Timing profile (rmem profiles)");
    bench->add_option("--barrier", options->group.barrier, "arrival or paper")
        ->check(cli::is_member({"arrival", "paper"}));
    bench->add_option("--spin", options->group.spin, "Polls before yielding (RMEM_SPIN)");
    bench->add_option("--processors", options->group.processors, "Processors to pin to, in turn")
        ->delimiter(',');
    bench
        ->add_option(
            "--think", options->plan.think_ns,
            "pingpong: random work of up to this many ns before each reply, taken off again")
        ->check(cli::range(0.0, 1e6));
    bench->add_option("--samples", options->plan.samples, "Operations timed one by one")
        ->check(cli::range(std::size_t{10}, std::size_t{500'000}))
        ->capture_default_str();
    bench->add_option("--rounds", options->plan.rounds, "Rounds of floor and ours in turn")
        ->check(cli::range(std::size_t{10}, std::size_t{10'000}))
        ->capture_default_str();
    bench->add_option("--deadline", options->group.deadline_s, "Seconds until it gives up")
        ->capture_default_str();
    bench->add_option("--only", options->memory.plan.quantities, "memory: these quantities")
        ->delimiter(',')
        ->check(cli::is_member({"store", "hop", "interrupt", "message", "rhythm", "words", "blocks",
                                "reads", "flush", "frame", "idle"}));
    bench
        ->add_option("--busy", options->memory.plan.busy,
                     "memory: processes that compute meanwhile")
        ->check(cli::range(0, 64));
    bench->add_option("--most-block", options->most_block, "memory: largest block (default 4M)");
    bench->add_flag("--all", options->memory.all_links, "memory: all links and several profiles");
    bench->add_option("--sizes", options->sizes.sizes, "sizes: these, in bytes")->delimiter(',');
    bench->add_option("--rhythms", options->sizes.rhythms, "sizes: these rhythms")
        ->delimiter(',')
        ->check(cli::is_member({"pingpong", "stream", "window", "burst-2", "burst-8", "burst-64",
                                "fan-in", "fan-out", "all-to-all"}));
    bench->add_flag("--page", options->memory.page, "memory, sizes: tables as Markdown");
    bench->add_flag("--json", options->json, "For programs");
    bench->callback([options] { run(*options); });
}

}  // namespace tools
