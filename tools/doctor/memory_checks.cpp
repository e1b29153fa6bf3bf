// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/host_limits.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/segment.hpp"
#include "tools/doctor/checks.hpp"
#include "tools/output.hpp"
#include "tools/run/cleaning.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statfs.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>

namespace tools {

namespace {

constexpr const char* kSharedMemory = "/dev/shm";
constexpr unsigned kThreadsPerRank = 4;
constexpr long kTmpfsMagic = 0x01021994;

/// Free bytes of /dev/shm; 0 when it is not there.
std::uint64_t free_shared_memory() {
    struct statfs fs {};
    if (::statfs(kSharedMemory, &fs) != 0) return 0;
    return std::uint64_t{fs.f_bavail} * static_cast<std::uint64_t>(fs.f_bsize);
}

Finding check_shared_memory(const CheckedJob& job) {
    struct statfs fs {};
    if (::statfs(kSharedMemory, &fs) != 0) {
        return fail("shared-memory", fmt::format("there is no {}", kSharedMemory),
                    fmt::format("mount a tmpfs there: mount -t tmpfs tmpfs {}", kSharedMemory));
    }
    const std::uint64_t total = std::uint64_t{fs.f_blocks} * static_cast<std::uint64_t>(fs.f_bsize);
    const std::string found = fmt::format(
        "{} has {}, {} of it free; a ring of {} ranks needs {}", kSharedMemory, size_text(total),
        size_text(free_shared_memory()), job.ranks, size_text(job.segment_bytes));
    if (::access(kSharedMemory, R_OK | W_OK | X_OK) != 0) {
        return fail("shared-memory", found,
                    fmt::format("let everybody write there: chmod 1777 {}", kSharedMemory));
    }
    if (free_shared_memory() < job.segment_bytes) {
        return fail("shared-memory", found,
                    fmt::format("mount -o remount,size=… {} (containers: --shm-size), `rmem "
                                "clean`, or a smaller ring (RMEM_PARTITION, RMEM_SIZE)",
                                kSharedMemory));
    }
    if (fs.f_type == kTmpfsMagic) return ok("shared-memory", found);
    return warn(
        "shared-memory", found,
        fmt::format("{} is no tmpfs, so every write may go to a disk: mount one", kSharedMemory));
}

/// Makes a ring, takes and tests the lock that tells live processes from dead ones, and removes the
/// ring.
Finding check_making() {
    rmem::RingConfig config;
    config.name = fmt::format("doctor-{}", ::getpid());
    config.user_bytes = 4096;
    try {
        const auto ring = rmem::Ring::open(config, rmem::Deadline::in(rmem::kNsPerSecond));
        const rmem::Membership member(ring, {0, 0});
        if (ring->is_alive(0)) return ok("ring", "a ring can be made, locked and removed");
        return fail("ring", "the lock of a live rank is not seen",
                    "a kernel from 3.15 on with open file description locks is needed");
    } catch (const rmem::Error& error) {
        return fail("ring", error.what(),
                    "the sentence says what to do; rmem-errors(7) has more under its [name]");
    }
}

Finding check_stale() {
    std::vector<std::string> removable;
    const auto names = rmem::Segment::list();
    for (const auto& name : names) {
        if (clean_ring(name, false, true, Staying::keep).removed)
            removable.push_back(printable(name));
    }
    if (!removable.empty()) {
        return warn("stale-rings", fmt::format("nobody is left in: {}", fmt::join(removable, ", ")),
                    "rmem clean");
    }
    return ok("stale-rings", names.empty() ? "no rings on this host"
                                           : fmt::format("rings: {}, each in use", names.size()));
}

Finding check_limit(const CheckedJob& job) {
    const auto memory = rmem::memory_of_cgroup();
    if (!memory) return ok("memory-limit", "no memory limit (cgroup)");
    const auto [room, limit] = *memory;
    const std::string found =
        fmt::format("this cgroup may use {} in all, shared memory included, and has room for {}",
                    size_text(limit), size_text(room));
    if (room < job.segment_bytes) {
        return fail("memory-limit", found,
                    "raise the limit (containers: --memory), or make the ring smaller");
    }
    const bool is_less = limit < free_shared_memory();
    return ok("memory-limit",
              found + (is_less ? fmt::format(", less than {} offers", kSharedMemory) : ""));
}

/// Those of this process, which its children inherit (ulimit, containers, services).
Finding check_own_limits(const CheckedJob& job) {
    Verdict worst = Verdict::ok;
    std::vector<std::string> found, advice;
    const auto look = [&](__rlimit_resource which, const char* what, const char* option,
                          std::uint64_t needed, Verdict verdict, const std::string& why) {
        const auto limit = rmem::own_limit(which);
        if (!limit || *limit >= needed) return;
        const bool is_of_bytes = which != RLIMIT_CPU && which != RLIMIT_NPROC;
        found.push_back(
            fmt::format("{} {}", is_of_bytes ? size_text(*limit) : fmt::to_string(*limit), what));
        advice.push_back(fmt::format("{} (ulimit {})", why, option));
        worst = std::max(worst, verdict);
    };
    const std::string smaller =
        fmt::format("a ring of {} ranks needs {}", job.ranks, size_text(job.segment_bytes));
    look(RLIMIT_AS, "of addresses", "-v", 2 * job.segment_bytes, Verdict::fail, smaller);
    look(RLIMIT_FSIZE, "for each file", "-f", job.segment_bytes, Verdict::fail, smaller);
    look(RLIMIT_NPROC, "threads of this user", "-u", std::uint64_t{job.ranks} * kThreadsPerRank,
         Verdict::warn, fmt::format("each rank has up to {}", kThreadsPerRank));
    look(RLIMIT_CPU, "seconds of processor time", "-t", RLIM_INFINITY, Verdict::warn,
         "ranks that poll use them up, and are ended then");
    look(RLIMIT_MEMLOCK, "of locked memory", "-l", job.segment_bytes, Verdict::ok,
         "programs that call mlockall need room for the ring");
    return {"limits", worst,
            found.empty() ? "no limit of this process is in the way"
                          : fmt::format("{}", fmt::join(found, ", ")),
            fmt::format("{}", fmt::join(advice, "; "))};
}

Finding check_huge_pages() {
    const std::string text = first_line("/sys/kernel/mm/transparent_hugepage/shmem_enabled");
    const auto open = text.find('[');
    const auto close = text.find(']');
    if (open == std::string::npos || close == std::string::npos)
        return ok("huge-pages", "this kernel has no transparent huge pages for shared memory");
    const std::string mode = text.substr(open + 1, close - open - 1);
    const bool is_off = mode == "never" || mode == "deny";
    return ok(
        "huge-pages",
        fmt::format("transparent huge pages for shared memory: {}{}", mode,
                    is_off ? " (page faults and TLB misses show on rings of many MiB only)" : ""));
}

}  // namespace

std::string first_line(const std::string& path) {
    std::ifstream file(path);
    std::string line;
    std::getline(file, line);
    return line;
}

std::vector<Finding> check_memory(const CheckedJob& job) {
    return {check_shared_memory(job), check_making(),        check_stale(),
            check_limit(job),         check_own_limits(job), check_huge_pages()};
}

}  // namespace tools
