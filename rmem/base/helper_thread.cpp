// SPDX-License-Identifier: Apache-2.0
#include "rmem/base/helper_thread.hpp"

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

namespace rmem {

struct HelperThread::Shared {
    const decltype(::getpid()) pid = ::getpid();
    std::function<void()> end_sleep;
    std::mutex mutex;  ///< held where a sleeper might miss a change
    std::condition_variable changed;
    std::atomic<bool> is_stopping{false};
    std::thread thread;

    void wake() {
        { const std::lock_guard lock(mutex); }
        changed.notify_one();
    }
};

HelperThread::HelperThread(const char* name, std::function<void()> work,
                           std::function<void()> end_sleep)
    : shared_(std::make_unique<Shared>()) {
    shared_->end_sleep = std::move(end_sleep);
    shared_->thread = start(name, std::move(work));
}

HelperThread::~HelperThread() {
    if (::getpid() != shared_->pid) {
        static_cast<void>(shared_.release());
        return;
    }
    // (1) - this release-store synchronizes-with the acquire-load (2)
    shared_->is_stopping.store(true, std::memory_order_release);
    shared_->wake();
    if (shared_->end_sleep) shared_->end_sleep();
    shared_->thread.join();
}

bool HelperThread::is_stopping() const noexcept {
    // (2) - this acquire-load synchronizes-with the release-store (1)
    return shared_->is_stopping.load(std::memory_order_acquire);
}

bool HelperThread::pause(std::int64_t ns, const std::function<bool()>& until) {
    std::unique_lock lock(shared_->mutex);
    shared_->changed.wait_for(lock, std::chrono::nanoseconds(ns),
                              [&] { return is_stopping() || (until && until()); });
    return !is_stopping();
}

void HelperThread::wake() {
    shared_->wake();
}

}  // namespace rmem
