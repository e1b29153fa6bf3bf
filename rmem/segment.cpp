// SPDX-License-Identifier: Apache-2.0
#include "rmem/segment.hpp"

#include "rmem/bell.hpp"
#include "rmem/marks.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pthread.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <boost/interprocess/detail/os_file_functions.hpp>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <utility>

namespace rmem {

namespace {

namespace ipc = boost::interprocess;

/// Lets Boost map the very object that we hold open, whatever its name stands for by now.
struct Mappable {
    int fd;
    ipc::mapping_handle_t get_mapping_handle() const {
        return ipc::ipcdetail::mapping_handle_from_file_handle(fd);
    }
    ipc::mode_t get_mode() const { return ipc::read_write; }
};

constexpr const char* kDirectory = "/dev/shm";
constexpr const char* kPrefix = "rmem.";

/// The descriptors that a forked child must not keep: a copy would keep the parent's locks alive
/// after the parent's death. Leaked on purpose, since fork handlers may run during exit.
struct ForkGuard {
    std::mutex mutex;
    std::vector<int> fds;
    /// Objects of an older generation belong to a parent: their numbers may be other files here.
    std::atomic<unsigned> generation{0};
};

ForkGuard& fork_guard() {
    static ForkGuard* guard = [] {
        auto* made = new ForkGuard;
        pthread_atfork([] { fork_guard().mutex.lock(); }, [] { fork_guard().mutex.unlock(); },
                       [] {
                           for (int fd : fork_guard().fds) ::close(fd);
                           fork_guard().fds.clear();
                           // relaxed is enough: a forked child has one thread
                           fork_guard().generation.fetch_add(1, std::memory_order_relaxed);
                           fork_guard().mutex.unlock();
                       });
        return made;
    }();
    return *guard;
}

[[noreturn]] void fail(const std::string& ring, const char* doing, int error) {
    const std::string object = Segment::object_name(ring);
    if (error == EACCES || error == EPERM) {
        throw Error(Errc::not_permitted,
                    fmt::format("{} {}: {}; it belongs to another user: use another RMEM_RING, or "
                                "create it with RMEM_UNIX_GROUP to share it with a group",
                                doing, object, std::strerror(error)));
    }
    throw Error(Errc::system, fmt::format("{} {}: {}", doing, object, std::strerror(error)));
}

void give_to_group(const std::string& ring, int fd, const std::string& group) {
    if (group.empty()) return;
    const ::group* entry = ::getgrnam(group.c_str());
    if (entry == nullptr) {
        throw Error(Errc::bad_environment,
                    fmt::format("RMEM_UNIX_GROUP: no group is named '{}'; give one that `getent "
                                "group` lists",
                                group));
    }
    if (::fchown(fd, static_cast<uid_t>(-1), entry->gr_gid) != 0) fail(ring, "chgrp of", errno);
    if (::fchmod(fd, 0660) != 0) fail(ring, "chmod of", errno);
}

void reserve(const std::string& ring, int fd, std::size_t bytes) {
    int error;
    do {
        error = ::posix_fallocate(fd, 0, static_cast<off_t>(bytes));
    } while (error == EINTR);
    if (error == 0) return;
    if (error == ENOSPC || error == EFBIG || error == ENOMEM) {
        const auto space = std::filesystem::space(kDirectory);
        throw Error(
            Errc::no_space,
            fmt::format("ring '{}' needs {} KiB in {}, which has {} KiB left; make {} larger "
                        "(containers: --shm-size) or the ring smaller (RMEM_SIZE, "
                        "RMEM_PARTITION, fewer ranks)",
                        ring, bytes / 1024, kDirectory, space.available / 1024, kDirectory));
    }
    fail(ring, "reserving space for", error);
}

std::size_t size_of(const std::string& ring, int fd) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) fail(ring, "looking at", errno);
    return static_cast<std::size_t>(status.st_size);
}

ipc::mapped_region map_whole(const std::string& ring, int fd) {
    const std::size_t bytes = size_of(ring, fd);
    if (bytes == 0) return {};  // still being made
    try {
        return ipc::mapped_region(Mappable{fd}, ipc::read_write, 0, bytes);
    } catch (const ipc::interprocess_exception& e) {
        throw Error(Errc::system,
                    fmt::format("mapping {}: {}", Segment::object_name(ring), e.what()));
    }
}

}  // namespace

Descriptor::Descriptor(int fd) : fd_(fd) {
    if (fd < 0) return;
    std::lock_guard lock(fork_guard().mutex);
    fork_guard().fds.push_back(fd);
    // relaxed is enough: the mutex keeps a fork away
    generation_ = fork_guard().generation.load(std::memory_order_relaxed);
}

Descriptor::Descriptor(Descriptor&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), generation_(other.generation_) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
    if (this != &other) {
        reset();
        fd_ = std::exchange(other.fd_, -1);
        generation_ = other.generation_;
    }
    return *this;
}

