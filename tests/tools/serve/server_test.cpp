// SPDX-License-Identifier: Apache-2.0

/// `rmem serve` as those see it who reach its port: who is let in, who is not, and what is left of
/// one that ends. What a session does is tested without sockets (tests/remote/session_test.cpp).

#include "tools/serve/server.hpp"

#include "remote/protocol.hpp"
#include "remote/socket.hpp"
#include "tests/support/card_units.hpp"
#include "tests/support/tool.hpp"

#include <gmock/gmock.h>

#include <array>
#include <chrono>
#include <list>
#include <thread>

namespace tools {
namespace {

using remote::Channel;
using remote::FrameWriter;
using remote::Kind;
using ::testing::HasSubstr;

using Bytes = std::vector<std::byte>;

/// One connection: what is sent, and the next frame that comes, as text.
class Peer {
public:
    explicit Peer(std::uint16_t port) : socket_({"127.0.0.1", port}) {}

    void send(const Bytes& bytes) { EXPECT_TRUE(socket_.send(bytes)); }
    void greet(Channel channel = Channel::calls, std::uint64_t session = 0,
               std::uint16_t version = remote::kVersion) {
        Bytes hello;
        remote::write_hello(hello, {version, channel, session});
        send(hello);
    }
    /// Empty: the connection has ended.
    std::string next() {
        std::array<std::byte, 4096> buffer;
        while (!frames_.front()) {
            const std::size_t came = socket_.receive(buffer);
            if (came == 0) return "";
            frames_.add(std::span(buffer).first(came));
        }
        const remote::Frame frame = *frames_.front();
        std::string text = std::to_string(unsigned{frame.kind});
        if (const auto welcome = remote::read_welcome(frame)) session_ = welcome->session;
        if (remote::kind_of(frame) == Kind::failed) {
            remote::FieldReader fields(frame.body.subspan(4));
            const auto rest = fields.rest();
            text = {reinterpret_cast<const char*>(rest.data()), rest.size()};
        }
        frames_.pop();
        return text;
    }
    std::uint64_t session() const { return session_; }

private:
    remote::Socket socket_;
    remote::FrameQueue frames_{remote::kMaxBodyBytes};
    std::uint64_t session_ = 0;
};

std::string text_of(Kind kind) {
    return std::to_string(static_cast<unsigned>(kind));
}

class Serve : public ::testing::Test {
protected:
    Serve()
        : tool({"serve", "--listen", "127.0.0.1:0", "--ring", name.get(), "--nodes", "2", "--node",
                "0", "--size", "64K"}),
          port(rmem::test::port_of(tool)) {}

    std::uint32_t word(std::uint64_t offset) {
        const auto ran = rmem::test::run_tool({"peek", name.get(), std::to_string(offset)});
        return static_cast<std::uint32_t>(std::stoul(ran.out));
    }

