// SPDX-License-Identifier: Apache-2.0
// ctest: check

/// MU-Net between nodes, on every ring: each rank is a node's daemon and its programs at once, so
/// that all of it runs where processes are simulated too. What processes add is in daemon_test.cpp,
/// what loss of datagrams does in semantics_munet_test.cpp.

#include "ports/munet/network.hpp"
#include "tests/support/conformance.hpp"
#include "tests/support/munet_ring_node.hpp"

#include <cstring>
#include <functional>
#include <memory>
#include <vector>

namespace rmem::test {
namespace {

using namespace ports::munet;
using ports::munet::Counter;

Deadline soon() {
    return Deadline::in(kLong);
}
int send_number(MunetEndpoint& from, Address to, std::uint32_t number) {
    return from.program().send(to, &number, sizeof number, soon());
}
std::vector<std::byte> receive(MunetEndpoint& at, Address* from = nullptr) {
    std::vector<std::byte> bytes(100'000);
    check_equal(at.program().wait(soon()), 0, "a message in time");
    const int size = at.program().recv(bytes.data(), bytes.size(), from);
    check(size >= 0, "a message");
    bytes.resize(static_cast<std::size_t>(size));
    return bytes;
}
std::uint32_t receive_number(MunetEndpoint& at, Address* from = nullptr) {
    const auto bytes = receive(at, from);
    std::uint32_t number = 0;
    check_equal(bytes.size(), sizeof number, "a number's size");
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
}
/// Turns go on until all ranks have come here.
void finish(Rank& me, RingNode& node) {
    me.raise(1000);
    node.step_until([&] { return me.shared[1000] >= static_cast<unsigned>(me.ranks); },
                    "the others to finish");
}

/// Each rank is a node, whose turns go on until all have come to their ends.
class MunetNodes : public Conformance {
protected:
    static void run_nodes(unsigned ranks, unsigned senders,
                          const std::function<void(Rank&, RingNode&)>& body) {
        run(ranks, [&](Rank& me) {
            RingNode node(me, senders);
            body(me, node);
            finish(me, node);
        });
    }
};
RMEM_ON_ALL_RINGS(MunetNodes);

TEST_P(MunetNodes, exchange_messages_of_all_sizes_by_both_sends) {
    run_nodes(2, 4, [](Rank& me, RingNode& node) {
        auto& mine = node.create();
        const Address other{static_cast<std::uint16_t>(1 - me.rank), 0};
        if (me.rank == 0) me.await_word(0);  // the other has its endpoint
        me.raise(me.rank == 1 ? 0 : 1);
        if (me.rank == 1) node.step_until([&] { return me.shared[1] == 1; }, "rank 0");
        unsigned seed = 0;
        for (const bool dma : {false, true}) {
            for (const std::size_t size : {0UL, 8UL, 44UL, 45UL, 128UL, 129UL, 1000UL, 9000UL}) {
                const auto bytes = pattern(size, ++seed);
                const auto send = [&] {
                    auto& p = mine.program();
                    check_equal(dma ? p.send_dma(other, bytes.data(), size, soon())
                                    : p.send(other, bytes.data(), size, soon()),
                                0, "sent");
                };
                if (me.rank == 0) send();
                Address from;
                check(receive(mine, &from) == bytes, "the bytes");
                check(from == other, "the sender");
                if (me.rank == 1) send();
            }
        }
        finish(me, node);
        check_equal(mine.count(Counter::no_room), 0U, "no message dropped");
    });
}

TEST_P(MunetNodes, lose_nothing_when_the_receiver_is_slow_and_keep_the_order) {
    run_nodes(3, 4, [](Rank& me, RingNode& node) {
        auto& mine = node.create(8192, 8192);
        const auto messages = static_cast<std::uint32_t>(thrifty(1500));
        if (me.rank != 0) {
            me.await_word(0);
            for (std::uint32_t i = 0; i < messages; ++i) {
                if (i % 5 != 0) {
                    check_equal(send_number(mine, {0, 0}, i), 0, "sent");
                    continue;
                }
                std::vector<std::byte> bytes(200 + i % 700);
                std::memcpy(bytes.data(), &i, sizeof i);
                check_equal(mine.program().send_dma({0, 0}, bytes.data(), bytes.size(), soon()), 0,
                            "sent");
            }
            return;
        }
        me.raise(0);
        std::array<std::uint32_t, 3> next{};
        for (std::uint32_t i = 0; i < 2 * messages; ++i) {
            for (unsigned slow = 0; slow < i % 4; ++slow) node.step();
            Address from;
            const auto bytes = receive(mine, &from);
            std::uint32_t number = 0;
            std::memcpy(&number, bytes.data(), sizeof number);
            check_equal(number, next[from.node]++, "the order");
        }
        check_equal(mine.count(Counter::no_room), 0U, "dropped");
    });
}

TEST_P(MunetNodes, refuse_what_is_not_there_or_full_at_the_other) {
    run_nodes(2, 1, [](Rank& me, RingNode& node) {
        auto &a = node.create(), &b = node.create();
        if (me.rank == 1) {
            return me.raise(0);
        }
        me.await_word(0);
        check_equal(send_number(a, {1, 77}, 1), -ECONNREFUSED, "no endpoint");
        check_equal(send_number(a, {2, 0}, 1), -ENETUNREACH, "no node");
        check_equal(send_number(a, {1, 0}, 1), 0, "admitted");
        check_equal(send_number(b, {1, 0}, 1), -EUSERS, "one place");
        check_equal(send_number(b, {1, 1}, 1), 0, "another endpoint");
    });
}

TEST_P(MunetNodes, tell_senders_elsewhere_that_an_endpoint_is_gone) {
    run_nodes(2, 4, [](Rank& me, RingNode& node) {
        auto& a = node.create();
        if (me.rank == 1) {
            me.raise(0);
            check_equal(receive_number(a), 1U, "the message");
            node.relay.close(0);
            node.endpoints.clear();
            node.create();
            return;
        }
        me.await_word(0);
        check_equal(send_number(a, {1, 0}, 1), 0, "sent");
        int result = 0;
        node.step_until([&] { return (result = send_number(a, {1, 0}, 2)) != 0; }, "the news");
        check_equal(result, -ECONNRESET, "told once");
        check_equal(send_number(a, {1, 0}, 3), 0, "its successor");
    });
}

TEST_P(MunetNodes, give_the_place_of_a_sender_elsewhere_that_ended_to_the_next) {
    run_nodes(2, 1, [](Rank& me, RingNode& node) {
        if (me.rank == 1) {
            auto& mine = node.create();
            me.raise(0);
            for (std::uint32_t i = 0; i < 5; ++i) check_equal(receive_number(mine), i, "in order");
            return;
        }
        me.await_word(0);
        for (std::uint32_t i = 0; i < 5; ++i) {
            auto& mine = node.create();
            int result = -EUSERS;  // until the former one's message is received
            node.step_until(
                [&] {
                    return (result = send_number(mine, {1, 0}, i)) != -EUSERS;
                },
                "a place");
            check_equal(result, 0, "sent");
            node.relay.close(mine.number());
            node.endpoints.clear();
        }
    });
}

TEST_P(MunetNodes, go_on_with_others_while_one_stands_still) {
    if (std::string_view(GetParam().layout) == "paper") {
        GTEST_SKIP() << "what is posted to one rank takes the buffers for all in layout paper";
    }
    run_nodes(3, 4, [](Rank& me, RingNode& node) {
        auto& mine = node.create(0, 1 << 20);
        if (me.rank == 1) {  // its relay turns no more, once it has admitted rank 0
            me.raise(0);
            node.step_until([&] { return mine.count(Counter::received) > 0; }, "a message");
            me.raise(1);
            return me.await_word(2);
        }
        me.await_word(0);
        if (me.rank == 2) {
            me.raise(0);
            for (unsigned i = 0; i < 50; ++i) check_equal(receive_number(mine), i, "in order");
            return me.raise(2);
        }
        check_equal(send_number(mine, {1, 0}, 0), 0, "sent");
        node.step_until([&] { return me.shared[1] == 1; }, "rank 1 to stand still");
        me.await_word(0, 2);
        const std::vector<std::byte> large(128);
        for (unsigned i = 0; i < 50; ++i) {
            for (unsigned n = 0; n < 20; ++n) {
                check_equal(mine.program().send({1, 0}, large.data(), large.size(), soon()), 0,
                            "to who stands still");
            }
            check_equal(send_number(mine, {2, 0}, i), 0, "to another");
            node.step();
        }
        check(node.relay.backlog() > 0, "frames wait for rank 1");
    });
}

TEST_P(MunetNodes, tell_the_senders_of_a_node_that_died_and_go_on_among_themselves) {
    RMEM_SKIP_IF_SIMULATED("nobody is killed there");
    RankProcesses ring(setup(3));
    ring.start_all([](Rank& me) {
        RingNode node(me);
        auto& mine = node.create();
        me.raise(0);
        node.step_until([&] { return me.shared[0] == 3; }, "all endpoints");
        if (me.rank == 1) {
            node.step_until([&] { return mine.count(Counter::received) > 0; }, "a message");
            me.raise(1);
            while (true) node.step();
        }
        if (me.rank == 0) {
            check_equal(send_number(mine, {1, 0}, 0), 0, "sent");
            int result = 0;
            node.step_until(
                [&] {
                    return (result = send_number(mine, {1, 0}, 1)) != 0;
                },
                "news of the death");
            check_equal(result, -ECONNRESET, "the dead node");
            for (unsigned i = 0; i < 20; ++i) {
                check_equal(send_number(mine, {2, 0}, i), 0, "to the living");
                check_equal(receive_number(mine), i, "and back");
            }
            me.raise(2);
            return;
        }
        for (unsigned i = 0; i < 20; ++i) {
            Address from;
            check_equal(receive_number(mine, &from), i, "from the living");
            check_equal(send_number(mine, from, i), 0, "back");
        }
        node.step_until([&] { return me.shared[2] == 1; }, "rank 0");
    });
    ring.await_word(1, 1);
    ring.kill(1);
    ring.finish();
}

}  // namespace
}  // namespace rmem::test
