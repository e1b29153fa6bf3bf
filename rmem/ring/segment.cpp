// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/segment.hpp"

#include "rmem/base/host_limits.hpp"
#include "rmem/base/marks.hpp"
#include "rmem/base/quantity.hpp"
#include "rmem/base/small_file.hpp"
#include "rmem/ring/segment_names.hpp"
#include "rmem/ring/waiting/bell.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

namespace rmem {

namespace {

constexpr const char* kDirectory = "/dev/shm";
constexpr const char* kPrefix = "rmem.";
constexpr std::size_t kPage = 4096;  // or a part of one

[[noreturn]] void fail(const std::string& ring, const char* doing, int error) {
    const std::string object = Segment::object_name(ring);
    if (error == EBADF) {
        throw Error(Errc::system, fmt::format("{} {}: {}", doing, object, kDescriptorsClosed));
    }
    struct stat found {};
    if ((error == EACCES || error == EPERM) && ::lstat(object.c_str(), &found) == 0) {
        throw Error(Errc::not_permitted,
                    fmt::format("{} {}: {}; it belongs to {}: use another RMEM_RING, or have it "
                                "made with RMEM_UNIX_GROUP to share it with a group",
                                doing, object, std::strerror(error), owner_text(found)));
    }
    throw Error(Errc::system, fmt::format("{} {}: {}{}", doing, object, system_words(error),
                                          limit_behind(error)));
}

[[noreturn]] void fail_to_create(const std::string& ring, int error) {
    struct stat folder {};
    if ((error == EACCES || error == EPERM || error == EROFS) && ::stat(kDirectory, &folder) == 0) {
        throw Error(Errc::not_permitted,
                    fmt::format("creating {}: {}; {} belongs to {}, and all users must be able to "
                                "make files there (`chmod 1777 {}`)",
                                Segment::object_name(ring), std::strerror(error), kDirectory,
                                owner_text(folder), kDirectory));
    }
    fail(ring, "creating", error);
}

void give_to_group(const std::string& ring, int fd, const std::string& name) {
    const auto group = group_named(name);
    if (!group) return;
    if (::fchown(fd, static_cast<uid_t>(-1), *group) != 0) {
        if (errno != EPERM) fail(ring, "chgrp of", errno);
        throw Error(Errc::not_permitted,
                    fmt::format("RMEM_UNIX_GROUP: user {} is not in group '{}', and so cannot "
                                "share a ring with it",
                                user_text(::geteuid()), name));
    }
    if (::fchmod(fd, 0660) != 0) fail(ring, "chmod of", errno);
}

/// A limit on the size of files (ulimit -f) is an error in its scope, not the signal that ends a
/// process.
class FileLimitAsError {
public:
    FileLimitAsError() noexcept {
        sigemptyset(&signal_);
        sigaddset(&signal_, SIGXFSZ);
        sigset_t pending;
        sigpending(&pending);
        was_pending_ = sigismember(&pending, SIGXFSZ) == 1;
        pthread_sigmask(SIG_BLOCK, &signal_, &before_);
    }
    ~FileLimitAsError() {
        const timespec now{};
        if (!was_pending_) ::sigtimedwait(&signal_, nullptr, &now);
        pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    FileLimitAsError(const FileLimitAsError&) = delete;
    FileLimitAsError& operator=(const FileLimitAsError&) = delete;

private:
    sigset_t signal_, before_;
    bool was_pending_ = false;
};

void reserve_space(const std::string& ring, int fd, std::size_t from, std::size_t bytes) {
    // The kernel would end this process, or another of its cgroup, without a word.
    if (const auto memory = memory_of_cgroup(); memory && memory->room < bytes) {
        throw Error(Errc::no_space,
                    fmt::format("ring '{}' needs {} of memory, and the cgroup of this process "
                                "has room for {}; raise its limit (containers: --memory) or "
                                "make the ring smaller (RMEM_SIZE, RMEM_PARTITION, fewer ranks)",
                                ring, size_text(bytes), size_text(memory->room)));
    }
    const FileLimitAsError guard;
    int error;
    do {
        error = ::posix_fallocate(fd, static_cast<off_t>(from), static_cast<off_t>(bytes));
    } while (error == EINTR);
    if (error == 0) return;
    if (error == EFBIG) {
        throw Error(Errc::no_space,
                    fmt::format("ring '{}' needs {} in {}, and this process may not make files "
                                "as large as that; raise the limit (ulimit -f), or make the ring "
                                "smaller (RMEM_SIZE, RMEM_PARTITION, fewer ranks)",
                                ring, size_text(bytes), kDirectory));
    }
    if (error == ENOSPC || error == ENOMEM) {
        const auto space = std::filesystem::space(kDirectory);
        throw Error(Errc::no_space,
                    fmt::format("ring '{}' needs {} in {}, which has {} left; make {} larger "
                                "(containers: --shm-size) or the ring smaller (RMEM_SIZE, "
                                "RMEM_PARTITION, fewer ranks)",
                                ring, size_text(bytes), kDirectory, size_text(space.available),
                                kDirectory));
    }
    fail(ring, "reserving space for", error);
}

void extend(const std::string& ring, int fd, std::size_t bytes) {
    const FileLimitAsError guard;
    if (::ftruncate(fd, static_cast<off_t>(bytes)) != 0) fail(ring, "extending", errno);
}

Error foreign(const std::string& ring, const std::string& what) {
    return {Errc::foreign_segment,
            fmt::format("{} is {}, and no ring; remove it, or use another RMEM_RING",
                        Segment::object_name(ring), what)};
}

/// The opened object is a file, and for us.
void check_opened(const std::string& ring, int fd, const Trust& trust) {
    struct stat found {};
    if (::fstat(fd, &found) != 0) fail(ring, "looking at", errno);
    if (!S_ISREG(found.st_mode)) throw foreign(ring, "a pipe or device");
    check_owner(Segment::object_name(ring), found, trust);
}

enum class Standing { gone, ours, others };

/// Whether what has this name may be looked at. A process that opens it asks again.
Standing standing_of(const char* path) {
    struct stat found {};
    if (::lstat(path, &found) != 0) return Standing::gone;
    if (!is_for_us(found, {.only_looks = true})) return Standing::others;
    if (::faccessat(AT_FDCWD, path, R_OK | W_OK, AT_EACCESS | AT_SYMLINK_NOFOLLOW) == 0)
        return Standing::ours;
    return errno == ENOENT ? Standing::gone : Standing::others;
}

/// Of one ring, or of all: no ring.
std::vector<std::string> names_of(Standing wanted, const std::string* ring = nullptr) {
    std::vector<std::string> names;
    std::error_code ignored;  // no /dev/shm: no rings
    for (const auto& entry : std::filesystem::directory_iterator(kDirectory, ignored)) {
        const std::string file = entry.path().filename().string();
        if (!file.starts_with(kPrefix)) continue;
        std::string name = file.substr(std::strlen(kPrefix));
        if (ring != nullptr && ring_of(name) != *ring) continue;
        if (standing_of(entry.path().c_str()) == wanted) names.push_back(std::move(name));
    }
    std::sort(names.begin(), names.end());
    return names;
}

std::size_t size_of(const std::string& ring, int fd) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) fail(ring, "looking at", errno);
    return static_cast<std::size_t>(status.st_size);
}

Mapping map(const std::string& ring, int fd, std::size_t offset, std::size_t bytes,
            Mapping::Access access = Mapping::Access::load_and_store) {
    if (bytes == 0) return {};  // still being made
    try {
        return {fd, offset, bytes, access};
    } catch (const std::system_error& e) {
        const int error = e.code().value();
        if (error != EAGAIN && error != ENOMEM) fail(ring, "mapping", error);
        throw Error(Errc::no_space,
                    fmt::format("mapping the {} of {}: {}{}", size_text(bytes),
                                Segment::object_name(ring), std::strerror(error),
                                error == EAGAIN ? limit_of_locked_memory() : limit_behind(error)));
    }
}

}  // namespace

