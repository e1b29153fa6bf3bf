// SPDX-License-Identifier: Apache-2.0
#include "ports/dp/token_pool.hpp"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

namespace ports::dp {

TokenPool::TokenPool(std::size_t bytes) {
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    size_ = (std::max<std::size_t>(bytes, 1) + page - 1) / page * page;
    void* at = ::mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "a token buffer pool");
    base_ = static_cast<std::byte*>(at);
}

TokenPool::~TokenPool() {
    ::munmap(base_, size_);
}

void TokenPool::collect() noexcept {
    while (tokens_ > unread_) {
        const Token& token = token_at(oldest_);
        if (token.skipped == 0) {
            if (collected_ == flushes_) return;
            ++collected_;
        }
        oldest_ = token.link;
        --tokens_;
    }
}

bool TokenPool::has_room(std::size_t length) noexcept {
    collect();
    return find(bytes_of(length)) != kNowhere;
}

}  // namespace ports::dp
