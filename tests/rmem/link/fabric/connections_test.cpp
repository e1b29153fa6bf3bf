// SPDX-License-Identifier: Apache-2.0
// ctest: check
#include "rmem/link/fabric/connections.hpp"

#include "rmem/ring/segment.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <atomic>
#include <thread>
#include <vector>

namespace rmem::fabric {
namespace {

constexpr std::int64_t kLater = 2 * Connections::kSettleNs;

/// A socket of TCP on the loop-back interface, listening.
struct Listener {
    Listener() {
        name.sin_family = AF_INET;
        name.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof name;
        auto* const address = reinterpret_cast<sockaddr*>(&name);
        EXPECT_EQ(::bind(socket.get(), address, length), 0);
        EXPECT_EQ(::getsockname(socket.get(), address, &length), 0);
        EXPECT_EQ(::listen(socket.get(), 4), 0);
    }
    Descriptor accept() const { return Descriptor(::accept(socket.get(), nullptr, nullptr)); }

    sockaddr_in name{};
    Descriptor socket{::socket(AF_INET, SOCK_STREAM, 0)};
};

Descriptor connected_to(const Listener& other) {
    Descriptor socket(::socket(AF_INET, SOCK_STREAM, 0));
    EXPECT_EQ(
        ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&other.name), sizeof other.name),
        0);
    return socket;
}

void say(const Descriptor& socket) {
    EXPECT_EQ(::send(socket.get(), "x", 1, 0), 1);
}
void hear(const Descriptor& socket) {
    char byte = 0;
    EXPECT_EQ(::recv(socket.get(), &byte, 1, 0), 1);
}

class ConnectionsOfAnEndpoint : public ::testing::Test {
protected:
    bool is_readable() const {
        pollfd polled{epoll.get(), POLLIN, 0};
        return ::poll(&polled, 1, 0) == 1;
    }
    bool are_watched(std::uint64_t changes, std::int64_t now) {
        return connections.are_watched(changes, own.name, peers, now);
    }

    const Descriptor epoll{::epoll_create1(EPOLL_CLOEXEC)};
    const Listener own, peer, stranger;
    const std::vector<sockaddr_in> peers{peer.name};
    Connections connections{epoll.get()};
};

TEST_F(ConnectionsOfAnEndpoint, are_those_from_its_port_and_to_its_peers) {
    const Descriptor from_elsewhere = connected_to(own), accepted = own.accept();
    const Descriptor out = connected_to(peer), at_peer = peer.accept();
    const Descriptor unrelated = connected_to(stranger), at_stranger = stranger.accept();
    EXPECT_FALSE(are_watched(1, 0)) << "it has just begun";
    EXPECT_EQ(connections.count(), 2U);
    EXPECT_TRUE(are_watched(1, kLater));
    EXPECT_FALSE(is_readable());
    say(at_stranger);
    say(accepted);  // which makes the other end readable, and not this one
    EXPECT_FALSE(is_readable());
    for (const auto& [from, to] : {std::pair(&from_elsewhere, &accepted), {&at_peer, &out}}) {
        say(*from);
        EXPECT_TRUE(is_readable());
        hear(*to);
        EXPECT_FALSE(is_readable()) << "what came has been taken";
        say(*from);
        EXPECT_TRUE(is_readable()) << "more has come";
        hear(*to);
    }
}

TEST_F(ConnectionsOfAnEndpoint, are_looked_for_after_each_change) {
    EXPECT_FALSE(are_watched(1, 0));
    EXPECT_FALSE(are_watched(1, kLater)) << "there is none";
    Descriptor out = connected_to(peer), at_peer = peer.accept();
    EXPECT_FALSE(are_watched(1, 2 * kLater)) << "nothing has changed";
    EXPECT_FALSE(are_watched(2, 3 * kLater));
    EXPECT_TRUE(are_watched(2, 4 * kLater));

    // The same number, another connection.
    const int number = out.get();
    out = Descriptor();
    out = connected_to(peer);
    at_peer = peer.accept();
    EXPECT_EQ(out.get(), number);
    say(at_peer);
    EXPECT_FALSE(is_readable()) << "it is not known";
    EXPECT_FALSE(are_watched(3, 5 * kLater));
    EXPECT_TRUE(is_readable());
    EXPECT_TRUE(are_watched(3, 6 * kLater));
}

// Another node of the process closes its connection to the same peer, and the program opens a file.
TEST_F(ConnectionsOfAnEndpoint, are_no_files_that_take_the_number_of_one_at_any_moment) {
    constexpr unsigned kRounds = 1500;
    const Descriptor file(::eventfd(1, EFD_CLOEXEC));  // always readable
    std::atomic<unsigned> looks = 0;
    std::atomic<bool> is_over = false;
    std::thread others([&] {
        for (unsigned i = 0; i < kRounds; ++i) {
            const Descriptor socket = connected_to(peer);
            const Descriptor other_end = peer.accept();
            const unsigned before = looks;
            while (looks == before) std::this_thread::yield();
            for (unsigned p = 0; p < 20 * (i % 64); ++p) rmem::cpu_relax();
            ::dup2(file.get(), socket.get());
            const unsigned since = looks;
            while (looks < since + 2) std::this_thread::yield();
        }
        is_over = true;
    });
    for (std::int64_t now = 0; !is_over; now += Connections::kFindNs) {
        are_watched(looks, now);
        ++looks;
    }
    others.join();
    EXPECT_FALSE(is_readable()) << "the file wakes those that wait for the connections";
}

}  // namespace
}  // namespace rmem::fabric
