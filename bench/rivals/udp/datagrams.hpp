// SPDX-License-Identifier: Apache-2.0
//
// Datagrams by multicast from one process to another, with nothing around them: the floor of
// everything that goes over the network.
#pragma once

#include "../method.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace rivals {

inline constexpr const char* groups[] = {"239.1.2.9", "239.1.2.10"};
inline constexpr std::size_t batch = 32;  // datagrams of one call

inline void check_call(long result, const char* what) {
    require(result >= 0, std::string(what) + ": " + std::strerror(errno));
}

/// Each rank receives in a group and at a port of its own, so that it does not hear itself, and a
/// host makes no copy of its own datagrams for itself.
class DatagramChannel {
public:
    DatagramChannel(int rank, const Options& options, std::uint16_t port)
        : socket_(socket(AF_INET, SOCK_DGRAM, 0)), to_(place(groups[1 - rank], port + 1 - rank)) {
        check_call(socket_, "socket");
        const int on = 1, room = 4 << 20;
        setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        // As much as the host gives: the second is root's.
        setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
        const sockaddr_in here = place(groups[rank], port + rank);
        check_call(bind(socket_, reinterpret_cast<const sockaddr*>(&here), sizeof here), "bind");
        ip_mreqn member{};
        member.imr_multiaddr = here.sin_addr;
        inet_pton(AF_INET, options.addresses[std::size_t(rank)].c_str(), &member.imr_address);
        member.imr_ifindex = int(if_nametoindex(options.interface.c_str()));
        check_call(setsockopt(socket_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof member),
                   "join");
        check_call(setsockopt(socket_, IPPROTO_IP, IP_MULTICAST_IF, &member, sizeof member),
                   "IP_MULTICAST_IF");
    }
    ~DatagramChannel() { close(socket_); }
    DatagramChannel(const DatagramChannel&) = delete;
    DatagramChannel& operator=(const DatagramChannel&) = delete;

    void send(const void* data, std::size_t size) {
        check_call(
            sendto(socket_, data, size, 0, reinterpret_cast<const sockaddr*>(&to_), sizeof to_),
            "sendto");
    }
    /// The next datagram of this size; the rest of a stream is passed over.
    void receive(void* data, std::size_t size) {
        while (try_receive(data, size) != long(size)) relax();
    }
    long try_receive(void* data, std::size_t size) {
        const long got = recv(socket_, data, size, MSG_DONTWAIT | MSG_TRUNC);
        if (got < 0 && errno != EAGAIN) check_call(got, "recv");
        return got;
    }

    /// As many datagrams of the same bytes.
    void send_many(const void* data, std::size_t size, std::size_t count) {
        std::array<mmsghdr, batch> calls{};
        iovec bytes{const_cast<void*>(data), size};
        for (mmsghdr& call : calls) {
            call.msg_hdr.msg_iov = &bytes;
            call.msg_hdr.msg_iovlen = 1;
            call.msg_hdr.msg_name = &to_;
            call.msg_hdr.msg_namelen = sizeof to_;
        }
        while (count > 0) {
            const int sent = sendmmsg(socket_, calls.data(), unsigned(std::min(count, batch)), 0);
            check_call(sent, "sendmmsg");
            count -= std::size_t(sent);
        }
    }

    /// Receives what is there and calls look(bytes, size) for each datagram.
    template <class Look>
    void receive_many(std::vector<std::byte>& buffer, std::size_t size, Look&& look) {
        buffer.resize(batch * size);
        std::array<mmsghdr, batch> calls{};
        std::array<iovec, batch> bytes{};
        for (std::size_t i = 0; i < batch; ++i) {
            bytes[i] = {buffer.data() + i * size, size};
            calls[i].msg_hdr.msg_iov = &bytes[i];
            calls[i].msg_hdr.msg_iovlen = 1;
        }
        const int got = recvmmsg(socket_, calls.data(), batch, MSG_DONTWAIT, nullptr);
        if (got < 0 && errno == EAGAIN) return relax();
        check_call(got, "recvmmsg");
        for (std::size_t i = 0; i < std::size_t(got); ++i)
            look(static_cast<const std::byte*>(bytes[i].iov_base), calls[i].msg_len);
    }

private:
    static sockaddr_in place(const char* address, int port) {
        sockaddr_in result{};
        result.sin_family = AF_INET;
        result.sin_port = htons(std::uint16_t(port));
        inet_pton(AF_INET, address, &result.sin_addr);
        return result;
    }

    int socket_;
    sockaddr_in to_;
};

}  // namespace rivals
