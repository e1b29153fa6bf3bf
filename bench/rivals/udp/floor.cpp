// SPDX-License-Identifier: Apache-2.0
//
// The floor of everything that goes over the network: datagrams by multicast from one process to
// another, with nothing around them. In the ping-pong one plain call each; in the stream sendmmsg and
// recvmmsg, and what is lost on the way is not repaired but counted as not delivered.
#include "../method.hpp"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

namespace {

using namespace rivals;

constexpr const char* groups[] = {"239.1.2.9", "239.1.2.10"};
constexpr std::size_t batch = 32;  // datagrams of one call

void check(long result, const char* what) {
    require(result >= 0, std::string(what) + ": " + std::strerror(errno));
}

/// Each rank receives in a group and at a port of its own, so that it does not hear itself, and the host of one
/// makes no copy for itself of what it sends.
class DatagramChannel {
public:
    DatagramChannel(int rank, const Options& options, std::uint16_t port)
        : socket_(socket(AF_INET, SOCK_DGRAM, 0)), to_(place(groups[1 - rank], port + 1 - rank)) {
        check(socket_, "socket");
        const int on = 1, room = 4 << 20;
        setsockopt(socket_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        // As much as the host gives: the second is root's.
        setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
        setsockopt(socket_, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room);
        const sockaddr_in here = place(groups[rank], port + rank);
        check(bind(socket_, reinterpret_cast<const sockaddr*>(&here), sizeof here), "bind");
        ip_mreqn member{};
        member.imr_multiaddr = here.sin_addr;
        inet_pton(AF_INET, options.addresses[std::size_t(rank)].c_str(), &member.imr_address);
        member.imr_ifindex = int(if_nametoindex(options.interface.c_str()));
        check(setsockopt(socket_, IPPROTO_IP, IP_ADD_MEMBERSHIP, &member, sizeof member), "join");
        check(setsockopt(socket_, IPPROTO_IP, IP_MULTICAST_IF, &member, sizeof member),
              "IP_MULTICAST_IF");
    }
    ~DatagramChannel() { close(socket_); }
    DatagramChannel(const DatagramChannel&) = delete;
    DatagramChannel& operator=(const DatagramChannel&) = delete;

    void send(const void* data, std::size_t size) {
        check(sendto(socket_, data, size, 0, reinterpret_cast<const sockaddr*>(&to_), sizeof to_),
              "sendto");
    }
    /// The next datagram of this size; what is left of a stream is passed over.
    void receive(void* data, std::size_t size) {
        while (try_receive(data, size) != long(size)) relax();
    }
    long try_receive(void* data, std::size_t size) {
        const long got = recv(socket_, data, size, MSG_DONTWAIT | MSG_TRUNC);
        if (got < 0 && errno != EAGAIN) check(got, "recv");
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
            check(sent, "sendmmsg");
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
        check(got, "recvmmsg");
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

/// A window as fast as it goes; then "that was all" until the receiver says how much came.
double ns_per_delivered(DatagramChannel& channel, const Message& message, std::size_t window) {
    const double start = now_ns();
    channel.send_many(message.bytes.data(), message.bytes.size(), window);
    const std::uint64_t end = window;
    std::uint64_t came = 0;
    for (int turn = 0;; ++turn) {
        if (turn % 1000 == 0) channel.send(&end, sizeof end);
        if (channel.try_receive(&came, sizeof came) == sizeof came) break;
        relax();
    }
    const double taken = now_ns() - start;
    require(came > 0, "of a whole window nothing came");
    return taken / double(came);
}

/// An end that comes before anything else is the previous window's, said once too often.
void deliver(DatagramChannel& channel, std::vector<std::byte>& buffer, const Message& message) {
    const std::size_t size = message.bytes.size();
    std::uint64_t came = 0, sum = 0;
    for (bool ended = false; !ended;) {
        channel.receive_many(buffer, size, [&](const std::byte* data, std::size_t length) {
            ended = ended || (length != size && came > 0);
            if (length != size) return;
            ++came;
            sum += look_at(data, size);
        });
    }
    require(sum == message.sum * came, "the stream arrived damaged");
    channel.send(&came, sizeof came);
}

void lead_raw_stream(const System& system, DatagramChannel& channel, Meeting& meeting,
                     const Options& options) {
    const Message message(options.message_bytes);
    Series samples;
    const double end = now_ns() + options.seconds * 1e9;
    bool more = true;
    while (more) {
        more = now_ns() < end && samples.size() < options.samples;
        meeting.exchange(0, more ? "more" : "");
        if (more) samples.push_back(ns_per_delivered(channel, message, options.window));
    }
    std::sort(samples.begin(), samples.end());
    print_figure(system, {"stream", options.message_bytes, 2}, samples, {});
}

int measure(const Options& options) {
    const System system{"udp_floor", "1"};
    const std::uint16_t port = some_port();
    Meeting* meeting = nullptr;
    return in_two_processes(
        options,
        [&](int rank, Meeting& place) {
            meeting = &place;
            return DatagramChannel(rank, options, port);
        },
        [&](DatagramChannel& channel, bool leader) {
            if (options.wants("pingpong")) pingpong(system, channel, leader, options);
            if (!options.wants("stream")) return;
            if (leader) return lead_raw_stream(system, channel, *meeting, options);
            const Message message(options.message_bytes);
            std::vector<std::byte> buffer;
            while (!meeting->exchange(1, "").empty()) deliver(channel, buffer, message);
        });
}

}  // namespace

int main(int argc, char** argv) {
    return guarded("udp_floor", [&] {
        return measure(parse_options(argc, argv, "Datagrams by multicast, nothing around them"));
    });
}
