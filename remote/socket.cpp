// SPDX-License-Identifier: Apache-2.0
#include "remote/socket.hpp"

#include <fmt/format.h>

#include <cstring>
#include <memory>

#ifdef _WIN32
#include <winsock2.h>
// After it.
#include <mstcpip.h>
#include <ws2tcpip.h>
#else
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#endif

namespace remote {

namespace {

// ---- Where the two differ

#ifdef _WIN32
constexpr int kSendFlags = 0;
constexpr int kEndBoth = SD_BOTH;

/// The sockets of Windows, for as long as the library is loaded.
void prepare_sockets() {
    static const int failed = [] {
        WSADATA data;
        return ::WSAStartup(MAKEWORD(2, 2), &data);
    }();
    if (failed != 0)
        throw rmem::Error(rmem::Errc::system, fmt::format("Windows has no sockets ({})", failed));
}
std::string last_problem() {
    return fmt::format("error {} of Windows' sockets", ::WSAGetLastError());
}
bool is_interrupted() {
    return false;
}
int close_handle(std::intptr_t handle) {
    return ::closesocket(static_cast<SOCKET>(handle));
}
int poll_one(pollfd& wanted, int most_ms) {
    return ::WSAPoll(&wanted, 1, most_ms);
}
template <class Value>
void set_option(std::intptr_t handle, int level, int option, const Value& value) {
    ::setsockopt(static_cast<SOCKET>(handle), level, option, reinterpret_cast<const char*>(&value),
                 sizeof value);
}
DWORD timeout_of(std::chrono::milliseconds time) {
    return static_cast<DWORD>(time.count());
}
void ask_whether_alive(std::intptr_t handle) {
    using Milliseconds = std::chrono::milliseconds;
    tcp_keepalive values{1, timeout_of(Milliseconds(Socket::kAliveAfter)),
                         timeout_of(Milliseconds(Socket::kAliveEvery))};  // the tries are its own
    DWORD bytes = 0;
    ::WSAIoctl(static_cast<SOCKET>(handle), SIO_KEEPALIVE_VALS, &values, sizeof values, nullptr, 0,
               &bytes, nullptr, nullptr);
}
SOCKET native(std::intptr_t handle) {
    return static_cast<SOCKET>(handle);
}
using Length = int;
#else
constexpr int kSendFlags = MSG_NOSIGNAL;
constexpr int kEndBoth = SHUT_RDWR;

void prepare_sockets() {}
std::string last_problem() {
    return std::strerror(errno);
}
bool is_interrupted() {
    return errno == EINTR;
}
int close_handle(std::intptr_t handle) {
    return ::close(static_cast<int>(handle));
}
int poll_one(pollfd& wanted, int most_ms) {
    return ::poll(&wanted, 1, most_ms);
}
template <class Value>
void set_option(std::intptr_t handle, int level, int option, const Value& value) {
    ::setsockopt(static_cast<int>(handle), level, option, &value, sizeof value);
}
timeval timeout_of(std::chrono::milliseconds time) {
    return {time.count() / 1000, time.count() % 1000 * 1000};
}
void ask_whether_alive(std::intptr_t handle) {
    set_option(handle, SOL_SOCKET, SO_KEEPALIVE, 1);
    set_option(handle, IPPROTO_TCP, TCP_KEEPIDLE, static_cast<int>(Socket::kAliveAfter.count()));
    set_option(handle, IPPROTO_TCP, TCP_KEEPINTVL, static_cast<int>(Socket::kAliveEvery.count()));
    set_option(handle, IPPROTO_TCP, TCP_KEEPCNT, Socket::kAliveTries);
}
int native(std::intptr_t handle) {
    return static_cast<int>(handle);
}
using Length = std::size_t;
#endif

// ---- And what is the same

struct FreeFound {
    void operator()(addrinfo* found) const noexcept { ::freeaddrinfo(found); }
};

[[noreturn]] void not_reached(const Address& address, const std::string& why) {
    throw rmem::Error(
        rmem::Errc::system,
        fmt::format("nothing serves a node at {} port {}: {}; start one there, such as `rmem serve "
                    "--ring rig --nodes 2 --node 0`, or set RFM2G_SERVER to another host:port",
                    address.host, address.port, why));
}

std::unique_ptr<addrinfo, FreeFound> find(const Address& address) {
    addrinfo wanted{};
    wanted.ai_family = AF_UNSPEC;
    wanted.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address.port);
    const int failed = ::getaddrinfo(address.host.c_str(), port.c_str(), &wanted, &found);
    if (failed != 0) not_reached(address, "there is no such host");
    return std::unique_ptr<addrinfo, FreeFound>(found);
}

}  // namespace

Address parse_address(const std::string& what, const std::string& text) {
    const auto colon = text.rfind(':');
    std::string host = text.substr(0, colon);
    if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
    const std::string port = colon == std::string::npos ? "" : text.substr(colon + 1);
    constexpr unsigned long kMaxPort = 65535;
    const bool is_number = !port.empty() && port.size() <= 5 &&
                           port.find_first_not_of("0123456789") == std::string::npos;
    if (host.empty() || !is_number || std::stoul(port) > kMaxPort) {
        throw rmem::Error(rmem::Errc::bad_environment,
                          fmt::format("{}: '{}' is not valid; give an address and a port, such as "
                                      "127.0.0.1:5565",
                                      what, text));
    }
    return {host, static_cast<std::uint16_t>(std::stoul(port))};
}

void prepare_connection(std::intptr_t handle) {
    set_option(handle, IPPROTO_TCP, TCP_NODELAY, 1);
    ask_whether_alive(handle);
}

Socket::Socket(const Address& address) : handle_(-1) {
    prepare_sockets();
    const auto found = find(address);
    std::string problem;
    for (const addrinfo* each = found.get(); each != nullptr && handle_ < 0; each = each->ai_next) {
        handle_ = static_cast<std::intptr_t>(
            ::socket(each->ai_family, each->ai_socktype, each->ai_protocol));
        if (handle_ >= 0 && ::connect(native(handle_), each->ai_addr,
                                      static_cast<socklen_t>(each->ai_addrlen)) == 0)
            break;
        problem = last_problem();
        if (handle_ >= 0) close_handle(handle_);
        handle_ = -1;
    }
    if (handle_ < 0) not_reached(address, problem);
    prepare_connection(handle_);
    set_option(handle_, SOL_SOCKET, SO_SNDTIMEO, timeout_of(kLongestSilence));
    set_option(handle_, SOL_SOCKET, SO_RCVTIMEO, timeout_of(kLongestSilence));
}

Socket::~Socket() {
    close_handle(handle_);
}

bool Socket::send(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const auto sent = ::send(native(handle_), reinterpret_cast<const char*>(bytes.data()),
                                 static_cast<Length>(bytes.size()), kSendFlags);
        if (sent < 0 && is_interrupted()) continue;
        if (sent <= 0) return false;
        bytes = bytes.subspan(static_cast<std::size_t>(sent));
    }
    return true;
}

std::size_t Socket::receive(std::span<std::byte> to) {
    for (;;) {
        const auto came = ::recv(native(handle_), reinterpret_cast<char*>(to.data()),
                                 static_cast<Length>(to.size()), 0);
        if (came >= 0) return static_cast<std::size_t>(came);
        if (!is_interrupted()) return 0;
    }
}

bool Socket::wait(int most_ms) {
    pollfd wanted{};
    wanted.fd = native(handle_);
    wanted.events = POLLIN;
    return poll_one(wanted, most_ms) > 0;
}

void Socket::end() {
    ::shutdown(native(handle_), kEndBoth);
}

}  // namespace remote
