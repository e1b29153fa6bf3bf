// SPDX-License-Identifier: Apache-2.0
// ctest: check
// The Go-Back-N layer on every ring: endpoints that are not there yet, or not any more. Pools that
// overflow are in semantics_dp_test.cpp.
#include "tests/ports/dp/points.hpp"

namespace rmem::test {
namespace {

class Reliable : public Conformance {};
RMEM_ON_ALL_RINGS(Reliable);

/// Takes in, by an endpoint that no message is for, until the writer says so.
void take_in_until(const Point& point, const std::function<bool()>& holds, const char* what) {
    point.make_nonblocking();
    char* at = nullptr;
    await([&] { return dp_read(point.fd(), &at) == 0 && holds(); }, what);
}

TEST_P(Reliable, what_was_written_before_its_endpoint_was_there_arrives) {
    run(2, [](Rank& me) {
        Point keeps(2);
        if (me.rank == 0) {
            Point point(1);
            point.make_reliable();
            point.to(1, 1);
            for (std::uint64_t i = 0; i < 3; ++i) point.write(8, i);
            me.raise(0);
            point.drain();
            return me.raise(1);
        }
        me.await_word(0);
        take_in_until(
            keeps, [] { return stat_of_process().dropped_unknown > 0; },
            "a message that is dropped");
        Point point(1);
        for (std::uint64_t i = 0; i < 3; ++i) point.read(8, i);
        take_in_until(
            keeps, [&] { return me.shared[1] != 0; }, "the writer to be done");
    });
}

TEST_P(Reliable, a_dead_target_is_told_though_others_live) {
    enum { has_come, is_dead, told, never };
    run({[](Rank& me) {
             Point point(1);
             point.make_reliable();
             point.to(1, 1).write(8, 1);
             point.drain();
             me.raise(has_come);
             me.await_word(is_dead);
             auto bytes = pattern(8, 2);
             await([&] { return dp_write(point.fd(), bytes.data(), 8) < 0; },
                   "the death to be told");
             check_equal(errno, EHOSTDOWN, "errno of dp_write");
             CHECK_ERRNO(dp_drain(point.fd(), kLong), EHOSTDOWN);
             me.raise(told);
         },
         [](Rank& me) {
             Point point(1);
             point.read(8, 1);
             char* at = nullptr;
             await([&] { return dp_try_read(point.fd(), &at), me.shared[never] != 0; },
                   "its end, while it answers");
         },
         [](Rank& me) {
             Point point(1);
             me.await_word(told);
         }},
        {.rank = 1});
}

TEST_P(Reliable, the_layer_is_taken_off_once_all_is_acknowledged) {
    run(2, [](Rank& me) {
        Point point(1), other(2);
        if (me.rank == 0) {
            point.make_reliable();
            point.to(1, 1).write(8, 1);
            if (dp_reliable(point.fd(), 0) < 0) check_equal(errno, EBUSY, "errno");
            point.drain();
            check_equal(dp_reliable(point.fd(), 0), 0, "dp_reliable");
            point.write(8, 2);
            return;
        }
        point.read(8, 1);
        point.read(8, 2);
    });
}

}  // namespace
}  // namespace rmem::test
