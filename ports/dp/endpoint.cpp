// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/endpoint.hpp"

#include "ports/dp/service.hpp"
#include "rmem/base/check.hpp"
#include "rmem/base/descriptor.hpp"

#include <fcntl.h>
#include <linux/sockios.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace ports::dp {

Endpoint::Endpoint(Service& service, std::uint64_t id, unsigned dpid, std::size_t pool_bytes)
    : pool(std::make_unique<TokenPool>(pool_bytes)),
      service_(service),
      process_(service.process()),
      process_counters_(service.counters()),
      id_(id),
      dpid_(dpid) {
    int ends[2];
    if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
        throw std::system_error(errno, std::generic_category(), "an endpoint's descriptor");
    descriptor_ = rmem::above_standard_streams(ends[0]);
    own_ = rmem::above_standard_streams(ends[1]);
    // As any open() leaves it: an executed program may inherit it.
    ::fcntl(descriptor_, F_SETFD, 0);
    ::fcntl(own_, F_SETFL, O_NONBLOCK);
    struct stat status {};
    ::fstat(descriptor_, &status);
    inode_ = status.st_ino;
}

Endpoint::~Endpoint() {
    ::close(own_);
}

void Endpoint::offer() noexcept {
    RMEM_CHECK(!offered_ && pool->unread() != 0);
    // What it refuses it would refuse again: nobody has the other end any more, or the system has
    // no memory for now.
    if (::send(own_, pool->next(), pool->next_length(), MSG_NOSIGNAL) < 0) return;
    RMEM_MARK("dp.offered");
    offered_ = true;
    count(Counter::signals);
}

void Endpoint::was_taken() noexcept {
    RMEM_MARK("dp.read-served");
    RMEM_CHECK(offered_ && pool->unread() != 0);
    offered_ = false;
    count(Counter::served_reads);
    pool->skip();
}

bool Endpoint::take_back(int descriptor) noexcept {
    if (::recv(descriptor, nullptr, 0, MSG_DONTWAIT) < 0) {
        was_taken();
        return false;
    }
    offered_ = false;
    return true;
}

bool Endpoint::was_read() noexcept {
    int unread = 0;
    if (!offered_ || ::ioctl(own_, SIOCOUTQ, &unread) != 0 || unread != 0) return false;
    was_taken();
    return true;
}

bool Endpoint::is_closed() const noexcept {
    pollfd end{own_, 0, 0};
    return ::poll(&end, 1, 0) == 1 && (end.revents & POLLHUP) != 0;
}

void Endpoint::set_raw() noexcept {
    raw_dest = -1;
    if (is_reliable || target_error != 0 || targets.size() != 1) return;
    raw_dest = static_cast<int>(targets.front().nid);
    raw_to = Header::to(targets.front().nid, targets.front().dpid, Kind::plain);
}

}  // namespace ports::dp
