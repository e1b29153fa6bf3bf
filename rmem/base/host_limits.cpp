// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/host_limits.hpp"

#include "rmem/base/quantity.hpp"
#include "rmem/base/small_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <sstream>

namespace rmem {

namespace {

constexpr const char* kCgroups = "/sys/fs/cgroup";
constexpr std::uint64_t kUnlimited = std::uint64_t{1} << 60;  // version 1 says it with more

std::optional<std::uint64_t> number_in(const std::string& file) {
    const std::string text = small_file(file.c_str());
    std::uint64_t number = 0;
    const auto error = std::from_chars(text.data(), text.data() + text.size(), number).ec;
    if (error != std::errc{} || number >= kUnlimited) return std::nullopt;
    return number;
}

/// The number of a line "name number"; 0 if there is none.
std::uint64_t field_of(const std::string& text, const std::string& name) {
    const auto at = ("\n" + text).find("\n" + name + " ");
    if (at == std::string::npos) return 0;
    return std::strtoull(text.c_str() + at + name.size(), nullptr, 10);
}

/// Calls `look` with the folder of each cgroup of this process and of those above, and whether it
/// is of version 2.
template <class Look>
void for_each_cgroup(const std::string& root, const std::string& controller, Look&& look) {
    std::istringstream lines(small_file((root + "/proc/self/cgroup").c_str()));
    for (std::string line; std::getline(lines, line);) {
        const auto first = line.find(':'), second = line.find(':', first + 1);
        if (second == std::string::npos) continue;
        const std::string named = "," + line.substr(first + 1, second - first - 1) + ",";
        const bool is_v2 = named == ",,";
        if (!is_v2 && named.find("," + controller + ",") == std::string::npos) continue;
        const std::string top = root + kCgroups + (is_v2 ? "" : "/" + controller);
        for (std::string path = line.substr(second + 1);;) {
            look(top + path, is_v2);
            if (is_v2) look(top + "/unified" + path, is_v2);
            const auto slash = path.rfind('/');
            if (slash == std::string::npos) break;
            path.resize(slash);
        }
    }
}

/// Of the smallest `value` gives.
template <class Value>
auto least(const std::string& root, const std::string& controller, Value&& value) {
    decltype(value(root, true)) least;
    for_each_cgroup(root, controller, [&](const std::string& folder, bool is_v2) {
        const auto found = value(folder, is_v2);
        if (found && (!least || *found < *least)) least = found;
    });
    return least;
}

}  // namespace

std::optional<double> processors_of_cgroup(const std::string& root) {
    return least(root, "cpu", [](const std::string& folder, bool is_v2) -> std::optional<double> {
        const std::string text = is_v2 ? small_file((folder + "/cpu.max").c_str())
                                       : small_file((folder + "/cpu.cfs_quota_us").c_str()) + " " +
                                             small_file((folder + "/cpu.cfs_period_us").c_str());
        double quota = 0, period = 0;  // "max" is no number, and -1 no quota
        const int read = std::sscanf(text.c_str(), "%lf %lf", &quota, &period);
        if (read != 2 || quota <= 0 || period <= 0) return std::nullopt;
        return quota / period;
    });
}

std::optional<CgroupMemory> memory_of_cgroup(const std::string& root) {
    const std::string meminfo = small_file((root + "/proc/meminfo").c_str());
    const std::uint64_t free_swap = field_of(meminfo, "SwapFree:") * 1024;
    return least(root, "memory", [&](const std::string& folder, bool is_v2) {
        const auto limit = number_in(folder + (is_v2 ? "/memory.max" : "/memory.limit_in_bytes"));
        if (!limit) return std::optional<CgroupMemory>();
        const auto used =
            number_in(folder + (is_v2 ? "/memory.current" : "/memory.usage_in_bytes"));
        const std::string stat = small_file((folder + "/memory.stat").c_str());
        const std::string prefix = is_v2 ? "" : "total_";
        const std::uint64_t all =
            *limit + field_of(stat, prefix + "inactive_file") +
            field_of(stat, prefix + "active_file") +
            std::min(free_swap, number_in(folder + "/memory.swap.max").value_or(free_swap));
        return std::optional(CgroupMemory{all - std::min(all, used.value_or(0)), *limit});
    });
}

std::optional<std::uint64_t> own_limit(__rlimit_resource which) noexcept {
    rlimit limit{};
    if (::getrlimit(which, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
    return limit.rlim_cur;
}

std::string limit_behind(int error) {
    if (error == EMFILE) {
        return fmt::format("; this process may have {} open files: raise that (ulimit -n)",
                           own_limit(RLIMIT_NOFILE).value_or(0));
    }
    if (error != ENOMEM) return "";
    if (const auto bytes = own_limit(RLIMIT_AS)) {
        return fmt::format(
            "; this process may have {} of addresses: raise that (ulimit -v), or "
            "make the ring smaller (RMEM_SIZE, RMEM_PARTITION, fewer ranks)",
            size_text(*bytes));
    }
    return "; the host has no memory left, or vm.max_map_count is too small (sysctl)";
}

std::string limit_of_locked_memory() {
    return fmt::format(
        "; this process keeps all of its memory (mlockall), and may keep {}: "
        "raise that (ulimit -l; services: LimitMEMLOCK=infinity, containers: "
        "--ulimit memlock=-1)",
        size_text(own_limit(RLIMIT_MEMLOCK).value_or(0)));
}

std::string limit_of_threads() {
    const auto tasks = own_limit(RLIMIT_NPROC), stack = own_limit(RLIMIT_STACK);
    return fmt::format(
        "the system gives no thread; a user may have {} (ulimit -u), a container what its "
        "pids.max says, and each takes {} of addresses (ulimit -s), of locked memory (ulimit -l) "
        "after mlockall",
        tasks ? fmt::format("{} threads", *tasks) : "any number of threads",
        size_text(stack.value_or(2 * 1024 * 1024)));
}

}  // namespace rmem
