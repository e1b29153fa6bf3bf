// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What tests of link ring share beside the rings of "tests/support/test_ring.hpp".

#include "tests/support/test_ring.hpp"

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

namespace rmem::test {

/// Two nodes on a wire that takes time, and a rank of each, moved by calls alone.
struct StillPair : ::testing::Test {
    TestRing ring{{.timing = "scramnet-burst"}};
    RingRank a{ring, 0, still()}, b{ring, 1, still()};
};

/// For a rank that looks for races: each write passes its engine.
inline RingOptions checking(RingOptions options = {}) {
    options.check_writers = true;
    return options;
}

/// Nobody runs anything meanwhile.
inline void stay_away(std::int64_t ns) {
    for (const Deadline end = Deadline::in(ns); !end.passed(now_ns());) {
    }
}

/// A record of one word that is written now.
inline LogRecord word_record(std::size_t offset) {
    return {.written_ns = now_ns(), .offset = offset, .words = 1};
}

/// Writes that many KiB to one place, which fill the log; after each it does `then`.
inline void write_blocks(
    RingRank& from, unsigned count, const std::function<void()>& then = [] {}) {
    const std::vector<std::byte> block(1024);
    for (; count > 0; --count, then()) {
        from.wait_for_room(block.size());
        from.memory.write(8192, block.data(), block.size());
    }
}

/// The name of a case that is a timing profile's.
inline std::string profile_case_name(const ::testing::TestParamInfo<std::string>& info) {
    std::string name = info.param;
    std::replace(name.begin(), name.end(), '-', '_');
    return name;
}

}  // namespace rmem::test
