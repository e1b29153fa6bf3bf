// SPDX-License-Identifier: Apache-2.0

/// The first opening of a ring in a process, by several threads at the same time. A file of its
/// own: whatever runs before in the process has opened one.

#include "rmem/ring/segment.hpp"
#include "tests/rmem/threads.hpp"
#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

namespace rmem::test {
namespace {

TEST(FirstOpen, finds_no_ring_where_there_is_none_however_many_threads_look_at_once) {
    constexpr int kThreads = 8;
    for (int process = 0; process < 300; ++process) {
        run_in_child([] {
            std::atomic<int> ready{0};
            Threads(kThreads, [&](unsigned) {
                ++ready;
                while (ready < kThreads) std::this_thread::yield();
                EXPECT_NO_THROW(static_cast<void>(Segment::open("unit-nowhere")));
            }).join();
        });
    }
}

}  // namespace
}  // namespace rmem::test
