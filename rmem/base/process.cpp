// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/process.hpp"

#include "rmem/base/small_file.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace rmem {

namespace {

/// A field of /proc/<pid>/stat, numbered from 1 as in proc(5); 0 where there is none.
std::uint64_t stat_field(unsigned pid, int number) noexcept {
    constexpr int kFirstAfterName = 3;
    try {
        const std::string text = small_file(fmt::format("/proc/{}/stat", pid).c_str());
        // The command's name may hold spaces and brackets: fields count from its last bracket.
        auto at = text.rfind(')');
        for (int i = kFirstAfterName; i <= number && at != std::string::npos; ++i) {
            at = text.find(' ', at + 1);
        }
        return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at, nullptr, 10);
    } catch (...) {
        return 0;
    }
}

constexpr unsigned kPidBits = 32;

std::uint64_t pid_namespace() noexcept {
    static const std::uint64_t own = own_namespace("pid");
    return own;
}

}  // namespace

std::uint64_t own_process() noexcept {
    static_cast<void>(pid_namespace());  // looked up before the first look at somebody else
    return own_namespace("pid") << kPidBits | static_cast<std::uint32_t>(::getpid());
}

bool is_process_gone(std::uint64_t process) noexcept {
    const std::uint64_t own = pid_namespace();
    const auto pid = static_cast<pid_t>(process & INT_MAX);
    if (process >> kPidBits != own || own == 0 || pid == 0) return false;
    return ::kill(pid, 0) != 0 && errno == ESRCH;
}

std::uint64_t own_namespace(const char* kind) noexcept {
    struct stat found {};
    std::array<char, 32> path{};  // no private memory: it may be asked where there is none
    std::snprintf(path.data(), path.size(), "/proc/self/ns/%s", kind);
    return ::stat(path.data(), &found) == 0 ? found.st_ino : 0;
}

std::uint64_t process_start_time(unsigned pid) noexcept {
    constexpr int kStartTime = 22;
    return stat_field(pid, kStartTime);
}

unsigned process_parent(unsigned pid) noexcept {
    constexpr int kParent = 4;
    return static_cast<unsigned>(stat_field(pid, kParent));
}

}  // namespace rmem
