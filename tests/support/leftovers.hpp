// SPDX-License-Identifier: Apache-2.0
#pragma once

/// Files that killed tests have left in /dev/shm; the next test that makes a ring removes them.
///
/// Only rings with names of the tests' own pattern, `rmem.test-<pid>-<n>` and
/// `rmem.unit-<pid>-<n>`, and only when there is no such process and nobody holds a lock on the
/// file: in another pid namespace with the same /dev/shm, a pid that is not found may live. And
/// their bells, `rmem-bell.…` (rmem/ring/waiting/bell.hpp), once the ring is gone.
/// Thread safety: any. Errors: none; files that cannot be removed stay.

#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <string>
#include <system_error>

namespace rmem::test {

/// The file of the ring that a file is of.
inline std::string ring_of(const std::filesystem::path& file) {
    const std::string name = file.filename().string(), bell = "rmem-bell.";
    return name.starts_with(bell) ? "rmem." + name.substr(bell.size()) : name;
}

inline bool is_abandoned(const std::filesystem::path& file) {
    int pid = 0;
    unsigned number = 0;
    const std::string name = ring_of(file);
    if (std::sscanf(name.c_str(), "rmem.test-%d-%u", &pid, &number) != 2 &&
        std::sscanf(name.c_str(), "rmem.unit-%d-%u", &pid, &number) != 2)
        return false;
    if (pid <= 0 || ::kill(pid, 0) == 0 || errno != ESRCH) return false;
    std::error_code ignored;
    if (name != file.filename())
        return !std::filesystem::exists(file.parent_path() / name, ignored);
    const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) return false;
    struct flock whole {};
    whole.l_type = F_WRLCK;
    whole.l_whence = SEEK_SET;
    const bool asked = ::fcntl(fd, F_OFD_GETLK, &whole) == 0;
    ::close(fd);
    return asked && whole.l_type == F_UNLCK;
}

/// Once per process.
inline void remove_leftovers() {
    static const bool done = [] {
        std::error_code ignored;
        for (int rings_then_bells = 0; rings_then_bells < 2; ++rings_then_bells) {
            for (const auto& entry : std::filesystem::directory_iterator("/dev/shm", ignored)) {
                if (is_abandoned(entry.path())) std::filesystem::remove(entry.path(), ignored);
            }
        }
        return true;
    }();
    static_cast<void>(done);
}

}  // namespace rmem::test
