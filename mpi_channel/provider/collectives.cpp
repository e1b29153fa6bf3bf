// SPDX-License-Identifier: Apache-2.0
//
// The table of mpi_channel/collectives/bbp_collectives.h, on the endpoint that was enabled last.
#include "mpi_channel/collectives.hpp"

#include "mpi_channel/collectives/bbp_collectives.h"
#include "mpi_channel/provider/calls.hpp"
#include "mpi_channel/provider/objects.hpp"

#include <dlfcn.h>
#include <sched.h>

#include <atomic>
#include <mutex>
#include <vector>

/// A group of the table.
struct bbp_group {
    mpi_channel::provider::EndpointObject* endpoint;  ///< null: it was closed first
    std::unique_ptr<mpi_channel::Group> group;
};

namespace mpi_channel::provider {

namespace {

/// Tries in one call, after which the caller's MPI is to make progress, too.
constexpr unsigned kTries = 64;
std::atomic<EndpointObject*> current{nullptr};

std::mutex groups_mutex;  ///< of open_groups; taken after a domain's
std::vector<std::unique_ptr<bbp_group>> open_groups;

EndpointObject* found() noexcept {
    // (2) pairs with the release-store (1): a thread that finds the endpoint finds what enabling it
    // has made
    return current.load(std::memory_order_acquire);
}

/// `call` with the domain's lock held; `otherwise` without an endpoint.
template <class Call>
auto locked(decltype(std::declval<Call>()(std::declval<EndpointObject&>())) otherwise,
            Call&& call) noexcept -> decltype(otherwise) {
    EndpointObject* const endpoint = found();
    if (endpoint == nullptr) return otherwise;
    try {
        const auto lock = endpoint->domain.lock();
        return call(*endpoint);
    } catch (...) {
        static_cast<void>(report_exception());
        return otherwise;
    }
}

int result_of(int result) noexcept {
    if (result == BBP_EAGAIN) return BBP_COLLECTIVES_AGAIN;
    return result == BBP_ESIZE ? BBP_COLLECTIVES_OTHER_SIZE : result;
}

/// `call` with the group and its endpoint.
template <class Call>
int with(bbp_group* group, Call&& call) noexcept {
    if (group->endpoint == nullptr) return BBP_EPEER;
    try {
        const auto lock = group->endpoint->domain.lock();
        return call(*group->endpoint, *group->group);
    } catch (...) {
        static_cast<void>(report_exception());
        return BBP_ENOMEM;
    }
}

/// Begins the operation and tries it once: what can be sent at once is.
template <class Begin>
int begin(bbp_group* group, Begin&& begin_it) noexcept {
    return result_of(with(group, [&](EndpointObject&, Group& its) {
        begin_it(its);
        return its.go_on();
    }));
}

int try_once(bbp_group* group, bool& is_crowded) noexcept {
    return with(group, [&](EndpointObject& endpoint, Group& its) {
        endpoint.progress();
        const int result = its.go_on();
        if (result == BBP_EAGAIN) is_crowded = endpoint.is_crowded();
        return result;
    });
}

int go_on(bbp_group* group) {
    for (unsigned tries = 1; tries <= kTries; ++tries) {
        bool is_crowded = false;
        if (const int result = try_once(group, is_crowded); result != BBP_EAGAIN)
            return result_of(result);
        // Where ranks share a processor those that are awaited may need this one's.
        if (is_crowded) ::sched_yield();
    }
    return BBP_COLLECTIVES_AGAIN;
}

bbp_group* open(std::uint32_t id, const int* members, int count, int barrier) {
    return locked(static_cast<bbp_group*>(nullptr), [&](EndpointObject& endpoint) {
        auto group = endpoint.collectives().open(
            id, {members, members + count},
            barrier == BBP_NO_BARRIER ? std::nullopt
                                      : std::optional(static_cast<unsigned>(barrier)));
        const std::lock_guard lock(groups_mutex);
        return open_groups.emplace_back(new bbp_group{&endpoint, std::move(group)}).get();
    });
}

void close(bbp_group* group) {
    const auto forget = [&] {
        const std::lock_guard its_lock(groups_mutex);
        std::erase_if(open_groups, [&](const auto& open) { return open.get() == group; });
    };
    if (group->endpoint == nullptr) return forget();
    const auto lock = group->endpoint->domain.lock();
    forget();
}

int broadcast(bbp_group* group, void* bytes, std::size_t size, int root) {
    return begin(group, [&](Group& its) {
        its.broadcast({static_cast<std::byte*>(bytes), size}, static_cast<unsigned>(root));
    });
}

int gather(bbp_group* group, const void* own, std::size_t size, void* all, int to) {
    return begin(group, [&](Group& its) {
        its.gather({static_cast<const std::byte*>(own), size}, static_cast<std::byte*>(all),
                   to == BBP_EVERYBODY ? std::nullopt : std::optional(static_cast<unsigned>(to)));
    });
}

int barrier(bbp_group* group) {
    return begin(group, [](Group& its) { its.barrier(); });
}

constexpr bbp_collectives kTable = {
    .version = BBP_COLLECTIVES_VERSION,
    .rank = [] { return locked(-1, [](EndpointObject& e) { return static_cast<int>(e.rank()); }); },
    .ranks =
        [] { return locked(-1, [](EndpointObject& e) { return static_cast<int>(e.ranks()); }); },
    .ring = [] { return locked(std::uint64_t{0}, [](EndpointObject& e) { return e.ring(); }); },
    .is_shared =
        [] { return locked(0, [](EndpointObject& e) { return e.domain.is_shared() ? 1 : 0; }); },
    .block_most =
        [] {
            return locked(std::size_t{0},
                          [](EndpointObject& e) { return e.collectives().block_most(); });
        },
    .new_id =
        [] {
            return locked(std::uint32_t{0},
                          [](EndpointObject& e) { return e.collectives().new_id(); });
        },
    .reserved_barriers =
        [] {
            return locked(~std::uint64_t{0},
                          [](EndpointObject& e) { return e.collectives().reserved_barriers(); });
        },
    .reserve_barrier =
        [](unsigned id) {
            return locked(-1, [id](EndpointObject& e) {
                return e.collectives().reserve_barrier(id) ? 0 : -1;
            });
        },
    .open = open,
    .close = close,
    .broadcast = broadcast,
    .gather = gather,
    .barrier = barrier,
    .go_on = go_on,
    .multicasts =
        [] { return locked(std::uint64_t{0}, [](EndpointObject& e) { return e.multicasts(); }); },
};

}  // namespace

bool calls_may_meet() {
    const auto* const said = static_cast<const int*>(::dlsym(RTLD_DEFAULT, BBP_CALLS_MEET_SYMBOL));
    return said != nullptr && *said != 0;
}

void offer_collectives(EndpointObject* endpoint) noexcept {
    // (1) releases an endpoint that is enabled to the acquire-load (2)
    current.store(endpoint, std::memory_order_release);
}

void withdraw_collectives(EndpointObject* endpoint) noexcept {
    const std::lock_guard lock(groups_mutex);
    for (const auto& group : open_groups) {
        if (group->endpoint != endpoint) continue;
        group->group.reset();
        group->endpoint = nullptr;
    }
    // relaxed is enough: only a pointer to what is being closed is exchanged, and nothing is read
    // through it
    current.compare_exchange_strong(endpoint, nullptr, std::memory_order_relaxed);
}

}  // namespace mpi_channel::provider

extern "C" __attribute__((visibility("default"))) const bbp_collectives* bbp_get_collectives(void) {
    return &mpi_channel::provider::kTable;
}
