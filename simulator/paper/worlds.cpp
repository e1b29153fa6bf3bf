// SPDX-License-Identifier: Apache-2.0
#include "simulator/paper/worlds.hpp"

#include "billboard/bbp.h"

#include <fmt/format.h>

namespace simulator {

namespace {

using rmem::sim::Process;
using rmem::sim::RunEnd;
using rmem::sim::World;
using rmem::sim::WorldConfig;

constexpr std::size_t kFiberBytes = std::size_t{64} * 1024;  // thousands of them fit

WorldConfig config_of(const Testbed& testbed) {
    WorldConfig config;
    config.ring.name = "experiment";
    config.ring.nodes = testbed.nodes;
    config.ring.ranks = testbed.ranks;
    config.ring.user_bytes = testbed.user_bytes;
    config.ring.timing = rmem::parse_timing(testbed.timing);
    config.topology = testbed.topology;
    config.host = testbed.host;
    config.stack_bytes = kFiberBytes;
    return config;
}

void run_to_the_end(World& world, const RankProgram& program) {
    for (unsigned r = 0; r < world.ranks(); ++r) world.start(r, program);
    if (world.run() == RunEnd::all_ended) return;
    throw rmem::Error(rmem::Errc::timed_out,
                      fmt::format("the {} ranks of the experiment wait for each other forever; "
                                  "this is a fault of the program or of the library",
                                  world.ranks()));
}

}  // namespace

int checked(int result) {
    if (result < 0) throw rmem::Error(rmem::Errc::system, bbp_last_error());
    return result;
}

void sleep_until(Process& process, std::int64_t time_ns) {
    if (time_ns > process.now_ns()) process.sleep(time_ns - process.now_ns());
}

void run_billboard(const Testbed& testbed, const RankProgram& program) {
    billboard::Settings settings = billboard::paper_settings();
    settings.board.data_bytes = testbed.partition_bytes;
    settings.barrier = testbed.barrier;
    World world(billboard::simulated(config_of(testbed), settings));
    run_to_the_end(world, [&program](Process& me) {
        checked(bbp_init(nullptr, nullptr));
        checked(bbp_barrier());
        program(me);
        checked(bbp_barrier());
        checked(bbp_finalize());
    });
}

void run_bare(const Testbed& testbed, const RankProgram& program, rmem::sim::Observer* observer) {
    World world(config_of(testbed));
    world.observe(observer);
    run_to_the_end(world, program);
}

}  // namespace simulator
