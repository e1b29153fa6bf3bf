// SPDX-License-Identifier: Apache-2.0
#include "tools/serve/server.hpp"

#include "rmem/base/check.hpp"
#include "rmem/base/clock.hpp"

#include <fmt/format.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <utility>

namespace tools {

namespace {

using remote::Channel;
using remote::FrameWriter;
using remote::Hello;
using remote::Kind;

constexpr std::size_t kReceiveBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxHelloBytes = 64;
/// Between tries of a call that waits for the node.
constexpr std::int64_t kTryNs = 50'000;
constexpr std::uint64_t kAllNumbers = (std::uint64_t{1} << RMEM_INTERRUPT_NUMBERS) - 1;
constexpr std::size_t kListening = 0;
constexpr std::size_t kInterrupts = 1;

std::string text_of(const sockaddr* address, socklen_t bytes) {
    std::array<char, NI_MAXHOST> host{};
    std::array<char, NI_MAXSERV> port{};
    const int failed = ::getnameinfo(address, bytes, host.data(), host.size(), port.data(),
                                     port.size(), NI_NUMERICHOST | NI_NUMERICSERV);
    return failed != 0 ? "an address without a name"
                       : fmt::format("{} port {}", host.data(), port.data());
}

/// By which a client names itself on its second connection; nobody else knows it.
std::uint64_t new_session_number() {
    std::uint64_t number = 0;
    if (::getrandom(&number, sizeof number, 0) != sizeof number) {
        throw rmem::Error(rmem::Errc::system,
                          fmt::format("there are no random numbers: {}", std::strerror(errno)));
    }
    return number;
}

[[noreturn]] void not_listening(const remote::Address& address, const std::string& why) {
    throw rmem::Error(rmem::Errc::system,
                      fmt::format("nothing can be served at {} port {}: {}; give another --listen "
                                  "address:port, port 0 for any",
                                  address.host, address.port, why));
}

}  // namespace

// ---- Connections

Server::Connection::Connection(Connection&& other) noexcept
    : slot(other.slot), fd_(std::exchange(other.fd_, -1)), peer_(std::move(other.peer_)) {}

Server::Connection& Server::Connection::operator=(Connection&& other) noexcept {
    std::swap(slot, other.slot);
    std::swap(fd_, other.fd_);
    std::swap(peer_, other.peer_);
    return *this;
}

Server::Connection::~Connection() {
    if (fd_ >= 0) ::close(fd_);
}

bool Server::Connection::receive(
    const std::function<void(std::span<const std::byte>)>& take) const {
    std::array<std::byte, kReceiveBytes> buffer;
    const ssize_t came = ::recv(fd_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (came < 0) return errno == EAGAIN || errno == EINTR;
    take(std::span(buffer).first(static_cast<std::size_t>(came)));
    return came > 0;
}

bool Server::Connection::send(rmem::ByteQueue& box) const {
    while (!box.empty()) {
        const auto left = box.left();
        const ssize_t sent = ::send(fd_, left.data(), left.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
        if (sent < 0) return errno == EAGAIN || errno == EINTR;
        box.sent(static_cast<std::size_t>(sent));
    }
    return true;
}

Server::Server(rmem_node* node, const remote::Address& listen_at, std::int64_t silence_ns, Say say)
    : node_(node),
      silence_ns_(silence_ns),
      say_(std::move(say)),
      interrupt_fd_(rmem_interrupt_fd(node)),
      twins_(node) {
    if (interrupt_fd_ < 0 || rmem_accept_interrupts(node, kAllNumbers) < 0)
        throw std::runtime_error(rmem_last_error());
    listen(listen_at);
}

void Server::listen(const remote::Address& address) {
    addrinfo wanted{};
    wanted.ai_socktype = SOCK_STREAM;
    wanted.ai_flags = AI_NUMERICHOST | AI_PASSIVE;
    addrinfo* found = nullptr;
    if (::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &wanted,
                      &found) != 0) {
        not_listening(address, "this is no address of a host");
    }
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owned(found, ::freeaddrinfo);
    listening_.emplace(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0),
                       "");
    const int fd = listening_->fd();
    const int on = 1;
    ::setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (fd < 0 || ::bind(fd, found->ai_addr, found->ai_addrlen) != 0 ||
        ::listen(fd, SOMAXCONN) != 0) {
        not_listening(address, std::strerror(errno));
    }
    sockaddr_storage own{};
    socklen_t bytes = sizeof own;
    ::getsockname(fd, reinterpret_cast<sockaddr*>(&own), &bytes);
    // The port is at the same place in both kinds of addresses.
    port_ = ntohs(reinterpret_cast<const sockaddr_in*>(&own)->sin_port);
}

// ---- The loop

void Server::run(const StopSignals& stop) {
    while (stop.signal() == 0) {
        gather();
        if (!stop.wait(polled_, next_ns())) {
            for (pollfd& each : polled_) each.revents = 0;
        }
        const std::int64_t now_ns = rmem::now_ns();
        if (polled_[kInterrupts].revents != 0) take_interrupts();
        greet_newcomers(now_ns);
        if (polled_[kListening].revents != 0) accept_one(now_ns);
        for (Client& client : clients_) serve(client, now_ns);
        look(now_ns);
        for (Client& client : clients_) serve_news(client);
        forget_ended(now_ns);
    }
}

void Server::watch(Connection& connection, bool wants_input, bool has_output) {
    connection.slot = polled_.size();
    const int events = (wants_input ? POLLIN : 0) | (has_output ? POLLOUT : 0);
    // An end counts only where something is to be read or written.
    polled_.push_back({events == 0 ? -1 : connection.fd(), static_cast<short>(events), 0});
}

void Server::gather() {
    polled_.clear();
    watch(*listening_, true, false);
    polled_.push_back({interrupt_fd_, POLLIN, 0});
    for (Newcomer& newcomer : newcomers_) watch(newcomer.connection, true, false);
    for (Client& client : clients_) {
        if (client.calls) {
            watch(*client.calls, client.session.wants_input(), !client.session.answers().empty());
        }
        if (client.news) watch(*client.news, true, !client.session.news().empty());
    }
}

/// One that has come since the last poll is not.
bool Server::is_ready(const std::optional<Connection>& connection) const {
    if (!connection || connection->slot == 0) return false;
    RMEM_CHECK(connection->slot < polled_.size());
    return polled_[connection->slot].revents != 0;
}

std::int64_t Server::next_ns() const {
    std::int64_t next_ns = rmem::kNever;
    for (const Newcomer& newcomer : newcomers_) next_ns = std::min(next_ns, newcomer.until_ns);
    for (const Client& client : clients_) {
        if (client.session.is_waiting()) next_ns = std::min(next_ns, rmem::now_ns() + kTryNs);
        if (client.has_ended && !client.session.is_waiting()) return 0;
        if (client.news && client.session.wants_look()) next_ns = std::min(next_ns, look_at_ns_);
        if (!client.had_news) next_ns = std::min(next_ns, client.heard_ns + kLongestHelloNs);
    }
    return next_ns;
}

// ---- Who comes

void Server::accept_one(std::int64_t now_ns) {
    sockaddr_storage from{};
    socklen_t bytes = sizeof from;
    const int fd = ::accept4(listening_->fd(), reinterpret_cast<sockaddr*>(&from), &bytes,
                             SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd < 0) {
        // Until there are descriptors again the one that comes would be polled for without end.
        if (errno == EMFILE || errno == ENFILE) ::usleep(kTryNs / 1000);
        return;
    }
    RMEM_CHECK(newcomers_.size() <= kMaxClients);
    remote::prepare_connection(fd);
    if (newcomers_.size() == kMaxClients) newcomers_.pop_front();
    newcomers_.push_back({Connection(fd, text_of(reinterpret_cast<sockaddr*>(&from), bytes)),
                          remote::FrameQueue(kMaxHelloBytes), now_ns + kLongestHelloNs});
}

void Server::greet_newcomers(std::int64_t now_ns) {
    newcomers_.remove_if([&](Newcomer& newcomer) {
        const Connection& connection = newcomer.connection;
        if (polled_[connection.slot].revents == 0) return now_ns >= newcomer.until_ns;
        const bool is_there = connection.receive(
            [&](std::span<const std::byte> bytes) { newcomer.frames.add(bytes); });
        const auto frame = newcomer.frames.front();
        if (!frame && !newcomer.frames.is_broken()) return !is_there;
        const auto hello = frame ? remote::read_hello(*frame) : std::nullopt;
        if (hello) {
            newcomer.frames.pop();
            greet(newcomer, *hello, now_ns);
        } else {
            say_sparingly(fmt::format("{} is no client of `rmem serve`; its connection is closed",
                                      connection.peer()));
        }
        return true;
    });
}

void Server::refuse(const Newcomer& newcomer, int code, const std::string& why) {
    rmem::ByteQueue answer;
    FrameWriter(answer.bytes(), Kind::failed).put(static_cast<std::uint32_t>(code)).put(why);
    newcomer.connection.send(answer);
    say_sparingly(fmt::format("{} is refused: {}", newcomer.connection.peer(), why));
}

void Server::say_sparingly(const std::string& sentence) {
    const std::string said = sparingly_.pass(sentence, rmem::now_ns());
    if (!said.empty()) say_(said);
}

/// There is one, or the client that has been silent for longest has lost its own.
bool Server::has_place(std::int64_t now_ns) {
    RMEM_CHECK(clients_.size() <= kMaxClients);
    if (clients_.size() < kMaxClients) return true;
    const auto silent =
        std::min_element(clients_.begin(), clients_.end(),
                         [](const Client& a, const Client& b) { return a.heard_ns < b.heard_ns; });
    if (now_ns - silent->heard_ns < silence_ns_) return false;
    say_sparingly(fmt::format("{} has been silent for {} s, and loses its place to another",
                              silent->calls ? silent->calls->peer() : "a client",
                              silence_ns_ / rmem::kNsPerSecond));
    clients_.erase(silent);
    return true;
}

void Server::greet(Newcomer& newcomer, const Hello& hello, std::int64_t now_ns) {
    if (hello.version != remote::kVersion) {
        return refuse(newcomer, RMEM_EVERSION,
                      fmt::format("`rmem serve` speaks version {} and the client version {}; take "
                                  "both from one release",
                                  remote::kVersion, hello.version));
    }
    if (hello.channel == Channel::calls) {
        if (!has_place(now_ns)) {
            return refuse(newcomer, RMEM_EBUSY,
                          fmt::format("`rmem serve` has {} clients, and no more; end one, or start "
                                      "another `rmem serve`",
                                      kMaxClients));
        }
        Client& client = clients_.emplace_back(node_, new_session_number(), twins_);
        client.heard_ns = now_ns;
        client.calls.emplace(std::move(newcomer.connection)).slot = 0;
        client.session.receive(newcomer.frames.rest());
        return;
    }
    const auto client = std::find_if(clients_.begin(), clients_.end(), [&](const Client& each) {
        return each.session.number() == hello.session && !each.news;
    });
    if (client == clients_.end()) return refuse(newcomer, RMEM_EINVAL, "it is of no session");
    FrameWriter(client->session.news().bytes(), Kind::done);
    client->news.emplace(std::move(newcomer.connection)).slot = 0;
    client->had_news = true;
}

// ---- Who is served

void Server::take_interrupts() {
    rmem_interrupt interrupt;
    while (rmem_next_interrupt(node_, &interrupt, 0) == RMEM_OK) {
        for (Client& client : clients_) client.session.on_interrupt(interrupt);
    }
    look_at_ns_ = 0;
}

void Server::serve(Client& client, std::int64_t now_ns) {
    remote::Session& session = client.session;
    const bool has_come = client.has_ended ? client.calls.has_value() : is_ready(client.calls);
    if (has_come && session.wants_input()) {
        client.heard_ns = now_ns;
        if (!client.calls->receive(
                [&](std::span<const std::byte> bytes) { session.receive(bytes); })) {
            client.calls.reset();
            client.has_ended = true;
        }
    }
    session.run(now_ns);
    if (!client.has_ended && !client.calls->send(session.answers())) client.has_ended = true;
    // What it sent before is done yet; the client does not read the answers.
    if (client.has_ended) session.answers().sent(session.answers().left().size());
}

void Server::serve_news(Client& client) {
    if (!client.news) return;
    // A client says nothing there: what can be read is the end.
    const bool has_come =
        is_ready(client.news) && (polled_[client.news->slot].revents & ~POLLOUT) != 0;
    if (has_come || !client.news->send(client.session.news())) client.news.reset();
}

void Server::look(std::int64_t now_ns) {
    if (now_ns < look_at_ns_) return;
    if (round_ns_ == 0) {
        round_ns_ = now_ns;
        for (Client& client : clients_) client.left = client.session.pages();
    }
    bool is_over = true;
    for (Client& client : clients_) {
        if (!client.news) continue;
        const std::size_t most = std::min(client.left, kPagesATurn);
        const std::size_t compared = client.session.look(most);
        RMEM_CHECK(compared <= most);
        // Where there is no room for news the others do not wait for it.
        client.left = compared < most ? 0 : client.left - compared;
        is_over = is_over && client.left == 0;
    }
    if (!is_over) return;
    const std::int64_t end_ns = rmem::now_ns();
    look_at_ns_ = end_ns + std::max(kLookNs, end_ns - std::exchange(round_ns_, 0));
}

void Server::forget_ended(std::int64_t now_ns) {
    clients_.remove_if([&](const Client& client) {
        if (client.session.is_broken()) {
            say_sparingly(fmt::format("{} sends what is no call; its connection is closed",
                                      client.calls ? client.calls->peer() : "a client"));
            return true;
        }
        if (client.session.has_calls()) return false;
        // Each client opens its second connection at once.
        const bool is_none = !client.had_news && now_ns - client.heard_ns >= kLongestHelloNs;
        return is_none || (client.has_ended && !client.calls);
    });
}

}  // namespace tools
