// SPDX-License-Identifier: Apache-2.0

/// What the host's calls cost that link udp makes: the unit costs of docs/guide/how-large.md.
///
///     udp-calls [--bytes 104] [--rounds 20000]
///
/// One process on the loop-back interface. `call_ns`: a sendmmsg of one datagram; `further_ns`:
/// each further one of the same call, to another socket; `receive_ns`: a recv of one that is there.
/// Each is a median. On loop-back a call that sends also does what the receiver's host does until
/// the datagram is in its socket.

#include "tools/measure/samples.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>
#include <CLI/CLI.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <ctime>
#include <exception>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

namespace {

constexpr unsigned kReceivers = 32;

class Socket {
public:
    Socket() : fd_(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        address_.sin_family = AF_INET;
        address_.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address_;
        auto* const address = reinterpret_cast<sockaddr*>(&address_);
        if (fd_ < 0 || ::bind(fd_, address, length) != 0 ||
            ::getsockname(fd_, address, &length) != 0) {
            throw std::system_error(errno, std::generic_category(), "no socket on 127.0.0.1");
        }
    }
    ~Socket() { ::close(fd_); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    int fd() const noexcept { return fd_; }
    sockaddr_in& address() noexcept { return address_; }

private:
    int fd_;
    sockaddr_in address_{};
};

double now_ns() {
    timespec now{};
    ::clock_gettime(CLOCK_MONOTONIC, &now);
    return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

class Calls {
public:
    explicit Calls(std::size_t bytes) : bytes_(bytes), out_(bytes) {
        part_ = {out_.data(), out_.size()};
        for (unsigned i = 0; i < kReceivers; ++i) {
            calls_[i].msg_hdr = {};
            calls_[i].msg_hdr.msg_name = &receivers_[i].address();
            calls_[i].msg_hdr.msg_namelen = sizeof(sockaddr_in);
            calls_[i].msg_hdr.msg_iov = &part_;
            calls_[i].msg_hdr.msg_iovlen = 1;
        }
    }

    /// ns of a call with that many datagrams, each to another socket.
    double send(unsigned count) {
        const double begin = now_ns();
        const int sent = ::sendmmsg(sender_.fd(), calls_.data(), count, 0);
        const double end = now_ns();
        if (sent != static_cast<int>(count))
            throw std::system_error(errno, std::generic_category(), "sendmmsg");
        return end - begin;
    }
    /// ns of taking what that receiver has.
    double receive(unsigned receiver) {
        std::vector<std::byte>& in = in_;
        in.resize(bytes_);
        const double begin = now_ns();
        const ssize_t got = ::recv(receivers_[receiver].fd(), in.data(), in.size(), 0);
        const double end = now_ns();
        if (got != static_cast<ssize_t>(bytes_))
            throw std::runtime_error("a datagram is not there, or not whole");
        return end - begin;
    }

private:
    const std::size_t bytes_;
    std::vector<std::byte> out_, in_;
    iovec part_{};
    Socket sender_;
    std::array<Socket, kReceivers> receivers_;
    std::array<mmsghdr, kReceivers> calls_{};
};

void measure(std::size_t bytes, unsigned rounds) {
    Calls calls(bytes);
    std::vector<double> one, all, receive;
    for (unsigned i = 0; i < rounds; ++i) {
        one.push_back(calls.send(1));
        receive.push_back(calls.receive(0));
        all.push_back(calls.send(kReceivers));
        for (unsigned r = 0; r < kReceivers; ++r) calls.receive(r);
    }
    const double call_ns = bench::Percentiles(one).p50;
    const double further_ns = (bench::Percentiles(all).p50 - call_ns) / (kReceivers - 1);
    fmt::print(
        "{{\"bytes\": {}, \"call_ns\": {:.0f}, \"further_ns\": {:.0f}, \"receive_ns\": "
        "{:.0f}}}\n",
        bytes, call_ns, further_ns, bench::Percentiles(receive).p50);
}

}  // namespace

int main(int argc, char** argv) {
    std::size_t bytes = 104;  // a word's datagram on link udp
    unsigned rounds = 20'000;
    CLI::App app("Costs of the host's calls for datagrams");
    app.add_option("--bytes", bytes, "of a datagram")->check(CLI::Range(1, 1472));
    app.add_option("--rounds", rounds, "calls of each kind")->check(CLI::Range(1, 10'000'000));
    CLI11_PARSE(app, argc, argv);
    try {
        measure(bytes, rounds);
        return 0;
    } catch (const std::exception& error) {
        fmt::print(stderr, "udp-calls: {}\n", error.what());
        return 1;
    }
}
