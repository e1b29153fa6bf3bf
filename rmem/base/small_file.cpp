// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/small_file.hpp"

#include "rmem/base/descriptor.hpp"
#include "rmem/base/large_pages.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace rmem {

namespace {

/// As much of it as that. `error`: of errno, or 0.
std::string start_of(const char* path, std::size_t most, int& error) {
    const Descriptor fd(::open(path, O_RDONLY | O_CLOEXEC));
    error = fd.get() < 0 ? errno : 0;
    if (fd.get() < 0) return {};
    struct stat found {};
    // Of the kernel's files it is 0, and any may grow meanwhile.
    const bool has_size = ::fstat(fd.get(), &found) == 0 && found.st_size > 0;
    const std::size_t size_now = has_size ? static_cast<std::size_t>(found.st_size) + 1 : 0;
    const std::size_t room = std::min(most, std::max<std::size_t>(size_now, kSmallFileBytes));
    std::string text;
    text.reserve(room);
    prefer_large_pages(text.data(), room);
    text.resize(room);
    std::size_t size = 0;
    ssize_t got = 0;
    do {
        if (size == text.size()) text.resize(std::min(most, 4 * size));
        got = ::read(fd.get(), text.data() + size, text.size() - size);
        if (got > 0) size += static_cast<std::size_t>(got);
    } while (got > 0 && size < most);
    if (got < 0) error = errno;
    text.resize(size);
    return text;
}

const char* advice_for(int error) noexcept {
    switch (error) {
        case ENOENT:
        case ENOTDIR: return "; look whether the name is right, and its folder there";
        case EISDIR: return "; name a file";
        case EACCES:
        case EPERM:
        case EROFS: return "; name another place, or ask its owner for access";
        case ENOSPC:
        case EDQUOT:
        case EFBIG: return "; make room there, or name another place";
        case EMFILE:
        case ENFILE: return "; close other files, or raise the limit (ulimit -n)";
        case ENOMEM:
        case EAGAIN: return "; end other processes, or raise the limit (ulimit -u, -v)";
        default: return "";
    }
}

}  // namespace

std::string small_file(const char* path) {
    int error = 0;
    return start_of(path, kSmallFileBytes, error);
}

std::string user_file(const std::string& path, const std::string& what, Errc code,
                      std::size_t most) {
    int error = 0;
    std::string text = start_of(path.c_str(), most + 1, error);
    if (error != 0) {
        throw Error(code,
                    fmt::format("{} '{}' cannot be read: {}", what, path, system_words(error)));
    }
    if (text.size() <= most) return text;
    throw Error(code, fmt::format("{} '{}' has more than {} bytes; is it the right file?", what,
                                  path, most));
}

std::string system_words(int error) {
    return std::generic_category().message(error) + advice_for(error);
}

}  // namespace rmem
