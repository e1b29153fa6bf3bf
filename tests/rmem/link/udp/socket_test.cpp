// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/socket.hpp"

#include "tests/rmem/link/free_port.hpp"
#include "tests/support/child.hpp"
#include "tests/support/refused.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/udp.h>
#include <unistd.h>

#include <cstring>
#include <deque>
#include <optional>
#include <ostream>
#include <string>
#include <vector>

namespace rmem::udp {
namespace {

using test::free_port;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::int64_t kPatienceNs = 2'000'000'000;
constexpr std::int64_t kQuietNs = 20'000'000;

std::span<const std::byte> bytes_of(const std::string& text) {
    return std::as_bytes(std::span(text));
}

/// A socket, and what came to it that nobody has taken yet.
class Station {
public:
    explicit Station(const SocketSettings& settings) : socket_(settings) {}

    Socket& socket() { return socket_; }
    bool send(const std::string& text) { return socket_.send(bytes_of(text)); }
    /// The bytes have to stay until they have left.
    void queue(const std::string& text) {
        queued_.push_back(text);
        socket_.queue(bytes_of(queued_.back()));
    }

    /// The next datagram; nothing if none comes in time.
    std::optional<std::string> next(std::int64_t patience_ns = kPatienceNs) {
        const Deadline deadline = Deadline::in(patience_ns);
        while (here_.empty() && take() == 0) {
            if (!socket_.wait(deadline)) return std::nullopt;
        }
        std::string text = here_.front();
        here_.pop_front();
        return text;
    }
    bool hears_nothing() { return !next(kQuietNs); }

private:
    std::size_t take() {
        const auto datagrams = socket_.receive();
        for (const auto& datagram : datagrams) {
            here_.emplace_back(reinterpret_cast<const char*>(datagram.data()), datagram.size());
        }
        return datagrams.size();
    }

