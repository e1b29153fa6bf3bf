// SPDX-License-Identifier: Apache-2.0
// ctest: tsan

/// The table of a process's handles: who is found, and what a close waits for.

#include "cards/common/handle_table.hpp"

#include "tests/support/child.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <future>
#include <mutex>
#include <thread>
#include <vector>

namespace cards {
namespace {

/// A card that says when it goes.
template <int kTest>
class Counted {
public:
    explicit Counted(unsigned unit = 0) : unit_(unit) { ++there; }
    ~Counted() { --there; }
    unsigned unit() const { return unit_; }

    static inline std::atomic<int> there = 0;

private:
    const unsigned unit_;
};

template <int kTest>
struct Handles {
    using Card = Counted<kTest>;
    using Table = HandleTable<Card>;
    Table& table = Table::of_process();

    unsigned open(unsigned unit = 0) {
        return table.open(unit,
                          [=](std::shared_ptr<Card>) { return std::make_shared<Card>(unit); });
    }
    bool close(unsigned place) {
        return table.close(place, [](Card&, const Calls&) {});
    }
    bool is_open(unsigned place) { return static_cast<bool>(table.call(place)); }
};

TEST(HandleTable, finds_a_handle_until_it_is_closed_and_nothing_else) {
    Handles<1> handles;
    const unsigned place = handles.open();
    EXPECT_TRUE(handles.is_open(place));
    for (const unsigned other : {0U, place + 1, 1023U, 1024U, place + 1024, UINT_MAX})
        EXPECT_FALSE(handles.is_open(other)) << other;
    EXPECT_TRUE(handles.close(place));
    EXPECT_FALSE(handles.is_open(place));
    EXPECT_FALSE(handles.close(place));
    EXPECT_EQ(Counted<1>::there, 0);
}

TEST(HandleTable, uses_a_place_again_after_all_others) {
    Handles<2> handles;
    const unsigned first = handles.open();
    EXPECT_TRUE(handles.close(first));
    for (unsigned i = 2; i < decltype(handles)::Table::kPlaces; ++i) {
        const unsigned next = handles.open();
        EXPECT_NE(next, first);
        EXPECT_TRUE(handles.close(next));
    }
    const unsigned again = handles.open();
    EXPECT_EQ(again, first);
    EXPECT_TRUE(handles.close(again));
}

TEST(HandleTable, refuses_more_than_it_has_places_for) {
    Handles<3> handles;
    std::vector<unsigned> numbers(decltype(handles)::Table::kPlaces - 1);
    for (unsigned& number : numbers) number = handles.open();
    EXPECT_THROW(handles.open(), rmem::Error);
    EXPECT_EQ(Counted<3>::there, static_cast<int>(numbers.size()));
    for (const unsigned number : numbers) EXPECT_TRUE(handles.close(number));
}

TEST(HandleTable, closes_when_the_last_call_has_left_and_ends_what_that_waits_for) {
    Handles<4> handles;
    const unsigned number = handles.open();
    std::mutex mutex;
    std::condition_variable told;
    std::promise<void> waits;
    std::thread caller([&] {
        const auto call = handles.table.call(number);
        ASSERT_TRUE(call);
        std::unique_lock lock(mutex);
        waits.set_value();
        told.wait(lock, [&] { return handles.table.calls(number).is_closing(); });
        lock.unlock();
        // A close that did not wait would be over by then.
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        EXPECT_EQ(Counted<4>::there, 1) << "while it is in a call";
    });
    waits.get_future().wait();
    EXPECT_TRUE(handles.table.close(number, [&](Counted<4>&, const Calls&) {
        EXPECT_FALSE(handles.is_open(number)) << "nobody comes in any more";
        EXPECT_FALSE(handles.close(number)) << "one closes it";
        const std::lock_guard lock(mutex);
        told.notify_all();
    }));
    EXPECT_EQ(Counted<4>::there, 0);
    caller.join();
}

TEST(HandleTable, gives_handles_of_a_unit_one_card_where_its_maker_wants_that) {
    Handles<5> handles;
    const unsigned first = handles.open(7);
    const unsigned second = handles.table.open(7, [](auto of_others) { return of_others; });
    EXPECT_EQ(handles.table.open(8, [](auto of_others) { return of_others; }), 0U) << "none has it";
    EXPECT_EQ(Counted<5>::there, 1);
    EXPECT_TRUE(handles.close(first));
    EXPECT_TRUE(handles.is_open(second));
    EXPECT_EQ(Counted<5>::there, 1);
    EXPECT_TRUE(handles.close(second));
    EXPECT_EQ(Counted<5>::there, 0);
}

TEST(HandleTable, has_none_of_its_parents_handles_in_a_forked_child) {
    Handles<6> handles;
    const unsigned number = handles.open();
    rmem::test::Child child([&] {
        EXPECT_FALSE(handles.is_open(number));
        EXPECT_TRUE(handles.table.is_inherited(number));
        EXPECT_FALSE(handles.close(number));
        const unsigned own = handles.open();
        EXPECT_NE(own, number);
        EXPECT_TRUE(handles.close(own));
        EXPECT_EQ(Counted<6>::there, 1) << "the parent's is left alone";
    });
    EXPECT_EQ(child.wait(), 0);
    EXPECT_TRUE(handles.close(number));
}

TEST(HandleTable, lets_many_threads_call_and_close_at_once) {
    Handles<7> handles;
    for (int round = 0; round < 200; ++round) {
        const unsigned number = handles.open();
        std::atomic<int> closed = 0;
        std::vector<std::thread> threads;
        for (int t = 0; t < 3; ++t) {
            threads.emplace_back([&, t] {
                for (int i = 0; i < 50; ++i) {
                    if (const auto call = handles.table.call(number)) {
                        EXPECT_EQ((*call).unit(), 0U);
                    }
                }
                if (t != 0 && handles.close(number)) ++closed;
            });
        }
        for (std::thread& thread : threads) thread.join();
        EXPECT_EQ(closed, 1);
    }
    EXPECT_EQ(Counted<7>::there, 0);
}

}  // namespace
}  // namespace cards
