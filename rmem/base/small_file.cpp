// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/small_file.hpp"

#include <fcntl.h>
#include <unistd.h>

namespace rmem {

std::string small_file(const char* path) {
    const int fd = ::open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return {};
    std::string text(kSmallFileBytes, '\0');
    const auto bytes = ::read(fd, text.data(), text.size());
    ::close(fd);
    text.resize(bytes > 0 ? static_cast<std::size_t>(bytes) : 0);
    return text;
}

}  // namespace rmem
