// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Every link's duties to its nodes, as tests that run on each of them.
///
///     INSTANTIATE_TEST_SUITE_P(EachLink, LinkConformance,
///                              conformance_on({{LinkKind::direct, {"none"}}}),
///                              conformance_case_name);
///
/// Bodies run once per node (tests/support/link_nodes.hpp).
/// Include it in one source of a test.

#include "rmem/base/word_block.hpp"
#include "tests/support/link_nodes.hpp"

#include <array>
#include <cstring>
#include <functional>
#include <numeric>

namespace rmem::test {

// ---- Order

TEST_P(LinkConformance, what_one_writes_all_read) {
    run(3, [](Self& self) {
        self.write_word(self.id * 4, 100 + self.id);
        for (unsigned n = 0; n < self.nodes; ++n) {
            const auto seen = self.node.wait_change(n * 4, 0, Deadline::in(kPatienceNs));
            EXPECT_EQ(seen, 100 + n) << "at node " << self.id;
        }
    });
}

TEST_P(LinkConformance, each_nodes_writes_arrive_in_order_while_all_write) {
    constexpr std::uint32_t kWrites = 2'000;
    run(4, [](Self& self) {
        std::array<std::uint32_t, 4> seen{};
        const auto look = [&] {
            for (unsigned n = 0; n < self.nodes; ++n) {
                const std::uint32_t value = self.node.load(n * 64);
                ASSERT_GE(value, seen[n]) << "node " << n << " seen at node " << self.id;
                seen[n] = value;
            }
        };
        for (std::uint32_t i = 1; i <= kWrites; ++i) {
            self.write_word(self.id * 64, i);
            if (i % 16 == 0) look();
        }
        self.await([&] {
            look();
            return std::accumulate(seen.begin(), seen.end(), 0U) == 4 * kWrites;
        });
    });
}

TEST_P(LinkConformance, a_flag_is_never_seen_before_the_data_written_ahead_of_it) {
    constexpr std::uint32_t kRounds = 500;
    constexpr std::size_t kWords = 16;
    run(4, [](Self& self) {
        const auto data_of = [](unsigned n) { return 1024 * (n + 1); };
        const auto flag_of = [](unsigned n) { return 512 + 64 * n; };
        bool all_done = false;
        for (std::uint32_t round = 1; round <= kRounds || !all_done; ++round) {
            if (round <= kRounds) {
                std::array<std::uint32_t, kWords> data;
                data.fill(round);
                self.write(data_of(self.id), data.data(), sizeof data);
                self.write_word(flag_of(self.id), round);
            }
            all_done = true;
            for (unsigned n = 0; n < self.nodes; ++n) {
                const std::uint32_t flag = self.node.load(flag_of(n));
                for (std::size_t w = 0; w < kWords; ++w) {
                    const std::uint32_t word = self.raw(data_of(n) + w * 4);
                    ASSERT_GE(word, flag) << "of node " << n << " at node " << self.id;
                }
                all_done = all_done && flag == kRounds;
            }
            if (!all_done) self.rest();
        }
    });
}

TEST_P(LinkConformance, words_written_to_and_fro_are_all_seen) {
    constexpr std::uint32_t kRounds = 500;
    run(2, [](Self& self) {
        const std::size_t mine = self.id * 4;
        const std::size_t others = 4 - mine;
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            if (self.id == 0) self.write_word(mine, round);
            ASSERT_EQ(self.node.wait_change(others, round - 1, Deadline::in(kPatienceNs)), round);
            if (self.id == 1) self.write_word(mine, round);
        }
    });
}

TEST_P(LinkConformance, where_two_wrote_one_word_banks_may_differ_but_only_if_there_are_several) {
    constexpr unsigned kRounds = 15;
    const bool one_bank = !replicated();
    run(2, [&](Self& self) {
        for (unsigned round = 0; round < kRounds; ++round) {
            const unsigned gate = 4 * round;
            self.meet(gate);
            self.write_word(0, 2 * round + self.id + 1);
            self.write_word(64 + 4 * self.id, round + 1);
            EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
            self.meet(gate + 1);
            const std::uint32_t contested = self.node.load(0);
            self.shared.words[self.id] = contested;
            EXPECT_TRUE(contested == 2 * round + 1 || contested == 2 * round + 2) << contested;
            EXPECT_EQ(self.node.load(64), round + 1) << "what one alone writes differs nowhere";
            EXPECT_EQ(self.node.load(68), round + 1) << "what one alone writes differs nowhere";
            self.meet(gate + 2);
            EXPECT_TRUE(!one_bank || self.shared.words[0] == self.shared.words[1]);
            self.meet(gate + 3);
        }
    });
}

