// SPDX-License-Identifier: Apache-2.0
// ctest: check
//
// Completion queues, counters and the ways to wait for them, through libfabric.
#include "tests/support/provider_rank.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <algorithm>
#include <thread>

namespace rmem::test {
namespace {

constexpr std::uint64_t kQueueTag = 0x1234567;

template <class Format>
Format read_one(ProviderRank& fabric) {
    Format entry{};
    await([&] { return fi_cq_read(fabric.queue, &entry, 1) == 1; }, "a completion");
    return entry;
}

TEST(ProviderQueue, a_run_of_messages_is_read_by_one_call) {
    with_fabric(2, {}, [](Rank& me, ProviderRank& fabric) {
        constexpr std::size_t kMessages = 200, kRoom = 32;
        std::uint64_t numbers[kMessages] = {};
        for (std::size_t i = 0; me.rank == 1 && i < kMessages; ++i)
            fabric.receive(&numbers[i], sizeof numbers[i], kQueueTag, &numbers[i]);
        fabric.meet();
        for (std::uint64_t i = 0; me.rank == 0 && i < kMessages; ++i)
            fabric.inject(&i, sizeof i, kQueueTag);
        fabric.meet();  // all of them are there before the first one is read
        std::size_t most = 0, next = 0;
        while (me.rank == 1 && next < kMessages) {
            fi_cq_tagged_entry entries[kRoom];
            const ssize_t taken = fi_cq_read(fabric.queue, entries, kRoom);
            if (taken == -FI_EAGAIN) continue;
            check(taken > 0, "an error instead of a completion");
            for (ssize_t i = 0; i < taken; ++i, ++next) {
                check(entries[i].op_context == &numbers[next], "not the next receive");
                check_equal(numbers[next], next, "not the next message");
            }
            most = std::max(most, static_cast<std::size_t>(taken));
        }
        if (me.rank == 1) check_equal(most, kRoom, "the most by one call");
    });
}

TEST(ProviderQueue, an_entry_is_told_in_each_format) {
    for (const fi_cq_format format :
         {FI_CQ_FORMAT_CONTEXT, FI_CQ_FORMAT_MSG, FI_CQ_FORMAT_DATA, FI_CQ_FORMAT_TAGGED}) {
        with_fabric(2, {.format = format}, [format](Rank& me, ProviderRank& fabric) {
            if (me.rank == 0) {
                fabric.send_with_word("hello", 5, 0xabc, kQueueTag, &me);
                // The beginning of all formats.
                const auto entry = read_one<fi_cq_tagged_entry>(fabric);
                check(entry.op_context == &me, "the context");
            } else {
                char text[16] = {};
                fabric.receive(text, sizeof text, kQueueTag, &text);
                if (format == FI_CQ_FORMAT_CONTEXT) {
                    fi_cq_entry entries[2];
                    std::memset(entries, 0x5a, sizeof entries);
                    await([&] { return fi_cq_read(fabric.queue, entries, 2) == 1; }, "it");
                    check(entries[0].op_context == text, "the context");
                    check(entries[1].op_context != nullptr, "more than an entry was written");
                }
                if (format == FI_CQ_FORMAT_MSG) {
                    const auto entry = read_one<fi_cq_msg_entry>(fabric);
                    check(entry.op_context == text && entry.len == 5, "context and length");
                    check_equal(entry.flags & (FI_TAGGED | FI_RECV), FI_TAGGED | FI_RECV, "flags");
                }
                if (format == FI_CQ_FORMAT_DATA) {
                    const auto entry = read_one<fi_cq_data_entry>(fabric);
                    check(entry.op_context == text && entry.len == 5, "context and length");
                    check_equal(entry.data, 0xabcU, "the word");
                }
                if (format == FI_CQ_FORMAT_TAGGED) {
                    const auto entry = read_one<fi_cq_tagged_entry>(fabric);
                    check_equal(entry.flags & FI_REMOTE_CQ_DATA, FI_REMOTE_CQ_DATA, "flags");
                    check_equal(entry.data, 0xabcU, "the word");
                    check_equal(entry.tag, kQueueTag, "the tag");
                }
                check(std::string(text) == "hello", "bytes");
            }
        });
    }
}

TEST(ProviderQueue, a_wait_ends_with_a_completion_at_its_time_or_by_a_signal) {
    const ProviderSetup waiting{.threading = FI_THREAD_SAFE, .wait = FI_WAIT_UNSPEC};
    with_fabric(2, waiting, [](Rank& me, ProviderRank& fabric) {
        fi_cq_tagged_entry entry{};
        if (me.rank == 1) {
            const std::int64_t begin = clock_ns();
            check_call(fi_cq_sread(fabric.queue, &entry, 1, nullptr, 30), "nothing came",
                       -FI_EAGAIN);
            check(clock_ns() - begin >= 30'000'000, "it did not wait");
            check_call(fi_cq_sread(fabric.queue, &entry, 1, nullptr, 0), "not at all", -FI_EAGAIN);
            std::thread other([&] {
                rest(std::chrono::milliseconds(20));
                fi_cq_signal(fabric.queue);
            });
            check_call(fi_cq_sread(fabric.queue, &entry, 1, nullptr, -1), "signalled", -FI_EAGAIN);
            other.join();
            char text[16] = {};
            fabric.receive(text, 16, kQueueTag, text);
            me.raise(0);
            fi_addr_t source = 99;
            check_call(fi_cq_sreadfrom(fabric.queue, &entry, 1, &source, nullptr, -1), "waiting",
                       1);
            check(entry.op_context == text, "the context");
            check_equal(source, fabric.of[0], "the source");
        } else {
            me.await_word(0);
            rest(std::chrono::milliseconds(20));
            fabric.send("hello", 5, kQueueTag, &me);
            fabric.expect(&me, FI_SEND);
        }
    });
}

/// Sleeps on the queue's descriptor until there is something to read.
Entry poll_for_next(ProviderRank& fabric, int descriptor) {
    fid* objects[] = {&fabric.queue->fid};
    Entry entry;
    for (;;) {
        const ssize_t result = fi_cq_read(fabric.queue, &entry.told, 1);
        if (result == 1) return entry;
        check_call(result, "fi_cq_read", -FI_EAGAIN);
        if (fi_trywait(fabric.fabric, objects, 1) != 0) continue;
        pollfd polled{descriptor, POLLIN, 0};
        check(::poll(&polled, 1, 20'000) == 1, "nothing wakes it");
    }
}

TEST(ProviderQueue, its_descriptor_tells_of_what_comes) {
    for (const char* link : {"direct", "ring", "udp"}) {
        RingSetup setup = provider_ring();
        setup.link = link;
        // Of one slice and a bit, where messages are read from their sender's memory.
        const std::size_t large = setup.link == "udp" ? 50'000 : 1'500'000;
        with_fabric(setup, {.wait = FI_WAIT_FD}, [large](Rank& me, ProviderRank& fabric) {
            int descriptor = -1;
            check_call(fi_control(&fabric.queue->fid, FI_GETWAIT, &descriptor), "FI_GETWAIT");
            std::vector<char> bytes(large);
            for (int i = 0; i < 20; ++i) {
                const std::size_t size = i % 2 == 0 ? 8 : bytes.size();
                if ((i + me.rank) % 2 == 0) {
                    fabric.send(bytes.data(), size, kQueueTag, &me);
                } else {
                    fabric.receive(bytes.data(), size, kQueueTag, &me);
                }
                check(poll_for_next(fabric, descriptor).told.op_context == &me, "the context");
            }
        });
    }
}

TEST(ProviderQueue, one_without_a_descriptor_has_none) {
    with_fabric(1, {}, [](Rank&, ProviderRank& fabric) {
        int descriptor = -1;
        check_call(fi_control(&fabric.queue->fid, FI_GETWAIT, &descriptor), "", -FI_ENODATA);
    });
}

TEST(ProviderQueue, selective_ones_tell_what_asks_for_it_and_every_error) {
    const ProviderSetup selective{.is_selective = true, .counters = {FI_SEND, FI_RECV}};
    with_fabric(2, selective, [](Rank& me, ProviderRank& fabric) {
        fid_cntr *sent = fabric.counters[0], *received = fabric.counters[1];
        char text[16] = {};
        const iovec part{text, 5};
        fi_msg_tagged message = fabric.tagged(kQueueTag, &me, &part);
        if (me.rank == 0) {
            check_call(fi_tsendmsg(fabric.ep, &message, 0), "a silent one");
            fabric.inject(text, 5, kQueueTag);
            check_call(fi_tsendmsg(fabric.ep, &message, FI_COMPLETION), "one that is told");
            fabric.expect(&me, FI_SEND);
            fabric.expect_nothing();
            check_call(fi_cntr_wait(sent, 3, 20'000), "all are counted");
        } else {
            check_call(fi_trecvmsg(fabric.ep, &message, 0), "a silent one");
            check_call(fi_trecvmsg(fabric.ep, &message, FI_COMPLETION), "one that is told");
            fabric.expect(&me, FI_RECV);
            const iovec small{text, 2};
            message.msg_iov = &small;
            check_call(fi_trecvmsg(fabric.ep, &message, 0), "one that is too short");
            fabric.expect_error(&me, FI_ETRUNC);
            fabric.expect_nothing();
            check_equal(fi_cntr_read(received), 2U, "received");
            check_equal(fi_cntr_readerr(received), 1U, "failed");
        }
    });
}

TEST(ProviderQueue, counters_are_set_added_to_and_waited_for) {
    with_fabric(2, {.counters = {FI_SEND | FI_RECV}}, [](Rank& me, ProviderRank& fabric) {
        fid_cntr* count = fabric.counters[0];
        check_call(fi_cntr_wait(count, 0, 0), "none is there at once");
        check_call(fi_cntr_wait(count, 1, 0), "not one", -FI_ETIMEDOUT);
        check_call(fi_cntr_add(count, 5), "fi_cntr_add");
        check_equal(fi_cntr_read(count), 5U, "added");
        check_call(fi_cntr_set(count, 10), "fi_cntr_set");
        check_call(fi_cntr_seterr(count, 2), "fi_cntr_seterr");
        check_equal(fi_cntr_readerr(count), 2U, "errors");
        char text[8] = {};
        if (me.rank == 0) {
            rest(std::chrono::milliseconds(20));
            fabric.inject(text, 8, kQueueTag);
        } else {
            fabric.receive(text, 8, kQueueTag, nullptr);
        }
        check_call(fi_cntr_wait(count, 11, -1), "fi_cntr_wait");
    });
}

TEST(ProviderQueue, threads_may_share_an_endpoint_that_was_asked_to_be_safe) {
    const ProviderSetup safe{.threading = FI_THREAD_SAFE, .counters = {FI_SEND | FI_RECV}};
    with_fabric(2, safe, [](Rank&, ProviderRank& fabric) {
        constexpr unsigned kThreads = 4, kMessages = 300;
        const fi_addr_t other = fabric.other();
        std::atomic<unsigned> wrong{0};
        std::vector<std::thread> threads;
        for (unsigned t = 0; t < kThreads; ++t) {
            threads.emplace_back([&, t] {
                for (unsigned i = 0; i < kMessages; ++i) {
                    std::uint32_t out = t * 1'000'000 + i, in = 0;
                    fi_context contexts[2];
                    if (fi_trecv(fabric.ep, &in, 4, nullptr, other, t, 0, &contexts[0]) != 0)
                        ++wrong;
                    while (fi_tinject(fabric.ep, &out, 4, other, t) == -FI_EAGAIN) {
                    }
                    fi_cq_tagged_entry entry;
                    while (*static_cast<volatile std::uint32_t*>(&in) != out)
                        fi_cq_read(fabric.queue, &entry, 1);
                }
            });
        }
        for (auto& thread : threads) thread.join();
        check_equal(wrong.load(), 0U, "calls that failed");
        check_call(
            fi_cntr_wait(fabric.counters[0], std::uint64_t{2} * kThreads * kMessages, 20'000),
            "all");
    });
}

}  // namespace
}  // namespace rmem::test
