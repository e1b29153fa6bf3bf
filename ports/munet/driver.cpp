// SPDX-License-Identifier: Apache-2.0
#include "ports/munet/driver.hpp"

#include "ports/munet/driver_protocol.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/environment_variable.hpp"
#include "rmem/base/ownership.hpp"
#include "rmem/ring/config.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace ports::munet {

namespace {

constexpr int kBacklog = 64;
constexpr unsigned kPacketsPerLook = 16;  ///< of one client

[[noreturn]] void fail(const std::string& what) {
    const int code = errno;
    throw rmem::Error(
        code == EACCES || code == EPERM ? rmem::Errc::not_permitted : rmem::Errc::system,
        fmt::format("MU-Net: {}: {}", what, std::strerror(code)));
}

/// A mapping of a program's endpoint.
class Mapping {
public:
    Mapping() = default;
    Mapping(const Mapping&) = delete;
    Mapping& operator=(const Mapping&) = delete;
    ~Mapping() {
        if (at_ != nullptr) ::munmap(at_, bytes_);
    }

    /// Memory of its own, that can be handed on once; 0 or an errno.
    int make(std::size_t bytes, rmem::Descriptor* fd) {
        *fd = rmem::Descriptor(::memfd_create("munet", MFD_CLOEXEC | MFD_ALLOW_SEALING));
        if (fd->get() < 0) return errno;
        if (::ftruncate(fd->get(), static_cast<off_t>(bytes)) != 0) return errno;
        if (const int code = ::posix_fallocate(fd->get(), 0, static_cast<off_t>(bytes)))
            return code;
        if (::fcntl(fd->get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
            return errno;
        }
        void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd->get(), 0);
        if (at == MAP_FAILED) return errno;
        at_ = at;
        bytes_ = bytes;
        return 0;
    }
    std::span<std::byte> bytes() const { return {static_cast<std::byte*>(at_), bytes_}; }

private:
    void* at_ = nullptr;
    std::size_t bytes_ = 0;
};

/// The socket could not be made: says where, why, and where else it could be.
[[noreturn]] void fail_to_bind(const std::string& path, int code) {
    const auto slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
    std::string cause = std::strerror(code);
    struct stat found {};
    if (code == ENOENT) {
        cause = fmt::format("there is no folder {}", folder);
        if (folder.starts_with(kRuntimeFolder)) cause += ", and only root can make it";
    } else if (code == EACCES && ::stat(folder.c_str(), &found) == 0) {
        cause = fmt::format("user {} may not make files in {}, which belongs to {}",
                            rmem::user_text(::geteuid()), folder, rmem::owner_text(found));
    }
    throw rmem::Error(
        code == EACCES || code == EPERM ? rmem::Errc::not_permitted : rmem::Errc::system,
        fmt::format("MU-Net: cannot make the socket {}: {}; start the daemon as a user who can, or "
                    "give another place by --munet-socket, and programs the same by RMEM_MUNET",
                    path, cause));
}

/// /run/rmem is gone after each start of the host; other folders are made by the user who names
/// them.
void make_runtime_folder(const std::string& path) {
    if (!path.starts_with(kRuntimeFolder) || ::mkdir(kRuntimeFolder, 0755) != 0) return;
    // Whatever the umask is: other users' programs look for the socket there.
    if (::chmod(kRuntimeFolder, 0755) != 0) fail(kRuntimeFolder);
}

rmem::Descriptor listen_at(const std::string& path, const std::string& group) {
    sockaddr_un address;
    if (!make_address(path, &address)) {
        throw rmem::Error(
            rmem::Errc::invalid_argument,
            fmt::format("MU-Net: '{}' is not a valid path of a socket, which has 1 to "
                        "{} characters; give another by RMEM_MUNET",
                        path, sizeof address.sun_path - 1));
    }
    const auto* name = reinterpret_cast<const sockaddr*>(&address);
    // Somebody who answers there is another daemon; a socket that nobody listens at is left over.
    const rmem::Descriptor probe(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (::connect(probe.get(), name, sizeof address) == 0) {
        throw rmem::Error(rmem::Errc::rank_taken,
                          fmt::format("MU-Net: another daemon listens at {}; end it, or give this "
                                      "one another place by RMEM_MUNET",
                                      path));
    }
    if (errno == ECONNREFUSED) ::unlink(path.c_str());
    make_runtime_folder(path);
    rmem::Descriptor listener(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (listener.get() < 0) fail("no socket");
    const mode_t before = ::umask(0177);  // nobody may connect before the mode is what it is to be
    const int problem = ::bind(listener.get(), name, sizeof address) == 0 ? 0 : errno;
    ::umask(before);
    if (problem != 0) fail_to_bind(path, problem);
    if (!group.empty()) {
        const struct group* entry = ::getgrnam(group.c_str());  // NOLINT(concurrency-mt-unsafe)
        if (entry == nullptr || ::chown(path.c_str(), static_cast<uid_t>(-1), entry->gr_gid) != 0) {
            if (entry == nullptr) errno = ENOENT;
            fail(fmt::format("cannot share the socket {} with group '{}'", path, group));
        }
    }
    if (::listen(listener.get(), kBacklog) != 0) fail(fmt::format("cannot listen at {}", path));
    if (::chmod(path.c_str(), group.empty() ? 0666 : 0660) != 0) fail(path);
    return listener;
}

}  // namespace

struct Driver::Client {
    rmem::Descriptor socket;
    std::uint32_t user = 0;
    int number = -1;  ///< of its endpoint
    std::size_t bytes = 0;
    Mapping mapping;
    EndpointMemory memory;
};

Driver::Driver(DriverConfig config, Relay& relay, std::span<rmem::Counters> counters)
    : config_(std::move(config)),
      relay_(relay),
      counters_(counters),
      listener_(listen_at(config_.path, config_.unix_group)),
      poll_(::epoll_create1(EPOLL_CLOEXEC)) {
    if (poll_.get() < 0) fail("no epoll");
    watch(listener_.get(), nullptr);
}

Driver::~Driver() {
    while (!clients_.empty()) destroy(*clients_.begin()->second);
    ::unlink(config_.path.c_str());
}

void Driver::watch(int fd, Client* client) {
    epoll_event event{};
    event.events = EPOLLIN | EPOLLRDHUP;
    event.data.ptr = client;
    if (::epoll_ctl(poll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) fail("epoll refuses a socket");
}

bool Driver::look() {
    std::array<epoll_event, 16> events;
    const int count = ::epoll_wait(poll_.get(), events.data(), events.size(), 0);
    for (int i = 0; i < count; ++i) {
        auto* client = static_cast<Client*>(events[static_cast<std::size_t>(i)].data.ptr);
        if (client == nullptr) {
            accept();
        } else {
            serve(*client);
        }
    }
    return count > 0;
}

void Driver::accept() {
    rmem::Descriptor socket(
        ::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0) return;
    ucred peer{};
    socklen_t size = sizeof peer;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return;
    User& user = users_[peer.uid];
    const bool has_enough = user.connections >= config_.user_endpoints;
    if (has_enough || clients_.size() >= kEndpoints) {
        ++counts_.over_limit;
        if (user.connections == 0) users_.erase(peer.uid);
        Reply reply;
        reply.error = has_enough ? EDQUOT : ENOBUFS;
        reply.limit = config_.user_endpoints;
        ::send(socket.get(), &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
        return;
    }
    ++user.connections;
    auto client = std::make_unique<Client>();
    client->user = peer.uid;
    client->socket = std::move(socket);
    watch(client->socket.get(), client.get());
    clients_[client->socket.get()] = std::move(client);
}

/// What a client sends: its request, later bells; anything else ends it, as does its own end.
void Driver::serve(Client& client) {
    for (unsigned n = 0; n < kPacketsPerLook; ++n) {
        Request request{};
        // Longer packets are cut, and descriptors that come with one are dropped: there is no place
        // for them.
        const ssize_t got = ::recv(client.socket.get(), &request, sizeof request, MSG_DONTWAIT);
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
        if (got <= 0) return destroy(client);
        char first = 0;
        std::memcpy(&first, &request, 1);
        if (client.number >= 0 && got == 1 && first == kBell) {
            ++counts_.bells;
            continue;
        }
        const bool is_request = client.number < 0 && got == sizeof request &&
                                request.magic == kProtocolMagic &&
                                request.version == Request{}.version;
        if (!is_request) {
            ++counts_.bad_requests;
            Reply reply;
            reply.error = EPROTO;
            ::send(client.socket.get(), &reply, sizeof reply, MSG_NOSIGNAL | MSG_DONTWAIT);
            return destroy(client);
        }
        create(client, request.send_bytes, request.receive_bytes);
        if (client.number < 0) return destroy(client);
    }
}

void Driver::create(Client& client, std::uint64_t send_bytes, std::uint64_t receive_bytes) {
    Reply reply;
    reply.node = config_.node;
    reply.nodes = config_.nodes;
    rmem::Descriptor memory;
    const bool is_sane = send_bytes <= kMaxBuffer && receive_bytes <= kMaxBuffer;
    const Geometry geometry{
        .send_bytes = static_cast<std::uint32_t>((send_bytes + kLine - 1) / kLine * kLine),
        .receive_lines = static_cast<std::uint32_t>((receive_bytes + kLine - 1) / kLine),
        .senders = config_.senders};
    User& user = users_[client.user];
    if (!is_sane || !geometry.is_possible()) {
        reply.error = EINVAL;
        reply.limit = Geometry::least_receive_bytes(config_.senders);
    } else if (user.bytes + geometry.bytes() > config_.user_bytes) {
        ++counts_.over_limit;
        reply.error = EDQUOT;
        reply.limit = config_.user_bytes;
    } else if (const int code = client.mapping.make(geometry.bytes(), &memory)) {
        reply.error = code;
    } else {
        client.memory = EndpointMemory(client.mapping.bytes(), geometry);
        client.memory.daemon().pollers.set(pollers_);
        client.number = relay_.open(client.mapping.bytes(), geometry, client.user, counters_);
        reply.error = client.number < 0 ? ENOBUFS : 0;
    }
    reply.geometry = geometry;
    if (client.number >= 0) {
        reply.endpoint = static_cast<std::uint32_t>(client.number);
        by_number_[reply.endpoint] = &client;
        client.bytes = geometry.bytes();
        user.bytes += client.bytes;
        ++counts_.created;
    }
    iovec bytes{&reply, sizeof reply};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    if (client.number >= 0) {
        message.msg_control = space.data();
        message.msg_controllen = space.size();
        cmsghdr* header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(sizeof(int));
        const int fd = memory.get();
        std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    ::sendmsg(client.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

void Driver::destroy(Client& client) noexcept {
    if (client.number >= 0) {
        relay_.close(static_cast<unsigned>(client.number));
        by_number_[static_cast<std::size_t>(client.number)] = nullptr;
        ++counts_.destroyed;
    }
    const auto user = users_.find(client.user);
    RMEM_CHECK(user != users_.end() && user->second.connections != 0 &&
               user->second.bytes >= client.bytes);
    user->second.bytes -= client.bytes;
    if (--user->second.connections == 0) users_.erase(user);
    clients_.erase(client.socket.get());
}

void Driver::wake(unsigned endpoint) noexcept {
    Client* const client = by_number_[endpoint];
    if (client == nullptr) return;
    auto& word = client->memory.daemon().wakes;
    // (1) pairs with connection.cpp (1) and connection.cpp (2): what the program is woken for
    word.fetch_add(1, std::memory_order_release);
    rmem::wake_sleepers(word);
}

void Driver::say_sleeps(bool sleeps) noexcept {
    for (auto& [fd, client] : clients_) {
        if (client->number < 0) continue;
        // relaxed is enough: the daemon's fence orders it (rmem/base/fence.hpp)
        client->memory.daemon().sleeps.store(sleeps ? 1 : 0, std::memory_order_relaxed);
    }
}

void Driver::say_pollers(unsigned pollers) noexcept {
    if (pollers == pollers_) return;
    pollers_ = pollers;
    for (auto& [fd, client] : clients_) {
        if (client->number < 0) continue;
        client->memory.daemon().pollers.set(pollers);
    }
}

SocketSetting socket_setting() {
    const std::string text = rmem::environment_text("RMEM_MUNET");
    const auto at = text.find_first_of("@/");
    if (at == std::string::npos || text[at] == '/') return {"", text};
    return {text.substr(0, at), text.substr(at + 1)};
}

std::string socket_path(const std::string& path, const std::optional<std::string>& ring,
                        unsigned node) {
    if (!path.empty()) return path;
    std::string folder = kRuntimeFolder;
    std::error_code ignored;
    const char* own = std::getenv("XDG_RUNTIME_DIR");  // NOLINT(concurrency-mt-unsafe)
    const bool has_own = own != nullptr && *own != '\0';
    if (has_own && ::geteuid() != 0 && !std::filesystem::is_directory(folder, ignored)) {
        folder = own;
    }
    return fmt::format("{}/munet.{}@{}", folder, ring.value_or(rmem::RingConfig{}.name), node);
}

}  // namespace ports::munet
