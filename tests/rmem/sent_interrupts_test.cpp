// SPDX-License-Identifier: Apache-2.0
// ctest: check tsan

/// Interrupts that nodes send each other (Node::send_interrupt), on every link: to whom they go,
/// with what, and after what.

#include "rmem/node.hpp"
#include "tests/support/link_nodes.hpp"

#include <optional>

namespace rmem::test {
namespace {

using Kind = Interrupt::Kind;

class SentInterrupts : public LinkConformance {
protected:
    static constexpr std::uint64_t kAll = (std::uint64_t{1} << kInterruptNumbers) - 1;
    static constexpr unsigned kLast = kInterruptNumbers - 1;

    static void send(Self& self, unsigned to, unsigned number, std::uint32_t value) {
        self.await([&] { return self.node.send_interrupt(to, number, value) == WriteResult::ok; });
    }
    static std::optional<Interrupt> next(Self& self) {
        return self.node.next_interrupt(Deadline::in(kPatienceNs));
    }
    static void expect(Self& self, Kind kind, unsigned number, std::uint32_t value,
                       unsigned origin) {
        const auto interrupt = next(self);
        ASSERT_TRUE(interrupt) << "number " << number << " of node " << origin;
        EXPECT_EQ(interrupt->kind, kind);
        EXPECT_EQ(interrupt->offset, number);
        EXPECT_EQ(interrupt->value, value);
        EXPECT_EQ(interrupt->origin, origin);
        EXPECT_EQ(interrupt->missed, 0U);
    }
    /// Two nodes, the second of which accepts all.
    void run_accepting(const Body& body) {
        run(2, [&](Self& self) {
            if (self.id == 1) self.node.accept_interrupts(kAll);
            self.meet(0);
            body(self);
        });
    }
    static void expect_none(Self& self) { EXPECT_FALSE(self.node.next_interrupt(Deadline::now())); }
};
INSTANTIATE_TEST_SUITE_P(EachLink, SentInterrupts,
                         conformance_on({{LinkKind::direct, {"none"}},
                                         {LinkKind::ring, {"none", "scramnet-burst"}},
                                         {LinkKind::fabric, {"none"}},
                                         {LinkKind::udp, {"none"}},
                                         {LinkKind::sim, {"scramnet-burst"}}}),
                         conformance_case_name);

TEST_P(SentInterrupts, come_to_one_node_or_to_all_others) {
    run(3, [](Self& self) {
        self.node.accept_interrupts(kAll);
        self.meet(0);
        if (self.id == 0) {
            send(self, 1, 3, 0x11);
            send(self, 2, 0, 0x22);
            send(self, kAllNodes, kLast, 0x33);
            send(self, 0, 5, 0x44);  // oneself
            EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
        } else {
            self.id == 1 ? expect(self, Kind::sent, 3, 0x11, 0)
                         : expect(self, Kind::sent, 0, 0x22, 0);
            expect(self, Kind::sent_to_all, kLast, 0x33, 0);
        }
        self.meet(1);
        expect_none(self);
    });
}

TEST_P(SentInterrupts, raise_nothing_where_their_number_is_not_accepted) {
    run(2, [](Self& self) {
        if (self.id == 1) {
            self.node.accept_interrupts(kAll);
            self.node.accept_interrupts(std::uint64_t{1} << 7);
        }
        self.meet(0);
        if (self.id == 0) {
            send(self, 1, 6, 1);
            send(self, 1, 7, 2);
            send(self, kAllNodes, 8, 3);
            EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
        } else {
            expect(self, Kind::sent, 7, 2, 0);
        }
        self.meet(1);
        expect_none(self);
        if (self.id == 1) self.node.accept_interrupts(0);
        self.meet(2);
        if (self.id == 0) {
            send(self, 1, 7, 4);
            EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
        }
        self.meet(3);
        expect_none(self);
    });
}

TEST_P(SentInterrupts, keep_their_values_and_their_order) {
    run_accepting([](Self& self) {
        constexpr std::uint32_t kCount = 300;
        for (std::uint32_t i = 0; i < kCount; ++i) {
            if (self.id == 0) {
                send(self, i % 3 == 0 ? kAllNodes : 1, 2, i);
            } else {
                expect(self, i % 3 == 0 ? Kind::sent_to_all : Kind::sent, 2, i, 0);
            }
        }
        self.meet(1);
        expect_none(self);
    });
}

TEST_P(SentInterrupts, come_after_what_was_written_before) {
    run_accepting([](Self& self) {
        for (std::uint32_t i = 1; i <= 100; ++i) {
            if (self.id == 0) {
                self.write_word(4096, i);
                send(self, 1, 1, i);
                self.await([&] { return self.node.load(0) == i; });
            } else {
                const auto interrupt = next(self);
                ASSERT_TRUE(interrupt);
                EXPECT_GE(self.node.load(4096), interrupt->value);
                self.write_word(0, i);
            }
        }
    });
}

TEST_P(SentInterrupts, come_in_the_order_of_the_writes_among_those_of_watched_words) {
    run(2, [](Self& self) {
        if (self.id == 1) {
            self.node.accept_interrupts(kAll);
            self.node.watch(64, 4);
        }
        self.meet(0);
        if (self.id == 0) {
            send(self, 1, 1, 10);
            self.write_word(64, 11);
            send(self, kAllNodes, 1, 12);
            EXPECT_TRUE(self.node.flush(Deadline::in(kPatienceNs)));
        } else {
            expect(self, Kind::sent, 1, 10, 0);
            expect(self, Kind::written, 64, 11, 0);
            expect(self, Kind::sent_to_all, 1, 12, 0);
        }
        self.meet(1);
    });
}

TEST_P(SentInterrupts, are_refused_to_nobody_or_of_no_number) {
    run(2, [](Self& self) {
        EXPECT_THROW(static_cast<void>(self.node.send_interrupt(2, 0, 0)), Error);
        EXPECT_THROW(static_cast<void>(self.node.send_interrupt(0, kInterruptNumbers, 0)), Error);
        EXPECT_THROW(self.node.accept_interrupts(kAll + 1), Error);
        self.meet(0);
        expect_none(self);
    });
}

}  // namespace
}  // namespace rmem::test
