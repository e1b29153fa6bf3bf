// SPDX-License-Identifier: Apache-2.0
#pragma once

/// The descriptors of a library in a program's process.
///
/// Their numbers are above those of the standard streams: a program that was started with these
/// closed may print, and what it prints would go into whatever has their numbers. Nothing in the
/// libraries opens one otherwise (the lint says so).
///
/// A program may close what is not its own, as daemons do that close all; its next file then has
/// the number. So a descriptor knows which file it opened. Nothing is closed, changed or written
/// to here that is another by now; code that writes elsewhere asks is_ours() before. (All of
/// eventfd(2), epoll(7) and timerfd_create(2) count as one file.)
///
/// Fork: a child's copies are closed at fork(), and get() gives -1 there; also in a child that was
/// made without the C library's fork(), which keeps the copies.
/// Thread safety: distinct objects are independent. Errors: none; std::bad_alloc.

#include "rmem/error.hpp"

#include <sys/types.h>

#include <utility>

namespace rmem {

/// The sentence about that.
inline constexpr const char* kDescriptorsClosed =
    "this program has closed descriptors that are the ring's; close those alone that it has opened "
    "itself, or open the ring after that";

class RMEM_API Descriptor {
public:
    Descriptor() = default;
    /// Takes over what has just been opened; below 0: nothing, and errno stays as it was. So it is
    /// where no number is left for it.
    explicit Descriptor(int fd);
    Descriptor(Descriptor&& other) noexcept : file_(std::exchange(other.file_, {})) {}
    Descriptor& operator=(Descriptor&& other) noexcept {
        std::swap(file_, other.file_);
        return *this;
    }
    ~Descriptor() { reset(); }

    /// -1 when there is none, also in a process forked since.
    int get() const noexcept;
    /// Whether the number still means the file that was opened. One system call.
    [[nodiscard]] bool is_ours() const noexcept;
    void reset() noexcept;
    /// Of an eventfd(2).
    void raise() const noexcept;

    /// A pipe, to read from and to write to; none, and errno, where there can be none.
    static std::pair<Descriptor, Descriptor> pipe(int flags);

    struct File {
        int fd = -1;
        pid_t process = 0;  ///< that opened it
        dev_t device = 0;
        ino_t inode = 0;

        friend bool operator==(const File&, const File&) = default;
        [[nodiscard]] bool is_still_it() const noexcept;
    };

private:
    File file_;
};

/// getpid(2), without a system call, whatever call has forked this process.
RMEM_API pid_t process_id() noexcept;

/// The descriptor, or a copy in its place with a number that no standard stream has, which programs
/// do not inherit that are executed; -1, and errno, where none is left. For one that is given away.
RMEM_API int above_standard_streams(int fd) noexcept;

/// The numbers of those standard streams that are closed mean /dev/null from now on, but not in
/// programs that are executed: for what opens descriptors by other code than ours.
RMEM_API void fill_standard_streams() noexcept;

}  // namespace rmem
