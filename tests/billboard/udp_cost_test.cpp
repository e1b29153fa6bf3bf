// SPDX-License-Identifier: Apache-2.0
// ctest: serial

/// What messages cost on link udp, counted: datagrams of a program that answers, and system calls
/// of a program whose messages wait. On a host that keeps a rank waiting some more are sent and
/// made, so the upper bound lies between the two possible counts.
#include "billboard/process/process_endpoint.hpp"
#include "rmem/ring/node_board.hpp"
#include "rmem/ring/ring.hpp"
#include "rmem/ring/udp_counters.hpp"
#include "tests/support/call_watch.hpp"
#include "tests/support/conformance.hpp"

#include <array>

namespace rmem::test {
namespace {

constexpr unsigned kCostRounds = 2'000, kTogether = 16;
using Message = std::array<char, 256>;  // in either layout through a buffer

class UdpCost : public ::testing::TestWithParam<const char*> {
protected:
    static void run(const Body& body) {
        RingSetup setup;
        setup.link = "udp";
        setup.layout = GetParam();
        run_members(setup, body);
    }
};
INSTANTIATE_TEST_SUITE_P(On, UdpCost, ::testing::Values("inline", "paper"),
                         [](const auto& layout) { return std::string(layout.param); });

/// Of the own node, which runs in this process.
std::uint64_t datagrams_sent() {
    const auto process = billboard::ProcessEndpoint::open();
    const auto held = process->hold();
    return process->endpoint().ring()->board().counters.get(udp::UdpCounter::datagrams_sent);
}

TEST_P(UdpCost, the_cost_of_an_answer_is_one_datagram_which_acknowledges_too) {
    run([](Rank& me) {
        const int other = 1 - me.rank;
        Message message{};
        const std::uint64_t before = datagrams_sent();
        for (unsigned round = 0; round < kCostRounds; ++round) {
            if (me.rank == 0) check_ok(bbp_send(other, message.data(), message.size()));
            check_code(bbp_recv(other, message.data(), message.size(), nullptr), other);
            if (me.rank == 1) check_ok(bbp_send(other, message.data(), message.size()));
        }
        const std::uint64_t sent = datagrams_sent() - before;
        check(sent < kCostRounds * 3 / 2,
              fmt::format("{} datagrams in {} rounds", sent, kCostRounds));
    });
}

TEST_P(UdpCost, the_cost_of_messages_that_are_here_is_no_system_call_each) {
    if (!CallWatch::supported()) GTEST_SKIP() << "no seccomp filter on x86-64 can be had here";
    run([](Rank& me) {
        Message message{};
        if (me.rank == 0) {
            for (unsigned i = 0; i < kTogether; ++i)
                check_ok(bbp_send(1, message.data(), message.size()));
            me.raise(0);
            return me.await_word(1);
        }
        me.await_word(0);
        await([&] { return bbp_msgavail(0) == 1; }, "the first message");
        rest(std::chrono::milliseconds(50));
        check(CallWatch::install(), "cannot watch the system calls");
        CallWatch::start();
        for (unsigned i = 0; i < kTogether; ++i) {
            check_code(bbp_tryrecv(0, message.data(), message.size(), nullptr), 0);
        }
        const CallsSeen seen = CallWatch::stop();
        me.raise(1);
        check(seen.calls < kTogether / 2,
              fmt::format("{} system calls, the first is number {}", seen.calls, seen.first));
    });
}

}  // namespace
}  // namespace rmem::test
