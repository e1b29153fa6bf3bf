// SPDX-License-Identifier: Apache-2.0

/// One client of `rmem serve`, as bytes: its calls are made in its order, its news say what the
/// node has, and no bytes harm.

#include "remote/session.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/base/wait_for_room.hpp"
#include "rmem/ring/config.hpp"
#include "tests/support/broken.hpp"
#include "tests/support/c_nodes.hpp"
#include "tests/support/child.hpp"

#include <gmock/gmock.h>

#include <cstring>
#include <random>
#include <thread>

namespace remote {
namespace {

using rmem::LinkKind;
using rmem::test::OpenNode;
using rmem::test::Options;
using ::testing::HasSubstr;

constexpr std::size_t kSessionBytes = rmem::test::kBytes;  // four pages
constexpr std::uint64_t kAllNumbers = (std::uint64_t{1} << RMEM_INTERRUPT_NUMBERS) - 1;

/// The nodes of a ring, opened here.
struct TwoNodes {
    explicit TwoNodes(LinkKind link = LinkKind::direct, const std::string& faults = "",
                      const std::string& timing = "gt200")
        : served(Options(name.get(), link, 0, faults, timing)),
          other(Options(name.get(), link, 1, faults, timing)) {
        for (rmem_node* node : {+served, +other})
            EXPECT_EQ(rmem_accept_interrupts(node, kAllNumbers), RMEM_OK);
    }
    const rmem::test::RingName name;
    const OpenNode served, other;
};

/// The client: what it asks, and what comes.
class Client {
public:
    explicit Client(const TwoNodes& nodes, Twins* of_all = nullptr)
        : own(nodes.served), session(nodes.served, 7, of_all != nullptr ? *of_all : own) {}

    template <class... Fields>
    void ask(Kind kind, const Fields&... fields) {
        std::vector<std::byte> bytes;
        {
            FrameWriter frame(bytes, kind);
            (frame.put(fields), ...);
        }
        session.receive(bytes);
    }
    /// What is there is known.
    void map(std::uint64_t bytes) {
        ask(Kind::map, std::uint64_t{0}, bytes);
        run();
        look();
    }
    /// With answers as they come, until none is left; each as a line.
    std::string run() {
        do {
            session.run(++now_ns);
            std::this_thread::yield();
        } while (session.is_waiting());
        return lines(session.answers(), answers_);
    }
    std::string look(std::size_t most = SIZE_MAX) {
        session.look(most);
        return lines(session.news(), news_);
    }

    Twins own;
    Session session;
    std::int64_t now_ns = 0;

private:
    static std::string lines(rmem::ByteQueue& box, FrameQueue& frames) {
        frames.add(box.left());
        box.sent(box.left().size());
        std::string text;
        for (; const auto frame = frames.front(); frames.pop()) text += line(*frame);
        EXPECT_EQ(frames.rest().size(), 0U);
        return text;
    }
    static std::string line(const Frame& frame) {
        FieldReader fields(frame.body);
        const auto number = [&] { return std::to_string(fields.take<std::uint64_t>()); };
        const auto word = [&] { return std::to_string(fields.take<std::uint32_t>()); };
        const auto words = [&] {
            std::string text;
            for (std::size_t left = fields.left(); left > 0; left -= kWordBytes)
                text += ' ' + word();
            return text;
        };
        switch (kind_of(frame)) {
            case Kind::welcome: return "welcome " + std::to_string(read_welcome(frame)->session);
            case Kind::done: return "done\n";
            case Kind::data: return "data" + words() + "\n";
            case Kind::number: return "number " + number() + "\n";
            case Kind::failed: {
                word();
                const auto rest = fields.rest();
                return "failed " +
                       std::string(reinterpret_cast<const char*>(rest.data()), rest.size()) + "\n";
            }
            case Kind::change: {
                const std::string known = number(), at = number();
                return "change after " + known + " at " + at + ":" + words() + "\n";
            }
            case Kind::shown: return "shown " + number() + "\n";
            case Kind::interrupt: {
                const std::string sent = number(), value = word(), origin = word();
                return "interrupt " + sent + " " + value + " from " + origin + ", missed " +
                       number() + "\n";
            }
            default: return "?\n";
        }
    }

