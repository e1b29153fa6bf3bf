// SPDX-License-Identifier: Apache-2.0
//
// Plain TCP between the two ranks, as a program writes it that wants answers soon: TCP_NODELAY, one
// call for each message, and both sides poll. What a reliable way over the network takes when the
// host does all of it.
#include "bench/harness/harness.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace {

using namespace bench;

void check(long result, const char* what) {
    require(result >= 0, what, [] { return std::strerror(errno); });
}

class TcpChannel : Unique {
public:
    TcpChannel(int rank, Meeting& meeting, const Setup& setup, std::uint16_t port) {
        sockaddr_in place{};
        place.sin_family = AF_INET;
        place.sin_port = htons(port);
        inet_pton(AF_INET, setup.addresses[0].c_str(), &place.sin_addr);
        const auto* const address = reinterpret_cast<const sockaddr*>(&place);
        const int made = socket(AF_INET, SOCK_STREAM, 0), on = 1;
        check(made, "socket");
        if (rank == 0) {
            setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
            check(bind(made, address, sizeof place), "bind");
            check(listen(made, 1), "listen");
            meeting.meet();
            socket_ = accept(made, nullptr, nullptr);
            check(socket_, "accept");
            close(made);
        } else {
            meeting.meet();
            check(connect(made, address, sizeof place), "connect");
            socket_ = made;
        }
        check(setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    }
    ~TcpChannel() { close(socket_); }

    void send(const void* data, std::size_t size) {
        whole(size, "send", [&](std::size_t done) {
            return ::send(socket_, static_cast<const std::byte*>(data) + done, size - done,
                          MSG_DONTWAIT | MSG_NOSIGNAL);
        });
    }
    void receive(void* data, std::size_t size) {
        whole(size, "recv", [&](std::size_t done) {
            return recv(socket_, static_cast<std::byte*>(data) + done, size - done, MSG_DONTWAIT);
        });
    }

private:
    template <class Attempt>
    static void whole(std::size_t size, const char* what, Attempt&& attempt) {
        for (std::size_t done = 0; done < size;) {
            const long part = attempt(done);
            if (part < 0 && errno != EAGAIN) check(part, what);
            require(part != 0, "the other process has closed the connection");
            done += std::size_t(std::max(part, 0L));
        }
    }

    int socket_ = -1;
};

}  // namespace

int bench::measure(const Setup& setup) {
    const std::uint16_t port = Setup::some_port();
    return measure_ranks(
        setup, [&](int rank, Meeting& meeting) { return TcpChannel(rank, meeting, setup, port); });
}
