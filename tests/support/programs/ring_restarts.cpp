// SPDX-License-Identifier: Apache-2.0

/// Ranks that talk while any of them, or the daemon of its node, is killed and started again, and
/// while the network has the faults of RMEM_FAULTS (restart_rank.hpp: the checks;
/// restart_scenario.hpp: the course). See --help.

#include "tests/support/checks.hpp"
#include "tests/support/own_network.hpp"
#include "tests/support/programs/restart_rank.hpp"
#include "tests/support/programs/restart_scenario.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <CLI/CLI.hpp>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <new>
#include <string>
#include <system_error>

namespace {

using namespace rmem::test;

constexpr const char* kFooter = R"(
Ranks run on this host, on link udp over its loop-back; or each node where the words behind -- put
it, of which {} becomes the node's number. What the environment says of the ring (RMEM_FAULTS,
RMEM_KEY_FILE, RMEM_DEAD_TIMEOUT) holds for all.

Examples:
  ring-restarts --kills 20 --seed 7
  RMEM_FAULTS='drop:share=2%' ring-restarts --nodes 3 --ranks 6 --daemons --kills 10
  ring-restarts --seconds 600 --watch-growth
  scripts/lab up 4; ring-restarts --kills 20 -- scripts/lab exec {} --; scripts/lab down

Exit codes: 0 all held, 1 something did not, 2 wrong command line.)";

/// The record in a file, mapped until this process ends.
RestartRecord& map_record(int fd) {
    void* memory =
        ::mmap(nullptr, sizeof(RestartRecord), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) throw std::system_error(errno, std::generic_category(), "mmap");
    return *static_cast<RestartRecord*>(memory);
}

RestartRecord& open_record(const std::string& file) {
    const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    if (fd < 0) throw std::system_error(errno, std::generic_category(), file);
    RestartRecord& record = map_record(fd);
    ::close(fd);
    return record;
}

void set(const char* variable, const std::string& value, bool always = true) {
    ::setenv(variable, value.c_str(), always ? 1 : 0);  // NOLINT(concurrency-mt-unsafe): one thread
}

void prepare_environment(const Course& course) {
    for (const char* variable : {"RMEM_NODE", "RMEM_NODES", "RMEM_RANK", "RMEM_RANKS"}) {
        ::unsetenv(variable);  // NOLINT(concurrency-mt-unsafe): one thread
    }
    set("RMEM_RING", course.ring);
    set("RMEM_LINK", course.settings.link);
    set("RMEM_SIZE", "64K");
    set("RMEM_PARTITION", "16K");
    set("RMEM_JOIN_TIMEOUT", "5s", false);
    set("RMEM_DEAD_TIMEOUT", "1500ms", false);
    if (course.settings.before.empty())
        stay_on_this_host(course.ring, rmem::parse_link(course.settings.link));
}

void lead(const Course& course) {
    // The name is a file only while this process runs: nothing is left of it, however this one
    // ends.
    const int fd = ::memfd_create("restarts", 0);
    if (fd < 0 || ::ftruncate(fd, sizeof(RestartRecord)) != 0) {
        throw std::system_error(errno, std::generic_category(), "memfd_create");
    }
    const std::string file = fmt::format("/proc/{}/fd/{}", ::getpid(), fd);
    prepare_environment(course);
    RestartScenario(course, map_record(fd), file).run();
}

}  // namespace

int main(int argc, char** argv) {
    CLI::App app("Ranks that talk while some are killed and started again");
    Course course;
    RestartSettings& settings = course.settings;
    std::string record;
    course.ring = fmt::format("restarts-{}", ::getpid());
    app.add_option("--ranks", settings.ranks, "how many")
        ->check(CLI::Range(2U, kMaxTestRanks))
        ->capture_default_str();
    app.add_option("--nodes", settings.nodes, "on how many nodes; without, one for each rank");
    app.add_flag("--daemons", settings.daemons,
                 "each node is run by a daemon (link udp or fabric)");
    app.add_option("--link", settings.link, "udp, fabric, ring or direct")->capture_default_str();
    app.add_option("--rmem", settings.rmem, "the rmem command, for daemons")->capture_default_str();
    app.add_option("--kills", course.kills, "how often some are killed")->capture_default_str();
    app.add_option("--seconds", course.seconds, "how long they talk at least")
        ->capture_default_str();
    app.add_option("--messages", course.messages, "of each pair, at least")->capture_default_str();
    app.add_option("--seed", course.seed, "of all choices")->capture_default_str();
    app.add_flag("--watch-growth", course.watches_growth,
                 "fail when memory or descriptors of a process grow, or /dev/shm");
    app.add_flag("--no-incarnation-may-end", course.no_incarnation_may_end,
                 "fail when a rank loses its node");
    app.add_option("--record", record, "be a rank of the one that has this file")->group("");
    app.add_option("before", settings.before,
                   "what each process is started by, with {} for its node");
    app.footer(kFooter);
    settings.nodes = 0;
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    if (settings.nodes == 0) settings.nodes = settings.ranks;
    try {
        if (record.empty()) {
            lead(course);
        } else {
            LivingRank(open_record(record), course.seed).run();
        }
    } catch (const std::exception& error) {
        const char* rank = std::getenv("RMEM_RANK");  // NOLINT(concurrency-mt-unsafe): as above
        const std::string who =
            record.empty() ? "" : fmt::format("rank {}: ", rank == nullptr ? "?" : rank);
        fmt::print(stderr, "ring-restarts: {}{}\n", who, error.what());
        return 1;
    }
}