ByteLock::ByteLock(ByteLock&& other) noexcept
    : page_(std::exchange(other.page_, nullptr)), process_(other.process_) {}

ByteLock& ByteLock::operator=(ByteLock&& other) noexcept {
    std::swap(page_, other.page_);
    std::swap(process_, other.process_);
    return *this;
}

void ByteLock::release() noexcept {
    if (held()) ::munmap(page_, kPage);
    page_ = nullptr;
}

std::string Segment::object_name(const std::string& ring) {
    return fmt::format("{}/{}{}", kDirectory, kPrefix, ring);
}

std::optional<Segment::Created> Segment::create(const std::string& ring, std::size_t bytes,
                                                const std::string& unix_group, std::uint64_t byte,
                                                std::size_t sparse_bytes) {
    // Without a name at first, so that a maker killed up to here leaves nothing behind.
    Descriptor fd(::open(kDirectory, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
    if (fd.get() < 0) fail_to_create(ring, errno);
    Segment segment(ring, std::move(fd), Mapping());
    give_to_group(ring, segment.fd_.get(), unix_group);
    auto lock = segment.try_lock(byte);
    if (!lock) fail(ring, "locking a byte of", EAGAIN);
    RMEM_MARK("ring.nameless");
    const std::string name = object_name(ring);
    if (::linkat(AT_FDCWD, segment.own_path().c_str(), AT_FDCWD, name.c_str(), AT_SYMLINK_FOLLOW) !=
        0) {
        if (errno == EEXIST) return std::nullopt;
        fail_to_create(ring, errno);
    }
    RMEM_MARK("ring.named");
    try {
        reserve_space(ring, segment.fd_.get(), 0, bytes);
        if (sparse_bytes != 0) extend(ring, segment.fd_.get(), bytes + sparse_bytes);
        RMEM_MARK("ring.reserved");
        segment.mapping_ = map(ring, segment.fd_.get(), 0, size_of(ring, segment.fd_.get()));
    } catch (...) {
        ::unlink(name.c_str());  // still ours alone: a process that found it waits for the lock
        throw;
    }
    return Created{std::move(segment), std::move(*lock)};
}

std::optional<Segment> Segment::open(const std::string& ring, const Trust& trust,
                                     Mapping::Access access) {
    Descriptor fd(::open(object_name(ring).c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
    if (fd.get() < 0) {
        switch (errno) {
            case ENOENT: return std::nullopt;
            case EISDIR: throw foreign(ring, "a folder");
            case ELOOP: throw foreign(ring, "a link to something else");
            case ENXIO: throw foreign(ring, "a socket");
            default: fail(ring, "opening", errno);
        }
    }
    check_opened(ring, fd.get(), trust);
    Mapping mapping = map(ring, fd.get(), 0, size_of(ring, fd.get()), access);
    return Segment(ring, std::move(fd), std::move(mapping));
}

bool Segment::exists(const std::string& ring) {
    struct stat ignored {};
    return ::lstat(object_name(ring).c_str(), &ignored) == 0;
}

std::string Segment::owner(const std::string& ring) {
    struct stat found {};
    return ::lstat(object_name(ring).c_str(), &found) == 0 ? user_text(found.st_uid) : "";
}

bool Segment::remove(const std::string& ring) {
    Bell::remove(ring);
    if (::unlink(object_name(ring).c_str()) == 0) return true;
    const int error = errno;
    if (error == ENOENT) return false;
    struct stat found {};
    if ((error != EPERM && error != EACCES) || ::lstat(object_name(ring).c_str(), &found) != 0)
        fail(ring, "removing", error);
    // A shared folder lets a group use a file, and only its owner remove it.
    throw Error(Errc::not_permitted,
                fmt::format("{} is left over, nobody is in it, and only {} or root may remove it, "
                            "by `rmem clean {}`; ask for that, or use another RMEM_RING",
                            object_name(ring), user_text(found.st_uid), ring));
}

std::vector<std::string> Segment::list() {
    return names_of(Standing::ours);
}

std::vector<std::string> Segment::list_of(const std::string& ring) {
    return names_of(Standing::ours, &ring);
}

std::vector<std::string> Segment::others() {
    return names_of(Standing::others);
}

Segment::Segment(std::string ring, Descriptor fd, Mapping mapping)
    : ring_(std::move(ring)), fd_(std::move(fd)), mapping_(std::move(mapping)) {}

Mapping Segment::map_again(const std::byte* place, std::size_t bytes,
                           Mapping::Access access) const {
    return map(ring_, own(), static_cast<std::size_t>(place - data()), bytes, access);
}

void Segment::reserve(const std::byte* place, std::size_t bytes) const {
    reserve_space(ring_, own(), static_cast<std::size_t>(place - data()), bytes);
}

void Segment::give_back(const std::byte* place, std::size_t bytes) const noexcept {
    // Where the host cannot, it is given back with the rest.
    static_cast<void>(::fallocate(own(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, place - data(),
                                  static_cast<off_t>(bytes)));
}

std::optional<gid_t> Segment::group() const {
    struct stat status {};
    if (::fstat(fd_.get(), &status) != 0) fail(ring_, "looking at", errno);
    constexpr mode_t kShared = S_IRGRP | S_IWGRP;
    if ((status.st_mode & kShared) != kShared) return std::nullopt;
    return status.st_gid;
}

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

/// -1 where the program has closed it: its number may be a file of the program's by now.
int Segment::own() const noexcept {
    return fd_.is_ours() ? fd_.get() : -1;
}

std::string Segment::own_path() const {
    return fmt::format("/proc/self/fd/{}", fd_.get());
}

std::optional<ByteLock> Segment::lock_with(short type, std::uint64_t byte) const {
    if (own() < 0) fail(ring_, "locking a byte of", EBADF);
    // A lock belongs to an open file description, so each lock opens one of its own.
    const Descriptor fd(::open(own_path().c_str(), O_RDWR | O_CLOEXEC));
    if (fd.get() < 0) fail(ring_, "reopening", errno);
    struct flock lock {};
    lock.l_type = type;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(byte);
    lock.l_len = 1;
    if (::fcntl(fd.get(), F_OFD_SETLK, &lock) != 0) {
        if (errno == EAGAIN || errno == EACCES) return std::nullopt;
        fail(ring_, "locking a byte of", errno);
    }
    void* const page = ::mmap(nullptr, kPage, PROT_NONE, MAP_SHARED, fd.get(), 0);
    if (page == MAP_FAILED) fail(ring_, "keeping a lock of", errno);
    ByteLock taken(page);
    if (::madvise(page, kPage, MADV_DONTFORK) != 0) fail(ring_, "keeping a lock of", errno);
    return taken;
}

std::optional<ByteLock> Segment::try_lock(std::uint64_t byte) const {
    return lock_with(F_WRLCK, byte);
}

std::optional<ByteLock> Segment::try_lock_shared(std::uint64_t byte) const {
    return lock_with(F_RDLCK, byte);
}

std::size_t Segment::next_touched(std::size_t offset) const noexcept {
    const off_t at = ::lseek(own(), static_cast<off_t>(offset), SEEK_DATA);
    if (at >= 0) return static_cast<std::size_t>(at);
    return errno == ENXIO ? size() : offset;
}

std::size_t Segment::next_untouched(std::size_t offset) const noexcept {
    const off_t at = ::lseek(own(), static_cast<off_t>(offset), SEEK_HOLE);
    return at >= 0 ? static_cast<std::size_t>(at) : size();
}

bool Segment::is_locked(std::uint64_t byte, std::uint64_t count) const noexcept {
    struct flock lock {};
    lock.l_type = F_WRLCK;
    lock.l_whence = SEEK_SET;
    lock.l_start = static_cast<off_t>(byte);
    lock.l_len = static_cast<off_t>(count);
    // A failing query must not declare anybody dead, nor must one about another file.
    return ::fcntl(fd_.get(), F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK || !fd_.is_ours();
}

}  // namespace rmem
