// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// The memory in C (rmem/rmem.h): each call used as it is meant, each documented failure, limits.
/// Calls that a node elsewhere has too are tested by tests/support/rmem_contract.hpp; what the
/// memory does behind it, by the conformance of links and by node_*_test.cpp.

#include "rmem/rmem.h"

#include "rmem/ring/ring.hpp"
#include "tests/support/c_nodes.hpp"
#include "tests/support/child.hpp"

#include <poll.h>

#include <atomic>
#include <utility>

namespace rmem::test {
namespace {

struct MemoryInC : ::testing::TestWithParam<LinkKind> {
    RingName name;
    Options first{name.get(), GetParam(), 0};
    Options second{name.get(), GetParam(), 1};
};

INSTANTIATE_TEST_SUITE_P(Links, MemoryInC,
                         ::testing::Values(LinkKind::direct, LinkKind::ring, LinkKind::udp,
                                           LinkKind::fabric),
                         [](const auto& link) { return name_of(link.param); });

TEST_P(MemoryInC, plain_loads_of_the_bank_see_what_others_write) {
    const OpenNode a(first), b(second);
    const auto* bank = static_cast<const char*>(rmem_bank(b));
    ASSERT_NE(bank, nullptr);
    const auto* word = reinterpret_cast<const std::atomic<std::uint32_t>*>(bank + 64);
    EXPECT_EQ(rmem_write_word(a, 64, 7), RMEM_OK);
    EXPECT_TRUE(eventually([&] { return word->load(std::memory_order_acquire) == 7; }));
}

TEST_P(MemoryInC, ranges_of_words_are_of_the_memory_and_nothing_beyond) {
    const OpenNode a(first);
    std::uint32_t word = 1;
    const char* outside = "not within the memory";
    expect_refused(rmem_wait_change(a, kBytes, 0, &word, 0), RMEM_EINVAL, outside);
    expect_refused(rmem_watch(a, kBytes, 4, RMEM_ANY_WRITE), RMEM_EINVAL, outside);
    expect_refused(rmem_mark(a, 0, kBytes + 4), RMEM_EINVAL, outside);
    expect_refused(rmem_watch(a, 0, 0, RMEM_ANY_WRITE), RMEM_EINVAL, "no bytes at 0x0");
    expect_refused(rmem_set_sync_words(a, 0x101, 4), RMEM_EINVAL, "give a multiple of 4");
}

TEST_P(MemoryInC, waiting_ends_with_the_deadline_and_says_what_the_word_is) {
    const OpenNode a(first);
    std::uint32_t now = 9;
    expect_refused(rmem_wait_change(a, 8, 0, &now, 1'000'000), RMEM_ETIMEDOUT, "did not change");
    EXPECT_EQ(now, 0U);
    EXPECT_EQ(rmem_write_word(a, 8, 3), RMEM_OK);
    EXPECT_EQ(rmem_wait_change(a, 8, 0, &now, -1), RMEM_OK);
    EXPECT_EQ(now, 3U);
}

TEST_P(MemoryInC, a_watched_word_interrupts_and_a_marked_one_where_that_is_asked) {
    const OpenNode a(first), b(second);
    ASSERT_EQ(rmem_watch(b, 0x40, 4, RMEM_ANY_WRITE), RMEM_OK);
    ASSERT_EQ(rmem_watch(b, 0x80, 8, RMEM_MARKED), RMEM_OK);
    ASSERT_EQ(rmem_mark(a, 0x84, 4), RMEM_OK);
    expect_refused(rmem_watch(b, 0x40, 4, 2), RMEM_EINVAL, "no trigger 2");
    for (const std::size_t offset : {0x40U, 0x80U, 0x84U}) {
        EXPECT_EQ(rmem_write_word(a, offset, static_cast<std::uint32_t>(0x10 + offset)), RMEM_OK);
    }
    EXPECT_EQ(rmem_flush(a, kTimeoutNs), RMEM_OK);
    for (const std::size_t offset : {0x40U, 0x84U}) {
        rmem_interrupt interrupt;
        ASSERT_EQ(rmem_next_interrupt(b, &interrupt, kTimeoutNs), RMEM_OK) << rmem_last_error();
        EXPECT_EQ(interrupt.offset, offset);
        EXPECT_EQ(interrupt.value, 0x10 + offset);
        EXPECT_EQ(interrupt.origin, 0U);
        EXPECT_EQ(interrupt.missed, 0U);
    }
    ASSERT_EQ(rmem_unwatch(b, 0x40, 4), RMEM_OK);
    ASSERT_EQ(rmem_unmark(a, 0x84, 4), RMEM_OK);
    EXPECT_EQ(rmem_write_word(a, 0x40, 1), RMEM_OK);
    EXPECT_EQ(rmem_write_word(a, 0x84, 1), RMEM_OK);
    EXPECT_EQ(rmem_flush(a, kTimeoutNs), RMEM_OK);
    rmem_interrupt interrupt;
    EXPECT_EQ(rmem_next_interrupt(b, &interrupt, 0), RMEM_ETIMEDOUT);
}

TEST_P(MemoryInC, interrupts_make_a_descriptor_readable) {
    const OpenNode a(first), b(second);
    ASSERT_EQ(rmem_watch(b, 0, 4, RMEM_ANY_WRITE), RMEM_OK);
    const int fd = rmem_interrupt_fd(b);
    ASSERT_GE(fd, 0) << rmem_last_error();
    EXPECT_EQ(rmem_write_word(a, 0, 1), RMEM_OK);
    rmem_interrupt interrupt{};
    while (rmem_next_interrupt(b, &interrupt, 0) != RMEM_OK) {
        pollfd readable{fd, POLLIN, 0};
        ASSERT_EQ(::poll(&readable, 1, 30'000), 1);
    }
    EXPECT_EQ(interrupt.value, 1U);
}

TEST_P(MemoryInC, counters_are_named_one_by_one) {
    const OpenNode a(first);
    std::uint64_t value = 0;
    unsigned names = 0;
    while (const char* one = rmem_counter_name(names)) {
        EXPECT_EQ(rmem_counter(a, one, &value), RMEM_OK) << one;
        ++names;
    }
    EXPECT_GT(names, 20U);
    EXPECT_GE(rmem_bound_ns(a), 0);
    EXPECT_GE(rmem_propagation_ns(a, 500), 0);
    expect_refused(static_cast<int>(rmem_propagation_ns(a, 1001)), RMEM_EINVAL, "1001");
}

TEST_P(MemoryInC, a_rank_is_opened_once) {
    const OpenNode a(first);
    auto* node = reinterpret_cast<rmem_node*>(1);
    expect_refused(rmem_open_with(&node, first.get()), RMEM_EBUSY, "rank 0");
    EXPECT_EQ(node, nullptr);
}

TEST_P(MemoryInC, one_process_is_in_two_rings) {
    const RingName other_name;
    const Options other_options(other_name.get(), LinkKind::direct, 0);
    const OpenNode a(first), b(second), other(other_options);
    EXPECT_EQ(rmem_write_word(a, 0, 1), RMEM_OK);
    EXPECT_EQ(rmem_write_word(other, 0, 2), RMEM_OK);
    EXPECT_EQ(rmem_wait_change(b, 0, 0, nullptr, kTimeoutNs), RMEM_OK);
    EXPECT_EQ(rmem_load(b, 0), 1U);
    EXPECT_EQ(rmem_load(other, 0), 2U);
}

TEST_P(MemoryInC, a_forked_child_gets_counters_and_no_memory_of_its_parents_node) {
    const OpenNode a(first);
    EXPECT_EQ(rmem_write_word(a, 0, 1), RMEM_OK);
    run_in_child([&] {
        std::uint64_t writes = 0;
        EXPECT_EQ(rmem_counter(a, "writes_sent", &writes), RMEM_OK);
        EXPECT_GE(writes, 1U);
        EXPECT_EQ(rmem_bank(a), nullptr);
        expect_refused(rmem_interrupt_fd(a), RMEM_EINVAL, "fork()ed child");
    });
    EXPECT_EQ(rmem_write_word(a, 0, 3), RMEM_OK);
}

// ---- The others

TEST_P(MemoryInC, opening_waits_until_all_nodes_have_come_so_what_the_first_writes_is_not_lost) {
    first->await = RMEM_AWAIT_ALL;
    const SharedValue<std::atomic<int>> opened;
    Child writer([&] {
        rmem_node* a = nullptr;
        EXPECT_EQ(rmem_open_with(&a, first.get()), RMEM_OK) << rmem_last_error();
        *opened = 1;
        EXPECT_EQ(rmem_write_word(a, 0x100, 42), RMEM_OK);
        EXPECT_EQ(rmem_flush(a, kTimeoutNs), RMEM_OK);
        EXPECT_EQ(rmem_close(a), RMEM_OK);
    });
    EXPECT_TRUE(eventually([&] {
        try {
            return Ring::observe(name.get())->is_joined(0);
        } catch (const Error&) {  // it is not made yet
            return false;
        }
    }));
    EXPECT_EQ(*opened, 0);
    const OpenNode b(second);
    EXPECT_EQ(writer.wait(), 0);
    EXPECT_EQ(rmem_wait_change(b, 0x100, 0, nullptr, kTimeoutNs), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(rmem_load(b, 0x100), 42U);
    EXPECT_EQ(rmem_await(b, 0), RMEM_OK) << "one that has left has come";
}

TEST_P(MemoryInC, awaiting_names_who_is_missing) {
    const OpenNode a(first);
    expect_refused(rmem_await(a, 0), RMEM_ETIMEDOUT, "waited for node 1 of 2");
    ::setenv("RMEM_AWAIT", "1", 1);
    EXPECT_EQ(rmem_await(a, 0), RMEM_OK) << "the job has no other";
    ::unsetenv("RMEM_AWAIT");
    {
        const OpenNode b(second);
        EXPECT_EQ(rmem_await(a, kTimeoutNs), RMEM_OK) << rmem_last_error();
        EXPECT_EQ(rmem_await(b, kTimeoutNs), RMEM_OK) << rmem_last_error();
    }
    EXPECT_EQ(rmem_await(a, 0), RMEM_OK) << "one that has left has come";
}

TEST_P(MemoryInC, a_struct_is_published_and_read_whole) {
    const OpenNode a(first), b(second);
    struct State {
        double altitude;
        std::uint32_t frame;
    } state{1200.5, 7}, seen{};
    expect_refused(rmem_snapshot(b, 0x100, &seen, sizeof seen), RMEM_EAGAIN, "no whole value");
    EXPECT_EQ(rmem_publish(a, 0x100, &state, sizeof state), RMEM_OK);
    const std::size_t tail = 0x100 + RMEM_PUBLISHED_BYTES(sizeof state) - 4;
    EXPECT_EQ(rmem_wait_change(b, tail, 0, nullptr, kTimeoutNs), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(rmem_snapshot(b, 0x100, &seen, sizeof seen), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(seen.altitude, 1200.5);
    EXPECT_EQ(seen.frame, 7U);
    expect_refused(rmem_publish(a, kBytes - 8, &state, sizeof state), RMEM_EINVAL, "not within");
    expect_refused(rmem_publish(a, 0, nullptr, 1), RMEM_EINVAL, "null pointer");
    expect_refused(rmem_snapshot(a, 0, nullptr, 1), RMEM_EINVAL, "null pointer");
}

// ---- Without a ring

TEST(MemoryInCArguments, null_pointers_are_refused_by_every_call) {
    std::uint32_t word = 0;
    const char* null = "null pointer";
    expect_refused(rmem_open(nullptr), RMEM_EINVAL, null);
    expect_refused(rmem_open_with(nullptr, nullptr), RMEM_EINVAL, null);
    for (const int refused :
         {rmem_wait_change(nullptr, 0, 0, &word, 0), rmem_set_write_me_last(nullptr, 1),
          rmem_set_data_filter(nullptr, 1), rmem_watch(nullptr, 0, 4, RMEM_ANY_WRITE),
          rmem_unwatch(nullptr, 0, 4), rmem_mark(nullptr, 0, 4), rmem_unmark(nullptr, 0, 4),
          static_cast<int>(rmem_bound_ns(nullptr)),
          static_cast<int>(rmem_propagation_ns(nullptr, 500))}) {
        expect_refused(refused, RMEM_EINVAL, null);
    }
    EXPECT_EQ(rmem_bank(nullptr), nullptr);
}

struct MemoryInCOptions : ::testing::Test {
    RingName name;
    Options options{name.get(), LinkKind::direct, 0};
    rmem_node* node = nullptr;

    void expect_no_node(int code, const char* part) {
        expect_refused(rmem_open_with(&node, options.get()), code, part);
        EXPECT_EQ(node, nullptr);
        EXPECT_FALSE(name.exists());
    }
};

TEST_F(MemoryInCOptions, a_struct_of_another_size_is_one_of_another_library) {
    for (const std::size_t size : {std::size_t{0}, sizeof(std::size_t), sizeof(rmem_options) + 8}) {
        options->size = size;
        expect_no_node(RMEM_EINVAL, "bytes");
    }
}

TEST_F(MemoryInCOptions, a_program_of_an_older_header_says_less) {
    options->size = offsetof(rmem_options, settings);
    options->settings = reinterpret_cast<const char* const*>(8);  // is not looked at
    ASSERT_EQ(rmem_open_with(&node, options.get()), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(rmem_size(node), kBytes);
    rmem_close(node);
}

TEST_F(MemoryInCOptions, a_setting_that_nothing_reads_is_refused) {
    for (const auto& [setting, says] : {std::pair{"RMEM_TIMIN=gt200", "did you mean RMEM_TIMING"},
                                        {"COLOUR=red", "COLOUR"},
                                        {"RMEM_TIMING", "is no setting"},
                                        {"RMEM_TIMING=gt200", "direct"}}) {
        const char* settings[] = {setting, nullptr};
        options->settings = settings;
        expect_no_node(RMEM_EINVAL, says);
    }
}

TEST_F(MemoryInCOptions, a_value_that_is_not_valid_is_refused_as_one_of_the_environment_is) {
    options->link = "rope";
    expect_no_node(RMEM_EINVAL, "RMEM_LINK");
    options->link = "direct";
    options->node = 2;
    expect_no_node(RMEM_ERANK, "node 2");
    options->node = 0;
    options->memory_bytes = 3;
    expect_no_node(RMEM_EINVAL, "RMEM_SIZE");
}

TEST_F(MemoryInCOptions, what_a_program_says_comes_before_the_environment) {
    ::setenv("RMEM_RING", "another-ring", 1);
    ::setenv("RMEM_NODE", "7", 1);
    EXPECT_EQ(rmem_open_with(&node, options.get()), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(rmem_id(node), 0);
    rmem_close(node);
    EXPECT_FALSE(Segment::exists("another-ring"));
    ::unsetenv("RMEM_RING");
    ::unsetenv("RMEM_NODE");
}

TEST_F(MemoryInCOptions, rmem_open_goes_by_the_environment) {
    ::setenv("RMEM_RING", name.get().c_str(), 1);
    ::setenv("RMEM_SIZE", "8K", 1);
    EXPECT_EQ(rmem_open(&node), RMEM_OK) << rmem_last_error();
    EXPECT_EQ(rmem_size(node), 8192U);
    rmem_close(node);
    EXPECT_EQ(rmem_open_with(&node, nullptr), RMEM_OK) << rmem_last_error();
    rmem_close(node);
    ::unsetenv("RMEM_RING");
    ::unsetenv("RMEM_SIZE");
}

TEST_F(MemoryInCOptions, rmem_open_waits_for_the_others_unless_it_is_told_not_to) {
    ::setenv("RMEM_RING", name.get().c_str(), 1);
    ::setenv("RMEM_NODES", "2", 1);
    ::setenv("RMEM_NODE", "0", 1);
    ::setenv("RMEM_JOIN_TIMEOUT", "100ms", 1);
    expect_refused(rmem_open(&node), RMEM_ETIMEDOUT, "RMEM_AWAIT=none");
    options->await = 3;
    expect_refused(rmem_open_with(&node, options.get()), RMEM_EINVAL, "no await 3");
    ::setenv("RMEM_AWAIT", "none", 1);
    EXPECT_EQ(rmem_open(&node), RMEM_OK) << rmem_last_error();
    rmem_close(node);
    ::setenv("RMEM_AWAIT", "some", 1);
    expect_refused(rmem_open(&node), RMEM_EINVAL, "RMEM_AWAIT");
    for (const char* variable :
         {"RMEM_RING", "RMEM_NODES", "RMEM_NODE", "RMEM_JOIN_TIMEOUT", "RMEM_AWAIT"})
        ::unsetenv(variable);
}

TEST(MemoryInCCodes, each_code_has_a_meaning_and_the_version_is_the_headers) {
    for (int code = RMEM_EBUSY; code <= RMEM_OK; ++code) {
        EXPECT_STRNE(rmem_strerror(code), "not a code of this library") << code;
    }
    EXPECT_STREQ(rmem_strerror(RMEM_EBUSY - 1), "not a code of this library");
    EXPECT_EQ(rmem_version(), RMEM_VERSION);
}

}  // namespace
}  // namespace rmem::test
