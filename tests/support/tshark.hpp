// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What Wireshark makes of a capture with tools/record/rmem.lua.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

namespace rmem::test {

inline bool has_tshark() {
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    return std::system("tshark --version >/dev/null 2>&1") == 0;
}

inline std::string tshark(const std::string& path, const std::string& options) {
    const std::string command = "tshark -X lua_script:" RMEM_SOURCE_DIR
                                "/tools/record/rmem.lua -r " +
                                path + " " + options + " 2>&1";
    FILE* const output = ::popen(command.c_str(), "r");
    std::string text;
    for (int c = std::fgetc(output); c != EOF; c = std::fgetc(output)) text += static_cast<char>(c);
    EXPECT_EQ(::pclose(output), 0) << text;
    return text;
}

}  // namespace rmem::test
