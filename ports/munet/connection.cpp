// SPDX-License-Identifier: Apache-2.0
#include "ports/munet/connection.hpp"

#include "ports/munet/driver_protocol.hpp"
#include "rmem/base/fence.hpp"
#include "rmem/base/ownership.hpp"
#include "rmem/ring/config.hpp"
#include "rmem/ring/waiting/waiting.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <utility>

namespace ports::munet {

namespace {

constexpr int kReplyMs = 10'000;

/// Programs of MU-Net are no ranks: their node is enough, or a launcher's rank to tell it by.
unsigned node_of(const rmem::Environment& environment, const rmem::RingConfig& config) {
    if (environment.node || !environment.rank) return environment.node.value_or(0);
    return environment.member(config).node;
}

std::string path_of_environment() {
    const rmem::Environment environment = rmem::Environment::read();
    const rmem::RingConfig config = environment.ring_config();
    return socket_path(socket_setting().path, environment.ring, node_of(environment, config));
}

/// Whether a daemon of this user may have our messages: root's, our own, that of the user who is
/// named in RMEM_MUNET; and in /run/rmem that of its owner. Elsewhere anybody may have been
/// the first to make the socket.
bool is_trusted(uid_t daemon, const std::string& path) {
    if (daemon == 0 || daemon == ::geteuid()) return true;
    const std::string named = socket_setting().user;
    if (!named.empty() && rmem::user_named(named) == daemon) return true;
    struct stat folder {};
    const std::string_view file = path;
    return file.substr(0, file.rfind('/')) == kRuntimeFolder &&
           ::lstat(kRuntimeFolder, &folder) == 0 && S_ISDIR(folder.st_mode) &&
           folder.st_uid == daemon && (folder.st_mode & S_IWOTH) == 0;
}

/// Empty, or why the one who listens there is not to have our messages.
std::string why_not_trusted(int socket, const std::string& path) {
    ucred daemon{};
    socklen_t size = sizeof daemon;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &daemon, &size) != 0)
        return fmt::format("{}: it does not tell whose it is: {}", path, std::strerror(errno));
    if (is_trusted(daemon.uid, path)) return "";
    const std::string user = rmem::user_text(daemon.uid);
    return fmt::format(
        "the daemon at {} is of user {} ({}), who would see all messages: neither root's nor your "
        "own; if that one is meant, set RMEM_MUNET={}@{}",
        path, user, daemon.uid, user, path);
}

std::string why_not_connected(int code, const std::string& path) {
    switch (code) {
        case ENOENT:
        case ECONNREFUSED:
            return fmt::format(
                "nobody listens at {}: start `rmem node --munet` on this host, or say by "
                "RMEM_MUNET where its socket is",
                path);
        case EACCES:
        case EPERM:
            return fmt::format(
                "{} is not for this user: the daemon was started with a --unix-group that "
                "the user is not in",
                path);
        default: return fmt::format("{}: {}", path, std::strerror(code));
    }
}

std::string why_refused(const Request& request, const Reply& reply, const std::string& path) {
    switch (reply.error) {
        case EDQUOT:
            return fmt::format(
                "the daemon at {} gives a user no more than {} (bytes of endpoints' memory, "
                "or endpoints): ask for smaller buffers, destroy endpoints, or raise "
                "--munet-memory and --munet-endpoints",
                path, reply.limit);
        case EINVAL:
            return fmt::format(
                "buffers of {} bytes to send and {} to receive are out of range; each must be at "
                "most {}, the receive buffer at least {}",
                request.send_bytes, request.receive_bytes, kMaxBuffer, reply.limit);
        case ENOBUFS:
            return fmt::format("the node has {} endpoints, which is the maximum; destroy one first",
                               kEndpoints);
        case EPROTO:
            return fmt::format(
                "the daemon at {} has another version; install one version for daemon and programs",
                path);
        default: return fmt::format("the daemon at {}: {}", path, std::strerror(reply.error));
    }
}

/// The reply, and the descriptor that comes with it.
int receive_reply(int socket, Reply* reply, rmem::Descriptor* memory) {
    pollfd waits{.fd = socket, .events = POLLIN, .revents = 0};
    if (::poll(&waits, 1, kReplyMs) <= 0) return -ETIMEDOUT;
    iovec bytes{reply, sizeof *reply};
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> space{};
    msghdr message{};
    message.msg_iov = &bytes;
    message.msg_iovlen = 1;
    message.msg_control = space.data();
    message.msg_controllen = space.size();
    ssize_t got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 &&
        errno == ECONNRESET) {  // refused before the request was read: the reply comes behind
        got = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    }
    if (got != sizeof *reply || reply->magic != kProtocolMagic) return -EPROTO;
    const cmsghdr* header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS &&
        header->cmsg_len == CMSG_LEN(sizeof(int))) {
        int fd = -1;
        std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
        *memory = rmem::Descriptor(fd);
    }
    return 0;
}

}  // namespace

Connection::Connection(Connection&& other) noexcept
    : path_(std::move(other.path_)),
      socket_(std::move(other.socket_)),
      memory_(std::exchange(other.memory_, {})),
      geometry_(other.geometry_),
      own_(other.own_),
      nodes_(other.nodes_),
      processors_(other.processors_),
      has_fences_(other.has_fences_) {}

