// SPDX-License-Identifier: Apache-2.0
#pragma once

/// What rmem/rmem.h promises, asked of one of its implementations: in the process (rmem/rmem.cpp),
/// and served elsewhere (remote/rmem_calls.cpp). The calls are those that both have.
///
/// A test program of each includes this, is `apart`, and defines the two functions below. A wait
/// without a limit ends by an event that is late on purpose, so that one that has a limit all the
/// same would end before; no test fails because something is slow.
/// Thread safety: as rmem/rmem.h.

#include "rmem/base/clock.hpp"
#include "rmem/base/link_kind.hpp"
#include "tests/support/c_nodes.hpp"
#include "tests/support/child.hpp"

#include <atomic>
#include <chrono>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

namespace rmem::test {

using ContractNode = std::shared_ptr<rmem_node>;  ///< closed at the end

std::vector<LinkKind> contract_links();
/// A node of a ring of two, with faults (rmem(7)) on its way.
ContractNode open_contract_node(const std::string& ring, LinkKind link, int node,
                                const std::string& faults = "");

namespace {

using ::testing::HasSubstr;

constexpr std::int64_t kSoonNs = 1'000'000;
constexpr std::int64_t kLongestNs = RMEM_FOREVER;

/// Does something a little later, while this thread waits for it.
class Later {
public:
    explicit Later(std::function<void()> event)
        : thread_([event = std::move(event)] {
              std::this_thread::sleep_for(std::chrono::milliseconds(50));
              event();
          }) {}
    ~Later() { thread_.join(); }
    Later(const Later&) = delete;
    Later& operator=(const Later&) = delete;

private:
    std::thread thread_;
};

struct Contract : ::testing::TestWithParam<LinkKind> {
    ContractNode open(int node) { return open_contract_node(name.get(), GetParam(), node); }
    static std::uint32_t word(const ContractNode& node, std::size_t offset) {
        return rmem_load(node.get(), offset);
    }
    /// Until there is room.
    static void send(const ContractNode& node, unsigned number, std::uint32_t value) {
        EXPECT_TRUE(eventually([&] {
            static_cast<void>(rmem_poll(node.get()));
            return rmem_send_interrupt(node.get(), RMEM_ALL_NODES, number, value) == RMEM_OK;
        })) << rmem_last_error();
    }

