// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// Programs that poll, with more ranks than processors: an empty look lets the rank run that is
/// polled for. Without that a rank looks for the whole of its time slice, tens of thousands of
/// times.

#include "rmem/node.hpp"
#include "tests/support/conformance.hpp"

#include <sched.h>

#include <cstring>
#include <functional>

namespace rmem::test {
namespace {

class Crowd : public Conformance {
    void SetUp() override { RMEM_SKIP_IF_SIMULATED("nobody shares a processor"); }
};
RMEM_ON_ALL_RINGS(Crowd);

constexpr int kCrowdRounds = 20;
/// Empty looks in a round trip, with all that runs besides on a busy host.
constexpr std::uint64_t kMaxLooks = 1000;

/// All ranks on one processor, before they join.
void share_a_processor() {
    cpu_set_t allowed, one;
    check_equal(::sched_getaffinity(0, sizeof allowed, &allowed), 0, "sched_getaffinity");
    CPU_ZERO(&one);
    for (std::size_t p = 0; p < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++p) {
        if (CPU_ISSET(p, &allowed)) CPU_SET(p, &one);
    }
    check_equal(::sched_setaffinity(0, sizeof one, &one), 0, "sched_setaffinity");
}

/// Starts two ranks there; a body returns how many times it has looked without success in this
/// many steps.
void crowd(const RingSetup& setup, int steps, const std::function<std::uint64_t(int me)>& body) {
    run_ranks(setup, [&](Rank&) {
        share_a_processor();
        int me = -1;
        check_ok(bbp_init(&me, nullptr));
        check_ok(bbp_barrier());
        const std::uint64_t looks = body(me);
        check(looks < kMaxLooks * static_cast<std::uint64_t>(steps),
              "it looked " + std::to_string(looks) + " times without success");
        check_ok(bbp_barrier());
        check_ok(bbp_finalize());
    });
}

/// Each plays ping-pong by `look`, which is called until it says that something was there.
void play(const RingSetup& setup, const std::function<bool(int other, int round)>& look) {
    crowd(setup, kCrowdRounds, [&](int me) {
        const int other = 1 - me;
        std::uint64_t looks = 0;
        for (int round = 0; round < kCrowdRounds; ++round) {
            if (me == 0) check_ok(bbp_send(other, &round, sizeof round));
            while (!look(other, round)) ++looks;
            if (me == 1) check_ok(bbp_send(other, &round, sizeof round));
        }
        return looks;
    });
}

bool received(int result, int other) {
    if (result == BBP_EAGAIN || result == BBP_ETIMEDOUT) return false;
    check_code(result, other);
    return true;
}
bool receive_at_once(int other) {
    int told = -1;
    return received(bbp_tryrecv(other, &told, sizeof told, nullptr), other);
}

TEST_P(Crowd, a_crowd_of_tries_to_receive_moves) {
    play(setup(2), [](int other, int round) {
        int told = -1;
        return received(bbp_tryrecv(round % 2 == 0 ? other : BBP_ANY, &told, sizeof told, nullptr),
                        other);
    });
}

TEST_P(Crowd, a_crowd_of_questions_whether_a_message_waits_moves) {
    play(setup(2), [](int other, int round) {
        const int source = round % 2 == 0 ? other : BBP_ANY;
        const bool waits =
            round % 4 < 2 ? bbp_msgavail(source) == 1 : bbp_probe(source, nullptr) == other;
        if (waits) check(receive_at_once(other), "what waits can be received at once");
        return waits;
    });
}

TEST_P(Crowd, a_crowd_of_tries_to_view_and_of_the_shortest_deadlines_moves) {
    play(setup(2), [](int other, int round) {
        int told = -1;
        if (round % 3 != 0) {
            return received(
                bbp_recv_for(other, &told, sizeof told, nullptr, round % 3 == 1 ? 0 : 1), other);
        }
        const void* data = nullptr;
        std::size_t size = 0;
        if (!received(bbp_tryview(other, &data, &size), other)) return false;
        check_ok(bbp_release(data));
        return true;
    });
}

TEST_P(Crowd, a_crowd_of_senders_to_full_receivers_moves) {
    constexpr int kMessages = 400;
    crowd(setup(2), kMessages, [](int me) {
        std::vector<std::byte> bytes(kPartition / 4);
        std::uint64_t looks = 0;
        for (int i = 0; i < kMessages; ++i) {
            if (me == 1) {
                check_code(bbp_recv(0, bytes.data(), bytes.size(), nullptr), 0);
            } else if (i % 2 == 0) {
                while (bbp_trysend(1, bytes.data(), bytes.size()) == BBP_EAGAIN) ++looks;
            } else {
                void* place = nullptr;
                while (bbp_compose(bytes.size(), &place) == BBP_EAGAIN) ++looks;
                while (bbp_trypost(1, place, bytes.size()) == BBP_EAGAIN) ++looks;
            }
        }
        return looks;
    });
}

TEST_P(Crowd, a_crowd_of_programs_that_look_at_the_memory_moves) {
    crowd(setup(2), kCrowdRounds, [](int me) {
        Node node = Node::open();
        check_ok(bbp_barrier());
        const std::size_t mine = 64 * node.rank(), other = 64 - mine;
        const auto* raw = reinterpret_cast<const std::atomic<std::uint32_t>*>(node.bank() + other);
        std::uint64_t looks = 0;
        for (std::uint32_t round = 1; round <= kCrowdRounds; ++round) {
            if (me == 0) check(node.write_word(mine, round) == WriteResult::ok, "room");
            for (std::uint32_t seen = 0; seen != round; ++looks) {
                switch (round % 4) {
                    case 0: seen = node.load(other); break;
                    case 1: node.read(other, &seen, sizeof seen); break;
                    case 2: seen = node.wait_change(other, round - 1, Deadline::now()); break;
                    default:
                        node.poll();
                        seen = raw->load();
                        break;
                }
            }
            if (me == 1) check(node.write_word(mine, round) == WriteResult::ok, "room");
        }
        check_ok(bbp_barrier());  // before a node is gone
        return looks;
    });
}

}  // namespace
}  // namespace rmem::test
