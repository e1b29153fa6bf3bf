// SPDX-License-Identifier: Apache-2.0
#include "rmem/ring/mapping.hpp"

#include "rmem/base/limits.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <system_error>

namespace rmem {

namespace {

std::size_t page_bytes() noexcept {
    static const auto bytes = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    return bytes;
}

std::size_t with_guards(std::size_t bytes) noexcept {
    return round_up(bytes, page_bytes()) + 2 * page_bytes();
}

[[noreturn]] void fail(int error) {
    throw std::system_error(error, std::generic_category());
}

}  // namespace

Mapping::Mapping(int fd, std::size_t offset, std::size_t bytes, Access access) : bytes_(bytes) {
    // The place is reserved at first, so that nobody else comes to lie where the guards are.
    constexpr int kReserved = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* const all = ::mmap(nullptr, with_guards(bytes), PROT_NONE, kReserved, -1, 0);
    if (all == MAP_FAILED) fail(errno);
    data_ = static_cast<std::byte*>(all) + page_bytes();
    const int rights = access == Access::load ? PROT_READ : PROT_READ | PROT_WRITE;
    if (::mmap(data_, bytes, rights, MAP_SHARED | MAP_FIXED, fd, static_cast<off_t>(offset)) !=
        MAP_FAILED)
        return;
    const int error = errno;
    ::munmap(all, with_guards(bytes));
    fail(error);
}

Mapping::~Mapping() {
    if (data_ != nullptr) ::munmap(data_ - page_bytes(), with_guards(bytes_));
}

}  // namespace rmem
