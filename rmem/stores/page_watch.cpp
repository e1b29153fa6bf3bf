// SPDX-License-Identifier: Apache-2.0
#include "rmem/stores/page_watch.hpp"

#include "rmem/base/at_fork.hpp"
#include "rmem/base/check.hpp"
#include "rmem/ring/segment.hpp"
#include "rmem/stores/signal_chain.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstring>
#include <string_view>
#include <thread>
#include <vector>

namespace rmem::stores {

namespace {

[[noreturn]] void fail_watching(const char* doing) {
    throw Error(Errc::system, fmt::format("{}: {}", doing, std::strerror(errno)));
}

constexpr std::int64_t kUnrungNs = 1'000'000;  // between looks without a bell

Descriptor make_bell() {
    Descriptor bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
    if (bell.get() < 0) fail_watching("making an eventfd");
    return bell;
}

void clear(const Descriptor& bell) noexcept {
    std::uint64_t count = 0;
    if (bell.is_ours()) static_cast<void>(!::read(bell.get(), &count, sizeof count));
}

/// The part that every watch has: the view, and its end in a forked child.
class ViewWatch : public PageWatch, private AtFork {
public:
    ViewWatch(std::span<std::byte> view) : view_(view), bell_(make_bell()) {}

    void wake() noexcept override { bell_.raise(); }

protected:
    /// Up to the end of the view.
    std::span<std::byte> pages(std::size_t first, std::size_t count) const noexcept {
        const std::size_t from = std::min(first * kPageBytes, view_.size());
        return view_.subspan(from, std::min(count * kPageBytes, view_.size() - from));
    }
    /// Tells of a page. What needs no protection any more.
    std::span<std::byte> tell(const OnStore& on_store, std::size_t page) const {
        const std::span<std::byte> free = pages(page, on_store(page));
        RMEM_CHECK(!free.empty());
        return free;
    }
    /// False: nothing came.
    bool await(std::initializer_list<int> descriptors, std::int64_t ns) const noexcept {
        if (!bell_.is_ours()) {  // what has its number is the program's own by now
            std::this_thread::sleep_for(std::chrono::nanoseconds(std::min(ns, kUnrungNs)));
            return true;
        }
        std::array<pollfd, 2> polled{};
        std::size_t count = 0;
        for (const int fd : descriptors) polled[count++] = {fd, POLLIN, 0};
        const timespec longest{ns / 1'000'000'000, ns % 1'000'000'000};
        return ::ppoll(polled.data(), count, &longest, nullptr) > 0;
    }
    bool is_parents() const noexcept { return is_parents_; }

    const std::span<std::byte> view_;
    const Descriptor bell_;

private:
    void in_child() noexcept override {
        is_parents_ = true;
        ::mprotect(view_.data(), view_.size(), PROT_READ);
    }
    bool is_parents_ = false;
};

// ---- The kernel asks

Descriptor open_userfaultfd() noexcept {
    constexpr int kFlags = O_CLOEXEC | O_NONBLOCK;
    int fd = static_cast<int>(::syscall(SYS_userfaultfd, kFlags));
    if (fd < 0) {
        const Descriptor device(::open("/dev/userfaultfd", O_RDWR | O_CLOEXEC));
        if (device.get() >= 0) fd = ::ioctl(device.get(), USERFAULTFD_IOC_NEW, kFlags);
    }
    if (fd < 0) fd = static_cast<int>(::syscall(SYS_userfaultfd, kFlags | UFFD_USER_MODE_ONLY));
    return Descriptor(fd);
}

class UserfaultWatch final : public ViewWatch {
public:
    UserfaultWatch(std::span<std::byte> view, Descriptor asks)
        : ViewWatch(view), asks_(std::move(asks)) {}

    [[nodiscard]] bool begin() noexcept {
        uffdio_api api{UFFD_API, UFFD_FEATURE_PAGEFAULT_FLAG_WP | UFFD_FEATURE_WP_HUGETLBFS_SHMEM,
                       0};
        if (::ioctl(asks_.get(), UFFDIO_API, &api) != 0) return false;
        uffdio_register all{range_of(view_), UFFDIO_REGISTER_MODE_WP, 0};
        return ::ioctl(asks_.get(), UFFDIO_REGISTER, &all) == 0 && set_protected(view_, true);
    }

    bool protect(std::size_t page) noexcept override { return set_protected(pages(page, 1), true); }

    void wait(std::int64_t ns, const OnStore& on_store) override {
        if (ns > 0 && !await({asks_.get(), bell_.get()}, ns)) return;
        clear(bell_);
        if (!asks_.is_ours()) {  // the kernel asks no more: each page may have been stored to
            for (std::size_t page = 0; page * kPageBytes < view_.size(); ++page) on_store(page);
            return;
        }
        std::array<uffd_msg, 16> asked;
        for (;;) {
            const ssize_t got = ::read(asks_.get(), asked.data(), sizeof asked);
            if (got <= 0) return;
            for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof asked[0]; ++i) {
                if (asked[i].event != UFFD_EVENT_PAGEFAULT) continue;
                const auto place = static_cast<std::uintptr_t>(asked[i].arg.pagefault.address);
                const std::size_t page =
                    (place - reinterpret_cast<std::uintptr_t>(view_.data())) / kPageBytes;
                set_protected(tell(on_store, page), false);
            }
        }
    }

private:
    static uffdio_range range_of(std::span<const std::byte> part) noexcept {
        return {reinterpret_cast<std::uintptr_t>(part.data()), part.size()};
    }
    /// What waits for the part goes on when it is not protected.
    bool set_protected(std::span<std::byte> part, bool on) const noexcept {
        uffdio_writeprotect change{range_of(part), on ? UFFDIO_WRITEPROTECT_MODE_WP : 0ULL};
        while (::ioctl(asks_.get(), UFFDIO_WRITEPROTECT, &change) != 0) {
            if (errno != EAGAIN) return false;
        }
        return true;
    }

