// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring to record, and the contents of a recording.

#include "tests/rmem/recording/recording_fixture.hpp"
#include "tests/support/test_ring.hpp"
#include "tests/support/tool.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

namespace rmem::test {

inline constexpr std::size_t kRecordedBytes = 16384;

inline RingSpec to_record(LinkKind link) {
    return {.link = link, .user_bytes = kRecordedBytes, .system_bytes = 4096};
}

/// A recorder of that ring, or of a node's segment, that has begun.
inline std::unique_ptr<Tool> start_recorder(const std::string& ring, const std::string& path,
                                            const Arguments& more = {}) {
    return start_tool(concat({"record", "--ring", ring, "-o", path}, more), "rmem record: ring");
}

inline std::vector<OwnedWrite> writes_in(const std::string& path) {
    RecordingReader reader(path);
    return RecordingTest::read_all(reader);
}

inline std::uint32_t first_word(const OwnedWrite& write) {
    std::uint32_t value = 0;
    EXPECT_GE(write.words.size(), sizeof value);
    if (write.words.size() >= sizeof value) std::memcpy(&value, write.words.data(), sizeof value);
    return value;
}

}  // namespace rmem::test
