// SPDX-License-Identifier: Apache-2.0
//
// The floor of everything that goes over the network: datagrams by multicast from one process to
// another, with nothing around them. To and fro one plain call each; in streams sendmmsg and
// recvmmsg. What is lost is not sent again: a stream's windows are to fit the receiver's socket,
// and one that has lost something takes kPatienceNs longer, which its sample shows.
#include "bench/harness/harness.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>

namespace {

using namespace bench;

constexpr const char* kGroups[] = {"239.1.2.9", "239.1.2.10"};
constexpr std::size_t kBatch = 32;  // datagrams of one call
constexpr std::int64_t kPatienceNs = 50'000'000;

void check(long result, const char* what) {
    require(result >= 0, what, [] { return std::strerror(errno); });
}

sockaddr_in place(const char* address, int port) {
    sockaddr_in result{};
    result.sin_family = AF_INET;
    result.sin_port = htons(std::uint16_t(port));
    inet_pton(AF_INET, address, &result.sin_addr);
    return result;
}

/// Each rank receives in a group and at a port of its own, so that it does not hear itself, and a
/// host makes no copy of its own datagrams for itself.
class DatagramChannel : Unique {
public:
    DatagramChannel(int rank, const Setup& setup, std::uint16_t port)
        : socket_(socket(AF_INET, SOCK_DGRAM, 0)), to_(place(kGroups[1 - rank], port + 1 - rank)) {
        check(socket_, "socket");
        const int on = 1, room = 4 << 20;
        setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        // As much as the host gives: the second is root's.
        setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
        const sockaddr_in here = place(kGroups[rank], port + rank);
        check(bind(socket_, reinterpret_cast<const sockaddr*>(&here), sizeof here), "bind");
        ip_mreqn member{};
        member.imr_multiaddr = here.sin_addr;
        inet_pton(AF_INET, setup.addresses[std::size_t(rank)].c_str(), &member.imr_address);
        member.imr_ifindex = int(if_nametoindex(setup.interface.c_str()));
        check(setsockopt(socket_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof member), "join");
        check(setsockopt(socket_, IPPROTO_IP, IP_MULTICAST_IF, &member, sizeof member),
              "IP_MULTICAST_IF");
    }
    ~DatagramChannel() { close(socket_); }

    void send(const void* data, std::size_t size) {
        check(sendto(socket_, data, size, 0, reinterpret_cast<const sockaddr*>(&to_), sizeof to_),
              "sendto");
    }
    /// The next datagram of this size; the rest of a stream is passed over.
    void receive(void* data, std::size_t size) {
        for (;;) {
            const long got = recv(socket_, data, size, MSG_DONTWAIT | MSG_TRUNC);
            if (got == long(size)) return;
            if (got < 0 && errno != EAGAIN) check(got, "recv");
            cpu_relax();
        }
    }

    void send_many(const void* data, std::size_t size, std::size_t count) {
        iovec bytes{const_cast<void*>(data), size};
        for (mmsghdr& call : calls_) call.msg_hdr = {&to_, sizeof to_, &bytes, 1, nullptr, 0, 0};
        while (count > 0) {
            const int sent = sendmmsg(socket_, calls_.data(), unsigned(std::min(count, kBatch)), 0);
            check(sent, "sendmmsg");
            count -= std::size_t(sent);
        }
    }
    void receive_many(void* data, std::size_t size, std::size_t count) {
        std::array<iovec, kBatch> bytes{};
        const std::size_t batch = std::min(kBatch, kMaxBytes / std::max<std::size_t>(size, 1));
        for (std::size_t i = 0; i < batch; ++i) {
            bytes[i] = {static_cast<std::byte*>(data) + i * size, size};
            calls_[i].msg_hdr = {nullptr, 0, &bytes[i], 1, nullptr, 0, 0};
        }
        auto until = now_ns() + 40 * kPatienceNs;  // for the first
        while (count > 0 && now_ns() < until) {
            const auto most = unsigned(std::min(count, batch));
            const int got = recvmmsg(socket_, calls_.data(), most, MSG_DONTWAIT, nullptr);
            if (got < 0 && errno != EAGAIN) check(got, "recvmmsg");
            if (got < 0) {
                cpu_relax();
                continue;
            }
            until = now_ns() + kPatienceNs;
            for (int i = 0; i < got; ++i) count -= calls_[std::size_t(i)].msg_len == size;
        }
    }

private:
    int socket_;
    sockaddr_in to_;
    std::array<mmsghdr, kBatch> calls_{};
};

}  // namespace

int bench::measure(const Setup& setup) {
    const std::uint16_t port = Setup::some_port();
    return measure_ranks(setup,
                         [&](int rank, Meeting&) { return DatagramChannel(rank, setup, port); });
}