    const Descriptor asks_;
};

// ---- A signal

class ProtectedWatch;
constexpr std::size_t kMaxWatches = 64;  // in a process
constinit std::array<std::atomic<ProtectedWatch*>, kMaxWatches> watches{};

class ProtectedWatch final : public ViewWatch {
public:
    explicit ProtectedWatch(std::span<std::byte> view)
        : ViewWatch(view), stored_((view.size() / kPageBytes + kBits - 1) / kBits) {}
    ~ProtectedWatch() override {
        for (auto& one : watches) {
            ProtectedWatch* mine = this;
            // relaxed is enough: the program stores no more
            if (one.compare_exchange_strong(mine, nullptr, std::memory_order_relaxed)) return;
        }
    }

    [[nodiscard]] bool begin() {
        look_first(SIGSEGV, on_fault);
        for (auto& one : watches) {
            ProtectedWatch* none = nullptr;
            // (1) - this release-store synchronizes-with the acquire-load (2)
            if (one.compare_exchange_strong(none, this, std::memory_order_release,
                                            std::memory_order_relaxed))
                return ::mprotect(view_.data(), view_.size(), PROT_READ) == 0;
        }
        return false;
    }

    bool protect(std::size_t page) noexcept override {
        // A handler that has told of its page may be about to unprotect it.
        // (5) - this acquire-load synchronizes-with the release-add (6)
        if (handlers_.load(std::memory_order_acquire) != 0) return false;
        const auto part = pages(page, 1);
        return ::mprotect(part.data(), part.size(), PROT_READ) == 0;
    }

    void wait(std::int64_t ns, const OnStore& on_store) override {
        if (ns > 0 && !await({bell_.get()}, ns)) return;
        clear(bell_);
        for (std::size_t i = 0; i < stored_.size(); ++i) {
            // relaxed is enough: most are 0
            if (stored_[i].load(std::memory_order_relaxed) == 0) continue;
            // (3) - this acq_rel exchange synchronizes-with the release (4)
            std::uint64_t bits = stored_[i].exchange(0, std::memory_order_acq_rel);
            for (; bits != 0; bits &= bits - 1) {
                const std::size_t page = i * kBits + static_cast<unsigned>(std::countr_zero(bits));
                const auto part = tell(on_store, page);
                ::mprotect(part.data(), part.size(), PROT_READ | PROT_WRITE);
            }
        }
    }

private:
    static constexpr std::size_t kBits = 64;

    static bool on_fault(const siginfo_t& info, ucontext_t&) noexcept {
        if (info.si_code != SEGV_ACCERR) return false;
        const auto place = static_cast<const std::byte*>(info.si_addr);
        for (auto& one : watches) {
            // (2) - this acquire-load synchronizes-with the release-store (1)
            ProtectedWatch* const watch = one.load(std::memory_order_acquire);
            if (watch == nullptr || place < watch->view_.data() ||
                place >= watch->view_.data() + watch->view_.size())
                continue;
            return watch->is_stored_into(static_cast<std::size_t>(place - watch->view_.data()) /
                                         kPageBytes);
        }
        return false;
    }
    /// Told first, so that the page is known of before anything else is stored.
    bool is_stored_into(std::size_t page) noexcept {
        if (is_parents()) {
            constexpr std::string_view kSentence =
                "rmem: a fork()ed child stores into the memory of its parent's node; the child "
                "opens a node of its own, and stores there\n";
            [[maybe_unused]] const auto written =
                ::write(STDERR_FILENO, kSentence.data(), kSentence.size());
            return false;
        }
        // relaxed is enough: (4) publishes it
        handlers_.fetch_add(1, std::memory_order_relaxed);
        // (4) - this release synchronizes-with the acq_rel exchange (3)
        stored_[page / kBits].fetch_or(std::uint64_t{1} << (page % kBits),
                                       std::memory_order_release);
        bell_.raise();
        const auto part = pages(page, 1);
        const bool is_done = ::mprotect(part.data(), part.size(), PROT_READ | PROT_WRITE) == 0;
        // (6) - this release-add synchronizes-with the acquire-load (5)
        handlers_.fetch_add(-1, std::memory_order_release);
        return is_done;
    }

    std::atomic<int> handlers_{0};  ///< that are between telling of a page and its unprotection
    std::vector<std::atomic<std::uint64_t>> stored_;  ///< a bit for each page
};

std::unique_ptr<PageWatch> ask_kernel(std::span<std::byte> view) {
    Descriptor asks = open_userfaultfd();
    if (asks.get() < 0) return nullptr;
    auto watch = std::make_unique<UserfaultWatch>(view, std::move(asks));
    if (!watch->begin()) return nullptr;
    return watch;
}

std::unique_ptr<PageWatch> take_signals(std::span<std::byte> view) {
    auto watch = std::make_unique<ProtectedWatch>(view);
    if (!watch->begin()) return nullptr;
    return watch;
}

}  // namespace

std::unique_ptr<PageWatch> watch_pages(std::span<std::byte> view,
                                       std::optional<PageWatchKind> kind) {
    std::unique_ptr<PageWatch> watch;
    if (kind.value_or(PageWatchKind::userfaultfd) == PageWatchKind::userfaultfd)
        watch = ask_kernel(view);
    if (watch == nullptr && kind.value_or(PageWatchKind::mprotect) == PageWatchKind::mprotect)
        watch = take_signals(view);
    if (watch == nullptr) fail_watching("watching the pages of a ring's memory");
    return watch;
}

}  // namespace rmem::stores
