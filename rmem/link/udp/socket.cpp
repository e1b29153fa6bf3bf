// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/udp/socket.hpp"

#include "rmem/link/udp/protocol/datagram.hpp"

#include <fmt/format.h>
#include <linux/sock_diag.h>
#include <netinet/udp.h>
#include <poll.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

namespace rmem::udp {

namespace {

constexpr unsigned kInARowForMany = 4;
constexpr std::size_t kMaxReceived = 65'536;  // in one piece: more than a length in IPv4 can say

/// Into the control part of a message: the bytes of each datagram.
void say_length(msghdr& message, std::uint16_t length) noexcept {
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = IPPROTO_UDP;
    header->cmsg_type = UDP_SEGMENT;
    header->cmsg_len = CMSG_LEN(sizeof length);
    std::memcpy(CMSG_DATA(header), &length, sizeof length);
}

/// What hosts and network cards say that cannot cut GSO batches.
bool is_gso_refusal(int error) noexcept {
    return error == EINVAL || error == EIO || error == EMSGSIZE || error == EOPNOTSUPP ||
           error == ENOPROTOOPT;
}

void* writable(const void* bytes) {
    return const_cast<void*>(bytes);  // the system's structures serve both directions
}

}  // namespace

Socket::Socket(const SocketSettings& settings)
    : settings_(settings),
      changes_(settings.endpoints.is_fan_out() ? Descriptor() : hear_changes()),
      socket_(make_socket(settings, joined_)),
      buffer_granted_(granted_buffer(socket_.get())),
      gso_(settings.gso) {
    const Endpoints& endpoints = settings.endpoints;
    for (const Address& node : endpoints.nodes) nodes_.push_back(to_socket_address(node));
    others_ = nodes_;
    if (endpoints.is_fan_out()) {
        others_.erase(others_.begin() + settings.node);
    } else {
        others_.push_back(to_socket_address(endpoints.group_of(settings.node)));
        const unsigned next = (settings.node + 1) % settings.nodes;
        const bool is_same = next % kGroups == settings.node % kGroups;
        if (!is_same) namesakes_ = to_socket_address(endpoints.group_of(next));
    }
    prepare_batches();
}

void Socket::prepare_batches() {
    in_bytes_ = std::make_unique_for_overwrite<std::byte[]>(kMaxInBatch * kMaxReceived);
    received_.reserve(kMaxInBatch * kMaxInGsoBatch);
    from_.reserve(kMaxInBatch * kMaxInGsoBatch);
    out_.resize(kMaxInBatch * others_.size());
    auto next = out_.begin();
    for (std::size_t i = 0; i < kMaxInBatch; ++i) {
        for (sockaddr_in& to : others_) {
            msghdr& message = (next++)->msg_hdr;
            message.msg_name = &to;
            message.msg_namelen = sizeof to;
            message.msg_iov = &out_parts_[i];
            message.msg_iovlen = 1;
        }
        in_parts_[i] = {&in_bytes_[i * kMaxReceived], kMaxReceived};
        in_[i].msg_hdr.msg_iov = &in_parts_[i];
        in_[i].msg_hdr.msg_iovlen = 1;
    }
}

// ---- Sending

bool Socket::send(std::span<const std::byte> datagram) noexcept {
    flush();
    if (others_.size() == 1) return send_one(others_.front(), datagram);
    queue(datagram);
    return flush() == 0;
}

bool Socket::send_to(unsigned node, std::span<const std::byte> datagram) noexcept {
    flush();
    return send_one(nodes_.empty() ? others_.front() : nodes_[node], datagram);
}

void Socket::send_to_namesakes(std::span<const std::byte> datagram) noexcept {
    flush();
    if (namesakes_) send_one(*namesakes_, datagram);
}

bool Socket::send_one(const sockaddr_in& to, std::span<const std::byte> datagram) noexcept {
    for (;;) {
        if (::sendto(handle(), datagram.data(), datagram.size(), MSG_DONTWAIT,
                     static_cast<const sockaddr*>(writable(&to)), sizeof to) >= 0) {
            ++counters_.sent;
            return true;
        }
        if (errno == EINTR) continue;
        note_not_sent(1);
        return false;
    }
}

/// True if the host has no room, so that trying others is useless.
bool Socket::note_not_sent(std::size_t datagrams) noexcept {
    const bool no_room = errno == EAGAIN || errno == EWOULDBLOCK || errno == ENOBUFS;
    if (no_room) {
        counters_.no_room += datagrams;
    } else {
        ++counters_.refused;
        counters_.last_error = errno;
    }
    return no_room;
}

void Socket::queue(std::span<const std::byte> datagram) noexcept {
    out_parts_[queued_] = {writable(datagram.data()), std::min(datagram.size(), kMaxPayload)};
    if (++queued_ == kMaxInBatch) flush();
}

std::size_t Socket::send_queued() noexcept {
    const std::size_t count = std::exchange(queued_, 0);
    const std::uint64_t sent_before = counters_.sent;
    if (gso_ && count > 1) {
        flush_gso_batches(count);
    } else {
        flush_singly(count);
    }
    return count * others_.size() - static_cast<std::size_t>(counters_.sent - sent_before);
}

void Socket::flush_singly(std::size_t count) noexcept {
    const std::size_t end = count * others_.size();
    for (std::size_t at = 0; at < end;) {
        const int sent =
            ::sendmmsg(handle(), &out_[at], static_cast<unsigned>(end - at), MSG_DONTWAIT);
        if (sent > 0) {
            counters_.sent += static_cast<unsigned>(sent);
            at += static_cast<std::size_t>(sent);
        } else if (errno != EINTR) {
            if (note_not_sent(end - at)) return;
            ++at;
        }
    }
}

/// How many of those queued can leave in one piece: of one length but the last, which may be
/// shorter.
std::size_t Socket::gso_batch_from(std::size_t first, std::size_t end) const noexcept {
    const std::size_t length = out_parts_[first].iov_len;
    end = std::min(end, first + kMaxBytesInBatch / std::max<std::size_t>(length, 1));
    std::size_t next = first + 1;
    while (next < end && out_parts_[next].iov_len == length) ++next;
    if (next < end && out_parts_[next].iov_len < length && out_parts_[next].iov_len != 0) ++next;
    return next - first;
}

void Socket::flush_gso_batches(std::size_t count) noexcept {
    for (std::size_t at = 0; at < count;) {
        const std::size_t length = gso_batch_from(at, count);
        for (const sockaddr_in& to : others_) send_gso_batch(to, at, length);
        at += length;
    }
}

/// What the host refuses in one piece goes singly, now and later.
void Socket::send_gso_batch(const sockaddr_in& to, std::size_t first, std::size_t count) noexcept {
    if (gso_ && count > 1) {
        if (send_in_one_piece(to, first, count)) return;
        gso_ = false;
    }
    for (std::size_t i = first; i < first + count; ++i) {
        send_one(to,
                 {static_cast<const std::byte*>(out_parts_[i].iov_base), out_parts_[i].iov_len});
    }
}

/// False if the host cannot do that.
bool Socket::send_in_one_piece(const sockaddr_in& to, std::size_t first,
                               std::size_t count) noexcept {
    alignas(cmsghdr) std::array<std::byte, CMSG_SPACE(sizeof(std::uint16_t))> control{};
    msghdr message{};
    message.msg_name = writable(&to);
    message.msg_namelen = sizeof to;
    message.msg_iov = &out_parts_[first];
    message.msg_iovlen = count;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    say_length(message, static_cast<std::uint16_t>(out_parts_[first].iov_len));
    while (::sendmsg(handle(), &message, MSG_DONTWAIT) < 0) {
        if (errno == EINTR) continue;
        if (is_gso_refusal(errno)) return false;
        note_not_sent(count);
        return true;
    }
    counters_.sent += count;
    return true;
}

// ---- Receiving

void Socket::ask_for_senders(bool on) noexcept {
    asks_for_senders_ = on;
    from_.clear();
    for (std::size_t i = 0; i < kMaxInBatch; ++i) {
        in_[i].msg_hdr.msg_name = on ? &in_from_[i] : nullptr;
        in_[i].msg_hdr.msg_namelen = on ? sizeof in_from_[i] : 0;
    }
}

Socket::Datagrams Socket::receive() noexcept {
    received_.clear();
    from_.clear();
    const std::size_t count =
        in_a_row_ < kInARowForMany && !asks_for_senders_ ? receive_one() : receive_many();
    if (count == 0) {
        in_a_row_ = 0;
    } else if (count == 1 && in_a_row_ >= kInARowForMany) {
        in_a_row_ = 1;  // few have come: the next one is worth a plain call
    } else {
        in_a_row_ = std::min(in_a_row_ + 1, kInARowForMany);
    }
    counters_.received += received_.size();
    return received_;
}

std::size_t Socket::receive_one() noexcept {
    const ssize_t size = ::recv(handle(), in_bytes_.get(), kMaxReceived, MSG_DONTWAIT);
    if (size < 0) {
        note_receive_error();
        return 0;
    }
    cut({in_bytes_.get(), static_cast<std::size_t>(size)}, in_from_.front());
    return 1;
}

std::size_t Socket::receive_many() noexcept {
    const int count = ::recvmmsg(handle(), in_.data(), kMaxInBatch, MSG_DONTWAIT, nullptr);
    if (count < 0) {
        note_receive_error();
        return 0;
    }
    for (std::size_t i = 0; i < static_cast<std::size_t>(count); ++i) {
        cut({&in_bytes_[i * kMaxReceived], in_[i].msg_len}, in_from_[i]);
        if (asks_for_senders_) in_[i].msg_hdr.msg_namelen = sizeof in_from_[i];
    }
    return static_cast<std::size_t>(count);
}

/// The datagrams that the host gave in one piece, each as long as it says. What follows the last of
/// a GSO batch is nobody's, and goes to the reader as it is.
void Socket::cut(std::span<std::byte> bytes, const sockaddr_in& from) noexcept {
    for (std::size_t i = 1;; ++i) {
        const std::size_t length = i < kMaxInGsoBatch ? length_of_first(bytes) : bytes.size();
        received_.push_back(bytes.first(length));
        if (asks_for_senders_) from_.push_back(ntohl(from.sin_addr.s_addr));
        if (length > kMaxPayload) ++counters_.oversized;
        bytes = bytes.subspan(length);
        if (bytes.empty()) return;
    }
}

void Socket::note_receive_error() noexcept {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return;
    ++counters_.receive_errors;
    counters_.last_error = errno;
}

bool Socket::wait(Deadline deadline) const noexcept {
    pollfd polled{handle(), POLLIN, 0};
    if (deadline.is_never()) return ::ppoll(&polled, 1, nullptr, nullptr) > 0;
    const std::int64_t now = now_ns();
    const std::int64_t left = deadline.passed(now) ? 0 : deadline.at_ns - now;
    const timespec timeout{left / 1'000'000'000, left % 1'000'000'000};
    return ::ppoll(&polled, 1, &timeout, nullptr) > 0;
}

// ---- What the host makes of it

/// All that is there has been told by now, also where the host had no room for more.
bool Socket::has_network_changed() const noexcept {
    bool any = false;
    std::array<char, 512> message;
    while (::recv(changes_.get(), message.data(), message.size(), MSG_DONTWAIT) > 0 ||
           errno == ENOBUFS || errno == EINTR)
        any = true;
    return any;
}

bool Socket::is_ours() const noexcept {
    return socket_.is_ours() && (changes_.get() < 0 || changes_.is_ours());
}

std::string Socket::mend(bool is_refused) noexcept try {
    if (settings_.endpoints.is_fan_out() || !(has_network_changed() || is_refused)) return problem_;
    problem_.clear();
    const Interface there = settings_.endpoints.interface_now();
    if (there == joined_) return "";
    const Interface before = std::exchange(joined_, {});
    use_groups(socket_.get(), settings_, there, before);
    joined_ = there;
    return "";
} catch (const std::exception& error) {  // what it says is said again, until something changes
    return problem_ = error.what();
}

std::uint64_t Socket::overflowed() const noexcept {
    std::array<std::uint32_t, SK_MEMINFO_VARS> facts{};
    socklen_t size = sizeof facts;
    if (::getsockopt(handle(), SOL_SOCKET, SO_MEMINFO, facts.data(), &size) != 0) return 0;
    return facts[SK_MEMINFO_DROPS];
}

std::string Socket::buffer_advice() const {
    const std::size_t asked = settings_.receive_buffer_bytes;
    if (buffer_granted_ >= 2 * asked || datagrams_held() >= kEnoughDatagrams) return "";
    return fmt::format(
        "the receive buffer holds {} datagrams of {} bytes instead of {}, so nodes send fewer at a "
        "time; allow more with `sysctl -w net.core.rmem_max={}`, for good in /etc/sysctl.d",
        datagrams_held(), kDefaultPayload, 2 * asked / 4 * 3 / bytes_charged(kDefaultPayload),
        asked);
}

}  // namespace rmem::udp