    const RingName name;
};

INSTANTIATE_TEST_SUITE_P(Links, Contract, ::testing::ValuesIn(contract_links()),
                         [](const auto& link) { return name_of(link.param); });

// ---- What it is

TEST_P(Contract, a_node_knows_its_place_and_that_of_others) {
    const auto a = open(0), b = open(1);
    EXPECT_EQ(rmem_id(a.get()), 0);
    EXPECT_EQ(rmem_id(b.get()), 1);
    EXPECT_EQ(rmem_rank(b.get()), 1);
    EXPECT_EQ(rmem_nodes(b.get()), 2);
    EXPECT_EQ(rmem_ranks(b.get()), 2);
    EXPECT_EQ(rmem_size(b.get()), kBytes);
    EXPECT_EQ(rmem_is_member(a.get()), 1);
    EXPECT_EQ(rmem_poll(a.get()), RMEM_OK);
    EXPECT_TRUE(eventually([&] { return rmem_is_alive(a.get(), 1) == 1; }));
    expect_refused(rmem_is_alive(a.get(), 2), RMEM_ERANK, "no rank 2");
    expect_refused(rmem_is_alive(a.get(), -1), RMEM_ERANK, "no rank -1");
}

TEST_P(Contract, counters_are_found_by_name) {
    const auto a = open(0);
    std::uint64_t before = 0, after = 0;
    EXPECT_EQ(rmem_counter(a.get(), "writes_sent", &before), RMEM_OK);
    EXPECT_EQ(rmem_write_word(a.get(), 0, 1), RMEM_OK);
    EXPECT_EQ(rmem_counter(a.get(), "writes_sent", &after), RMEM_OK);
    EXPECT_EQ(after, before + 1);
    expect_refused(rmem_counter(a.get(), "writes", &after), RMEM_EINVAL, "no counter 'writes'");
    const std::string no_name(5000, 'x');
    expect_refused(rmem_counter(a.get(), no_name.c_str(), &after), RMEM_EINVAL, "no counter 'xxx");
    EXPECT_EQ(rmem_counter(a.get(), "writes_sent", &after), RMEM_OK) << rmem_last_error();
}

TEST_P(Contract, null_pointers_are_refused_by_every_call) {
    std::uint32_t word = 0;
    std::uint64_t count = 0;
    rmem_interrupt interrupt;
    const char* null = "null pointer";
    EXPECT_EQ(rmem_close(nullptr), RMEM_OK);
    using Call = std::function<int()>;
    const Call calls[] = {
        [] { return rmem_id(nullptr); },
        [] { return rmem_rank(nullptr); },
        [] { return rmem_nodes(nullptr); },
        [] { return rmem_ranks(nullptr); },
        [] { return rmem_is_alive(nullptr, 0); },
        [] { return rmem_is_member(nullptr); },
        [&] { return rmem_read(nullptr, 0, &word, 4); },
        [&] { return rmem_write(nullptr, 0, &word, 4); },
        [] { return rmem_write_word(nullptr, 0, 1); },
        [] { return rmem_flush(nullptr, 0); },
        [] { return rmem_poll(nullptr); },
        [] { return rmem_send_interrupt(nullptr, 1, 0, 0); },
        [] { return rmem_accept_interrupts(nullptr, 1); },
        [&] { return rmem_next_interrupt(nullptr, &interrupt, 0); },
        [] { return rmem_interrupt_fd(nullptr); },
        [] { return rmem_on_interrupt(nullptr, nullptr, nullptr); },
        [&] { return rmem_counter(nullptr, "writes_sent", &count); },
    };
    for (const Call& call : calls) expect_refused(call(), RMEM_EINVAL, null);
    EXPECT_EQ(rmem_size(nullptr), 0U);
    EXPECT_EQ(rmem_load(nullptr, 0), 0U);

    const auto a = open(0);
    expect_refused(rmem_read(a.get(), 0, nullptr, 4), RMEM_EINVAL, null);
    expect_refused(rmem_write(a.get(), 0, nullptr, 4), RMEM_EINVAL, null);
    expect_refused(rmem_next_interrupt(a.get(), nullptr, 0), RMEM_EINVAL, null);
    expect_refused(rmem_counter(a.get(), nullptr, &count), RMEM_EINVAL, null);
    expect_refused(rmem_counter(a.get(), "writes_sent", nullptr), RMEM_EINVAL, null);
    EXPECT_EQ(rmem_read(a.get(), 0, nullptr, 0), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(rmem_write(a.get(), 0, nullptr, 0), RMEM_OK) << rmem_last_error();
}

TEST_P(Contract, a_sentence_is_the_threads_own_and_stays_where_it_is) {
    const auto a = open(0);
    const char* const sentence = rmem_last_error();
    expect_refused(rmem_is_alive(a.get(), 7), RMEM_ERANK, "no rank 7");
    std::thread([&] { expect_refused(rmem_is_alive(a.get(), 8), RMEM_ERANK, "no rank 8"); }).join();
    EXPECT_EQ(rmem_last_error(), sentence);
    EXPECT_THAT(sentence, HasSubstr("no rank 7"));
}

TEST_P(Contract, a_forked_child_is_told_that_the_node_is_its_parents) {
    const auto a = open(0);
    EXPECT_EQ(rmem_write_word(a.get(), 0, 1), RMEM_OK);
    run_in_child([&] {
        EXPECT_EQ(rmem_id(a.get()), 0);
        EXPECT_EQ(rmem_size(a.get()), kBytes);
        for (const int refused : {rmem_write_word(a.get(), 0, 2), rmem_flush(a.get(), 0),
                                  rmem_poll(a.get()), rmem_accept_interrupts(a.get(), 1)})
            expect_refused(refused, RMEM_EINVAL, "fork()ed child");
        EXPECT_EQ(rmem_load(a.get(), 0), 0U);
        EXPECT_EQ(rmem_close(a.get()), RMEM_OK);
    });
    EXPECT_EQ(rmem_write_word(a.get(), 4, 3), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(word(a, 0), 1U);
    EXPECT_EQ(word(a, 4), 3U);
}

// ---- Memory

TEST_P(Contract, a_write_appears_at_the_same_offset_of_the_other_bank) {
    const auto a = open(0), b = open(1);
    EXPECT_EQ(rmem_write_word(a.get(), 0x100, 42), RMEM_OK);
    EXPECT_EQ(word(a, 0x100), 42U);
    EXPECT_TRUE(eventually([&] { return word(b, 0x100) == 42U; }));

    std::vector<char> text(3001, 'x');
    EXPECT_EQ(rmem_write(a.get(), 0x203, text.data(), text.size()), RMEM_OK);
    EXPECT_EQ(rmem_flush(a.get(), kTimeoutNs), RMEM_OK);
    std::vector<char> read(text.size());
    EXPECT_EQ(rmem_read(b.get(), 0x203, read.data(), read.size()), RMEM_OK);
    EXPECT_EQ(read, text);
    EXPECT_EQ(word(b, 0x200) & 0xFFFFFF, 0U);
}

TEST_P(Contract, the_first_and_the_last_word_are_of_the_memory_and_nothing_beyond) {
    const auto a = open(0), b = open(1);
    for (const std::size_t offset : {std::size_t{0}, kBytes - 4}) {
        EXPECT_EQ(rmem_write_word(a.get(), offset, 5), RMEM_OK);
        EXPECT_TRUE(eventually([&] { return word(b, offset) == 5U; }));
    }
    std::uint32_t word = 1;
    std::vector<std::byte> more(200'000);
    const char* outside = "not within the memory";
    expect_refused(rmem_write_word(a.get(), kBytes, 5), RMEM_EINVAL, outside);
    expect_refused(rmem_write(a.get(), kBytes - 3, &word, 4), RMEM_EINVAL, outside);
    expect_refused(rmem_write(a.get(), SIZE_MAX, &word, 4), RMEM_EINVAL, outside);
    expect_refused(rmem_write(a.get(), 0, more.data(), more.size()), RMEM_EINVAL, outside);
    expect_refused(rmem_read(a.get(), kBytes - 3, &word, 4), RMEM_EINVAL, outside);
    expect_refused(rmem_read(a.get(), 0, more.data(), more.size()), RMEM_EINVAL, outside);
    expect_refused(rmem_write_word(a.get(), 2, 5), RMEM_EINVAL, "multiple of 4");
    EXPECT_EQ(rmem_load(a.get(), 2), 0U);
    EXPECT_THAT(rmem_last_error(), HasSubstr("multiple of 4"));
    EXPECT_EQ(rmem_load(a.get(), kBytes), 0U);
    EXPECT_THAT(rmem_last_error(), HasSubstr(outside));
    EXPECT_EQ(rmem_write(a.get(), kBytes, &word, 0), RMEM_OK) << "a write of nothing does nothing";
    EXPECT_EQ(rmem_load(a.get(), 0), 5U) << "nor does one that was refused";
    EXPECT_EQ(rmem_load(a.get(), kBytes - 4), 5U);
}

TEST_P(Contract, another_node_sees_writes_in_the_order_in_which_they_were_made) {
    const auto a = open(0), b = open(1);
    for (std::uint32_t i = 1; i <= 100; ++i) {
        EXPECT_EQ(rmem_write_word(a.get(), 0x40, i), RMEM_OK);
        EXPECT_EQ(rmem_write_word(a.get(), 0x80, i), RMEM_OK);
        const std::uint32_t flag = word(b, 0x80);
        EXPECT_GE(word(b, 0x40), flag);
    }
    EXPECT_TRUE(eventually([&] { return word(b, 0x80) == 100U; }));
    EXPECT_EQ(word(b, 0x40), 100U);
}

TEST_P(Contract, a_flush_that_nobody_else_confirms_says_so) {
    const auto a = open(0);
    EXPECT_EQ(rmem_write_word(a.get(), 0, 1), RMEM_OK);
    expect_refused(rmem_flush(a.get(), kTimeoutNs), RMEM_ALONE, "no other node");
    {
        const auto b = open(1);
        EXPECT_TRUE(eventually([&] { return rmem_flush(a.get(), kLongestNs) == RMEM_OK; }));
    }
    EXPECT_TRUE(eventually([&] { return rmem_flush(a.get(), kTimeoutNs) == RMEM_ALONE; }));
}

TEST(ContractOfFlush, it_waits_as_long_as_it_is_told) {
    constexpr std::int64_t kDelayNs = 500'000'000;
    const RingName name;
    const char* const faults = "delay:node=0,by=500ms";
    const auto a = open_contract_node(name.get(), LinkKind::ring, 0, faults);
    const auto b = open_contract_node(name.get(), LinkKind::ring, 1, faults);
    for (const std::int64_t time : {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1},
                                    std::int64_t{0}, kSoonNs, kLongestNs - 1, kLongestNs}) {
        const std::int64_t begin_ns = now_ns();
        EXPECT_EQ(rmem_write_word(a.get(), 0, 1), RMEM_OK);
        const int code = rmem_flush(a.get(), time);
        const bool is_too_soon = now_ns() - begin_ns < kDelayNs;
        if (time < kDelayNs) {
            if (is_too_soon) expect_refused(code, RMEM_ETIMEDOUT, "not every live node");
            continue;
        }
        EXPECT_EQ(code, RMEM_OK) << rmem_last_error();
        EXPECT_FALSE(is_too_soon) << time;
    }
}

// ---- Interrupts

TEST_P(Contract, nodes_send_each_other_interrupts_with_a_number_and_a_value) {
    const auto a = open(0), b = open(1);
    ASSERT_EQ(rmem_accept_interrupts(b.get(), 0b1010), RMEM_OK);
    EXPECT_EQ(rmem_send_interrupt(a.get(), 1, 1, 0xAB), RMEM_OK);
    EXPECT_EQ(rmem_send_interrupt(a.get(), 1, 2, 0xCD), RMEM_OK);
    EXPECT_EQ(rmem_send_interrupt(a.get(), RMEM_ALL_NODES, 3, 0xEF), RMEM_OK);
    rmem_interrupt interrupt{};
    ASSERT_EQ(rmem_next_interrupt(b.get(), &interrupt, kTimeoutNs), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(interrupt.kind, static_cast<unsigned>(RMEM_SENT));
    EXPECT_EQ(interrupt.offset, 1U);
    EXPECT_EQ(interrupt.value, 0xABU);
    EXPECT_EQ(interrupt.origin, 0U);
    EXPECT_EQ(interrupt.missed, 0U);
    ASSERT_EQ(rmem_next_interrupt(b.get(), &interrupt, kTimeoutNs), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(interrupt.kind, static_cast<unsigned>(RMEM_SENT_TO_ALL));
    EXPECT_EQ(interrupt.offset, 3U);
    EXPECT_EQ(interrupt.value, 0xEFU);
    expect_refused(rmem_send_interrupt(a.get(), 2, 1, 0), RMEM_ERANK, "no node 2");
    expect_refused(rmem_send_interrupt(a.get(), 1, RMEM_INTERRUPT_NUMBERS, 0), RMEM_EINVAL,
                   "0 to 39");
    expect_refused(rmem_accept_interrupts(a.get(), ~std::uint64_t{0}), RMEM_EINVAL, "0 to 39");
}

TEST_P(Contract, an_interrupt_is_waited_for_as_long_as_is_told) {
    const auto a = open(0), b = open(1);
    ASSERT_EQ(rmem_accept_interrupts(b.get(), 0b10), RMEM_OK);
    rmem_interrupt interrupt{};
    for (const std::int64_t time :
         {std::numeric_limits<std::int64_t>::min(), std::int64_t{-1}, std::int64_t{0}, kSoonNs})
        expect_refused(rmem_next_interrupt(b.get(), &interrupt, time), RMEM_ETIMEDOUT,
                       "no interrupt came");
    for (const std::int64_t time : {kTimeoutNs, kLongestNs - 1, kLongestNs}) {
        const Later sent([&] { send(a, 1, 7); });
        EXPECT_EQ(rmem_next_interrupt(b.get(), &interrupt, time), RMEM_OK) << rmem_last_error();
        EXPECT_EQ(interrupt.value, 7U);
    }
}

TEST_P(Contract, an_interrupt_arrives_after_what_was_written_before) {
    const auto a = open(0), b = open(1);
    ASSERT_EQ(rmem_accept_interrupts(b.get(), 0b10), RMEM_OK);
    for (std::uint32_t i = 1; i <= 20; ++i) {
        EXPECT_EQ(rmem_write_word(a.get(), 0x40, i), RMEM_OK);
        send(a, 1, i);
        rmem_interrupt interrupt{};
        ASSERT_EQ(rmem_next_interrupt(b.get(), &interrupt, kLongestNs), RMEM_OK);
        EXPECT_EQ(interrupt.value, i);
        EXPECT_EQ(word(b, 0x40), i);
    }
}

TEST_P(Contract, each_interrupt_is_taken_or_counted_as_missed) {
    const auto a = open(0), b = open(1);
    ASSERT_EQ(rmem_accept_interrupts(b.get(), 0b10), RMEM_OK);
    std::uint64_t sent = 0, taken = 0, missed = 0;
    for (; sent < 2000; ++sent) send(a, 1, static_cast<std::uint32_t>(sent));
    EXPECT_EQ(rmem_flush(a.get(), kTimeoutNs), RMEM_OK);
    std::uint32_t last = 0;
    EXPECT_TRUE(eventually([&] {
        rmem_interrupt interrupt{};
        while (rmem_next_interrupt(b.get(), &interrupt, 0) == RMEM_OK) {
            EXPECT_TRUE(taken == 0 || interrupt.value > last) << interrupt.value;
            last = interrupt.value;
            ++taken;
            missed += interrupt.missed;
        }
        if (taken + missed == sent) return true;
        send(a, 1, static_cast<std::uint32_t>(sent++));  // tells what was missed before it
        return false;
    })) << taken
        << " taken and " << missed << " missed of " << sent;
    EXPECT_GE(taken, 1024U);
}

TEST_P(Contract, a_function_is_called_for_each_interrupt_until_it_is_taken_away) {
    const auto a = open(0), b = open(1);
    ASSERT_EQ(rmem_accept_interrupts(b.get(), 0b10), RMEM_OK);
    std::atomic<std::uint32_t> called{0}, called_instead{0};
    const auto note = [](void* with, const rmem_interrupt* raised) {
        static_cast<std::atomic<std::uint32_t>*>(with)->store(raised->value,
                                                              std::memory_order_release);
    };
    const auto is_called = [](std::atomic<std::uint32_t>& value, std::uint32_t wanted) {
        return eventually([&] { return value.load(std::memory_order_acquire) == wanted; });
    };
    ASSERT_EQ(rmem_on_interrupt(b.get(), note, &called), RMEM_OK);
    send(a, 1, 2);
    EXPECT_TRUE(is_called(called, 2));
    ASSERT_EQ(rmem_on_interrupt(b.get(), note, &called_instead), RMEM_OK);
    send(a, 1, 3);
    EXPECT_TRUE(is_called(called_instead, 3));
    ASSERT_EQ(rmem_on_interrupt(b.get(), nullptr, nullptr), RMEM_OK);
    send(a, 1, 4);
    rmem_interrupt interrupt{};
    ASSERT_EQ(rmem_next_interrupt(b.get(), &interrupt, kTimeoutNs), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(interrupt.value, 4U);
    EXPECT_EQ(called.load(std::memory_order_acquire), 2U);
}

}  // namespace
}  // namespace rmem::test