    Socket socket_;
    std::deque<std::string> here_, queued_;
};

/// With the lengths that the format has: where one ends is what it says itself.
std::string framed(const std::string& text) {
    std::string datagram(kEnvelopeBytes, '\0');
    datagram += text;
    auto* const bytes = reinterpret_cast<std::byte*>(datagram.data());
    store(bytes, kMagic);
    store(bytes + kLengthAt, static_cast<std::uint16_t>(text.size()));
    return datagram;
}

const std::string kText(300, 'x');

std::string numbered(unsigned number) {
    return framed("datagram " + std::to_string(number));
}

SocketSettings fan_out(unsigned nodes) {
    SocketSettings settings;
    std::string group;
    for (unsigned i = 0; i < nodes; ++i) {
        group += (i == 0 ? "127.0.0.1:" : ",127.0.0.1:") + std::to_string(free_port());
    }
    settings.endpoints = Endpoints::parse(group, "", nodes);
    return settings;
}

SocketSettings at_node(SocketSettings settings, unsigned node) {
    settings.node = node;
    return settings;
}

/// Groups of this process alone, for a ring of that number of nodes.
SocketSettings in_group(unsigned last_byte, std::uint16_t port, unsigned nodes = 2) {
    const auto process = static_cast<unsigned>(::getpid());
    SocketSettings settings;
    settings.nodes = nodes;
    settings.endpoints =
        Endpoints::parse("239.255." + std::to_string(process % 251) + "." +
                             std::to_string(last_byte) + ":" + std::to_string(port),
                         "127.0.0.1", nodes);
    return settings;
}

/// Why multicast does not work here; empty if it does.
std::string no_multicast() {
    try {
        const SocketSettings ring = in_group(1, free_port());
        Station probe(ring), hearer(at_node(ring, 1));
        if (!probe.send("probe")) return "the loop-back interface has no route for multicast";
        if (!hearer.next()) return "multicast on the loop-back interface does not come back";
        return "";
    } catch (const Error& error) {
        return error.sentence();
    }
}

/// Why this host knows no GSO; empty if it does.
std::string why_no_gso() {
    const Descriptor probe(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    const int length = 100, on = 1;
    if (::setsockopt(probe.get(), IPPROTO_UDP, UDP_SEGMENT, &length, sizeof length) != 0) {
        return std::string("the host refuses UDP_SEGMENT: ") + std::strerror(errno);
    }
    if (::setsockopt(probe.get(), IPPROTO_UDP, UDP_GRO, &on, sizeof on) != 0) {
        return std::string("the host refuses UDP_GRO: ") + std::strerror(errno);
    }
    return "";
}

#define NEED_MULTICAST() \
    if (const std::string why = no_multicast(); !why.empty()) GTEST_SKIP() << why

std::string refusal(const SocketSettings& settings, Errc code) {
    return test::refused(code, [&] { const Socket socket(settings); });
}

// ---- Fan-out

TEST(Socket, fan_out_reaches_each_other_node_and_not_oneself) {
    const SocketSettings ring = fan_out(3);
    Station a(at_node(ring, 0)), b(at_node(ring, 1)), c(at_node(ring, 2));
    EXPECT_TRUE(b.send("from b"));
    EXPECT_EQ(a.next(), "from b");
    EXPECT_EQ(c.next(), "from b");
    EXPECT_TRUE(b.hears_nothing());
    EXPECT_EQ(b.socket().counters().sent, 2U);
    EXPECT_EQ(a.socket().counters().received, 1U);
}

TEST(Socket, fan_out_can_send_to_one_node) {
    const SocketSettings ring = fan_out(3);
    Station a(at_node(ring, 0)), b(at_node(ring, 1)), c(at_node(ring, 2));
    EXPECT_TRUE(a.socket().send_to(2, bytes_of("to c")));
    EXPECT_EQ(c.next(), "to c");
    EXPECT_TRUE(b.hears_nothing());
}

TEST(Socket, a_node_alone_has_nobody_to_send_to) {
    Station a(fan_out(1));
    EXPECT_TRUE(a.send("anybody?"));
    EXPECT_EQ(a.socket().counters().sent, 0U);
}

TEST(Socket, absent_nodes_do_not_disturb) {
    const SocketSettings ring = fan_out(3);
    Station a(at_node(ring, 0)), b(at_node(ring, 1));
    for (unsigned i = 0; i < 100; ++i) {
        EXPECT_TRUE(a.send(numbered(i)));
        EXPECT_EQ(b.next(), numbered(i));
    }
    EXPECT_TRUE(a.hears_nothing());
    EXPECT_EQ(a.socket().counters().refused, 0U);
    EXPECT_EQ(a.socket().counters().receive_errors, 0U);
    Station c(at_node(ring, 2));
    EXPECT_TRUE(a.send("now all are here"));
    EXPECT_EQ(c.next(), "now all are here");
}

// ---- Multicast

TEST(Socket, a_datagram_by_multicast_reaches_each_other_node_and_not_oneself) {
    NEED_MULTICAST();
    const SocketSettings ring = in_group(1, free_port(), 3);
    Station a(ring), b(at_node(ring, 1)), c(at_node(ring, 2));
    EXPECT_TRUE(a.send("from a"));
    for (Station* station : {&b, &c}) EXPECT_EQ(station->next(), "from a");
    EXPECT_EQ(a.socket().counters().sent, 1U);
    EXPECT_TRUE(a.socket().send_to(1, bytes_of("to b")));
    for (Station* station : {&b, &c}) EXPECT_EQ(station->next(), "to b");
    EXPECT_TRUE(c.send("from c"));
    for (Station* station : {&a, &b}) EXPECT_EQ(station->next(), "from c");
    for (Station* station : {&a, &b, &c}) EXPECT_TRUE(station->hears_nothing());
}

TEST(Socket, nodes_that_share_a_group_hear_each_other_and_themselves) {
    NEED_MULTICAST();
    const SocketSettings ring = in_group(1, free_port(), kGroups + 2);
    Station a(at_node(ring, 1)), b(at_node(ring, kGroups + 1)), c(at_node(ring, kGroups - 1));
    EXPECT_TRUE(a.send("from a"));
    for (Station* station : {&a, &b, &c}) EXPECT_EQ(station->next(), "from a");
    EXPECT_TRUE(b.send("from b"));
    for (Station* station : {&a, &b, &c}) EXPECT_EQ(station->next(), "from b");
    EXPECT_TRUE(c.send("from c"));
    for (Station* station : {&a, &b}) EXPECT_EQ(station->next(), "from c");
    EXPECT_TRUE(c.hears_nothing());
}

/// Of two rings, so the one hears nothing of the other.
void expect_apart(const SocketSettings& here, const SocketSettings& there) {
    Station a(here), b(at_node(here, 1)), c(at_node(there, 1));
    EXPECT_TRUE(a.send("for this ring"));
    EXPECT_EQ(b.next(), "for this ring");
    EXPECT_TRUE(c.hears_nothing());
}

TEST(Socket, blocks_of_groups_ports_and_interfaces_do_not_hear_each_other) {
    NEED_MULTICAST();
    const std::uint16_t port = free_port();
    const SocketSettings here = in_group(1, port);
    expect_apart(here, in_group(1 + kGroups, port));
    expect_apart(here, in_group(1, free_port()));
    for (const Interface& one : interfaces()) {
        if (one.is_loop_back) continue;
        SocketSettings there = here;
        there.endpoints.own_interface = one;
        there.endpoints.wanted = one.name;
        expect_apart(here, there);
        break;
    }
}

// ---- Batches

/// Both ways of addressing, on a host that knows GSO and on one that does not.
struct Way {
    bool in_group;
    bool sends_gso;
    bool takes_gro;
};

std::ostream& operator<<(std::ostream& out, const Way& way) {
    return out << (way.in_group ? "group" : "fan_out")
               << (way.sends_gso ? "_in_gso_batches" : "_singly")
               << (way.takes_gro ? "_taken_whole" : "_taken_singly");
}

class SocketBatches : public testing::TestWithParam<Way> {
protected:
    void SetUp() override {
        if (GetParam().in_group) NEED_MULTICAST();
        SocketSettings ring = GetParam().in_group ? in_group(1, free_port()) : fan_out(2);
        ring.gso = GetParam().sends_gso;
        a_.emplace(at_node(ring, 0));
        ring.gso = GetParam().takes_gro;
        b_.emplace(at_node(ring, 1));
    }
    std::optional<Station> a_, b_;
};

TEST_P(SocketBatches, leave_with_the_flush_and_arrive_in_order) {
    for (unsigned i = 0; i < 12; ++i) a_->queue(numbered(i));
    EXPECT_TRUE(b_->hears_nothing());
    EXPECT_EQ(a_->socket().flush(), 0U);
    for (unsigned i = 0; i < 12; ++i) EXPECT_EQ(b_->next(), numbered(i));
    EXPECT_EQ(a_->socket().flush(), 0U) << "they leave once";
    EXPECT_TRUE(b_->hears_nothing());
}

TEST_P(SocketBatches, what_is_queued_leaves_before_what_is_sent) {
    a_->queue("first");
    EXPECT_TRUE(a_->send("second"));
    a_->queue("third");
    EXPECT_TRUE(a_->socket().send_to(1, bytes_of("fourth")));
    for (const char* text : {"first", "second", "third", "fourth"}) EXPECT_EQ(b_->next(), text);
}

TEST_P(SocketBatches, many_waiting_are_taken_with_few_calls) {
    for (unsigned i = 0; i < 64; ++i) a_->queue(numbered(i));
    ASSERT_TRUE(b_->socket().wait(Deadline::in(kPatienceNs)));
    unsigned calls = 0;
    for (std::size_t taken = 0; taken < 64 && calls < 64; ++calls) {
        for (const auto& datagram : b_->socket().receive()) {
            const auto expected = numbered(static_cast<unsigned>(taken++));
            EXPECT_EQ(std::string(reinterpret_cast<const char*>(datagram.data()), datagram.size()),
                      expected);
        }
    }
    EXPECT_LE(calls, 6 + 64 / Socket::kMaxInBatch) << "four by themselves, then many with each";
    EXPECT_THAT(b_->socket().receive(), IsEmpty());
}

TEST_P(SocketBatches, batches_of_one_length_are_one_piece_if_both_hosts_know_gso) {
    if (const std::string why = why_no_gso(); !why.empty()) GTEST_SKIP() << why;
    for (unsigned i = 0; i < 12; ++i) a_->queue(framed(kText));
    EXPECT_EQ(a_->socket().flush(), 0U);
    EXPECT_EQ(a_->socket().counters().sent, 12U);
    ASSERT_TRUE(b_->socket().wait(Deadline::in(kPatienceNs)));
    const bool in_one_piece = GetParam().sends_gso && GetParam().takes_gro;
    EXPECT_EQ(b_->socket().receive().size(), in_one_piece ? 12U : 1U);
    EXPECT_EQ(b_->socket().counters().received, in_one_piece ? 12U : 1U);
}

/// Of those that fill a GSO batch, one says that it is longer than it is, or shorter.
TEST_P(SocketBatches,
       batches_of_which_one_has_a_wrong_length_lose_no_others_than_of_that_gso_batch) {
    for (const int lie : {-300, -4, -1, 1, 4, 300, 65'000}) {
        std::string liar = framed(kText);
        store(reinterpret_cast<std::byte*>(liar.data()) + kLengthAt,
              static_cast<std::uint16_t>(300 + lie));
        for (unsigned i = 0; i < 12; ++i) {
            a_->queue(i == 5 ? liar : framed(kText));
        }
        a_->socket().flush();
        EXPECT_TRUE(a_->send(framed("the next one")));
        const std::string whole = framed(kText);
        unsigned unharmed = 0;
        std::size_t bytes = 0;
        for (;;) {
            const auto text = b_->next();
            ASSERT_TRUE(text) << lie;
            if (*text == framed("the next one")) break;
            bytes += text->size();
            if (*text == whole) ++unharmed;
        }
        EXPECT_EQ(bytes, 12 * whole.size()) << "each byte once: " << lie;
        EXPECT_GE(unharmed, 5U) << "those before it: " << lie;
        EXPECT_LE(unharmed, 11U) << lie;
        EXPECT_TRUE(b_->hears_nothing());
    }
}

TEST_P(SocketBatches, batches_whose_last_is_torn_lose_only_that_one) {
    for (unsigned i = 0; i < 7; ++i) a_->queue(framed(kText));
    a_->queue(framed(kText).substr(0, 200));
    a_->socket().flush();
    for (unsigned i = 0; i < 7; ++i) EXPECT_EQ(b_->next(), framed(kText));
    EXPECT_EQ(b_->next(), framed(kText).substr(0, 200)) << "its reader refuses it";
    EXPECT_TRUE(b_->hears_nothing());
}

TEST_P(SocketBatches, batches_that_claim_to_be_many_fill_no_memory) {
    std::string tiny;  // in one datagram more of them than a GSO batch has
    while (tiny.size() + kEnvelopeBytes <= 65'507) tiny += framed("");
    ASSERT_GT(tiny.size() / kEnvelopeBytes, Socket::kMaxInGsoBatch);
    EXPECT_TRUE(a_->socket().send_to(1, bytes_of(tiny)));
    std::size_t bytes = 0, pieces = 0;
    for (; bytes < tiny.size(); ++pieces) {
        const auto piece = b_->next();
        ASSERT_TRUE(piece);
        bytes += piece->size();
    }
    EXPECT_EQ(pieces, Socket::kMaxInGsoBatch);
    EXPECT_EQ(b_->socket().counters().oversized, 1U) << "what is behind the last one";
}

TEST_P(SocketBatches, batches_of_any_lengths_arrive_one_by_one_in_order) {
    const std::vector<std::size_t> lengths = {1400, 1400, 1400, 8,   8,    1400, 100,  0,
                                              0,    4,    1400, 700, 1400, 1400, 1399, 1400};
    for (int round = 0; round < 20; ++round) {
        for (const std::size_t length : lengths) a_->queue(framed(std::string(length, 'x')));
        EXPECT_EQ(a_->socket().flush(), 0U);
        for (const std::size_t length : lengths) {
            EXPECT_EQ(b_->next(), framed(std::string(length, 'x')));
        }
    }
    EXPECT_EQ(a_->socket().counters().sent, 20 * lengths.size());
    EXPECT_EQ(a_->socket().counters().refused, 0U);
    EXPECT_EQ(b_->socket().counters().oversized, 0U);
}

TEST_P(SocketBatches, batches_of_the_longest_payload_arrive) {
    const auto longest = [](unsigned i) {
        return framed(std::string(kDefaultPayload - kEnvelopeBytes, static_cast<char>('a' + i)));
    };
    for (unsigned i = 0; i < 3 * Socket::kMaxInBatch; ++i) a_->queue(longest(i));
    for (unsigned i = 0; i < 3 * Socket::kMaxInBatch; ++i) EXPECT_EQ(b_->next(), longest(i));
}

INSTANTIATE_TEST_SUITE_P(, SocketBatches,
                         testing::Values(Way{true, true, true}, Way{true, true, false},
                                         Way{true, false, true}, Way{true, false, false},
                                         Way{false, true, true}, Way{false, true, false},
                                         Way{false, false, false}),
                         testing::PrintToStringParamName());

// ---- Sizes

TEST(Socket, carries_datagrams_of_each_size_and_shows_those_that_are_too_long) {
    const SocketSettings ring = fan_out(2);
    Station a(at_node(ring, 0)), b(at_node(ring, 1));
    for (const std::size_t size : {std::size_t{0}, std::size_t{1}, kDefaultPayload, kMaxPayload}) {
        EXPECT_TRUE(b.send(std::string(size, 'x')));
        EXPECT_EQ(a.next(), std::string(size, 'x'));
    }
    EXPECT_EQ(a.socket().counters().oversized, 0U);
    for (unsigned i = 0; i < 6; ++i) EXPECT_TRUE(b.send(std::string(kMaxPayload + 1 + i, 'x')));
    for (unsigned i = 0; i < 6; ++i) EXPECT_EQ(a.next(), std::string(kMaxPayload + 1 + i, 'x'));
    EXPECT_EQ(a.socket().counters().oversized, 6U);
}

TEST(Socket, what_the_host_refuses_is_counted) {
    const SocketSettings ring = fan_out(3);
    Station a(at_node(ring, 0)), b(at_node(ring, 1));
    EXPECT_FALSE(a.socket().send_to(1, bytes_of(std::string(70'000, 'x'))));
    EXPECT_EQ(a.socket().counters().refused, 1U);
    EXPECT_EQ(a.socket().counters().last_error, EMSGSIZE);
    EXPECT_TRUE(b.hears_nothing());
}

// ---- The receive buffer

/// How many of `sent` datagrams a socket keeps that does not read.
std::uint64_t kept(const SocketSettings& ring, std::size_t size, unsigned sent) {
    Station a(at_node(ring, 0)), b(at_node(ring, 1));
    for (unsigned i = 0; i < sent; ++i) EXPECT_TRUE(a.send(std::string(size, 'x')));
    unsigned received = 0;
    while (b.next(kQuietNs)) ++received;
    EXPECT_EQ(b.socket().overflowed(), sent - received) << "each is kept or counted as lost";
    return received;
}

TEST(Socket, holds_as_many_datagrams_as_it_says) {
    for (const std::size_t limit : {kDefaultPayload, kMaxPayload}) {
        SocketSettings ring = fan_out(2);
        ring.receive_buffer_bytes = std::size_t{1} << 18;
        const std::uint32_t held = Socket(ring).datagrams_held(limit);
        EXPECT_GT(held, 4U);
        for (const std::size_t size : {std::size_t{1}, std::size_t{100}, limit / 2, limit}) {
            EXPECT_EQ(kept(ring, size, held), held) << size;
        }
    }
}

TEST(Socket, counts_what_overflows_the_receive_buffer) {
    SocketSettings ring = fan_out(2);
    ring.receive_buffer_bytes = std::size_t{1} << 14;
    EXPECT_LT(kept(ring, kDefaultPayload, 200), 200U);
}

TEST(Socket, says_what_to_do_about_a_small_receive_buffer) {
    SocketSettings ring = fan_out(2);
    ring.receive_buffer_bytes = std::size_t{1} << 14;
    EXPECT_EQ(Socket(ring).buffer_advice(), "") << "it has what was asked for";
    ring.receive_buffer_bytes = std::size_t{1} << 29;
    const Socket socket(ring);
    if (socket.datagrams_held() >= kEnoughDatagrams) GTEST_SKIP() << "this host grants enough";
    EXPECT_THAT(socket.buffer_advice(),
                AllOf(HasSubstr(std::to_string(socket.datagrams_held()) + " datagrams"),
                      HasSubstr("net.core.rmem_max=536870912")));
}

// ---- Waiting

TEST(Socket, waits_until_the_deadline) {
    const Socket socket(fan_out(1));
    EXPECT_FALSE(socket.wait(Deadline::now()));
    const std::int64_t start = now_ns();
    EXPECT_FALSE(socket.wait(Deadline::in(3'000'000)));
    EXPECT_GE(now_ns() - start, 3'000'000);
}

TEST(Socket, a_datagram_ends_the_wait) {
    const SocketSettings ring = fan_out(2);
    Station a(at_node(ring, 0)), b(at_node(ring, 1));
    a.send("here");
    EXPECT_TRUE(b.socket().wait(Deadline::never()));
    EXPECT_TRUE(b.socket().wait(Deadline::now())) << "it waits for what is still here";
}

TEST(Socket, is_not_inherited_by_a_process_forked_off) {
    const Socket socket(fan_out(1));
    EXPECT_EQ(test::Child([&] { EXPECT_EQ(socket.handle(), -1); }).wait(), 0);
}

// ---- Errors

TEST(Socket, says_when_the_node_s_address_is_taken) {
    const SocketSettings ring = fan_out(2);
    const Socket first(ring);
    EXPECT_THAT(refusal(ring, Errc::system),
                AllOf(HasSubstr("node 0's address 127.0.0.1:"), HasSubstr("running already")));
}

TEST(Socket, says_when_the_node_s_address_is_another_host_s) {
    SocketSettings ring;
    ring.endpoints = Endpoints::parse("192.0.2.254:7401,192.0.2.253:7401", "", 2);
    EXPECT_THAT(refusal(at_node(ring, 1), Errc::bad_environment),
                AllOf(HasSubstr("RMEM_GROUP gives node 1 the address 192.0.2.253:7401"),
                      HasSubstr("RMEM_NODE")));
}

TEST(Socket, says_when_a_program_keeps_the_group_s_port_for_itself) {
    const SocketSettings ring = in_group(1, free_port());
    const Descriptor greedy(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    sockaddr_in any{};
    any.sin_family = AF_INET;
    any.sin_port = htons(ring.endpoints.group.port);
    ASSERT_EQ(::bind(greedy.get(), reinterpret_cast<const sockaddr*>(&any), sizeof any), 0);
    EXPECT_THAT(refusal(ring, Errc::system), AllOf(HasSubstr("binding the port of group 239.255."),
                                                   HasSubstr("another one in RMEM_GROUP")));
}

TEST(Socket, refuses_settings_that_cannot_be) {
    SocketSettings ring = fan_out(2);
    EXPECT_THAT(refusal(at_node(ring, 2), Errc::bad_rank), HasSubstr("node 2 has no address"));
    SocketSettings far = in_group(1, free_port());
    far.hops = 256;
    EXPECT_THAT(refusal(far, Errc::invalid_argument), HasSubstr("0 to 255"));
}

}  // namespace
}  // namespace rmem::udp