// ---- Room and flush

TEST_P(LinkConformance, flushed_means_applied_everywhere) {
    constexpr std::uint32_t kRounds = 50;
    run(3, [](Self& self) {
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            if (self.id == 0) {
                for (std::uint32_t w = 0; w < 8; ++w) self.write_word(w * 4, round);
                ASSERT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
                self.shared.words[0] = round;
                self.await(
                    [&] { return self.shared.words[1] == round && self.shared.words[2] == round; });
            } else {
                self.await([&] { return self.shared.words[0] == round; });
                for (std::uint32_t w = 0; w < 8; ++w) EXPECT_EQ(self.raw(w * 4), round);
                self.shared.words[self.id] = round;
            }
        }
    });
}

TEST_P(LinkConformance, a_full_queue_says_so_and_recovers_when_the_slowest_goes_on) {
    if (!replicated()) GTEST_SKIP() << "a store into the shared bank always has room";
    if (!processes()) GTEST_SKIP() << "only a process can be stopped";
    if (cards_go_on() && config(2).timing.fifo_words == 0) {
        GTEST_SKIP() << "a wire without delay whose cards go on by themselves has no queue";
    }
    static constexpr std::uint32_t kFarTooMany = 2'000'000;
    keep_the_silent();
    run(2, [](Self& self) {
        if (self.id == 1) {
            self.stop_here();
            self.await([&] { return self.node.load(0) == self.shared.words[0]; });
            return;
        }
        // Going on would come too early for a node that has not yet stopped.
        self.await([&] { return self.is_stopped(1); });
        std::uint32_t written = 0;
        while (written < kFarTooMany && self.node.write_word(0, written + 1) == WriteResult::ok) {
            ++written;
        }
        EXPECT_LT(written, kFarTooMany);
        self.resume(1);
        self.write_word(0, ++written);
        self.shared.words[0] = written;
        EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
        EXPECT_GT(self.node.counter(LinkCounter::back_pressure), 0U);
    });
}

TEST_P(LinkConformance, with_write_me_last_a_fifo_is_on_its_way_round_at_most) {
    if (!replicated() || simulated()) GTEST_SKIP() << "its own writes come round as the wire says";
    if (!processes()) GTEST_SKIP() << "only a process can be stopped";
    static constexpr std::uint32_t kFifo = 1024;  // words, of all these cards
    keep_the_silent();
    run(2, [](Self& self) {
        if (self.id == 1) {
            self.stop_here();
            self.await([&] { return self.node.load(0) == self.shared.words[0]; });
            return;
        }
        self.await([&] { return self.is_stopped(1); });
        self.node.set_write_me_last(true);
        std::uint32_t written = 0;
        while (written < 4 * kFifo && self.node.write_word(0, written + 1) == WriteResult::ok) {
            ++written;
            EXPECT_LE(written - self.node.load(0), kFifo);
        }
        self.resume(1);
        std::array<std::uint32_t, kFifo + 8> block;
        for (std::uint32_t round = 1; round <= 8; ++round) {
            block.fill(round);
            self.write(1024, block.data(), sizeof block);
            EXPECT_GE(self.node.load(1024) + 1, round) << "older than a write by more than one";
        }
        self.write_word(0, ++written);
        self.shared.words[0] = written;
        EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
        EXPECT_EQ(self.node.load(0), written);
        EXPECT_EQ(self.node.load(1024), 8U);
    });
}

