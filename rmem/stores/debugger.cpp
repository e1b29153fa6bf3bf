// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/debugger.hpp"

#include "rmem/base/descriptor.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>

namespace rmem::stores {

namespace {

/// The lines of a file, one after the other.
class Lines {
public:
    explicit Lines(const char* path) noexcept
        : fd_(above_standard_streams(::open(path, O_RDONLY | O_CLOEXEC))) {}
    ~Lines() {
        if (fd_ >= 0) ::close(fd_);
    }
    Lines(const Lines&) = delete;
    Lines& operator=(const Lines&) = delete;

    /// Null if there is no further one.
    char* next() noexcept {
        std::memmove(text_.data(), text_.data() + used_, held_ - used_);
        held_ -= used_;
        for (;;) {
            auto* const end = static_cast<char*>(std::memchr(text_.data(), '\n', held_));
            if (end != nullptr) {
                *end = '\0';
                used_ = static_cast<std::size_t>(end - text_.data()) + 1;
                return text_.data();
            }
            const ssize_t got = ::read(fd_, text_.data() + held_, text_.size() - held_);
            if (got <= 0) return nullptr;
            held_ += static_cast<std::size_t>(got);
        }
    }

private:
    const int fd_;
    std::array<char, 2 * PATH_MAX> text_;
    std::size_t held_ = 0, used_ = 0;
};

}  // namespace

bool is_debugged() noexcept {
    constexpr char kTracer[] = "TracerPid:";
    Lines status("/proc/self/status");
    while (const char* const line = status.next()) {
        if (std::strncmp(line, kTracer, sizeof kTracer - 1) == 0)
            return std::strtol(line + sizeof kTracer - 1, nullptr, 10) != 0;
    }
    return false;
}

bool read_original_code(std::uint64_t address, std::span<std::byte> to) noexcept {
    Lines maps("/proc/self/maps");
    // "begin-end rights offset device inode path"
    while (char* line = maps.next()) {
        const std::uint64_t begin = std::strtoull(line, &line, 16);
        const std::uint64_t end = std::strtoull(line + 1, &line, 16);
        if (address < begin || address >= end) continue;
        const char* const path = std::strchr(line, '/');
        if (path == nullptr || std::strlen(line) < 6) return false;
        const std::uint64_t offset = std::strtoull(line + 6, nullptr, 16);
        const int fd = above_standard_streams(::open(path, O_RDONLY | O_CLOEXEC));
        if (fd < 0) return false;
        const ssize_t got =
            ::pread(fd, to.data(), to.size(), static_cast<off_t>(offset + (address - begin)));
        ::close(fd);
        return got > 0;
    }
    return false;
}

}  // namespace rmem::stores
