// SPDX-License-Identifier: Apache-2.0
#include "ports/munet/counter_board.hpp"

#include "rmem/ring/segment.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <new>
#include <system_error>

namespace ports::munet {

namespace {

[[noreturn]] void fail(const std::string& object, int code) {
    throw rmem::Error(rmem::Errc::system, fmt::format("MU-Net: the counters' board /dev/shm{}: {}",
                                                      object, std::strerror(code)));
}

/// Locks it for writing. False: another has; a process that can only read it may lock it for
/// reading at most, which is no daemon's.
bool lock(const rmem::Descriptor& board) {
    struct flock all {};
    all.l_type = F_WRLCK;
    all.l_whence = SEEK_SET;
    if (::fcntl(board.get(), F_OFD_SETLK, &all) == 0) return true;
    return ::fcntl(board.get(), F_OFD_GETLK, &all) == 0 && all.l_type == F_RDLCK;
}

/// One that is left over, locked against others who would replace it; throws where a daemon has it.
rmem::Descriptor hold_former(const std::string& object) {
    rmem::Descriptor former(::shm_open(object.c_str(), O_RDWR | O_CLOEXEC, 0));
    if (former.get() >= 0 && !lock(former)) {
        throw rmem::Error(rmem::Errc::rank_taken,
                          fmt::format("MU-Net: another daemon writes /dev/shm{}; end it, or give "
                                      "this one another ring or node",
                                      object));
    }
    return former;
}

/// What belongs to another user cannot be removed, and is refused.
rmem::Descriptor make(const std::string& object) {
    const rmem::Descriptor former = hold_former(object);
    ::shm_unlink(object.c_str());
    rmem::Descriptor fd(::shm_open(object.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (fd.get() < 0 || !lock(fd)) fail(object, errno);
    if (const int code = ::posix_fallocate(fd.get(), 0, sizeof(BoardMemory))) fail(object, code);
    if (::fchmod(fd.get(), 0644) != 0) fail(object, errno);
    return fd;
}

}  // namespace

CounterBoard::CounterBoard(const std::string& name)
    : object_(name.empty() ? "" : object_name(name)) {
    if (!object_.empty()) fd_ = make(object_);
    void* at = ::mmap(nullptr, sizeof(BoardMemory), PROT_READ | PROT_WRITE,
                      object_.empty() ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, fd_.get(), 0);
    if (at == MAP_FAILED) fail(object_, errno);
    memory_ = new (at) BoardMemory{};
}

void CounterBoard::begin() noexcept {
    // relaxed is enough, twice: for people
    memory_->pid.store(static_cast<std::uint32_t>(::getpid()), std::memory_order_relaxed);
    memory_->magic.store(kBoardMagic, std::memory_order_relaxed);
}

CounterBoard::~CounterBoard() {
    if (!object_.empty()) ::shm_unlink(object_.c_str());
    ::munmap(memory_, sizeof(BoardMemory));
}

std::shared_ptr<const BoardMemory> CounterBoard::observe(const std::string& name) {
    const rmem::Descriptor fd(::shm_open(object_name(name).c_str(), O_RDONLY | O_CLOEXEC, 0));
    struct stat about {};
    if (fd.get() < 0 || ::fstat(fd.get(), &about) != 0 ||
        about.st_size != static_cast<off_t>(sizeof(BoardMemory))) {
        return nullptr;
    }
    // Read, not mapped: a mapping faults when its owner makes the file shorter.
    auto board = std::make_shared<BoardMemory>();
    if (::pread(fd.get(), board.get(), sizeof(BoardMemory), 0) !=
        static_cast<ssize_t>(sizeof(BoardMemory))) {
        return nullptr;
    }
    // relaxed is enough: for people
    const bool is_board = board->magic.load(std::memory_order_relaxed) == kBoardMagic;
    return is_board ? board : nullptr;
}

std::vector<std::string> CounterBoard::list() {
    std::vector<std::string> names;
    std::error_code ignored;  // no /dev/shm: none
    for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
        const std::string object = "/" + entry.path().filename().string();
        if (object.starts_with(kPrefix) &&
            ::faccessat(AT_FDCWD, entry.path().c_str(), W_OK, AT_EACCESS) == 0) {
            names.push_back(object.substr(std::strlen(kPrefix)));
        }
    }
    std::sort(names.begin(), names.end());
    return names;
}

bool CounterBoard::remove(const std::string& name, bool dry_run) {
    const std::string object = object_name(name);
    struct stat named {};
    const rmem::Descriptor former = hold_former(object);
    if (former.get() < 0 && errno == ENOENT) return false;
    // Without a link: replaced by a daemon that has just come. Without a size: that daemon's,
    // before it is locked.
    if (former.get() < 0 || ::fstat(former.get(), &named) != 0) fail(object, errno);
    if (named.st_nlink == 0 || named.st_size == 0) fail(object, EAGAIN);
    if (!dry_run && ::shm_unlink(object.c_str()) != 0) fail(object, errno);
    return true;
}

void CounterBoard::show(const DriverCounts& driver, const Relay& relay,
                        unsigned rejoined) noexcept {
    const auto put = [this](NodeCounter which, std::uint64_t value) {
        memory_->node.values[static_cast<std::size_t>(which)].set(value);
    };
    put(NodeCounter::created, driver.created);
    put(NodeCounter::destroyed, driver.destroyed);
    put(NodeCounter::over_limit, driver.over_limit);
    put(NodeCounter::bad_requests, driver.bad_requests);
    put(NodeCounter::bells, driver.bells);
    put(NodeCounter::bad_frames, relay.bad_frames());
    put(NodeCounter::rejoined, rejoined);
    put(NodeCounter::backlog, relay.backlog());
    // relaxed is enough: for people
    memory_->active.store(relay.active(), std::memory_order_relaxed);
}

}  // namespace ports::munet