    FrameQueue answers_{kMaxBodyBytes}, news_{kMaxBodyBytes};
};

std::uint64_t at(std::uint64_t offset) {
    return offset;
}

struct OneSession : ::testing::Test {
    const TwoNodes nodes;
    Client client{nodes};
};

/// The node gets what has come for it.
void take_interrupts(const TwoNodes& nodes, Session& session, unsigned count) {
    for (rmem_interrupt interrupt; count > 0; --count) {
        ASSERT_EQ(rmem_next_interrupt(nodes.served, &interrupt, 30'000'000'000), RMEM_OK);
        session.on_interrupt(interrupt);
    }
}

TEST_F(OneSession, makes_calls_in_their_order_in_whatever_pieces_they_come) {
    EXPECT_EQ(client.run(), "welcome 7");
    std::vector<std::byte> bytes;
    FrameWriter(bytes, Kind::write).put(at(8)).put(5U);
    FrameWriter(bytes, Kind::write).put(at(12)).put(6U).put(7U);
    FrameWriter(bytes, Kind::read).put(at(4)).put(16U);
    FrameWriter(bytes, Kind::read).put(at(12)).put(4U);
    FrameWriter(bytes, Kind::is_alive).put(1U);
    FrameWriter(bytes, Kind::is_member);
    FrameWriter(bytes, Kind::flush).put(std::uint64_t{0});
    std::string answers;
    for (const std::byte each : bytes) {
        client.session.receive({&each, 1});
        answers += client.run();
    }
    EXPECT_EQ(answers, "data 0 5 6 7\ndata 6\nnumber 1\nnumber 1\nnumber 0\n");
    EXPECT_EQ(rmem_load(nodes.other, 16), 7U);
}

TEST_F(OneSession, tells_a_call_that_failed_without_an_answer_instead_of_the_next_answer) {
    client.run();
    client.ask(Kind::write, at(kSessionBytes), 1U);
    client.ask(Kind::write, at(0), 2U);
    client.ask(Kind::send, 1U, std::uint32_t{RMEM_INTERRUPT_NUMBERS}, 0U);
    client.ask(Kind::read, at(0), 4U);
    client.ask(Kind::read, at(0), 4U);
    client.ask(Kind::read, at(kSessionBytes - 2), 4U);
    client.ask(Kind::counter, std::string("no_such_counter"));
    const std::string answers = client.run();
    EXPECT_THAT(answers, HasSubstr("failed an earlier write was not made: "));
    EXPECT_THAT(answers, HasSubstr("\ndata 2\nfailed "));
    EXPECT_THAT(answers, HasSubstr("no_such_counter"));
    EXPECT_EQ(std::count(answers.begin(), answers.end(), '\n'), 4);
    EXPECT_FALSE(client.session.is_broken());
}

TEST(Session, keeps_the_order_of_writes_that_the_ring_has_no_room_for_at_once) {
    constexpr std::uint32_t kWrites = 3000;
    const TwoNodes nodes(LinkKind::ring, "", "scramnet-burst");
    Client client(nodes);
    client.run();
    for (std::uint32_t i = 1; i <= kWrites; ++i) client.ask(Kind::write, at(i % 2 * 4), i);
    client.ask(Kind::flush, std::uint64_t{1} << 40);
    client.ask(Kind::read, at(0), 8U);
    EXPECT_EQ(client.run(), "number 0\ndata 3000 2999\n");
    EXPECT_EQ(rmem_load(nodes.other, 0), kWrites);
}

/// What node 0 writes is on its way for 4 s, and its queue has no room until then. A host that was
/// away for longer shows nothing.
TEST(Session, gives_a_write_without_room_and_a_flush_up_and_waits_no_more_for_what_follows) {
    const TwoNodes nodes(LinkKind::ring, "delay:node=0,by=4s");
    const std::int64_t begin_ns = rmem::now_ns();
    const auto expect = [begin_ns](bool holds, const std::string& what) {
        EXPECT_TRUE(holds || rmem::now_ns() - begin_ns >= 4'000'000'000) << what;
    };
    Client client(nodes);
    Session& session = client.session;
    const std::vector<std::byte> most(kSessionBytes);
    const auto write = [&] {
        client.ask(Kind::write, at(0), std::span<const std::byte>(most));
        session.run(1);
    };
    while (!session.is_waiting()) write();
    write();
    session.run(rmem::kLongestWaitForRoomNs);
    expect(session.is_waiting(), "has not waited for as long as it may");
    session.run(rmem::kLongestWaitForRoomNs + 1);
    expect(!session.is_waiting() && !session.has_calls(), "waits for what follows as well");
    client.ask(Kind::is_member);
    std::string answer = client.run();
    expect(answer.find("an earlier write found no room on the ring for 2 s") != answer.npos,
           answer);
    client.ask(Kind::flush, std::uint64_t{1} << 40);
    session.run(10);
    expect(session.is_waiting(), "does not wait for a flush");
    session.run(10 + Session::kLongestFlushNs);
    expect(!session.is_waiting(), "waits for a flush for longer than it may");
    answer = client.run();
    expect(answer.find("not every live node") != answer.npos, answer);
}

TEST_F(OneSession, looks_at_no_more_calls_while_answers_are_left_lying) {
    constexpr unsigned kReads = 3 * Session::kMaxWaitingBytes / kSessionBytes;
    for (unsigned i = 0; i < kReads; ++i) {
        client.ask(Kind::read, at(0), std::uint32_t{kSessionBytes});
        client.session.run(0);
        if (!client.session.wants_input()) break;
    }
    EXPECT_FALSE(client.session.wants_input());
    EXPECT_LE(client.session.answers().left().size(),
              Session::kMaxWaitingBytes + kSessionBytes + FrameWriter::kHeaderBytes);
    client.session.answers().sent(client.session.answers().left().size());
    EXPECT_TRUE(client.session.wants_input());
}

TEST_F(OneSession, shows_what_is_mapped_and_then_what_others_change_there) {
    client.run();
    rmem_write_word(nodes.other, 8, 1);
    rmem_write_word(nodes.other, 12, 2);
    rmem_write_word(nodes.other, kPageBytes, 3);
    EXPECT_EQ(client.look(), "");
    client.ask(Kind::map, at(0), std::uint64_t{kPageBytes});
    EXPECT_EQ(client.run(), "done\n");
    EXPECT_EQ(client.look(), "change after 0 at 8: 1 2\nshown 1\n");
    EXPECT_EQ(client.look(), "");
    rmem_write_word(nodes.other, 12, 0);
    rmem_write_word(nodes.other, kPageBytes - 4, 9);
    EXPECT_EQ(client.look(), "change after 0 at 12: 0\nchange after 0 at 4092: 9\n");
    client.ask(Kind::map, at(0), std::uint64_t{2 * kPageBytes});
    EXPECT_EQ(client.run(), "done\n");
    EXPECT_EQ(client.look(), "change after 0 at 4096: 3\nshown 2\n");
}

TEST_F(OneSession, tells_no_client_what_it_wrote_itself_but_what_replaced_it) {
    client.map(kPageBytes);
    client.ask(Kind::write, at(8), 1U);
    client.run();
    EXPECT_EQ(client.look(), "");
    client.ask(Kind::write, at(8), 2U);
    client.run();
    rmem_write_word(nodes.other, 8, 1);  // as it was at the last look
    EXPECT_EQ(client.look(), "change after 2 at 8: 1\n");
    client.ask(Kind::write, at(kSessionBytes), 5U);  // fails, and is counted
    client.run();
    rmem_write_word(nodes.other, 8, 3);
    EXPECT_EQ(client.look(), "change after 3 at 8: 3\n");
}

TEST_F(OneSession, has_one_twin_of_a_page_with_others_and_tells_what_each_of_them_lacks) {
    Twins twins(nodes.served);
    Client first(nodes, &twins);
    first.ask(Kind::map, at(0), std::uint64_t{kPageBytes});
    rmem_write_word(nodes.other, 8, 1);
    first.run();
    EXPECT_EQ(first.look(), "change after 0 at 8: 1\nshown 1\n");
    {
        Client second(nodes, &twins);
        second.ask(Kind::map, at(0), std::uint64_t{kPageBytes});
        second.run();
        EXPECT_EQ(second.look(), "change after 0 at 8: 1\nshown 1\n") << "what the twin has";
        first.ask(Kind::write, at(12), 2U);
        first.run();
        EXPECT_EQ(second.look(), "change after 0 at 12: 2\n");
        EXPECT_EQ(first.look(), "change after 1 at 12: 2\n") << "told again, and harmless";
        rmem_write_word(nodes.other, 16, 3);
        EXPECT_EQ(first.look(), "change after 1 at 16: 3\n");
        EXPECT_EQ(second.look(), "change after 0 at 16: 3\n");
    }
    first.ask(Kind::write, at(12), 4U);
    first.run();
    EXPECT_EQ(first.look(), "") << "it is alone again";
}

TEST_F(OneSession, compares_as_many_pages_as_it_is_told_in_turn) {
    client.ask(Kind::map, at(0), std::uint64_t{3 * kPageBytes});
    client.run();
    for (unsigned page = 0; page < 3; ++page)
        rmem_write_word(nodes.other, page * kPageBytes, page + 1);
    EXPECT_EQ(client.look(1), "change after 0 at 0: 1\n");
    EXPECT_EQ(client.look(0), "");
    EXPECT_EQ(client.look(1), "change after 0 at 4096: 2\n");
    EXPECT_EQ(client.look(1), "change after 0 at 8192: 3\nshown 1\n");
    EXPECT_EQ(client.session.pages(), 3U);
}

TEST_F(OneSession, sends_an_accepted_interrupt_after_what_its_sender_had_written) {
    client.map(kSessionBytes);
    client.ask(Kind::accept, std::uint64_t{1} << 34);
    client.run();
    rmem_write_word(nodes.other, 100, 4200);
    rmem_send_interrupt(nodes.other, 0, 33, 1);
    rmem_send_interrupt(nodes.other, 0, 34, 2);
    take_interrupts(nodes, client.session, 2);
    EXPECT_EQ(client.look(), "change after 0 at 100: 4200\ninterrupt 34 2 from 1, missed 0\n");
}

TEST_F(OneSession, sends_no_interrupt_before_the_pages_that_are_mapped_meanwhile) {
    client.map(kPageBytes);
    client.ask(Kind::accept, kAllNumbers);
    client.run();
    client.session.on_interrupt({3, 1, 1, 0, RMEM_SENT, 0});
    client.ask(Kind::map, at(kPageBytes), std::uint64_t{kPageBytes});
    client.run();
    rmem_write_word(nodes.other, kPageBytes, 5);
    EXPECT_EQ(client.look(1), "change after 0 at 4096: 5\n");
    EXPECT_EQ(client.look(1), "shown 2\ninterrupt 3 1 from 1, missed 0\n");
}

TEST_F(OneSession, compares_nothing_while_news_are_left_lying) {
    client.ask(Kind::map, at(0), std::uint64_t{kSessionBytes});
    client.run();
    std::uint32_t value = 0;
    const auto look = [&] {
        ++value;
        const std::vector<std::uint32_t> words(kSessionBytes / kWordBytes, value);
        EXPECT_EQ(rmem_write(nodes.other, 0, words.data(), kSessionBytes), RMEM_OK);
        return client.session.look(SIZE_MAX);
    };
    while (look() == kSessionBytes / kPageBytes)
        ASSERT_LT(client.session.news().left().size(), 2 * Session::kMaxWaitingBytes);
    EXPECT_EQ(look(), 0U);
    client.look();
    EXPECT_THAT(client.look(), HasSubstr(std::to_string(value))) << "told when there is room";
}

TEST_F(OneSession, keeps_a_bounded_number_of_interrupts_and_says_how_many_were_missed) {
    client.ask(Kind::accept, kAllNumbers);
    client.run();
    constexpr rmem_interrupt kSent{3, 0, 1, 0, RMEM_SENT, 0};
    for (std::size_t i = 0; i < Session::kMaxInterrupts + 5; ++i)
        client.session.on_interrupt(kSent);
    const std::string kept = client.look();
    EXPECT_EQ(std::count(kept.begin(), kept.end(), '\n'), Session::kMaxInterrupts);
    client.session.on_interrupt(kSent);
    EXPECT_EQ(client.look(), "interrupt 3 0 from 1, missed 5\n");
}

TEST_F(OneSession, is_broken_by_what_is_no_call_and_by_fields_that_cannot_be) {
    const auto breaks = [&](Kind kind, const auto&... fields) {
        Client fresh(nodes);
        fresh.ask(kind, fields...);
        fresh.run();
        return fresh.session.is_broken() && !fresh.session.wants_input();
    };
    EXPECT_TRUE(breaks(Kind::hello, 0U));
    EXPECT_TRUE(breaks(Kind::welcome));
    EXPECT_TRUE(breaks(static_cast<Kind>(0)));
    EXPECT_TRUE(breaks(Kind::read, at(0)));
    EXPECT_TRUE(breaks(Kind::read, at(0), 4U, 4U));
    EXPECT_TRUE(breaks(Kind::read, at(0), std::uint32_t{kMaxDataBytes + 1}));
    EXPECT_TRUE(breaks(Kind::write, 0U));
    EXPECT_TRUE(breaks(Kind::map, at(1), std::uint64_t{kPageBytes}));
    EXPECT_TRUE(breaks(Kind::map, at(0), std::uint64_t{kPageBytes + 1}));
    EXPECT_TRUE(breaks(Kind::map, at(kSessionBytes), std::uint64_t{kPageBytes}));
    EXPECT_TRUE(breaks(Kind::map, ~std::uint64_t{kPageBytes - 1}, std::uint64_t{2 * kPageBytes}));
    EXPECT_TRUE(breaks(Kind::counter, std::string(65, 'x')));
    EXPECT_FALSE(breaks(Kind::map, at(0), std::uint64_t{kSessionBytes}));
    EXPECT_FALSE(breaks(Kind::counter, std::string("writes_sent")));
}

TEST_F(OneSession, stays_within_its_bounds_whatever_bytes_come) {
    std::minstd_rand engine(5565);
    const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
    for (int round = 0; round < 300; ++round) {
        Client fresh(nodes);
        std::vector<std::byte> bytes;
        for (int i = 0; i < 20; ++i) {
            FrameWriter frame(bytes, static_cast<Kind>(random() % 11));
            for (unsigned field = random() % 6; field > 0; --field)
                frame.put(static_cast<std::uint32_t>(random() % 3 == 0 ? random() : random() % 64));
        }
        for (unsigned flips = random() % 4; flips > 0; --flips)
            bytes[random() % bytes.size()] = static_cast<std::byte>(random());
        fresh.session.receive(bytes);
        fresh.session.run(0);
        fresh.session.run(Session::kLongestFlushNs);
        fresh.session.look(SIZE_MAX);
        EXPECT_LE(fresh.session.answers().left().size(),
                  Session::kMaxWaitingBytes + kMaxBodyBytes + FrameWriter::kHeaderBytes);
    }
}

TEST(SessionInvariants, a_twin_is_left_by_a_session_that_has_joined_it) {
    const TwoNodes nodes;
    Twins twins(nodes.served);
    Twins::Words due, of_another;
    EXPECT_BROKEN(twins.leave(0, due));
    static_cast<void>(twins.join(0, due));
    EXPECT_BROKEN(twins.leave(0, of_another));
    twins.leave(0, due);
}

}  // namespace
}  // namespace remote