TEST_P(LinkConformance, bytes_with_write_me_last_are_not_here_before_they_are_everywhere) {
    if (!replicated()) GTEST_SKIP() << "a store into the shared bank is everywhere at once";
    if (!processes()) GTEST_SKIP() << "only a process can be stopped";
    if (cards_go_on()) GTEST_SKIP() << "such a card goes on while its process is stopped";
    keep_the_silent();
    run(2, [](Self& self) {
        if (self.id == 1) return self.stop_here();
        self.await([&] { return self.is_stopped(1); });
        self.node.set_write_me_last(true);
        self.await([&] { return self.node.write_part(64, ~0U, 0b0110) == WriteResult::ok; });
        EXPECT_FALSE(self.node.flush(Deadline::in(2'000'000)));
        EXPECT_EQ(self.node.load(64), 0U);
        self.resume(1);
        EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
        EXPECT_EQ(self.node.load(64), 0x00FF'FF00U);
    });
}

TEST_P(LinkConformance, a_flush_that_a_stopped_node_holds_up_ends_at_its_deadline) {
    if (!replicated()) GTEST_SKIP() << "a store into the shared bank is everywhere at once";
    if (!processes()) GTEST_SKIP() << "only a process can be stopped";
    if (cards_go_on()) GTEST_SKIP() << "such a card goes on while its process is stopped";
    keep_the_silent();
    run(2, [](Self& self) {
        if (self.id == 1) {
            self.stop_here();
            return;
        }
        // Until all of it has stopped, its helper may still apply; and going on would come too
        // early.
        self.await([&] { return self.is_stopped(1); });
        self.write_word(0, 1);
        EXPECT_FALSE(self.node.flush(Deadline::in(20'000'000)));
        self.resume(1);
        EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
    });
}

TEST_P(LinkConformance, a_killed_node_blocks_nobody) {
    if (!processes()) GTEST_SKIP() << "only a process can be killed";
    constexpr std::uint32_t kWrites = 3'000;
    run(3,
        [](Self& self) {
            if (self.id == 2) self.die_here();
            for (std::uint32_t i = 1; i <= kWrites; ++i) self.write_word(self.id * 4, i);
            EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
            self.await([&] { return self.node.load((1 - self.id) * 4) == kWrites; });
            self.await([&] { return !self.node.is_alive(2); });
            // A process is dying for some milliseconds, in which it may still count as a member.
            // A rank that leaves in that time is not the last one and must let the segment stand.
            self.await([&] { return self.has_died(2); });
        },
        {.dies = 2});
}

TEST_P(LinkConformance, who_comes_late_finds_what_was_written_before) {
    run(2,
        [](Self& self) {
            if (self.id == 0) {
                for (std::uint32_t i = 0; i < 100; ++i) self.write_word(i * 4, i + 1);
                ASSERT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
                self.let_late_come();
                return;
            }
            for (std::uint32_t i = 0; i < 100; ++i) {
                EXPECT_EQ(self.node.wait_change(i * 4, 0, Deadline::in(kPatienceNs)), i + 1);
            }
        },
        {.late = 1});
}

// ---- Ranges

TEST_P(LinkConformance, what_lies_outside_the_memory_is_refused_and_nothing_written) {
    run(1, [](Self& self) {
        Node& node = self.node;
        std::array<std::uint32_t, 4> four{1, 2, 3, 4};
        const auto refused = [](const std::function<void()>& call) {
            try {
                call();
            } catch (const Error& error) {
                return error.code() == Errc::invalid_argument;
            }
            return false;
        };
        EXPECT_TRUE(refused([&] { static_cast<void>(node.write(kBytes - 8, four.data(), 16)); }));
        EXPECT_TRUE(
            refused([&] { static_cast<void>(node.write(~std::size_t{3}, four.data(), 8)); }));
        EXPECT_TRUE(refused([&] { static_cast<void>(node.write_word(kBytes, 1)); }));
        EXPECT_TRUE(refused([&] { static_cast<void>(node.write_word(2, 1)); }));
        EXPECT_TRUE(refused([&] { node.load(kBytes); }));
        EXPECT_TRUE(refused([&] { node.load(1); }));
        EXPECT_TRUE(refused([&] { node.read(kBytes - 8, four.data(), 16); }));
        EXPECT_TRUE(refused([&] { node.wait_change(kBytes, 0, Deadline::now()); }));
        EXPECT_TRUE(refused([&] { node.watch(kBytes - 4, 8); }));
        EXPECT_TRUE(refused([&] { node.mark(kBytes, 4); }));
        EXPECT_EQ(node.load(kBytes - 8), 0U);
        EXPECT_EQ(node.write(kBytes, four.data(), 0), WriteResult::ok);
        EXPECT_EQ(node.write(kBytes - 16, four.data(), 16), WriteResult::ok);
        EXPECT_EQ(node.load(kBytes - 4), 4U);
    });
}

TEST_P(LinkConformance, parts_of_words_change_nothing_beside_them) {
    run(2, [](Self& self) {
        std::array<std::uint8_t, 32> expected{};
        for (std::size_t i = 0; i < expected.size(); ++i)
            expected[i] = static_cast<std::uint8_t>(i);
        if (self.id == 0) {
            self.write(64, expected.data(), expected.size());
            for (std::size_t begin = 0; begin < 8; ++begin) {
                for (std::size_t bytes = 1; bytes <= 9; ++bytes) {
                    std::array<std::uint8_t, 9> part;
                    part.fill(static_cast<std::uint8_t>(10 * begin + bytes));
                    self.write(64 + begin, part.data(), bytes);
                }
            }
            self.write_word(0, 1);
        }
        for (std::size_t begin = 0; begin < 8; ++begin) {
            for (std::size_t bytes = 1; bytes <= 9; ++bytes) {
                std::memset(expected.data() + begin, static_cast<int>(10 * begin + bytes), bytes);
            }
        }
        EXPECT_EQ(self.node.wait_change(0, 0, Deadline::in(kPatienceNs)), 1U);
        std::array<std::uint8_t, 32> found{};
        self.node.read(64, found.data(), found.size());
        EXPECT_EQ(found, expected) << "at node " << self.id;
        self.node.read(67, found.data(), 5);
        EXPECT_EQ(std::memcmp(found.data(), expected.data() + 3, 5), 0);
    });
}

/// A barrier of one byte for each node, as programs of cards have it.
TEST_P(LinkConformance, the_bytes_of_a_word_may_be_several_nodes) {
    constexpr unsigned kNodes = 4;
    constexpr unsigned kRounds = 250;  // each has a value of its own
    if (config(kNodes).timing.whole_words != 0) GTEST_SKIP() << "its cards send whole words";
    run(kNodes, [](Self& self) {
        for (unsigned round = 1; round <= kRounds; ++round) {
            const std::size_t row = round % 2 * 64;
            const auto own = static_cast<std::uint8_t>(round);
            self.write(row + self.id, &own, 1);
            self.await([&] {
                return self.node.load(row) == 0x0101'0101U * own;  // only all of them make that
            });
        }
        std::array<std::uint8_t, 8> ends{};
        self.meet(0);
        // And where a write ends inside a word, while others write the rest.
        for (unsigned round = 1; round <= kRounds; ++round) {
            ends.fill(static_cast<std::uint8_t>(round));
            const std::size_t bytes = self.id == 0 ? 5 : 1;
            self.write(256 + (self.id == 0 ? 0 : 4 + self.id), ends.data(), bytes);
        }
        self.await([&] { return self.node.load(260) == 0x0101'0101U * ends[0]; });
        EXPECT_EQ(self.node.load(256), 0x0101'0101U * ends[0]);
        self.meet(1);
    });
}

TEST_P(LinkConformance, bytes_of_one_write_are_seen_together) {
    constexpr unsigned kRounds = 2000;
    run(2, [](Self& self) {
        for (const WordPart part : std::array<WordPart, 6>{7, 6, 12, 5, 13, 9}) {
            const std::uint32_t mask = with_part(0, ~0U, part);
            const std::size_t at = std::size_t{16} * part;
            self.meet(2U * part);
            if (self.id == 0) {
                for (unsigned round = 1; round <= kRounds; ++round) {
                    const std::uint32_t value = 0x0101'0101U * (1 + round % 250);
                    self.await(
                        [&] { return self.node.write_part(at, value, part) == WriteResult::ok; });
                }
                self.write_word(0, part);
            }
            while (self.id != 0 && self.node.load(0) != part) {
                const std::uint32_t seen = self.raw(at);
                const std::uint32_t any = seen & mask;
                const auto shift = 8U * static_cast<unsigned>(std::countr_zero(part));
                const std::uint32_t byte = any >> shift & 0xFFU;
                ASSERT_EQ(any, (0x0101'0101U * byte) & mask) << unsigned{part};
                ASSERT_EQ(seen & ~mask, 0U);
                self.rest();
            }
            self.meet(2U * part + 1);
        }
    });
}

TEST_P(LinkConformance, a_card_of_whole_words_sends_the_rest_as_its_own_memory_has_it) {
    if (config(2).timing.whole_words == 0) GTEST_SKIP() << "its cards send bytes";
    run(2, [](Self& self) {
        if (self.id == 0) self.write_word(64, 0x0403'0201);
        self.await([&] { return self.node.load(64) == 0x0403'0201; });
        self.meet(0);
        const std::uint8_t own = 9;
        if (self.id == 0) self.write(65, &own, 1);
        self.await([&] { return self.node.load(64) == 0x0403'0901; });
        self.meet(1);
        // Both at once: each writer's word ends as it sent it, or as the other did.
        self.write(68 + self.id, &own, 1);
        EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
        self.meet(2);
        EXPECT_NE(self.node.load(68) & 0x0909U, 0U);
        EXPECT_EQ(self.node.load(68) & ~0x0909U, 0U);
    });
}

TEST_P(LinkConformance, options_of_the_card_hold_for_bytes) {
    run(2, [](Self& self) {
        if (self.id == 0) {
            self.node.set_write_me_last(true);
            self.await(
                [&] { return self.node.write_part(64, 0xAAAA'AAAA, 0b0110) == WriteResult::ok; });
            EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
            EXPECT_EQ(self.node.load(64), 0x00AA'AA00U) << "has come round";
            self.node.set_write_me_last(false);
            self.node.set_data_filter(true);
            const auto before = self.node.counter(LinkCounter::writes_sent);
            self.await(
                [&] { return self.node.write_part(64, 0x00AA'0000, 0b0100) == WriteResult::ok; });
            EXPECT_EQ(self.node.counter(LinkCounter::writes_sent), before) << "nothing changes";
            self.await(
                [&] { return self.node.write_part(64, 0x1100'0000, 0b1000) == WriteResult::ok; });
            EXPECT_EQ(self.node.counter(LinkCounter::writes_sent), before + 1);
            self.node.set_data_filter(false);
        }
        self.await([&] { return self.node.load(64) == 0x11AA'AA00U; });
        EXPECT_THROW(static_cast<void>(self.node.write_part(64, 0, 0x10)), Error);
        EXPECT_THROW(static_cast<void>(self.node.write_part(66, 0, 1)), Error);
        self.meet(0);
    });
}

TEST_P(LinkConformance, the_data_filter_sends_only_what_changes) {
    run(2, [](Self& self) {
        if (self.id == 0) {
            self.node.set_data_filter(true);
            std::array<std::uint32_t, 8> data{1, 2, 3, 4, 5, 6, 7, 8};
            self.write(64, data.data(), sizeof data);
            const auto before = self.node.counter(LinkCounter::bytes_sent);
            data[5] = 66;
            self.write(64, data.data(), sizeof data);
            EXPECT_EQ(self.node.counter(LinkCounter::writes_filtered), 7U);
            EXPECT_EQ(self.node.counter(LinkCounter::bytes_sent), before + 4);
            self.write_word(0, 1);
        }
        EXPECT_EQ(self.node.wait_change(0, 0, Deadline::in(kPatienceNs)), 1U);
        EXPECT_EQ(self.node.load(64 + 5 * 4), 66U);
        EXPECT_EQ(self.node.load(64 + 7 * 4), 8U);
    });
}

// ---- Waiting

TEST_P(LinkConformance, a_wait_that_nothing_ends_ends_at_its_deadline) {
    run(2, [](Self& self) {
        EXPECT_EQ(self.node.wait_change(0, 0, Deadline::in(5'000'000)), 0U);
        EXPECT_EQ(self.node.wait_change(0, 7, Deadline::in(kPatienceNs)), 0U) << "differs already";
        EXPECT_FALSE(self.node.next_interrupt(Deadline::in(5'000'000)));
        EXPECT_FALSE(self.node.next_interrupt(Deadline::now()));
    });
}

TEST_P(LinkConformance, a_sleeping_node_sees_a_write) {
    run(2, [](Self& self) {
        if (self.id == 1) {
            EXPECT_EQ(self.node.wait_change(0, 0, Deadline::in(kPatienceNs)), 5U);
            return;
        }
        self.await([&] { return self.sleeps(1); });
        self.write_word(0, 5);
    });
}

// ---- Interrupts

TEST_P(LinkConformance, an_interrupt_tells_address_origin_and_value_of_watched_words_only) {
    run(3, [](Self& self) {
        if (self.id == 1) self.node.watch(0x104, 4);
        self.meet(0);
        if (self.id == 2) {
            std::array<std::uint32_t, 4> data{10, 11, 12, 13};
            self.write(0x100, data.data(), sizeof data);
            self.write_word(0x104, 77);
        }
        if (self.id == 1) {
            for (const std::uint32_t value : {11U, 77U}) {
                const auto interrupt = self.node.next_interrupt(Deadline::in(kPatienceNs));
                ASSERT_TRUE(interrupt);
                EXPECT_EQ(interrupt->offset, 0x104U);
                EXPECT_EQ(interrupt->origin, 2U);
                EXPECT_EQ(interrupt->value, value);
                EXPECT_EQ(interrupt->missed, 0U);
            }
        }
        self.meet(1);
        EXPECT_FALSE(self.node.next_interrupt(Deadline::now()));
    });
}

TEST_P(LinkConformance, a_marked_watch_needs_the_writers_mark) {
    run(2, [](Self& self) {
        if (self.id == 0) {
            self.node.watch(0x40, 8, Trigger::marked);
        } else {
            self.node.mark(0x44, 4);
        }
        self.meet(0);
        if (self.id == 1) {
            self.write_word(0x40, 1);
            self.write_word(0x44, 2);
            self.write_word(0, 1);
            return;
        }
        EXPECT_EQ(self.node.wait_change(0, 0, Deadline::in(kPatienceNs)), 1U);
        const auto interrupt = self.node.next_interrupt(Deadline::in(kPatienceNs));
        ASSERT_TRUE(interrupt);
        EXPECT_EQ(interrupt->offset, 0x44U);
        EXPECT_FALSE(self.node.next_interrupt(Deadline::now()));
    });
}

TEST_P(LinkConformance, the_data_seen_after_an_interrupt_is_that_written_before_it) {
    constexpr std::uint32_t kRounds = 100;
    run(2, [](Self& self) {
        if (self.id == 1) self.node.watch(0, 4);
        self.meet(0);
        for (std::uint32_t round = 1; round <= kRounds; ++round) {
            if (self.id == 0) {
                std::array<std::uint32_t, 16> data;
                data.fill(round);
                self.write(256, data.data(), sizeof data);
                self.write_word(0, round);
                self.await([&] { return self.shared.words[0] == round; });
                continue;
            }
            const auto interrupt = self.node.next_interrupt(Deadline::in(kPatienceNs));
            ASSERT_TRUE(interrupt);
            ASSERT_EQ(interrupt->value, round);
            for (std::size_t w = 0; w < 16; ++w) ASSERT_EQ(self.raw(256 + 4 * w), round);
            self.shared.words[0] = round;
        }
    });
}

TEST_P(LinkConformance, interrupts_beyond_the_queue_are_counted_and_reported) {
    static constexpr std::uint32_t kTooMany = 50;
    run(2, [](Self& self) {
        if (self.id == 1) self.node.watch(0x40, 4);
        self.meet(0);
        if (self.id == 0) {
            for (std::uint32_t i = 0; i < kInterruptQueueEntries + kTooMany; ++i) {
                self.write_word(0x40, i);
            }
            EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
        }
        self.meet(1);
        if (self.id == 0) return;
        std::uint64_t missed = 0;
        std::uint64_t taken = 0;
        while (const auto interrupt = self.node.next_interrupt(Deadline::now())) {
            EXPECT_EQ(interrupt->value, kTooMany + taken) << "the last are kept";
            ++taken;
            missed += interrupt->missed;
        }
        EXPECT_EQ(taken, kInterruptQueueEntries);
        EXPECT_EQ(missed, kTooMany);
        EXPECT_EQ(self.node.counter(LinkCounter::interrupts_lost), kTooMany);
        EXPECT_EQ(self.node.counter(LinkCounter::interrupts_raised), taken + kTooMany);
    });
}

}  // namespace rmem::test
