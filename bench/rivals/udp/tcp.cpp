// SPDX-License-Identifier: Apache-2.0
//
// Plain TCP between the two ranks, as a program writes it that wants answers soon: TCP_NODELAY, one
// call for each message, and both sides poll. What a reliable way over the network takes when the
// host does all of it.
#include "../method.hpp"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

namespace {

using namespace rivals;

void check(long result, const char* what) {
    require(result >= 0, std::string(what) + ": " + std::strerror(errno));
}

class TcpChannel {
public:
    TcpChannel(int rank, Meeting& meeting, const Options& options, std::uint16_t port) {
        sockaddr_in place{};
        place.sin_family = AF_INET;
        place.sin_port = htons(port);
        inet_pton(AF_INET, options.addresses[0].c_str(), &place.sin_addr);
        const auto* const address = reinterpret_cast<const sockaddr*>(&place);
        const int made = socket(AF_INET, SOCK_STREAM, 0), on = 1;
        check(made, "socket");
        if (rank == 0) {
            setsockopt(made, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
            check(bind(made, address, sizeof place), "bind");
            check(listen(made, 1), "listen");
            meeting.wait_for_other(rank);
            socket_ = accept(made, nullptr, nullptr);
            check(socket_, "accept");
            close(made);
        } else {
            meeting.wait_for_other(rank);
            check(connect(made, address, sizeof place), "connect");
            socket_ = made;
        }
        check(setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "TCP_NODELAY");
    }
    ~TcpChannel() { close(socket_); }
    TcpChannel(const TcpChannel&) = delete;
    TcpChannel& operator=(const TcpChannel&) = delete;

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
            if (part < 0 && errno == EAGAIN) {
                relax();
                continue;
            }
            check(part, what);
            require(part > 0, "the other process has closed the connection");
            done += std::size_t(part);
        }
    }

    int socket_ = -1;
};

}  // namespace

int main(int argc, char** argv) {
    return guarded("tcp", [&] {
        const Options options = parse_options(argc, argv, "plain TCP");
        const System system{"tcp", "1"};
        const std::uint16_t port = some_port();
        return measure_pair(system, options, [&](int rank, Meeting& meeting) {
            return TcpChannel(rank, meeting, options, port);
        });
    });
}
