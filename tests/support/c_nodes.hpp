// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Nodes of this process by rmem/rmem.h, in a ring of two, and what its calls refuse.
/// Thread safety: as rmem/rmem.h.

#include "rmem/rmem.h"
#include "tests/support/own_network.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace rmem::test {

inline constexpr std::int64_t kTimeoutNs = 30'000'000'000;
inline constexpr std::size_t kBytes = 16384;

/// The options of one node of a ring of two.
class Options {
public:
    /// With faults (rmem(7)) those of a ring that keeps a card's time.
    Options(const std::string& ring, LinkKind link, int node, const std::string& faults = "",
            const std::string& timing = "gt200")
        : ring_(ring),
          link_(name_of(link)),
          first_(is_remote(link) ? "RMEM_GROUP=" + own_group(ring, link) : "RMEM_FAULTS=" + faults),
          second_(is_remote(link) ? "RMEM_INTERFACE=lo" : "RMEM_TIMING=" + timing) {
        options_.ring = ring_.c_str();
        options_.link = link_.c_str();
        options_.node = node;
        options_.nodes = 2;
        options_.memory_bytes = kBytes;
        options_.timeout_ns = kTimeoutNs;
        if (is_remote(link) || !faults.empty() || timing != "gt200")
            options_.settings = settings_.data();
    }
    Options(const Options&) = delete;
    Options& operator=(const Options&) = delete;
    rmem_options* operator->() { return &options_; }
    const rmem_options* get() const { return &options_; }

private:
    const std::string ring_, link_, first_, second_;
    const std::array<const char*, 3> settings_ = {first_.c_str(), second_.c_str(), nullptr};
    rmem_options options_ = RMEM_OPTIONS;
};

/// A node that is closed at the end.
class OpenNode {
public:
    explicit OpenNode(const Options& options) {
        EXPECT_EQ(rmem_open_with(&node_, options.get()), RMEM_OK) << rmem_last_error();
    }
    ~OpenNode() { EXPECT_EQ(rmem_close(node_), RMEM_OK); }
    OpenNode(const OpenNode&) = delete;
    OpenNode& operator=(const OpenNode&) = delete;
    operator rmem_node*() const { return node_; }

private:
    rmem_node* node_ = nullptr;
};

inline void expect_refused(int found, int code, const char* part) {
    EXPECT_EQ(found, code) << rmem_last_error();
    EXPECT_THAT(rmem_last_error(), ::testing::HasSubstr(part));
}

}  // namespace rmem::test
