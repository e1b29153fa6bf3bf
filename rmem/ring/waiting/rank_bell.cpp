// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/waiting/rank_bell.hpp"

#include "rmem/base/marks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

namespace rmem {

namespace {

constexpr std::size_t kMaxOpen = 64;
constexpr unsigned kUnrungARead = 8;

bool write_once(const Descriptor& pipe) noexcept {
    const char once = 1;
    if (!pipe.is_ours()) return false;
    // A full pipe has been rung.
    return ::write(pipe.get(), &once, 1) == 1 || errno == EAGAIN;
}

/// The pipe behind a descriptor of a process, if it is that one. For reading, too: so nobody meets
/// a pipe that nobody reads.
Descriptor open_pipe(unsigned pid, std::uint32_t number, std::uint64_t inode) {
    const std::string path = fmt::format("/proc/{}/fd/{}", pid, number);
    struct stat found {};
    // Before it is opened: to open a device may do something.
    if (::stat(path.c_str(), &found) != 0 || !S_ISFIFO(found.st_mode)) return {};
    Descriptor pipe(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
    const bool is_it = pipe.get() >= 0 && ::fstat(pipe.get(), &found) == 0 &&
                       S_ISFIFO(found.st_mode) && found.st_ino == inode;
    return is_it ? std::move(pipe) : Descriptor();
}

/// The bells that this process has rung. An inode is a pipe's for as long as it is open here.
class Opened {
public:
    bool ring(unsigned pid, std::uint32_t number, std::uint64_t inode) {
        const std::lock_guard lock(mutex_);
        auto found = pipes_.find(inode);
        if (found == pipes_.end()) {
            if (pipes_.size() >= kMaxOpen) pipes_.clear();
            found = pipes_.emplace(inode, open_pipe(pid, number, inode)).first;
        }
        if (write_once(found->second)) return true;
        pipes_.erase(found);
        return false;
    }

private:
    std::mutex mutex_;
    std::map<std::uint64_t, Descriptor> pipes_;
};

}  // namespace

RankBell::RankBell(Ring& ring, unsigned rank, BellUse use, int also)
    : place_(ring.rank(rank).bells[static_cast<std::size_t>(use)]), owner_(::getpid()) {
    const auto expect = [rank](bool is_there) {
        if (is_there) return;
        throw Error(Errc::system, fmt::format("the descriptor of rank {} to be polled: {}", rank,
                                              std::strerror(errno)));
    };
    std::tie(read_, write_) = Descriptor::pipe(O_NONBLOCK | O_CLOEXEC);
    expect(read_.get() >= 0);
    if (also < 0) return;
    both_ = Descriptor(::epoll_create1(EPOLL_CLOEXEC));
    expect(both_.get() >= 0);
    for (const int one : {read_.get(), also}) {
        epoll_event readable{};
        readable.events = EPOLLIN;
        expect(::epoll_ctl(both_.get(), EPOLL_CTL_ADD, one, &readable) == 0);
    }
}

RankBell::~RankBell() {
    if (::getpid() == owner_) hide();
}

void RankBell::show() noexcept {
    struct stat found {};
    if (::fstat(read_.get(), &found) != 0) return;
    // relaxed is enough, for both: (1); a number that is not the inode's is found out
    place_.rung.store(0, std::memory_order_relaxed);
    place_.descriptor.store(static_cast<std::uint32_t>(read_.get()), std::memory_order_relaxed);
    // (1) - this release-store synchronizes-with the acquire-load (2)
    place_.inode.store(found.st_ino, std::memory_order_release);
}

void RankBell::hide() noexcept {
    // relaxed is enough: one that still sees it rings once too often
    place_.inode.store(0, std::memory_order_relaxed);
}

void RankBell::signal() noexcept {
    place_.rung.store(1, std::memory_order_relaxed);  // relaxed is enough: for clear()
    static_cast<void>(write_once(write_));
}

void RankBell::clear() noexcept {
    // A rank that rings from now on finds 0, and writes. A slow one may have written after the last
    // time: then it is heard for nothing, a few times.
    if (!was_rung() && ++unrung_ % kUnrungARead != 0) return;
    if (!read_.is_ours()) return;
    std::array<char, 256> rung;
    while (::read(read_.get(), rung.data(), rung.size()) == static_cast<ssize_t>(rung.size())) {
    }
    // (3) - this acq_rel exchange synchronizes-with the acq_rel exchange (4): what was posted
    // before that is seen by the look after this
    place_.rung.exchange(0, std::memory_order_acq_rel);
}

bool RankBell::was_rung() const noexcept {
    return place_.rung.load(std::memory_order_relaxed) != 0;  // relaxed is enough: asked again
}

bool ring_bell(const Ring& ring, unsigned rank, BellUse use) noexcept try {
    static Opened& opened = *new Opened;  // for as long as any thread may ring
    RankSlot& slot = ring.rank(rank);
    BellPlace& place = slot.bells[static_cast<std::size_t>(use)];
    // (2) - this acquire-load synchronizes-with the release-store (1)
    const std::uint64_t inode = place.inode.load(std::memory_order_acquire);
    if (inode == 0) return false;
    // (4) - this acq_rel exchange synchronizes-with the acq_rel exchange (3)
    if (place.rung.exchange(1, std::memory_order_acq_rel) != 0) return true;
    RMEM_MARK("bell.said");
    // relaxed is enough, for both: wrong ones are found out
    return opened.ring(slot.pid.load(std::memory_order_relaxed),
                       place.descriptor.load(std::memory_order_relaxed), inode);
} catch (...) {  // no memory for the name of the pipe
    return false;
}

}  // namespace rmem
