// SPDX-License-Identifier: Apache-2.0

/// Memory and messages in one process: Node::open() and bbp_init() give the node and the endpoint
/// of one rank.

#include "billboard/process/process_endpoint.hpp"
#include "rmem/node.hpp"
#include "tests/support/conformance.hpp"

namespace rmem::test {
namespace {

class NodeAndMessages : public Conformance {
    void SetUp() override { RMEM_SKIP_IF_SIMULATED("its nodes have their world"); }
};
RMEM_ON_ALL_RINGS(NodeAndMessages);

constexpr std::size_t kWordOf[] = {0x40, 0x80};

void write(Node& node, std::size_t offset, std::uint32_t value) {
    await([&] { return node.write_word(offset, value) == WriteResult::ok; }, "room");
}

/// A word and a message to and fro: a rank that has the message has the word that was written
/// before it.
void talk(Rank& me, Node& node, std::uint32_t first) {
    const int other = 1 - me.rank;
    for (std::uint32_t round = first; round < first + 20; ++round) {
        if (me.rank == 0) {
            write(node, kWordOf[0], round);
            check_ok(bbp_send(other, &round, sizeof round));
            const auto seen = node.wait_change(kWordOf[1], round - 1, Deadline::in(kLong));
            check_equal(seen, round, "the other's word");
        } else {
            std::uint32_t told = 0;
            check_code(bbp_recv(other, &told, sizeof told, nullptr), other);
            check_equal(told, round, "the message");
            check_equal(node.load(kWordOf[0]), round, "the word written before it");
            write(node, kWordOf[1], round);
        }
    }
}

TEST_P(NodeAndMessages, are_one_rank_when_the_messages_come_first) {
    run(2, [](Rank& me) {
        {
            Node node = Node::open();
            check_equal(node.rank(), static_cast<unsigned>(me.rank), "the rank");
            talk(me, node, 1);
            check_ok(bbp_barrier());
        }
        me.raise(0);
        me.await_word(0, 2);
        const int other = 1 - me.rank;  // without the node the messages go on
        check_ok(bbp_send(other, &other, sizeof other));
        int told = -1;
        check_code(bbp_recv(other, &told, sizeof told, nullptr), other);
    });
}

TEST_P(NodeAndMessages, are_one_rank_when_the_node_comes_first) {
    run_ranks(setup(2), [](Rank& me) {
        Node node = Node::open();
        int own = -1;
        check_ok(bbp_init(&own, nullptr));
        check_equal(static_cast<unsigned>(own), node.rank(), "the rank");
        talk(me, node, 1);
        check_ok(bbp_barrier());
        check_ok(bbp_finalize());
        me.raise(0);
        me.await_word(0, 2);
    });
}

TEST_P(NodeAndMessages, may_begin_again_beside_the_node) {
    run(2, [](Rank& me) {
        Node node = Node::open();
        talk(me, node, 1);
        if (me.rank == 1) {
            check_ok(bbp_finalize());
            check_ok(bbp_init(nullptr, nullptr), "again");
            check_code(bbp_recv(0, nullptr, 0, nullptr), 0,
                       "the other has met the new incarnation");
        } else {
            check_code(bbp_recv(1, nullptr, 0, nullptr), BBP_EPEER, "it has left");
            await([] { return bbp_send(1, nullptr, 0) == BBP_OK; }, "its next incarnation");
        }
        talk(me, node, 21);
        check_ok(bbp_barrier());
    });
}

class Idle final : public billboard::Attendant {
    bool attend() noexcept override { return false; }
};

TEST_P(NodeAndMessages, have_no_progress_thread_where_it_would_write_beside_the_node) {
    const bool one_bank = std::string(GetParam().link) == "direct";
    run(1, [one_bank](Rank&) {
        const auto process = billboard::ProcessEndpoint::open();
        const Node node = Node::open();
        Idle idle;
        try {
            process->attend(idle);
            check(one_bank, "it is not refused");
            process->dismiss(idle);
        } catch (const Error& e) {
            check(!one_bank && e.code() == Errc::invalid_argument, e.what());
        }
    });
}

TEST_P(NodeAndMessages, are_each_opened_once) {
    run(1, [](Rank&) {
        const Node node = Node::open();
        try {
            const Node second = Node::open();
            check(false, "there are two");
        } catch (const Error& e) {
            check(e.code() == Errc::rank_taken, e.what());
            check(e.sentence().find("this process has rank 0") != std::string::npos, e.what());
        }
    });
}

}  // namespace
}  // namespace rmem::test
