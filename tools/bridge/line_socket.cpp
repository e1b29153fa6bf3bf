// SPDX-License-Identifier: Apache-2.0
#include "tools/bridge/line_socket.hpp"

#include "rmem/base/check.hpp"
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
#include <utility>

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
            ::listen(listening_.get(), SOMAXCONN) != 0)
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
    if (config_.listens) {
        accept(now_ns);
        greet_newcomers(now_ns);
    } else if (connecting_.get() >= 0) {
        finish_connecting(now_ns);
    } else if (!line_ && now_ns >= again_ns_) {
        connect(now_ns);
    }
    if (!line_) return;
    const bool was_up = is_up();
    std::string why = wants_input ? line_->receive() : "";
    if (why.empty() && !is_up() && now_ns >= line_->greeted_by_ns)
        why = "the other side does not say that it is a bridge's end";
    if (why.empty()) why = line_->flush();
    if (!why.empty()) return end(now_ns, why);
    if (is_up() && !was_up) last_failure_.clear();
}

void LineSocket::accept(std::int64_t now_ns) {
    // As many as there are places, and the others with the next call.
    for (std::size_t i = 0; i < kMaxNewcomers && now_ns >= again_ns_; ++i) {
        sockaddr_storage from{};
        socklen_t bytes = sizeof from;
        rmem::Descriptor socket(::accept4(listening_.get(), reinterpret_cast<sockaddr*>(&from),
                                          &bytes, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (socket.get() < 0) {
            // Until there are descriptors again it would be polled for without end.
            if (errno == EMFILE || errno == ENFILE) again_ns_ = now_ns + kAgainNs;
            return;
        }
        std::array<char, NI_MAXHOST> host{};
        ::getnameinfo(reinterpret_cast<sockaddr*>(&from), bytes, host.data(), host.size(), nullptr,
                      0, NI_NUMERICHOST);
        if (newcomers_.size() == kMaxNewcomers) make_room();
        newcomers_.push_back(
            begin(std::move(socket), key_, bridge::SecureLine::Side::listener, now_ns));
        newcomers_.back().from = host.data();
    }
}

/// An end that has shown the key stays as long as no other end has.
void LineSocket::make_room() {
    RMEM_CHECK(newcomers_.size() <= kMaxNewcomers);
    const auto weight = [this](const Connection& one) {
        return one.is_greeted()
                   ? 0
                   : std::count_if(newcomers_.begin(), newcomers_.end(),
                                   [&](const Connection& other) { return other.from == one.from; });
    };
    newcomers_.erase(std::max_element(
        newcomers_.begin(), newcomers_.end(),
        [&](const Connection& a, const Connection& b) { return weight(a) < weight(b); }));
}

void LineSocket::greet_newcomers(std::int64_t now_ns) {
    newcomers_.remove_if([&](Connection& one) {
        std::string why = one.is_greeted() ? "" : one.receive();
        if (why.empty() && !one.is_greeted() && now_ns >= one.greeted_by_ns)
            why = "one that has come does not say that it is a bridge's end";
        if (why.empty()) why = one.flush();
        if (!why.empty()) tell(why, now_ns);
        return !why.empty();
    });
    if (line_) return;
    const auto first = std::find_if(newcomers_.begin(), newcomers_.end(),
                                    [](const Connection& one) { return one.is_greeted(); });
    if (first == newcomers_.end()) return;
    line_ = std::move(*first);
    newcomers_.erase(first);
    ++number_;
    last_failure_.clear();
    RMEM_CHECK(is_up());
}

void LineSocket::connect(std::int64_t now_ns) {
    again_ns_ = now_ns + kAgainNs;
    std::string problem;
    const Found found = find(config_.address, 0, problem);
    if (!found) return end(now_ns, problem);
    connecting_ =
        rmem::Descriptor(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    answered_by_ns_ = now_ns + kGreetingNs;
    if (::connect(connecting_.get(), found->ai_addr, found->ai_addrlen) != 0 &&
        errno != EINPROGRESS)
        end(now_ns, std::strerror(errno));
}

void LineSocket::finish_connecting(std::int64_t now_ns) {
    pollfd wanted = {connecting_.get(), POLLOUT, 0};
    if (::poll(&wanted, 1, 0) == 0) {
        if (now_ns >= answered_by_ns_) end(now_ns, "nobody answers");
        return;
    }
    int problem = 0;
    socklen_t bytes = sizeof problem;
    ::getsockopt(connecting_.get(), SOL_SOCKET, SO_ERROR, &problem, &bytes);
    if (problem != 0) return end(now_ns, std::strerror(problem));
    line_ = begin(std::move(connecting_), key_, bridge::SecureLine::Side::caller, now_ns);
    ++number_;
}

LineSocket::Connection LineSocket::begin(rmem::Descriptor socket, const rmem::udp::MasterKey& key,
                                         bridge::SecureLine::Side side, std::int64_t now_ns) {
    remote::prepare_connection(socket.get());
    return {std::move(socket), std::make_unique<bridge::SecureLine>(key, side),
            now_ns + kGreetingNs, ""};
}

void LineSocket::tell(const std::string& why, std::int64_t now_ns) {
    const std::string sentence = fmt::format("the line to {}: {}", text_of(config_.address), why);
    // The same again and again would fill a journal, and so would what many strangers do.
    if (sentence == last_failure_) return;
    last_failure_ = sentence;
    if (const std::string said = sparingly_.pass(sentence, now_ns); !said.empty()) problem_ = said;
}

void LineSocket::end(std::int64_t now_ns, const std::string& why) {
    tell(why, now_ns);
    close(now_ns, false);
}

void LineSocket::close(std::int64_t now_ns, bool is_last) {
    if (is_last && is_up()) {
        line_->line->send_last();
        static_cast<void>(line_->flush());
    }
    line_.reset();
    connecting_.reset();
    // A listener takes the next at once.
    if (!config_.listens) again_ns_ = now_ns + kAgainNs;
}

// ---- Bytes

std::string LineSocket::Connection::receive() {
    std::array<std::byte, kReceiveBytes> buffer;
    const ssize_t came = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (came < 0 && (errno == EAGAIN || errno == EINTR)) return "";
    if (came < 0) return std::strerror(errno);
    if (came == 0) return line->is_ready() ? "it was cut" : "it was closed before it was up";
    line->receive(std::span(buffer).first(static_cast<std::size_t>(came)));
    return line->problem().empty() && line->has_ended() ? "the other bridge has ended"
                                                        : line->problem();
}

std::string LineSocket::Connection::flush() {
    while (!line->out().empty()) {
        const auto left = line->out().left();
        const ssize_t sent =
            ::send(socket.get(), left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) return errno == EAGAIN || errno == EINTR ? "" : std::strerror(errno);
        line->out().sent(static_cast<std::size_t>(sent));
    }
    return "";
}

std::vector<std::byte> LineSocket::take_plain() {
    return is_up() ? line_->line->take_plain() : std::vector<std::byte>();
}

void LineSocket::send(rmem::ByteQueue& plain) {
    const std::size_t waiting = line_->line->out().left().size();
    if (waiting >= kMaxWaitingBytes) return;
    const auto left = plain.left();
    const std::size_t bytes = std::min(left.size(), kMaxWaitingBytes - waiting);
    line_->line->send(left.first(bytes));
    plain.sent(bytes);
}

// ---- Waiting

void LineSocket::add_to(std::vector<pollfd>& polled, bool wants_input, std::int64_t now_ns) const {
    const auto add = [&](int descriptor, bool input, bool output) {
        const int events = (input ? POLLIN : 0) | (output ? POLLOUT : 0);
        if (events != 0) polled.push_back({descriptor, static_cast<short>(events), 0});
    };
    if (config_.listens && now_ns >= again_ns_) add(listening_.get(), true, false);
    for (const Connection& one : newcomers_)
        add(one.socket.get(), !one.is_greeted(), one.line->has_output());
    if (connecting_.get() >= 0) add(connecting_.get(), false, true);
    if (line_) add(line_->socket.get(), wants_input, line_->line->has_output());
}

std::int64_t LineSocket::due_ns(std::int64_t now_ns) const {
    std::int64_t due = rmem::kNever;
    for (const Connection& one : newcomers_)
        if (!one.is_greeted()) due = std::min(due, one.greeted_by_ns);
    if (config_.listens) return now_ns < again_ns_ ? std::min(due, again_ns_) : due;
    if (connecting_.get() >= 0) return answered_by_ns_;
    return is_up() ? due : line_ ? line_->greeted_by_ns : again_ns_;
}

}  // namespace tools
