// SPDX-License-Identifier: Apache-2.0
#include "tests/support/rank_processes.hpp"

#include "tests/support/own_network.hpp"

#include "billboard/bbp.h"
#include "rmem/base/clock.hpp"
#include "rmem/sim/process.hpp"
#include "tests/support/leftovers.hpp"

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <stdexcept>
#include <thread>

namespace rmem::test {

namespace {

constexpr std::chrono::microseconds kPause(200);

std::string unique_ring_name() {
    static unsigned count = 0;
    remove_leftovers();
    return fmt::format("test-{}-{}", ::getpid(), ++count);
}

/// All ranks meet in one place, of this process.
const RingSetup& with_group(RingSetup& setup, const std::string& ring) {
    const LinkKind link = parse_link(setup.link);
    if (is_remote(link) && !setup.extra.contains("RMEM_GROUP"))
        setup.extra["RMEM_GROUP"] = own_group(ring, link);
    return setup;
}

std::unique_ptr<RankHost> make_host(const RingSetup& setup, const std::string& ring) {
    if (setup.ranks > kMaxTestRanks) throw std::invalid_argument("more ranks than kMaxTestRanks");
    return setup.link == "sim" ? simulated_ranks(setup, ring) : forked_ranks(setup, ring);
}

}  // namespace

// ---- In a rank, or in the test

bool is_simulated() {
    return sim::current_process() != nullptr;
}

std::int64_t clock_ns() {
    const sim::Process* process = sim::current_process();
    return process == nullptr ? now_ns() : process->now_ns();
}

void rest(std::chrono::nanoseconds time) {
    if (sim::Process* process = sim::current_process()) return process->sleep(time.count());
    std::this_thread::sleep_for(time);
}

void set_variable(const std::string& name, const std::optional<std::string>& value) {
    if (sim::Process* process = sim::current_process()) {
        process->set_variable(name, value);
    } else if (value) {
        ::setenv(name.c_str(), value->c_str(), 1);
    } else {
        ::unsetenv(name.c_str());
    }
}

void await(const std::function<bool()>& holds, std::string_view what, Place place) {
    passing(place);
    const std::int64_t deadline = clock_ns() + std::chrono::nanoseconds(kAwaitDeadline).count();
    while (!holds()) {
        if (clock_ns() > deadline) fail(fmt::format("waited too long for {}", what), place);
        rest(kPause);
    }
}

void Rank::await_word(std::size_t word, std::uint32_t value, Place place) {
    await([&] { return shared[word] >= value; },
          fmt::format("shared word {} to reach {}, it is {}", word, value, shared[word].load()),
          place);
    if (is_simulated()) rest(kPause);
}

void Rank::leave(Place place) {
    await([&] { return shared.dying == 0; }, "the killed to be gone", place);
    joined = false;
    check_code(bbp_finalize(), BBP_OK, "bbp_finalize", place);
}

// ---- What hosts share

std::map<std::string, std::string> environment_of(const RingSetup& setup, const std::string& ring,
                                                  const RankRun& rank_run) {
    std::map<std::string, std::string> variables = {
        {"RMEM_RING", ring},
        {"RMEM_RANK", std::to_string(rank_run.rank)},
        {"RMEM_RANKS", std::to_string(setup.ranks)},
        {"RMEM_LINK", setup.link},
        {"RMEM_TIMING", setup.timing},
        {"RMEM_LAYOUT", setup.layout},
        {"RMEM_PARTITION", std::to_string(setup.partition)},
        {"RMEM_JOIN_TIMEOUT", setup.join_timeout},
    };
    if (is_remote(parse_link(setup.link))) {
        variables["RMEM_INTERFACE"] = "lo";
        variables["RMEM_DEAD_TIMEOUT"] = "1s";
    }
    for (const auto& [variable, value] : setup.extra) variables[variable] = value;
    for (const auto& [variable, value] : rank_run.changes) variables[variable] = value;
    if (!rank_run.doomed.empty()) variables["RMEM_AT_MARK"] = "kill:" + rank_run.doomed;
    return variables;
}

void live(const RankRun& rank_run, const RingSetup& setup, Shared& shared) {
    Rank me{static_cast<int>(rank_run.rank), static_cast<int>(setup.ranks), setup.partition,
            shared};
    if (rank_run.joins) {
        int number = -1;
        int ranks = -1;
        check_ok(bbp_init(&number, &ranks), "bbp_init");
        check_equal(number, rank_run.rank, "the rank that bbp_init tells");
        check_equal(ranks, setup.ranks, "the number of ranks that bbp_init tells");
        me.joined = true;
        ++shared.joined;
        await([&] { return shared.joined >= setup.ranks; }, "all ranks to join");
    }
    rank_run.body(me);
    if (me.joined) me.leave();
}

std::string describe(Place place) {
    if (place.line == 0) return "before its first check";
    return fmt::format("at {}:{}", std::filesystem::path(place.file).filename().string(),
                       place.line);
}

// ---- RankProcesses

RankProcesses::RankProcesses(RingSetup setup)
    : setup_(std::move(setup)),
      name_(unique_ring_name()),
      host_(make_host(with_group(setup_, name_), name_)) {}

}  // namespace rmem::test