Descriptor::~Descriptor() {
    reset();
}

int Descriptor::get() const noexcept {
    // relaxed is enough: it changes only where no other thread runs
    return generation_ == fork_guard().generation.load(std::memory_order_relaxed) ? fd_ : -1;
}

void Descriptor::reset() noexcept {
    if (const int fd = get(); fd >= 0) {
        std::lock_guard lock(fork_guard().mutex);
        std::erase(fork_guard().fds, fd);
        ::close(fd);
    }
    fd_ = -1;
}

std::string Segment::object_name(const std::string& ring) {
    return fmt::format("{}/{}{}", kDirectory, kPrefix, ring);
}

std::optional<Segment::Created> Segment::create(const std::string& ring, std::size_t bytes,
                                                const std::string& unix_group, std::uint64_t byte) {
    // Without a name at first, so that a maker killed up to here leaves nothing behind.
    Descriptor fd(::open(kDirectory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd.get() < 0) fail(ring, "creating", errno);
    Segment segment(ring, std::move(fd), ipc::mapped_region());
    give_to_group(ring, segment.fd_.get(), unix_group);
    auto lock = segment.try_lock(byte);
    if (!lock) fail(ring, "locking a byte of", EAGAIN);
    RMEM_MARK("ring.nameless");
    const std::string name = object_name(ring);
    if (::linkat(AT_FDCWD, segment.own_path().c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) !=
        0) {
        if (errno == EEXIST) return std::nullopt;
        fail(ring, "creating", errno);
    }
    RMEM_MARK("ring.named");
    try {
        reserve(ring, segment.fd_.get(), bytes);
        RMEM_MARK("ring.reserved");
        segment.region_ = map_whole(ring, segment.fd_.get());
    } catch (...) {
        ::unlink(name.c_str());  // still ours alone: who found it waits for the lock
        throw;
    }
    return Created{std::move(segment), std::move(*lock)};
}

std::optional<Segment> Segment::open(const std::string& ring) {
    Descriptor fd(::open(object_name(ring).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW));
    if (fd.get() < 0) {
        if (errno == ENOENT) return std::nullopt;
        fail(ring, "opening", errno);
    }
    auto region = map_whole(ring, fd.get());
    return Segment(ring, std::move(fd), std::move(region));
}

bool Segment::remove(const std::string& ring) {
    Bell::remove(ring);
    if (::unlink(object_name(ring).c_str()) == 0) return true;
    if (errno == ENOENT) return false;
    fail(ring, "removing", errno);
}

std::vector<std::string> Segment::list() {
    std::vector<std::string> names;
    std::error_code ignored;  // no /dev/shm: no rings
    for (const auto& entry : std::filesystem::directory_iterator(kDirectory, ignored)) {
        const std::string file = entry.path().filename().string();
        if (file.starts_with(kPrefix)) names.push_back(file.substr(std::strlen(kPrefix)));
    }
    std::sort(names.begin(), names.end());
    return names;
}

Segment::Segment(std::string ring, Descriptor fd, ipc::mapped_region region)
    : ring_(std::move(ring)), fd_(std::move(fd)), region_(std::move(region)) {}

bool Segment::is_linked() const {
    struct stat mine {
    }, named{};
    if (::fstat(fd_.get(), &mine) != 0 || mine.st_nlink == 0) return false;
    return ::stat(object_name(ring_).c_str(), &named) == 0 && named.st_ino == mine.st_ino &&
           named.st_dev == mine.st_dev;
}

bool Segment::is_whole() const {
    return size_of(ring_, fd_.get()) == size();
}

std::string Segment::own_path() const {
    return fmt::format("/proc/self/fd/{}", fd_.get());
}

std::optional<ByteLock> Segment::lock_with(short type, std::uint64_t byte) const {
    // A lock belongs to an open file description, so each lock opens one of its own.
    Descriptor fd(::open(own_path().c_str(), O_RDWR | O_CLOEXEC));
    if (fd.get() < 0) fail(ring_, "reopening", errno);
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(byte);
    lock.l_len = 1;
    if (::fcntl(fd.get(), F_OFD_SETLK, &lock) == 0) return ByteLock(std::move(fd));
    if (errno == EAGAIN || errno == EACCES) return std::nullopt;
    fail(ring_, "locking a byte of", errno);
}

std::optional<ByteLock> Segment::try_lock(std::uint64_t byte) const {
    return lock_with(F_WRLCK, byte);
}

std::optional<ByteLock> Segment::try_lock_shared(std::uint64_t byte) const {
    return lock_with(F_RDLCK, byte);
}

bool Segment::is_locked(std::uint64_t byte, std::uint64_t count) const noexcept {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(byte);
    lock.l_len = static_cast<off_t>(count);
    // A failing query must not declare anybody dead.
    return ::fcntl(fd_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}

}  // namespace rmem
