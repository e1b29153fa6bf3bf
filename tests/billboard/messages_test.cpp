// SPDX-License-Identifier: Apache-2.0
// ctest: check apart

/// Conformance: a message arrives once, intact, whatever its size, and a receiver that has no room
/// for it, or only looks, loses nothing. (billboard/bbp.h: Delivery, bbp_recv, bbp_probe,
/// bbp_msgavail; sizes beyond a partition are in large_test.cpp.)

#include "tests/support/conformance.hpp"

namespace rmem::test {
namespace {

class Messages : public Conformance {};
RMEM_ON_ALL_RINGS(Messages);

enum Word : std::size_t { kGo, kDone };

TEST_P(Messages, a_stream_of_all_sizes_arrives_intact_and_in_order) {
    run(2, [](Rank& me) {
        std::vector<std::size_t> sizes;
        // Neighbours, so that each size begins at each place of a line; and far ones in turn.
        for (std::size_t i = 0; i < 2000; ++i) sizes.insert(sizes.end(), {i, (i * 7919) % 2000});
        // Around pages and fractions of the partition.
        for (const std::size_t middle : {2048U, 4096U, 8192U, 12288U}) {
            for (std::size_t i = 0; i <= 10; ++i) sizes.push_back(middle - 5 + i);
        }
        for (std::uint64_t i = 0; i < sizes.size(); ++i) {
            if (me.rank == 0) send(1, sizes[i], i);
            if (me.rank == 1) receive(0, sizes[i], i);
        }
    });
}

TEST_P(Messages, messages_of_zero_bytes_arrive_with_null_buffers) {
    run(2, [](Rank& me) {
        for (int i = 0; i < 100; ++i) {
            if (me.rank == 0) {
                check_ok(bbp_send(1, nullptr, 0));
            } else {
                std::size_t size = 99;
                check_code(bbp_recv(0, nullptr, 0, &size), 0);
                check_equal(size, 0, "size");
            }
        }
    });
}

TEST_P(Messages, may_start_anywhere_in_memory_and_leave_what_lies_around_them_alone) {
    run(2, [](Rank& me) {
        const std::vector<std::size_t> sizes = {0,  1,  2,  3,  5,  7,   13,
                                                59, 60, 61, 63, 65, 127, 1001};
        for (std::size_t shift = 0; shift < 8; ++shift) {
            for (const std::size_t size : sizes) {
                std::vector<std::byte> buffer(size + 128, std::byte{0xa5});
                std::byte* const begin = buffer.data() + shift;
                if (me.rank == 0) {
                    fill({begin, size}, size);
                    check_ok(bbp_send(1, begin, size));
                    continue;
                }
                check_code(bbp_recv(0, begin, buffer.size() - shift, nullptr), 0);
                check_bytes(begin, size, size);
                for (std::size_t i = 0; i < buffer.size(); ++i) {
                    check((i >= shift && i < shift + size) || buffer[i] == std::byte{0xa5},
                          fmt::format("byte {} of {} from {} on changed", i, size, shift));
                }
            }
        }
    });
}

TEST_P(Messages, messages_to_the_sender_itself_may_be_more_than_any_queue_holds) {
    // A rank that waits for itself would wait forever: a message to oneself must find room, or the
    // call must say that it cannot.
    run(1, [](Rank& me) {
        constexpr int kMessages = 200;
        int sent = 0;
        int code = BBP_OK;
        while (sent < kMessages) {
            const auto size = static_cast<std::size_t>(sent % 90);
            const auto bytes = pattern(size, static_cast<std::uint64_t>(sent));
            code = bbp_send_for(me.rank, bytes.data(), size, 100 * kMillisecond);
            if (code != BBP_OK) break;
            ++sent;
        }
        check_equal(sent, kMessages, "messages sent to oneself before " + code_name(code));
        check_code(bbp_msgavail(me.rank), 1);
        for (int i = 0; i < sent; ++i) {
            receive(0, static_cast<std::size_t>(i % 90), static_cast<std::uint64_t>(i));
        }
        nothing_waits(0);
    });
}

TEST_P(Messages, larger_than_the_buffer_tell_their_size_and_stay) {
    run(2, [](Rank& me) {
        const std::vector<std::size_t> sizes = {1, 8, 60, 61, 100, 5000, 3 * kPartition};
        for (const std::size_t size : sizes) {
            if (me.rank == 0) {
                send(1, size, size);
                send(1, 4, 4);
                continue;
            }
            std::vector<std::byte> small(size, std::byte{0x5a});
            for (const std::size_t room : {size - 1, size / 2, std::size_t{0}}) {
                std::size_t found = 0;
                check_code(bbp_recv(0, small.data(), room, &found), BBP_ESIZE);
                check_equal(found, size, "size told with BBP_ESIZE");
                found = 0;
                std::byte* const to = room == 0 ? nullptr : small.data();
                check_code(bbp_recv(BBP_ANY, to, room, &found), BBP_ESIZE);
                check_equal(found, size, "size told with BBP_ESIZE, from anyone");
                found = 0;
                check_code(bbp_tryrecv(0, small.data(), room, &found), BBP_ESIZE);
                check_equal(found, size, "size told with BBP_ESIZE, by bbp_tryrecv");
                found = 0;
                check_code(bbp_probe(0, &found), 0);
                check_equal(found, size, "size probed");
                check_code(bbp_recv(0, small.data(), room, nullptr), BBP_ESIZE);
                check(small.at(room) == std::byte{0x5a}, "a byte beyond the room was written");
            }
            check_code(bbp_recv(0, nullptr, 64, nullptr), BBP_EINVAL);
            check_code(bbp_recv(2, small.data(), size, nullptr), BBP_ERANK);
            receive(0, size, size);
            receive(0, 4, 4);
        }
    });
}

// Rank 0 is told of the message of one sender, then another's comes.
TEST_P(Messages, told_of_are_the_next_ones_of_anybody_though_others_come_in_between) {
    run(3, [](Rank& me) {
        for (const std::size_t size : {std::size_t{8}, std::size_t{60}, std::size_t{5000}}) {
            for (const int first : {1, 2}) {
                for (const bool is_probed : {false, true}) {
                    const int second = 3 - first;
                    if (me.rank == first) send(0, size, 1);
                    if (me.rank == second) receive(0, 1, 7);
                    if (me.rank == second) send(0, size + 100, 2);
                    if (me.rank == 0) {
                        std::byte small{};
                        await([&] { return bbp_msgavail(first) == 1; }, "the first message");
                        check_code(is_probed ? bbp_probe(BBP_ANY, nullptr)
                                             : bbp_recv(BBP_ANY, &small, 1, nullptr),
                                   is_probed ? first : BBP_ESIZE);
                        send(second, 1, 7);
                        await([&] { return bbp_msgavail(second) == 1; }, "the second message");
                        check_equal(receive(BBP_ANY, size, 1), first, "sender");
                        receive(second, size + 100, 2);
                    }
                }
            }
        }
    });
}

TEST_P(Messages, can_be_asked_for_and_probed_by_source_until_received) {
    run(3, [](Rank& me) {
        const std::vector<std::size_t> sizes = {0, 33, 60, 61, 4000};
        if (me.rank == 1) {
            me.await_word(kGo);
            for (const std::size_t size : sizes) send(0, size, size);
        }
        if (me.rank != 0) return me.await_word(kDone);
        for (const int source : {1, BBP_ANY}) check_code(bbp_probe(source, nullptr), BBP_EAGAIN);
        me.raise(kGo);
        for (const std::size_t size : sizes) {
            await([] { return bbp_msgavail(1) == 1; }, "the next message");
            for (int twice = 0; twice < 2; ++twice) {
                check_code(bbp_msgavail(BBP_ANY), 1);
                for (const int other : {0, 2}) {
                    check_code(bbp_msgavail(other), 0);
                    check_code(bbp_probe(other, nullptr), BBP_EAGAIN);
                }
                std::size_t found = 99;
                check_code(bbp_probe(1, &found), 1);
                check_equal(found, size, "size probed");
                check_code(bbp_probe(BBP_ANY, nullptr), 1);
            }
            receive(1, size, size);
        }
        nothing_waits(1);
        nothing_waits(BBP_ANY);
        me.raise(kDone);
    });
}

}  // namespace
}  // namespace rmem::test
