// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/process.hpp"

#include <fmt/format.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace rmem {

namespace {

/// A field of /proc/<pid>/stat, numbered from 1 as in proc(5); 0 where there is none.
std::uint64_t stat_field(unsigned pid, int number) noexcept {
    constexpr int kFirstAfterName = 3;
    try {
        std::ifstream file(fmt::format("/proc/{}/stat", pid));
        const std::string text{std::istreambuf_iterator<char>(file), {}};
        // The command's name may hold spaces and brackets: fields count from its last bracket.
        const auto close = text.rfind(')');
        if (close == std::string::npos) return 0;
        std::istringstream fields(text.substr(close + 1));
        std::string field;
        for (int i = kFirstAfterName; i <= number; ++i) fields >> field;
        return std::stoull(field);
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
