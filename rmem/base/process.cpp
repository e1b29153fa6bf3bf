// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/process.hpp"

#include "rmem/base/small_file.hpp"

#include <fmt/format.h>

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

}  // namespace

std::uint64_t process_start_time(unsigned pid) noexcept {
    constexpr int kStartTime = 22;
    return stat_field(pid, kStartTime);
}

unsigned process_parent(unsigned pid) noexcept {
    constexpr int kParent = 4;
    return static_cast<unsigned>(stat_field(pid, kParent));
}

}  // namespace rmem
