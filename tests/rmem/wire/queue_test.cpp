// SPDX-License-Identifier: Apache-2.0
#include "rmem/wire/queue.hpp"

#include "tests/support/broken.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace rmem::detail {
namespace {

WireEvent at(std::uint64_t time) {
    WireEvent event;
    event.time = time;
    return event;
}

TEST(WireEventQueue, gives_events_by_time_then_kind_then_the_order_of_pushing) {
    WireEventQueue queue;
    EXPECT_EQ(queue.next_time(), WireEventQueue::kNever);
    queue.push(WireEventKind::hop, at(5));
    queue.push(WireEventKind::delivery, at(5));
    queue.push(WireEventKind::hop, at(3));
    queue.push(WireEventKind::fault, at(5));
    std::vector<WireEventKind> kinds;
    std::vector<std::uint64_t> times;
    while (queue.next_time() != WireEventQueue::kNever) {
        const WireEvent event = queue.pop();
        times.push_back(event.time);
        kinds.push_back(event.kind());
    }
    EXPECT_EQ(times, (std::vector<std::uint64_t>{3, 5, 5, 5}));
    EXPECT_EQ(kinds, (std::vector<WireEventKind>{WireEventKind::hop, WireEventKind::fault,
                                                 WireEventKind::delivery, WireEventKind::hop}));
}

TEST(WireEventQueueDeathTest, checks_that_there_is_something_to_take_out) {
    WireEventQueue queue;
    EXPECT_BROKEN(queue.pop());
}

}  // namespace
}  // namespace rmem::detail
