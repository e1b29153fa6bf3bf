// SPDX-License-Identifier: Apache-2.0
// ctest: check apart

/// Conformance: messages composed and read where they lie are messages like all others: in order,
/// intact until released, in any order of release; a released buffer is free again.
/// (billboard/bbp.h: No copies; views of the dead's messages: tests/billboard/core/peers_test.cpp.)

#include "billboard/endpoint.hpp"
#include "tests/support/conformance.hpp"

#include <algorithm>
#include <array>

namespace rmem::test {
namespace {

using billboard::kTakenBytes;

class InPlace : public Conformance {};
RMEM_ON_ALL_RINGS(InPlace);

enum Word : std::size_t { kGo, kCount };

const std::vector<std::size_t> kSizes = {0, 1, 8, 59, 60, 61, 64, 333, 4096, kPartition};

void* compose(std::size_t size, Place place = Place::here()) {
    void* buffer = nullptr;
    await(
        [&] {
            const int code = bbp_compose(size, &buffer);
            if (code != BBP_EAGAIN) check_code(code, BBP_OK, "bbp_compose", place);
            return code == BBP_OK;
        },
        "room to compose", place);
    check(buffer != nullptr, "bbp_compose gave no buffer", place);
    return buffer;
}

void* compose_filled(std::size_t size, std::uint64_t seed, Place place = Place::here()) {
    void* buffer = compose(size, place);
    fill({static_cast<std::byte*>(buffer), size}, seed);
    return buffer;
}

struct View {
    const void* data = nullptr;
    std::size_t size = 0;
    std::uint64_t seed = 0;
};

View view(int source, std::size_t size, std::uint64_t seed, Place place = Place::here()) {
    View view{nullptr, ~std::size_t{0}, seed};
    const int sender = bbp_view(source, &view.data, &view.size);
    if (source != BBP_ANY) check_code(sender, source, "bbp_view", place);
    if (source == BBP_ANY && sender < 0) check_code(sender, 0, "bbp_view of anyone", place);
    check_equal(view.size, size, "size viewed", place);
    check_bytes(view.data, size, seed, place);
    return view;
}

void release(const View& view, Place place = Place::here()) {
    check_bytes(view.data, view.size, view.seed, place);
    check_code(bbp_release(view.data), BBP_OK, "bbp_release", place);
}

TEST_P(InPlace, composed_and_viewed_messages_are_what_was_sent_also_shortened) {
    run(2, [](Rank& me) {
        for (const std::size_t size : kSizes) {
            for (const std::size_t more : {std::size_t{0}, std::min(kPartition - size, size)}) {
                if (me.rank == 0) {
                    void* buffer = compose(size + more);
                    fill({static_cast<std::byte*>(buffer), size}, size);
                    check_ok(bbp_post(1, buffer, size));
                }
                if (me.rank == 1) receive(0, size, size);
            }
            if (me.rank == 0) send(1, size, size);
            if (me.rank == 1) release(view(0, size, size));
            if (me.rank == 0) send(1, size, size + 1);
            if (me.rank == 1) release(view(BBP_ANY, size, size + 1));
        }
    });
}

TEST_P(InPlace, composed_messages_arrive_in_the_order_of_their_posts) {
    run(2, [](Rank& me) {
        const int rounds = thrifty(100);
        for (int round = 0; round < rounds; ++round) {
            const auto base = static_cast<std::uint64_t>(round * 10);
            if (me.rank == 0) {
                void* first = compose_filled(700, base);
                void* second = compose_filled(20, base + 1);
                void* third = compose_filled(300, base + 2);
                check_ok(bbp_post(1, third, 300));
                send(1, 40, base + 3);
                check_ok(bbp_post(1, first, 700));
                send(1, 900, base + 4);
                check_ok(bbp_post(1, second, 20));
            } else {
                receive(0, 300, base + 2);
                release(view(0, 40, base + 3));
                release(view(0, 700, base));
                receive(0, 900, base + 4);
                receive(0, 20, base + 1);
            }
        }
    });
}

TEST_P(InPlace, discarded_messages_never_arrive_and_their_room_is_free) {
    run(2, [](Rank& me) {
        if (me.rank == 0) {
            for (int i = 0; i < 500; ++i) {
                void* buffer = nullptr;
                check_ok(bbp_compose(kPartition / 2, &buffer), "bbp_compose after bbp_discard");
                check_ok(bbp_discard(buffer));
            }
            void* kept = compose_filled(1000, 1);
            for (int i = 0; i < 100; ++i) check_ok(bbp_discard(compose(1000)));
            check_ok(bbp_post(1, kept, 1000));
        } else {
            receive(0, 1000, 1);
        }
        check_ok(bbp_barrier());
        nothing_waits(BBP_ANY);
    });
}

TEST_P(InPlace, a_compose_without_room_says_again_until_something_is_released) {
    run(2, [](Rank& me) {
        if (me.rank == 0) {
            const std::size_t size = kPartition / 4;
            std::uint64_t posted = 0;
            void* buffer = nullptr;
            int code = BBP_OK;
            while ((code = bbp_compose(size, &buffer)) == BBP_OK) {
                check(posted < 4, "more was composed than the partition holds");
                fill({static_cast<std::byte*>(buffer), size}, posted++);
                check_ok(bbp_post(1, buffer, size));
            }
            check_code(code, BBP_EAGAIN);
            check(posted >= 3, "less than three quarters of the partition could be used");
            check_code(bbp_compose(size, &buffer), BBP_EAGAIN);
            me.shared[kCount] = static_cast<std::uint32_t>(posted);
            me.raise(kGo);
            check_ok(bbp_post(1, compose_filled(size, 99), size));
        } else {
            me.await_word(kGo);
            const std::uint64_t posted = me.shared[kCount];
            std::vector<View> views;
            for (std::uint64_t i = 0; i < posted; ++i) views.push_back(view(0, kPartition / 4, i));
            for (const View& v : views) release(v);
            receive(0, kPartition / 4, 99);
        }
    });
}

TEST_P(InPlace, what_is_composed_and_not_posted_is_bounded_by_the_partition) {
    run(1, [](Rank&) {
        std::vector<void*> buffers;
        void* buffer = nullptr;
        int code = BBP_OK;
        while ((code = bbp_compose(100, &buffer)) == BBP_OK) {
            check(buffers.size() < kPartition / 100, "more was composed than the partition holds");
            for (void* other : buffers) {
                const auto distance =
                    static_cast<std::byte*>(buffer) - static_cast<std::byte*>(other);
                check(distance >= 100 || distance <= -100, "two composed messages overlap");
            }
            buffers.push_back(buffer);
        }
        check_code(code, BBP_EAGAIN);
        for (void* each : buffers) check_ok(bbp_discard(each));
        check_ok(bbp_discard(compose(kPartition)));
    });
}

TEST_P(InPlace, views_stay_as_they_are_while_others_behind_them_are_released_and_make_room) {
    run(2, [](Rank& me) {
        const std::vector<std::size_t> held = {0, 8, 60, 61, 1000};
        const auto size_of = [](std::uint64_t i) { return i * 37 % 3000; };
        const auto others = static_cast<std::uint64_t>(std::max(thrifty(1000), 100));
        if (me.rank == 0) {
            for (const std::size_t size : held) send(1, size, size);
            for (std::uint64_t i = 0; i < others; ++i) send(1, size_of(i), i);
        } else {
            std::vector<View> views;
            for (const std::size_t size : held) views.push_back(view(0, size, size));
            for (std::uint64_t i = 0; i < others; ++i) {
                if (i % 2 == 0) receive(0, size_of(i), i);
                if (i % 2 == 1) release(view(0, size_of(i), i));
                if (i % 100 != 0) continue;
                for (const View& v : views) check_bytes(v.data, v.size, v.seed);
            }
            for (const View& v : views) release(v);
        }
    });
}

TEST_P(InPlace, a_view_of_a_message_larger_than_a_partition_is_refused_and_loses_nothing) {
    run(2, [](Rank& me) {
        const std::size_t size = 2 * kPartition + 9;
        if (me.rank == 0) {
            send(1, size, 1);
            send(1, 20, 2);
        } else {
            const void* data = nullptr;
            std::size_t found = 0;
            check_code(bbp_view(0, &data, &found), BBP_ESIZE);
            check_code(bbp_tryview(0, &data, &found), BBP_ESIZE);
            receive(0, size, 1);
            release(view(0, 20, 2));
        }
    });
}

TEST_P(InPlace, calls_that_cannot_be_right_are_refused_and_do_no_harm) {
    run(2, [](Rank& me) {
        void* buffer = nullptr;
        check_code(bbp_compose(kPartition + 1, &buffer), BBP_ESIZE,
                   "compose more than a partition");
        check_code(bbp_compose(SIZE_MAX, &buffer), BBP_ESIZE, "compose the largest size");
        check_code(bbp_compose(8, nullptr), BBP_EINVAL, "compose into null");
        std::byte mine[8] = {};
        check_code(bbp_post(1 - me.rank, mine, 8), BBP_EINVAL, "post what was not composed");
        check_code(bbp_post(1 - me.rank, nullptr, 8), BBP_EINVAL, "post null");
        check_code(bbp_discard(mine), BBP_EINVAL, "discard what was not composed");
        check_code(bbp_discard(nullptr), BBP_EINVAL, "discard null");
        check_code(bbp_release(mine), BBP_EINVAL, "release what was not viewed");
        check_code(bbp_release(nullptr), BBP_EINVAL, "release null");
        const void* data = nullptr;
        std::size_t size = 0;
        check_code(bbp_view(7, &data, &size), BBP_ERANK, "view of a rank that does not exist");
        check_code(bbp_tryview(1 - me.rank, nullptr, &size), BBP_EINVAL, "view into null");

        // A buffer that was not taken is still there to be posted.
        buffer = compose_filled(30, 1);
        check_code(bbp_post(2, buffer, 30), BBP_ERANK, "post to a rank that does not exist");
        check_refused(bbp_post(1 - me.rank, buffer, kPartition), "post more than was composed");
        const int twice[] = {1 - me.rank, 1 - me.rank};
        check_code(bbp_post_mcast(twice, 2, buffer, 30), BBP_EINVAL, "post to one rank twice");
        check_ok(bbp_post(1 - me.rank, buffer, 30));
        check_code(bbp_post(1 - me.rank, buffer, 30), BBP_EINVAL, "post again");
        check_code(bbp_discard(buffer), BBP_EINVAL, "discard what was posted");
        const View v = view(1 - me.rank, 30, 1);
        release(v);
        check_code(bbp_release(v.data), BBP_EINVAL, "release again");
        check_ok(bbp_barrier());
        nothing_waits(BBP_ANY);
    });
}

// ---- Posting without waiting forever

/// Posts composed messages with the seeds first, first + 1, … until nobody makes room for the next,
/// which is discarded; returns how many have been posted.
std::uint64_t post_until_full(int dest, std::size_t size, std::uint64_t first) {
    for (std::uint64_t posted = 0; posted < 1000; ++posted) {
        void* buffer = nullptr;
        if (bbp_compose(size, &buffer) != BBP_OK) return posted;
        fill({static_cast<std::byte*>(buffer), size}, first + posted);
        // Long enough that a link which is busy for the moment is not taken for full.
        const int code = bbp_post_for(dest, buffer, size, 100 * kMillisecond);
        if (code == BBP_OK) continue;
        check_code(code, BBP_ETIMEDOUT, "bbp_post_for");
        return check_ok(bbp_discard(buffer), "discarding what could not be posted"), posted;
    }
    fail("a thousand messages were posted, though nobody read");
}

/// Where a composed buffer always has its flag, no post waits.
bool posts_may_wait(const Variant& ring) {
    return std::string(ring.layout) != "paper";
}

TEST_P(InPlace, composed_messages_and_multicasts_that_find_no_room_stay_the_callers) {
    if (!posts_may_wait(GetParam())) GTEST_SKIP() << "in this layout no post has to wait";
    for (const std::size_t size : {20U, 300U}) {
        run(3, [size](Rank& me) {
            const int dests[] = {1, 2};
            if (me.rank == 0) {
                void* buffer = compose_filled(size, 999);
                const int posted = send_until_full(1, 20, 0);
                for (int i = 0; i < 3; ++i) {
                    check_code(bbp_trypost(1, buffer, size), BBP_EAGAIN);
                    check_code(bbp_trypost_mcast(dests, 2, buffer, size), BBP_EAGAIN);
                    for (const std::int64_t timeout : {kMillisecond, std::int64_t{0}, INT64_MIN}) {
                        check_code(bbp_post_for(1, buffer, size, timeout), BBP_ETIMEDOUT);
                        check_code(bbp_post_mcast_for(dests, 2, buffer, size, timeout),
                                   BBP_ETIMEDOUT);
                    }
                }
                check_bytes(buffer, size, 999);
                me.shared[kCount] = static_cast<std::uint32_t>(posted);
                me.raise(kGo);
                await([&] { return bbp_trypost(1, buffer, size) == BBP_OK; }, "room");
                check_code(bbp_discard(buffer), BBP_EINVAL, "discard what was posted");
                check_ok(bbp_post_for(1, compose_filled(size, 1000), size, kLong));
                check_ok(bbp_post_mcast_for(dests, 2, compose_filled(size, 1001), size, kLong));
            } else {
                me.await_word(kGo);
                const std::uint64_t posted = me.rank == 1 ? me.shared[kCount].load() : 0;
                for (std::uint64_t i = 0; i < posted; ++i) receive(0, 20, i);
                if (me.rank == 1) receive(0, size, 999);
                if (me.rank == 1) receive(0, size, 1000);
                receive(0, size, 1001);
            }
            check_ok(bbp_barrier());
            nothing_waits(BBP_ANY);
        });
    }
}

TEST_P(InPlace, two_ranks_that_both_only_post_are_freed_by_their_deadlines) {
    run(2, [](Rank& me) {
        receive_what_both_posted(me, 100, post_until_full(1 - me.rank, 100, 0), kCount);
    });
}

/// By Endpoint::take. Its source.
int take(std::span<const std::byte>& message, std::array<std::byte, kTakenBytes>& room) {
    const void* data = nullptr;
    std::size_t size = 0;
    const int source =
        billboard::Endpoint::of_bbp_init()->take(room, &data, &size, Deadline::now());
    if (source >= 0) message = {static_cast<const std::byte*>(data), size};
    return source;
}

TEST_P(InPlace, a_receiver_of_all_gets_each_senders_order_short_and_long) {
    run(3, [](Rank& me) {
        const int rounds = thrifty(20);
        if (me.rank != 0) {
            for (int i = 0; i < rounds; ++i) {
                for (const std::size_t size : kSizes)
                    send(0, size, size + 10000 * static_cast<std::uint64_t>(me.rank));
            }
            return;
        }
        std::array<std::byte, kTakenBytes> room{};
        std::size_t next[3] = {};
        for (std::size_t left = 2 * kSizes.size() * static_cast<std::size_t>(rounds); left > 0;
             --left) {
            std::span<const std::byte> message;
            int source = BBP_EAGAIN;
            await(
                [&] {
                    source = take(message, room);
                    return source != BBP_EAGAIN;
                },
                "a message");
            check(source == 1 || source == 2, "a sender");
            const std::size_t size = kSizes[next[source]++ % kSizes.size()];
            check_equal(message.size(), size, "size taken");
            check_bytes(message.data(), size, size + 10000 * static_cast<std::uint64_t>(source));
            // A message in no buffer was copied, and needs no release.
            if (message.data() != room.data())
                check_code(billboard::Endpoint::of_bbp_init()->release(message.data()), BBP_OK);
        }
        std::span<const std::byte> none;
        check_code(take(none, room), BBP_EAGAIN);
    });
}

TEST_P(InPlace, a_receiver_of_one_class_leaves_the_others) {
    run(2, [](Rank& me) {
        auto& endpoint = *billboard::Endpoint::of_bbp_init();
        const std::uint64_t word = 7;
        if (me.rank == 1) {
            await(
                [&] {
                    return endpoint.send(0, &word, sizeof word, billboard::Deadline::now(),
                                         billboard::Class::mpi) == BBP_OK;
                },
                "room");
            send(0, 8, 5);
            return;
        }
        std::array<std::byte, kTakenBytes> room{};
        std::span<const std::byte> message;
        await([&] { return take(message, room) == 1; }, "the user's message");
        check_bytes(message.data(), 8, 5);
        std::uint64_t come = 0;
        std::size_t size = 0;
        check_code(endpoint.recv(1, &come, sizeof come, &size, billboard::Deadline::now(),
                                 billboard::Class::mpi),
                   1);
        check_equal(come, word, "the other class's word");
    });
}

}  // namespace
}  // namespace rmem::test
