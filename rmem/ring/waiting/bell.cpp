// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/waiting/bell.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>

namespace rmem {

namespace {

std::string path_of(const std::string& segment) {
    return fmt::format("/dev/shm/rmem-bell.{}", segment);
}

[[noreturn]] void fail_at_bell(const std::string& path, const char* doing, int error) {
    throw Error(Errc::system, fmt::format("{} {}: {}; remove that file if nobody uses it", doing,
                                          path, std::strerror(error)));
}

/// With both ends open nobody meets an end of file, or a pipe that nobody reads.
Descriptor open_pipe(const std::string& path) {
    return Descriptor(::open(path.c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW));
}

/// All who may take part in the segment may ring.
void share_with(std::optional<gid_t> group, int fd) {
    // If the host refuses, the bell is its maker's alone; others are then heard later.
    if (group) static_cast<void>(::fchown(fd, static_cast<uid_t>(-1), *group));
    static_cast<void>(::fchmod(fd, group ? 0660 : 0600));
}

}  // namespace

Bell Bell::make(const std::string& segment, std::optional<gid_t> group) {
    const std::string path = path_of(segment);
    if (::mkfifo(path.c_str(), 0600) != 0 && errno != EEXIST) fail_at_bell(path, "making", errno);
    Descriptor pipe = open_pipe(path);
    const int problem = pipe.get() < 0 ? errno : 0;
    struct stat found {};
    const bool is_there =
        (problem == 0 ? ::fstat(pipe.get(), &found) : ::lstat(path.c_str(), &found)) == 0;
    if (is_there) check_owner(path, found, {.group = group});
    if (problem != 0 || !is_there) fail_at_bell(path, "opening", problem != 0 ? problem : errno);
    if (!S_ISFIFO(found.st_mode)) {
        throw Error(Errc::foreign_segment,
                    fmt::format("{} is not a pipe; remove it: it is not from this library", path));
    }
    share_with(group, pipe.get());
    Bell bell(std::move(pipe));
    bell.clear();
    return bell;
}

Bell Bell::open(const std::string& segment, std::optional<gid_t> group) {
    Descriptor pipe = open_pipe(path_of(segment));
    struct stat found {};
    const bool is_bell = pipe.get() >= 0 && ::fstat(pipe.get(), &found) == 0 &&
                         S_ISFIFO(found.st_mode) && is_for_us(found, {.group = group});
    return Bell(is_bell ? std::move(pipe) : Descriptor());
}

void Bell::remove(const std::string& segment) noexcept {
    ::unlink(path_of(segment).c_str());
}

void Bell::ring() const noexcept {
    const char once = 1;
    if (!pipe_.is_ours()) return;
    // A full pipe has been rung.
    static_cast<void>(!::write(pipe_.get(), &once, 1));
}

void Bell::clear() const noexcept {
    if (!pipe_.is_ours()) return;
    std::array<char, 256> rung;
    while (::read(pipe_.get(), rung.data(), rung.size()) == static_cast<ssize_t>(rung.size())) {
    }
}

}  // namespace rmem
