// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace rmem::test {

inline constexpr const char* kGetMetrics = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

/// A client that says what it is told to say.
class Client {
public:
    explicit Client(std::uint16_t port) : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        const timeval most = {30, 0};
        ::setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
        connected_ = ::connect(fd_, reinterpret_cast<sockaddr*>(&to), sizeof to) == 0;
    }
    ~Client() { ::close(fd_); }
    Client(const Client&) = delete;
    Client& operator=(const Client&) = delete;

    bool connected() const { return connected_; }
    /// False once the server has closed the connection.
    bool say(const std::string& text) const {
        return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL) >= 0;
    }
    /// All that comes until the server closes.
    std::string hear() const {
        std::string text;
        char buffer[4096];
        ssize_t got = 0;
        while ((got = ::recv(fd_, buffer, sizeof buffer, 0)) > 0) {
            text.append(buffer, static_cast<std::size_t>(got));
        }
        return got == 0 ? text : text + "[reset]";
    }

private:
    int fd_;
    bool connected_ = false;
};

inline std::string answer_to(const std::string& request, std::uint16_t port) {
    const Client client(port);
    client.say(request);
    return client.hear();
}

}  // namespace rmem::test
