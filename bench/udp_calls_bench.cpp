// SPDX-License-Identifier: Apache-2.0

/// What the host's calls cost that link udp makes: the unit costs of docs/guide/how-large.md.
///
///     udp-calls-bench --benchmark_repetitions=9
///
/// On the loop-back interface, where a call that sends also does what the receiver's host does
/// until the datagram is in its socket. `send` of n: a sendmmsg of as many datagrams, each to
/// another socket, so what each further one costs is the difference; `receive`: a recv of one that
/// is there. The argument after that is a datagram's bytes: 104 is a word's on link udp.

#include "rmem/base/clock.hpp"

#include <arpa/inet.h>
#include <benchmark/benchmark.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <system_error>
#include <vector>

namespace {

constexpr int kReceivers = 32;

struct Socket {
    Socket() : fd(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
        address.sin_family = AF_INET;
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        socklen_t length = sizeof address;
        auto* const at = reinterpret_cast<sockaddr*>(&address);
        if (fd < 0 || ::bind(fd, at, length) != 0 || ::getsockname(fd, at, &length) != 0)
            throw std::system_error(errno, std::generic_category(), "no socket on 127.0.0.1");
    }
    ~Socket() { ::close(fd); }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    int fd;
    sockaddr_in address{};
};

/// Each iteration sends to as many and receives all; its time is that of what is measured.
void calls(benchmark::State& state, bool sends) {
    const auto count = static_cast<unsigned>(state.range(0));
    std::vector<std::byte> bytes(static_cast<std::size_t>(state.range(1)));
    Socket sender;
    std::array<Socket, kReceivers> receivers;
    std::array<mmsghdr, kReceivers> headers{};
    iovec part{bytes.data(), bytes.size()};
    for (std::size_t i = 0; i < kReceivers; ++i)
        headers[i].msg_hdr = {&receivers[i].address, sizeof(sockaddr_in), &part, 1, nullptr, 0, 0};
    for (auto _ : state) {
        const std::int64_t begin = rmem::now_ns();
        const int sent = ::sendmmsg(sender.fd, headers.data(), count, 0);
        const std::int64_t middle = rmem::now_ns();
        bool has_all = sent == static_cast<int>(count);
        for (unsigned i = 0; i < count; ++i)
            has_all = has_all && ::recv(receivers[i].fd, bytes.data(), bytes.size(), 0) ==
                                     static_cast<ssize_t>(bytes.size());
        const std::int64_t end = rmem::now_ns();
        if (!has_all) return state.SkipWithError("a datagram is not there, or not whole");
        state.SetIterationTime(static_cast<double>(sends ? middle - begin : end - middle) * 1e-9);
    }
}
BENCHMARK_CAPTURE(calls, send, true)
    ->ArgNames({"datagrams", "bytes"})
    ->ArgsProduct({{1, kReceivers}, {104}})
    ->UseManualTime();
BENCHMARK_CAPTURE(calls, receive, false)
    ->ArgNames({"datagrams", "bytes"})
    ->Args({1, 104})
    ->UseManualTime();

}  // namespace