    const rmem::test::RingName name;
    rmem::test::Tool tool;
    const std::uint16_t port;
};

TEST_F(Serve, refuses_another_version_with_a_sentence) {
    Peer peer(port);
    peer.greet(Channel::calls, 0, remote::kVersion + 1);
    EXPECT_THAT(peer.next(), HasSubstr("speaks version 2 and the client version 3"));
    EXPECT_EQ(peer.next(), "");
    EXPECT_TRUE(tool.prints("is refused"));
}

TEST_F(Serve, closes_the_connection_of_what_is_no_client_and_of_what_sends_no_call) {
    Peer browser(port);
    const std::string request = "GET / HTTP/1.1\r\n\r\n";
    const auto bytes = std::as_bytes(std::span(request));
    browser.send({bytes.begin(), bytes.end()});
    EXPECT_EQ(browser.next(), "");
    Peer liar(port);
    liar.greet(Channel::news, 4711);
    EXPECT_EQ(liar.next(), "it is of no session");
    Peer client(port);
    client.greet();
    EXPECT_EQ(client.next(), text_of(Kind::welcome));
    Bytes welcome;
    remote::write_welcome(welcome, {});
    client.send(welcome);
    EXPECT_EQ(client.next(), "");
    EXPECT_TRUE(tool.prints("is no client of `rmem serve`"));
    EXPECT_TRUE(tool.prints("sends what is no call"));
}

TEST_F(Serve, has_places_for_16_clients_and_gives_them_to_others_afterwards) {
    std::list<Peer> peers;
    for (std::size_t i = 0; i < Server::kMaxClients; ++i) {
        peers.emplace_back(port).greet();
        EXPECT_EQ(peers.back().next(), text_of(Kind::welcome));
    }
    Peer late(port);
    late.greet();
    EXPECT_THAT(late.next(), HasSubstr("has 16 clients"));
    peers.pop_front();
    EXPECT_TRUE(rmem::test::eventually([&] {
        Peer next(port);
        next.greet();
        return next.next() == text_of(Kind::welcome);
    }));
}

TEST_F(Serve, does_what_a_client_has_sent_that_has_ended_and_keeps_the_others) {
    Peer other(port);
    other.greet();
    EXPECT_EQ(other.next(), text_of(Kind::welcome));
    {
        Peer client(port);
        client.greet();
        EXPECT_EQ(client.next(), text_of(Kind::welcome));
        Peer news(port);
        news.greet(Channel::news, client.session());
        EXPECT_EQ(news.next(), text_of(Kind::done));
        Bytes writes;
        for (std::uint32_t i = 1; i <= 5000; ++i)
            FrameWriter(writes, Kind::write).put(std::uint64_t{64}).put(i);
        client.send(writes);
    }
    EXPECT_TRUE(rmem::test::eventually([&] { return word(64) == 5000; }));
    Bytes call;
    FrameWriter(call, Kind::is_member);
    other.send(call);
    EXPECT_EQ(other.next(), text_of(Kind::number));
}

TEST_F(Serve, does_what_is_behind_answers_that_a_client_left_lying) {
    constexpr unsigned kReads = 600;
    {
        Peer client(port);
        client.greet();
        EXPECT_EQ(client.next(), text_of(Kind::welcome));
        Bytes calls;
        for (unsigned i = 0; i < kReads; ++i)
            FrameWriter(calls, Kind::read).put(std::uint64_t{0}).put(std::uint32_t{65536});
        for (std::uint32_t i = 1; i <= 100; ++i)
            FrameWriter(calls, Kind::write).put(std::uint64_t{64}).put(i);
        client.send(calls);
        EXPECT_EQ(client.next(), text_of(Kind::data));
    }
    EXPECT_TRUE(rmem::test::eventually([&] { return word(64) == 100; })) << word(64);
}

TEST_F(Serve, says_little_about_strangers_and_how_many_more_there_were) {
    for (int i = 0; i < 40; ++i) {
        Peer liar(port);
        liar.greet(Channel::news, 4711);
        EXPECT_EQ(liar.next(), "it is of no session");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    Peer liar(port);
    liar.greet(Channel::news, 4711);
    EXPECT_TRUE(tool.prints("more such were left out")) << tool.err();
}

TEST(ServeSilence, costs_a_client_its_place_where_another_comes) {
    const rmem::test::RingName name;
    rmem::test::Tool tool({"serve", "--listen", "127.0.0.1:0", "--ring", name.get(), "--nodes", "1",
                           "--node", "0", "--silence", "0"});
    const std::uint16_t port = rmem::test::port_of(tool);
    std::list<Peer> peers;
    for (std::size_t i = 0; i < Server::kMaxClients + 1; ++i) {
        peers.emplace_back(port).greet();
        EXPECT_EQ(peers.back().next(), text_of(Kind::welcome));
        const std::uint64_t session = peers.back().session();
        peers.emplace_back(port).greet(Channel::news, session);
        EXPECT_EQ(peers.back().next(), text_of(Kind::done));
    }
    EXPECT_EQ(peers.front().next(), "") << "the one that has been silent for longest";
    EXPECT_TRUE(tool.prints("loses its place to another")) << tool.err();
}

TEST(ServeUnit, is_the_node_of_that_unit) {
    const rmem::test::CardUnits units(rmem::LinkKind::direct);
    rmem::test::Tool tool({"serve", "--unit", "1", "--listen", "127.0.0.1:0"});
    EXPECT_TRUE(tool.prints("node 1 at 127.0.0.1 port ")) << tool.err();
    rmem::test::Tool none({"serve", "--unit", "7", "--listen", "127.0.0.1:0"});
    EXPECT_TRUE(none.prints("this host has no unit 7"));
    EXPECT_EQ(none.wait().code, 1);
}

TEST(ServeAddress, is_one_of_this_host_that_is_free) {
    for (const auto& [address, sentence] :
         {std::pair{"127.0.0.1", "--listen: '127.0.0.1' is not valid"},
          std::pair{"127.0.0.1:66000", "is not valid"},
          std::pair{"192.0.2.1:0", "nothing can be served at 192.0.2.1 port 0"},
          std::pair{"no.such.host:0", "this is no address of a host"}}) {
        const rmem::test::RingName ring;
        expect_err(rmem::test::run_tool({"serve", "--ring", ring.get(), "--nodes", "1", "--node",
                                         "0", "--listen", address}),
                   1, {sentence});
    }
}

}  // namespace
}  // namespace tools