Connection::~Connection() {
    if (memory_.data() != nullptr) ::munmap(memory_.data(), memory_.size());
}

int Connection::open(std::size_t send_bytes, std::size_t receive_bytes, std::string* why) {
    path_ = path_of_environment();
    sockaddr_un address;
    if (!make_address(path_, &address)) {
        *why = fmt::format(
            "'{}' is not a valid path of a socket, which has 1 to {} characters; give another by "
            "RMEM_MUNET",
            path_, sizeof address.sun_path - 1);
        return -EINVAL;
    }
    socket_ = rmem::Descriptor(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (::connect(socket_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) !=
        0) {
        const int code = errno;
        *why = why_not_connected(code, path_);
        return -code;
    }
    *why = why_not_trusted(socket_.get(), path_);
    if (!why->empty()) return -EPERM;
    const Request request{.send_bytes = send_bytes, .receive_bytes = receive_bytes};
    Reply reply;
    rmem::Descriptor fd;
    // A daemon that refuses the connection may have ended it already, and still have said why.
    ::send(socket_.get(), &request, sizeof request, MSG_NOSIGNAL);
    if (const int code = receive_reply(socket_.get(), &reply, &fd); code != 0) {
        *why =
            fmt::format("the daemon at {} gave no valid answer: {}", path_, std::strerror(-code));
        return code;
    }
    if (reply.error != 0) {
        *why = why_refused(request, reply, path_);
        return -reply.error;
    }
    geometry_ = reply.geometry;
    own_ = {static_cast<std::uint16_t>(reply.node), static_cast<std::uint8_t>(reply.endpoint)};
    nodes_ = reply.nodes;
    processors_ = rmem::allowed_processors();
    has_fences_ = rmem::register_fences();
    if (const int code = map(fd.get()); code != 0) {
        *why = fmt::format("the endpoint's memory cannot be mapped: {}", std::strerror(-code));
        return code;
    }
    return 0;
}

int Connection::map(int fd) {
    struct stat about {};
    if (fd < 0 || !geometry_.is_possible() || ::fstat(fd, &about) != 0 ||
        static_cast<std::size_t>(about.st_size) != geometry_.bytes()) {
        return -EPROTO;
    }
    void* at = ::mmap(nullptr, geometry_.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return -errno;
    ::madvise(at, geometry_.bytes(), MADV_DONTFORK);  // an endpoint is its process's alone
    memory_ = {static_cast<std::byte*>(at), geometry_.bytes()};
    return 0;
}

bool Connection::has_daemon() const noexcept {
    char byte = 0;
    const ssize_t got = ::recv(socket_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return got < 0 && (errno == EAGAIN || errno == EINTR);
}

std::string Connection::no_daemon() const {
    return fmt::format(
        "the daemon at {} has ended; destroy this endpoint, and create another when the "
        "daemon is back",
        path_);
}

void Connection::ring() noexcept {
    ::send(socket_.get(), &kBell, 1, MSG_NOSIGNAL | MSG_DONTWAIT);
}

// ---- Waiting

unsigned Connection::spin_limit() const noexcept {
    const EndpointMemory words(memory_, geometry_);
    const unsigned pollers = words.daemon().pollers.get();
    return pollers > processors_ ? 0 : rmem::kSpinPolls;
}

void Connection::give_way() noexcept {
    if (spin_limit() == 0) ::sched_yield();
}

void Connection::begin_wait() noexcept {
    stages_.begin();
    limit_ = spin_limit();
}

int Connection::pause(rmem::Deadline deadline) {
    if (!stages_.spins_on(limit_)) return slow_pause(deadline);
    rmem::cpu_relax();
    return 0;
}

int Connection::slow_pause(rmem::Deadline deadline) {
    using Act = rmem::WaitStages::Act;
    const std::int64_t now = rmem::now_ns();
    if (deadline.passed(now)) return -ETIMEDOUT;
    if (now >= next_look_) {
        next_look_ = now + rmem::kCheckNs;
        if (!has_daemon()) return -ENETDOWN;
    }
    const EndpointMemory words(memory_, geometry_);
    switch (stages_.next(now, limit_)) {
        case Act::spin: rmem::cpu_relax(); break;
        case Act::yield: ::sched_yield(); break;
        case Act::arm:
            is_armed_ = true;
            // (1) pairs with driver.cpp (1), as (2): what came before the wake-ups counted here is
            // seen by the next look
            wakes_seen_ = words.daemon().wakes.load(std::memory_order_acquire);
            // relaxed is enough: the fence orders it before the next look, and against the
            // daemon's stores
            words.program().sleeps.store(1, std::memory_order_relaxed);
            rmem::heavy_fence();
            break;
        case Act::sleep:
            rmem::sleep_on(words.daemon().wakes, wakes_seen_,
                           std::min(has_fences_ ? rmem::kMaxSleepNs : rmem::kBlindSleepNs,
                                    deadline.at_ns - now));
            // (2) pairs with driver.cpp (1), as (1)
            wakes_seen_ = words.daemon().wakes.load(std::memory_order_acquire);
    }
    return 0;
}

void Connection::end_wait() noexcept {
    if (!is_armed_) return;
    is_armed_ = false;
    // relaxed is enough: a peer that still sees it wakes needlessly
    EndpointMemory(memory_, geometry_).program().sleeps.store(0, std::memory_order_relaxed);
}

}  // namespace ports::munet
