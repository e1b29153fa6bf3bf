// SPDX-License-Identifier: Apache-2.0
#include "rmem/link/fabric/connections.hpp"

#include <sys/epoll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <optional>

namespace rmem::fabric {

namespace {

using AskName = int (*)(int, sockaddr*, socklen_t*);

/// As that call tells; nothing: it is no socket of IPv4, or has no such name.
std::optional<sockaddr_in> name_of(int socket, AskName ask) {
    sockaddr_storage name{};
    socklen_t length = sizeof name;
    if (ask(socket, reinterpret_cast<sockaddr*>(&name), &length) != 0) return std::nullopt;
    if (name.ss_family != AF_INET) return std::nullopt;
    return reinterpret_cast<const sockaddr_in&>(name);
}

bool is_stream(int socket) {
    int type = 0;
    socklen_t length = sizeof type;
    return ::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_STREAM;
}

bool is_same(const sockaddr_in& a, const sockaddr_in& b) {
    return a.sin_port == b.sin_port && a.sin_addr.s_addr == b.sin_addr.s_addr;
}

}  // namespace

bool Connections::are_watched(std::uint64_t changes, const sockaddr_in& own,
                              std::span<const sockaddr_in> peers, std::int64_t now) noexcept {
    if (changes != changes_) {
        changes_ = changes;
        changed_ns_ = now;
    }
    const std::int64_t settled_ns = changed_ns_ + kSettleNs;
    if (found_ns_ < settled_ns && now - found_ns_ >= kFindNs) {
        found_ns_ = now;
        try {
            find(own, peers);
        } catch (const std::exception&) {  // no memory to read the directory
            count_ = 0;
        }
    }
    return found_ns_ >= settled_ns && count_ != 0;
}

void Connections::find(const sockaddr_in& own, std::span<const sockaddr_in> peers) {
    const auto is_wanted = [&](int descriptor) {
        const auto other_end = name_of(descriptor, ::getpeername);
        if (!other_end || !is_stream(descriptor)) return false;
        const auto own_end = name_of(descriptor, ::getsockname);
        return (own_end && own_end->sin_port == own.sin_port) ||
               std::any_of(peers.begin(), peers.end(),
                           [&](const sockaddr_in& peer) { return is_same(peer, *other_end); });
    };
    count_ = 0;
    std::error_code error;
    for (std::filesystem::directory_iterator entry("/proc/self/fd", error), end;
         !error && entry != end; entry.increment(error)) {
        const int descriptor = std::atoi(entry->path().filename().c_str());
        if (!is_wanted(descriptor)) continue;
        epoll_event event{};
        event.events = EPOLLIN;
        // One that has ended left by itself, also where its number is another's now.
        if (::epoll_ctl(epoll_, EPOLL_CTL_ADD, descriptor, &event) != 0 && errno != EEXIST)
            continue;
        // Of another node of this process it may have been closed since, and its number be that of
        // a file of the program's: that would wake sleepers without end.
        if (is_wanted(descriptor)) {
            ++count_;
        } else {
            ::epoll_ctl(epoll_, EPOLL_CTL_DEL, descriptor, nullptr);
        }
    }
}

}  // namespace rmem::fabric
