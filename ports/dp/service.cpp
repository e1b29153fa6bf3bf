// SPDX-License-Identifier: Apache-2.0
// Endpoints come and go.
#include "ports/dp/service.hpp"

#include "rmem/base/environment_variable.hpp"
#include "rmem/ring/config.hpp"

#include <fmt/format.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <system_error>

namespace ports::dp {

namespace {

constexpr std::size_t kMaxContainer = 65536 - 64;
constexpr std::uint64_t kMaxPoolBytes = std::uint64_t{1} << 31;  ///< a token's link has 32 bits

std::size_t pool_bytes() {
    const char* text = rmem::environment_variable("RMEM_DP_POOL");
    if (text == nullptr || *text == 0) return DP_POOL_BYTES;
    const std::size_t bytes = rmem::parse_size("RMEM_DP_POOL", text);
    if (bytes <= kMaxPoolBytes) return bytes;
    throw rmem::Error(
        rmem::Errc::bad_environment,
        fmt::format("RMEM_DP_POOL: {} is too large for a token buffer pool; maximum is {} bytes",
                    text, kMaxPoolBytes));
}

void add(Counts& sum, const Counts& more) {
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += more[i];
}

}  // namespace

Service::Service() = default;

Service::~Service() {
    engine_.reset();
    for (auto& [id, endpoint] : endpoints_) {
        Descriptors::forget(*endpoint);
        endpoint->end();
    }
    if (process_) process_->dismiss(*this);
}

void Service::abandon() noexcept {
    for (auto& [id, endpoint] : endpoints_) ::close(endpoint->own_end());
}

int Service::open(unsigned dpid) {
    std::unique_lock lifecycle_lock(lifecycle_mutex_);
    for (Endpoint* other = find(dpid); other != nullptr; other = find(dpid)) {
        if (!other->is_ending) return -EADDRINUSE;
        lifecycle_lock.unlock();
        ::sched_yield();
        lifecycle_lock.lock();
    }
    const std::size_t bytes = pool_bytes();
    if (!process_) {
        process_ = billboard::ProcessEndpoint::open();
        ring_ = Ring(process_->endpoint());
        nid_ = ring()->rank();
        counters_.emplace(*ring(), billboard::Class::dp);
        // A message is sent by try calls, and the receiver's partition is like the own one.
        container_ = std::min(kMaxContainer, ring()->partition_bytes() / 4) / 8 * 8 - 64;
        if (generation_ == 0) generation_ = static_cast<std::uint16_t>(now_ns() >> 10);
        process_->attend(*this);
    }
    if (!engine_ && ring()->ring() != nullptr) {
        engine_ = std::make_unique<Engine>(
            [this](std::uint64_t id, Engine::Event event) { serve(id, event); });
    }
    const auto held = process_->hold();
    auto endpoint = std::make_unique<Endpoint>(*this, ++last_id_, dpid, bytes);
    endpoint->ring = ring_;
    endpoint->takes_directly = ring_.fastest() != nullptr;
    endpoint->plain_to_it = Header::to(nid_, dpid, Kind::plain);
    const int fd = endpoint->descriptor();
    if (dpid >= by_dpid_.size()) by_dpid_.resize(dpid + 1);
    if (engine_) engine_->watch(endpoint->own_end(), endpoint->id());
    by_dpid_[dpid] = endpoint.get();
    Descriptors::put(fd, endpoint.get());
    endpoints_.emplace(endpoint->id(), std::move(endpoint));
    return fd;
}

void Service::close(Endpoint& endpoint, int fd) {
    drain(endpoint, DP_FULL_NS);
    const std::uint64_t id = endpoint.id();
    {
        const auto held = process_->hold();
        Descriptors::put(fd, nullptr);
        ::close(fd);
        if (!endpoint.is_closed()) return;  // by all holders of a duplicate
    }
    end(id);
    await_endings();
}

/// Those that the engine is about to end: with the last endpoint its process leaves the ring, which
/// may be about to exit.
void Service::await_endings() {
    const auto is_ending = [](const auto& entry) { return entry.second->is_ending; };
    for (std::unique_lock lifecycle_lock(lifecycle_mutex_);
         std::any_of(endpoints_.begin(), endpoints_.end(), is_ending);) {
        lifecycle_lock.unlock();
        ::sched_yield();
        lifecycle_lock.lock();
    }
}

/// All have closed the descriptor. Its datagrams under way are waited for without
/// `lifecycle_mutex_`: others open and close meanwhile.
void Service::end(std::uint64_t id) {
    Endpoint* const e = begin_end(id);
    if (e == nullptr) return;
    {
        auto held = process_->enter_as_guest();
        serve_writes(held, *e);
        const auto owes = [](const auto& receiver) { return receiver.second.owes_ack(); };
        wait_until(held, *e, DP_FULL_NS, [&] {
            const bool answered = std::none_of(e->receivers.begin(), e->receivers.end(), owes);
            return is_idle(*e) && answered ? 1 : broken(*e);
        });
        e->end();
    }
    while (!remove(*e)) ::sched_yield();  // until those that are in it have gone
}

/// Null if another thread ends it, or has ended it.
Endpoint* Service::begin_end(std::uint64_t id) {
    std::unique_lock lifecycle_lock(lifecycle_mutex_);
    const auto it = endpoints_.find(id);
    if (it == endpoints_.end() || it->second->is_ending) return nullptr;
    Endpoint* const e = it->second.get();
    e->is_ending = true;
    while (e->is_served) {  // what was written comes in its order
        lifecycle_lock.unlock();
        ::sched_yield();
        lifecycle_lock.lock();
    }
    return e;
}

bool Service::remove(Endpoint& e) {
    const std::lock_guard lifecycle_lock(lifecycle_mutex_);
    {
        const auto held = process_->enter_as_guest();
        if (e.readers != 0) return false;
        by_dpid_[e.dpid()] = nullptr;
        is_not_behind(e);
        Descriptors::forget(e);
        if (e.is_reliable || !e.receivers.empty()) --reliable_;
        add(closed_, e.counts);
        endpoints_.erase(e.id());
    }
    if (!endpoints_.empty()) return true;
    process_->dismiss(*this);
    counters_.reset();  // the ring may go now
    process_.reset();
    return true;
}

Endpoint* Service::find_inode(ino_t inode) {
    const std::lock_guard lifecycle_lock(lifecycle_mutex_);
    for (auto& [id, endpoint] : endpoints_) {
        if (endpoint->inode() == inode) return endpoint.get();
    }
    return nullptr;
}

int Service::set_pool(Endpoint& e, dpmmap_t& map) {
    const auto held = process_->hold();
    if (map.size != 0) {
        if (map.size > kMaxPoolBytes) return -EINVAL;
        if (e.pool->used() != 0) return -EBUSY;
        e.pool = std::make_unique<TokenPool>(map.size);
    }
    map = {e.pool->base(), e.pool->size()};
    return 0;
}

int Service::stat(const Endpoint* e, dp_stat_t& counts) {
    const std::lock_guard lifecycle_lock(lifecycle_mutex_);
    counts = std::bit_cast<dp_stat_t>(closed_);
    if (!process_) return 0;
    const auto held = process_->hold();
    Counts sum = e != nullptr ? e->counts : closed_;
    if (e == nullptr) {
        for (const auto& [id, endpoint] : endpoints_) add(sum, endpoint->counts);
    }
    counts = std::bit_cast<dp_stat_t>(sum);
    return 0;
}

int Service::nid() {
    const std::lock_guard lifecycle_lock(lifecycle_mutex_);
    return process_ ? static_cast<int>(ring()->rank()) : -1;
}

int Service::nids() {
    const std::lock_guard lifecycle_lock(lifecycle_mutex_);
    return process_ ? static_cast<int>(ring()->ranks()) : -1;
}

int Service::container() {
    const std::lock_guard lifecycle_lock(lifecycle_mutex_);
    return process_ ? static_cast<int>(container_) : -1;
}

// ---- The descriptors

void Service::serve(std::uint64_t id, Engine::Event event) noexcept {
    if (Endpoint* const e = begin_serving(id); e != nullptr) {
        {
            auto held = process_->enter_as_guest();
            if (event.input) serve_writes(held, *e);
            if (event.room && e->was_read() && e->pool->unread() != 0 && e->readers == 0)
                e->offer();
        }
        const std::lock_guard lifecycle_lock(lifecycle_mutex_);
        e->is_served = false;
    }
    if (event.closed) end(id);
}

/// From then on it stays, and with it the ring.
Endpoint* Service::begin_serving(std::uint64_t id) {
    const std::lock_guard lifecycle_lock(lifecycle_mutex_);
    const auto it = endpoints_.find(id);
    if (it == endpoints_.end() || it->second->is_ending) return nullptr;
    it->second->is_served = true;
    return it->second.get();
}

}  // namespace ports::dp
