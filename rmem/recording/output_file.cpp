// SPDX-License-Identifier: Apache-2.0
#include "rmem/recording/output_file.hpp"

#include "rmem/base/small_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

namespace rmem {

namespace {

Errc kind_of(int error) noexcept {
    if (error == ENOSPC || error == EDQUOT || error == EFBIG) return Errc::no_space;
    return error == EACCES || error == EPERM || error == EROFS ? Errc::not_permitted : Errc::system;
}

int open_new(const std::string& path, bool replace) {
    const int flags = O_WRONLY | O_CREAT | O_CLOEXEC | (replace ? O_TRUNC : O_EXCL);
    const int fd = ::open(path.c_str(), flags, 0600);
    if (fd >= 0) return fd;
    const int error = errno;
    if (error == EEXIST) {
        throw Error(
            Errc::invalid_argument,
            fmt::format(
                "there is a '{}' already; remove it, give another name, or replace it (--replace)",
                path));
    }
    throw Error(kind_of(error), fmt::format("'{}' cannot be made: {}", path, system_words(error)));
}

}  // namespace

OutputFile::OutputFile(std::string path, bool replace)
    : path_(std::move(path)), fd_(open_new(path_, replace)) {}

OutputFile::~OutputFile() {
    close();
}

bool OutputFile::fail(int error) noexcept {
    if (error_ == 0) error_ = error;
    return false;
}

bool OutputFile::append(std::span<const std::byte> piece) {
    if (failed()) return false;
    std::size_t done = 0;
    while (done < piece.size()) {
        const ssize_t count = ::write(fd_, piece.data() + done, piece.size() - done);
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) {
            fail(errno);
            // A part of the piece would be damage to readers; if it stays, they skip it.
            if (done != 0 && ::ftruncate(fd_, static_cast<off_t>(bytes_)) != 0) return false;
            return false;
        }
        done += static_cast<std::size_t>(count);
    }
    bytes_ += piece.size();
    return true;
}

bool OutputFile::sync() {
    if (failed()) return false;
    return ::fsync(fd_) == 0 || fail(errno);
}

bool OutputFile::close() {
    if (fd_ < 0) return !failed();
    const int result = ::close(std::exchange(fd_, -1));
    if (result != 0 && errno != EINTR) fail(errno);  // Linux has closed it in either case
    return !failed();
}

Error OutputFile::failure(const std::string& kept) const {
    const Errc kind = kind_of(error_);
    const char* what =
        kind == Errc::no_space ? "there is no room for more of" : "no more can be written to";
    return {kind, fmt::format("{} '{}' ({}); {}", what, path_, system_words(error_), kept)};
}

}  // namespace rmem
