// SPDX-License-Identifier: Apache-2.0
#pragma once

/// A ring of two nodes in the test's process, and the contents of a recording of it.
///
///     RecordedRing ring(LinkKind::ring);
///     Node node = ring.node(0);
///     RecordedRing::write(node, 0x40, 7);

#include "rmem/node.hpp"
#include "rmem/ring.hpp"
#include "tests/rmem/recording/recording_fixture.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

namespace rmem::test {

inline constexpr std::size_t kRecordedBytes = 16384;

class RecordedRing {
public:
    explicit RecordedRing(LinkKind link) {
        config_.name = name_.get();
        config_.link = link;
        config_.nodes = config_.ranks = 2;
        config_.user_bytes = kRecordedBytes;
        config_.system_bytes = 4096;
        config_.system_hash = 1;
        ring_ = Ring::open(config_, Deadline::in(kDefaultJoinTimeoutNs));
    }

    const std::string& name() const { return name_.get(); }
    const RingConfig& config() const { return config_; }
    bool is_alive(unsigned rank) const { return ring_->is_alive(rank); }
    Node node(unsigned rank) const { return Node(ring_, {rank, rank}); }
    /// The ring ends when its nodes have ended, too.
    void leave() { ring_.reset(); }

    static void write(Node& node, std::size_t offset, std::uint32_t value) {
        while (node.write_word(offset, value) == WriteResult::again) node.poll();
    }
    static std::vector<std::byte> memory(Node& node) {
        std::vector<std::byte> bytes(node.size());
        node.read(0, bytes.data(), bytes.size());
        return bytes;
    }

private:
    RingName name_;
    RingConfig config_;
    std::shared_ptr<Ring> ring_;
};

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
