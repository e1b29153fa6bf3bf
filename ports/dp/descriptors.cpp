// SPDX-License-Identifier: Apache-2.0
// The table of descriptors, and the service of a process.
#include "ports/dp/service.hpp"
#include "rmem/base/process_state.hpp"

#include <pthread.h>
#include <sys/stat.h>

#include <atomic>

namespace ports::dp {

namespace {

std::unique_ptr<Service> service;
bool is_fork = false;

[[maybe_unused]] const bool registered = rmem::sim::exchanges<service>();

/// A fork()ed child has the descriptors, and nothing else: it must not keep the other ends open,
/// nor speak for the rank.
void become_child() {
    if (!service) return;
    is_fork = true;
    Descriptors::forget_all();
    service->abandon();
    [[maybe_unused]] Service* kept =
        service.release();  // its locks may be held by threads that are not here
}

}  // namespace

std::array<std::atomic<Endpoint*>, Descriptors::kDescriptors> Descriptors::table_;

void Descriptors::put(int fd, Endpoint* endpoint) noexcept {
    if (static_cast<unsigned>(fd) >= kDescriptors) return;
    // (2) - this release-store synchronizes-with the acquire-load in ports/dp/service.hpp (1)
    table_[static_cast<unsigned>(fd)].store(endpoint, std::memory_order_release);
}

void Descriptors::forget(const Endpoint& endpoint) noexcept {
    for (auto& entry : table_) {
        // relaxed is enough: nothing is read through it
        if (entry.load(std::memory_order_relaxed) == &endpoint)
            // relaxed is enough: a thread in a call with a closed descriptor is too late anyway
            entry.store(nullptr, std::memory_order_relaxed);
    }
}

void Descriptors::forget_all() noexcept {
    // relaxed is enough: a fresh child has one thread
    for (auto& entry : table_) {
        if (entry.load(std::memory_order_relaxed) != nullptr)
            entry.store(nullptr, std::memory_order_relaxed);
    }
}

Endpoint* Descriptors::find(int fd) noexcept {
    if (Endpoint* endpoint = known(fd); endpoint != nullptr) return endpoint;
    struct stat status {};
    Service* current = Service::current();
    if (current == nullptr || ::fstat(fd, &status) != 0 || !S_ISSOCK(status.st_mode))
        return nullptr;
    Endpoint* endpoint = current->find_inode(status.st_ino);
    if (endpoint != nullptr) put(fd, endpoint);
    return endpoint;
}

Service* Service::current() noexcept {
    return service.get();
}

Service* Service::make() {
    if (is_fork) return nullptr;
    if (!service) {
        service = std::make_unique<Service>();
        [[maybe_unused]] static const int once = ::pthread_atfork(nullptr, nullptr, become_child);
    }
    return service.get();
}

}  // namespace ports::dp
