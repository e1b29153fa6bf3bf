// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/descriptor.hpp"

#include <fcntl.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <mutex>
#include <vector>

namespace rmem {

namespace {

/// What a forked child must not keep. Leaked on purpose, since fork handlers may run during exit.
struct ForkGuard {
    std::mutex mutex;
    std::vector<Descriptor::File> files;
    /// Its number; 0 in a new child, whatever call has made it: in memory that the kernel wipes
    /// there.
    std::atomic<pid_t>* process = nullptr;

    static ForkGuard& get() {
        static ForkGuard* const guard = make();
        return *guard;
    }

private:
    static ForkGuard* make() {
        static std::atomic<pid_t> unwiped{0};  // a host that cannot has fork() alone
        auto* const made = new ForkGuard;
        constexpr std::size_t kPage = 4096;
        void* const page =
            ::mmap(nullptr, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        const bool is_wiped = page != MAP_FAILED && ::madvise(page, kPage, MADV_WIPEONFORK) == 0;
        made->process = is_wiped ? new (page) std::atomic<pid_t>(0) : &unwiped;
        ::pthread_atfork([] { get().mutex.lock(); }, [] { get().mutex.unlock(); },
                         [] {
                             for (const auto& file : get().files) {
                                 if (file.is_still_it()) ::close(file.fd);
                             }
                             get().files.clear();
                             // relaxed is enough: a forked child has one thread
                             get().process->store(0, std::memory_order_relaxed);
                             get().mutex.unlock();
                         });
        return made;
    }
};

}  // namespace

pid_t process_id() noexcept {
    std::atomic<pid_t>& process = *ForkGuard::get().process;
    // relaxed is enough, twice: all threads store the same
    if (const pid_t known = process.load(std::memory_order_relaxed); known != 0) return known;
    const pid_t own = ::getpid();
    process.store(own, std::memory_order_relaxed);
    return own;
}

bool Descriptor::File::is_still_it() const noexcept {
    struct stat found {};
    return ::fstat(fd, &found) == 0 && found.st_dev == device && found.st_ino == inode;
}

int above_standard_streams(int fd) noexcept {
    if (fd < 0 || fd > STDERR_FILENO) return fd;
    const int moved = ::fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    const int error = errno;
    ::close(fd);
    errno = error;
    return moved;
}

Descriptor::Descriptor(int fd) {
    file_.fd = above_standard_streams(fd);
    if (file_.fd < 0) return;
    struct stat found {};
    static_cast<void>(::fstat(file_.fd, &found));
    file_ = {file_.fd, process_id(), found.st_dev, found.st_ino};
    const std::lock_guard lock(ForkGuard::get().mutex);
    ForkGuard::get().files.push_back(file_);
}

int Descriptor::get() const noexcept {
    // The first use of the guard may wait for another thread, and errno would no longer be that of
    // an open that has failed.
    return file_.fd >= 0 && file_.process == process_id() ? file_.fd : -1;
}

bool Descriptor::is_ours() const noexcept {
    return get() >= 0 && file_.is_still_it();
}

void Descriptor::reset() noexcept {
    if (get() >= 0) {
        const std::lock_guard lock(ForkGuard::get().mutex);
        std::erase(ForkGuard::get().files, file_);
        if (file_.is_still_it()) ::close(file_.fd);
    }
    file_ = {};
}

void Descriptor::raise() const noexcept {
    if (is_ours()) static_cast<void>(::eventfd_write(file_.fd, 1));
}

std::pair<Descriptor, Descriptor> Descriptor::pipe(int flags) {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), flags) != 0) return {};
    std::pair both{Descriptor(ends[0]), Descriptor(ends[1])};
    if (both.first.get() < 0 || both.second.get() < 0) return {};
    return both;
}

void fill_standard_streams() noexcept {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; ++fd) {
        // The lowest number that is free is the one given.
        if (::fcntl(fd, F_GETFD) < 0) static_cast<void>(::open("/dev/null", O_RDWR | O_CLOEXEC));
    }
}

}  // namespace rmem
