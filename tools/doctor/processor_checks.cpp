// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/clock.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/base/helper_thread.hpp"
#include "rmem/base/host_limits.hpp"
#include "rmem/ring/waiting/waiting.hpp"
#include "tools/doctor/checks.hpp"
#include "tools/output.hpp"
#include "tools/run/rank_process.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <system_error>

namespace tools {

namespace {

constexpr std::int64_t kSlowClockNs = 100;  // a system call instead of a read of the TSC
constexpr int kClockReads = 20'000;
constexpr std::int64_t kGapNs = 2'000;  // two reads this far apart: we did not run
constexpr std::int64_t kGapWatchNs = 200'000'000;
constexpr double kManyGaps = 0.01;  // share of the time
constexpr rlim_t kFilesPerRank = 8;

Finding check_number(const CheckedJob& job) {
    const long online = ::sysconf(_SC_NPROCESSORS_ONLN);
    const std::size_t usable = usable_processors().size();
    const double allowed = rmem::processors_of_cgroup().value_or(0);
    const std::string found = fmt::format(
        "{} online, {} usable by this process (affinity), {}", online, usable,
        allowed > 0 ? fmt::format("quota of {:.2g} (cgroup)", allowed) : "no quota (cgroup)");
    if (usable < 2) {
        return warn("processors", found,
                    "every message costs a switch between processes: allow more (taskset, "
                    "containers: --cpuset-cpus)");
    }
    if (allowed > 0 && allowed < static_cast<double>(job.ranks)) {
        return warn("processors", found,
                    "ranks that poll use the quota up and are then stopped for tens of "
                    "milliseconds: raise it to the number of ranks (containers: --cpus)");
    }
    return ok("processors", found);
}

Finding check_spinning(const CheckedJob& job) {
    const unsigned processors = rmem::allowed_processors();
    const std::string found =
        fmt::format("{} ranks on {} processors: waiting ranks ", job.ranks, processors);
    if (job.ranks <= processors) return ok("spinning", found + "spin");
    return warn("spinning", found + "yield instead of spinning",
                fmt::format("at most {} ranks have the latency of the memory; more take turns, in "
                            "microseconds",
                            processors));
}

Finding check_wake_ups() {
    if (rmem::register_fences())
        return ok("wake-ups", "membarrier(2) works: sleeping ranks are woken at once");
    return warn("wake-ups",
                fmt::format("membarrier(2) is refused: sleeping ranks look every {} instead",
                            duration_text(rmem::kBlindSleepNs)),
                "allow it (containers: a seccomp profile with membarrier)");
}

/// Asks for it as a helper does, in a thread that then ends.
Finding check_real_time() {
    bool has = false;
    try {
        const rmem::HelperThread thread("rmem-doctor",
                                        [&has] { has = rmem::HelperThread::ask_for_real_time(); });
    } catch (const std::system_error&) {  // no thread, no priority
        has = false;
    }
    if (has)
        return ok("real-time", "helper threads get real-time priority: writes reach banks at once");
    return ok("real-time",
              "helper threads get no real-time priority: on link `udp` writes reach the bank of a "
              "program that spins on plain loads later",
              "for such programs: a line `@group - rtprio 1` in /etc/security/limits.conf, or "
              "CAP_SYS_NICE (containers: --cap-add SYS_NICE)");
}

Finding check_clock() {
    const std::string source =
        first_line("/sys/devices/system/clocksource/clocksource0/current_clocksource");
    const std::int64_t start = rmem::now_ns();
    std::int64_t last = start;
    for (int i = 0; i < kClockReads; ++i) last = rmem::now_ns();
    const std::int64_t each = (last - start) / kClockReads;
    const std::string found = fmt::format("clock source {}, {} ns for each reading",
                                          source.empty() ? "unknown" : source, each);
    if (each <= kSlowClockNs) return ok("clock", found);
    return warn("clock", found,
                "link `ring` reads the clock for every write: boot with clocksource=tsc (a "
                "virtual machine: let it see an invariant TSC)");
}

Finding check_frequency() {
    const std::string governor =
        first_line("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor");
    if (governor.empty())
        return ok("frequency", "the host or firmware sets the processors' frequency");
    return ok(
        "frequency", fmt::format("frequency governor {}", governor),
        governor == "powersave" ? "for measurements: cpupower frequency-set -g performance" : "");
}

/// How much of the time this process was kept from running though it wanted to.
Finding check_gaps() {
    const std::int64_t start = rmem::now_ns();
    std::int64_t away = 0, longest = 0, before = start;
    while (before < start + kGapWatchNs) {
        const std::int64_t now = rmem::now_ns();
        if (now - before > kGapNs) {
            away += now - before;
            longest = std::max(longest, now - before);
        }
        before = now;
    }
    const std::int64_t watched = before - start;  // longer than wanted, if the last was a gap
    const double share = static_cast<double>(away) / static_cast<double>(watched);
    const std::string found =
        fmt::format("{:.1f} % of {} away from the processor, {} at most", 100 * share,
                    duration_text(static_cast<std::uint64_t>(watched)),
                    duration_text(static_cast<std::uint64_t>(longest)));
    if (share <= kManyGaps) return ok("host-gaps", found);
    return warn("host-gaps", found,
                "tails of latencies and the lateness of link `ring` are the host's: end other "
                "work, isolate processors, or read the counters that tell the two apart");
}

Finding check_open_files(const CheckedJob& job) {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return ok("open-files", "");
    const std::string found = fmt::format("{} open files allowed", limit.rlim_cur);
    if (limit.rlim_cur >= job.ranks * kFilesPerRank) return ok("open-files", found);
    return warn("open-files", found,
                fmt::format("`rmem run` of {} ranks needs about {}: ulimit -n", job.ranks,
                            job.ranks * kFilesPerRank));
}

}  // namespace

std::vector<Finding> check_processors(const CheckedJob& job) {
    return {check_number(job), check_spinning(job), check_wake_ups(), check_real_time(),
            check_clock(),     check_frequency(),   check_gaps(),     check_open_files(job)};
}

}  // namespace tools
