// SPDX-License-Identifier: Apache-2.0
#include "tools/bridge/line_socket.hpp"

#include "rmem/base/clock.hpp"
#include "rmem/link/udp/key_file.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

namespace tools {

namespace {

constexpr std::size_t kReceiveBytes = std::size_t{64} << 10;

struct FreeFound {
    void operator()(addrinfo* found) const noexcept { ::freeaddrinfo(found); }
};
using Found = std::unique_ptr<addrinfo, FreeFound>;

/// Null, with `problem`, where there is none.
Found find(const remote::Address& address, int flags, std::string& problem) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = flags;
    addrinfo* found = nullptr;
    const int failed =
        ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted, &found);
    if (failed != 0) problem = ::gai_strerror(failed);
    return Found(failed == 0 ? found : nullptr);
}

std::string text_of(const remote::Address& address) {
    return fmt::format("{} port {}", address.host, address.port);
}

}  // namespace

LineSocket::LineSocket(const FarConfig& config)
    : config_(config), key_(rmem::udp::read_key(config.key_file)) {
    if (config_.listens) listen();
}

void LineSocket::listen() {
    std::string problem;
    const Found found = find(config_.address, AI_NUMERICHOST | AI_PASSIVE, problem);
    if (found) {
        listening_ = rmem::Descriptor(
            ::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
        const int on = 1;
        ::setsockopt(listening_.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (::bind(listening_.get(), found->ai_addr, found->ai_addrlen) != 0 ||
            ::listen(listening_.get(), 1) != 0)
            problem = std::strerror(errno);
    }
    if (!problem.empty())
        throw rmem::Error(rmem::Errc::system,
                          fmt::format("the far site cannot be listened for at {}: {}; give another "
                                      "\"listen\": \"address:port\"",
                                      text_of(config_.address), problem));
    sockaddr_storage own{};
    socklen_t bytes = sizeof own;
    ::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&own), &bytes);
    // The port is at the same place in both kinds of addresses.
    port_ = ntohs(reinterpret_cast<const sockaddr_in*>(&own)->sin_port);
}

// ---- Coming and going

void LineSocket::run(std::int64_t now_ns, bool wants_input) {
    if (socket_.get() < 0 && now_ns >= again_ns_)
        config_.listens ? accept(now_ns) : connect(now_ns);
    if (is_connecting_) finish_connecting(now_ns);
    if (!line_) return;
    if (wants_input) receive(now_ns);
    if (line_ && !line_->is_ready() && now_ns >= greeted_by_ns_)
        end(now_ns, "the other side does not say that it is a bridge's end");
    if (line_) flush(now_ns);
}

void LineSocket::accept(std::int64_t now_ns) {
    socket_ = rmem::Descriptor(
        ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket_.get() >= 0) begin(now_ns);
}

void LineSocket::connect(std::int64_t now_ns) {
    again_ns_ = now_ns + kAgainNs;
    std::string problem;
    const Found found = find(config_.address, 0, problem);
    if (!found) return end(now_ns, problem);
    socket_ =
        rmem::Descriptor(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    is_connecting_ = true;
    greeted_by_ns_ = now_ns + kGreetingNs;
    if (::connect(socket_.get(), found->ai_addr, found->ai_addrlen) != 0 && errno != EINPROGRESS)
        end(now_ns, std::strerror(errno));
}

void LineSocket::finish_connecting(std::int64_t now_ns) {
    pollfd wanted = {socket_.get(), POLLOUT, 0};
    if (::poll(&wanted, 1, 0) == 0) {
        if (now_ns >= greeted_by_ns_) end(now_ns, "nobody answers");
        return;
    }
    int problem = 0;
    socklen_t bytes = sizeof problem;
    ::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &problem, &bytes);
    if (problem != 0) return end(now_ns, std::strerror(problem));
    is_connecting_ = false;
    begin(now_ns);
}

void LineSocket::begin(std::int64_t now_ns) {
    remote::prepare_connection(socket_.get());
    using Side = bridge::SecureLine::Side;
    line_.emplace(key_, config_.listens ? Side::listener : Side::caller);
    greeted_by_ns_ = now_ns + kGreetingNs;
    ++number_;
}

void LineSocket::end(std::int64_t now_ns, const std::string& why) {
    const std::string sentence = fmt::format("the line to {}: {}", text_of(config_.address), why);
    // The same again and again would fill a journal.
    if (sentence != last_failure_) problem_ = last_failure_ = sentence;
    close(now_ns, false);
}

void LineSocket::close(std::int64_t now_ns, bool is_last) {
    if (is_last && is_up()) {
        line_->send_last();
        flush(now_ns);
    }
    line_.reset();
    socket_.reset();
    is_connecting_ = false;
    again_ns_ = now_ns + kAgainNs;
}

// ---- Bytes

void LineSocket::receive(std::int64_t now_ns) {
    std::array<std::byte, kReceiveBytes> buffer;
    const ssize_t came = ::recv(socket_.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (came < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (came < 0) return end(now_ns, std::strerror(errno));
    if (came == 0) return end(now_ns, line_->is_ready() ? "it was cut" : "it was refused");
    line_->receive(std::span(buffer).first(static_cast<std::size_t>(came)));
    if (!line_->problem().empty()) return end(now_ns, line_->problem());
    if (line_->has_ended()) return end(now_ns, "the other bridge has ended");
    if (line_->is_ready()) last_failure_.clear();
}

void LineSocket::flush(std::int64_t now_ns) {
    while (!line_->out().empty()) {
        const auto left = line_->out().left();
        const ssize_t sent =
            ::send(socket_.get(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (sent < 0) return end(now_ns, std::strerror(errno));
        line_->out().sent(static_cast<std::size_t>(sent));
    }
}

std::vector<std::byte> LineSocket::take_plain() {
    return is_up() ? line_->take_plain() : std::vector<std::byte>();
}

void LineSocket::send(remote::Outbox& plain) {
    const std::size_t waiting = line_->out().left().size();
    if (waiting >= kMostWaitingBytes) return;
    const auto left = plain.left();
    const std::size_t bytes = std::min(left.size(), kMostWaitingBytes - waiting);
    line_->send(left.first(bytes));
    plain.sent(bytes);
}

// ---- Waiting

void LineSocket::add_to(std::vector<pollfd>& polled, bool wants_input, std::int64_t now_ns) const {
    if (socket_.get() < 0) {
        if (config_.listens && now_ns >= again_ns_) polled.push_back({listening_.get(), POLLIN, 0});
        return;
    }
    const bool has_output = is_connecting_ || (line_ && line_->has_output());
    const int events = (wants_input ? POLLIN : 0) | (has_output ? POLLOUT : 0);
    if (events != 0) polled.push_back({socket_.get(), static_cast<short>(events), 0});
}

std::int64_t LineSocket::due_ns(std::int64_t now_ns) const {
    if (socket_.get() < 0) return config_.listens && now_ns >= again_ns_ ? rmem::kNever : again_ns_;
    return is_up() ? rmem::kNever : greeted_by_ns_;
}

}  // namespace tools
