// SPDX-License-Identifier: Apache-2.0
#include "tools/measure/processes.hpp"

#include "rmem/ring/waiting/waiting.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstring>
#include <stdexcept>
#include <system_error>

namespace tools {

void* map_common(std::size_t bytes) {
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
    if (at == MAP_FAILED)
        throw std::system_error(errno, std::generic_category(), "no memory to have in common");
    return at;
}

void unmap_common(void* at, std::size_t bytes) noexcept {
    ::munmap(at, bytes);
}

void futex_wait(std::atomic<std::uint32_t>* word, std::uint32_t value) {
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), FUTEX_WAIT, value, nullptr,
              nullptr, 0);
}

void futex_wake(std::atomic<std::uint32_t>* word) {
    ::syscall(SYS_futex, reinterpret_cast<std::uint32_t*>(word), FUTEX_WAKE, INT_MAX, nullptr,
              nullptr, 0);
}

void Meeting::meet(const Poll& poll) {
    constexpr int kLooks = 1000;
    // (1) - this acquire-load synchronizes-with the release-add (3)
    const std::uint32_t generation = generation_.load(std::memory_order_acquire);
    // (2) - this acq_rel add synchronizes-with itself (2): the last knows of what all did
    if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == processes_) {
        arrived_.store(0, std::memory_order_relaxed);  // relaxed is enough: (3) publishes it
        // (3) - this release-add synchronizes-with the acquire-loads (1) and (4)
        generation_.fetch_add(1, std::memory_order_release);
        futex_wake(&generation_);
        return;
    }
    // (4) - this acquire-load synchronizes-with the release-add (3)
    for (int look = 0; generation_.load(std::memory_order_acquire) == generation; ++look) {
        if (poll) poll();
        if (look < kLooks) {
            rmem::cpu_relax();
        } else if (poll) {
            ::sched_yield();
        } else {
            futex_wait(&generation_, generation);
        }
    }
}

void Meeting::share(int rank, std::uint64_t& word, const Poll& poll) {
    if (rank == 0) word_ = word;
    meet(poll);
    word = word_;
    meet(poll);
}

std::string Meeting::exchange(int rank, const std::string& mine) {
    if (mine.size() > kMaxLetter) throw std::length_error("an address too long for the meeting");
    std::memcpy(letter_[rank], mine.data(), mine.size());
    length_[rank] = mine.size();
    meet();
    std::string theirs(letter_[1 - rank], length_[1 - rank]);
    meet();
    return theirs;
}

}  // namespace tools
