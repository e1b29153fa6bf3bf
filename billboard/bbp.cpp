// SPDX-License-Identifier: Apache-2.0
#include "billboard/bbp.h"

#include "billboard/process/bbp_calls.hpp"
#include "billboard/process/bbp_shared.hpp"
#include "billboard/process/process_endpoint.hpp"
#include "rmem/base/at_fork.hpp"
#include "rmem/base/process_state.hpp"
#include "rmem/given_options.hpp"
#include "rmem/rmem.h"
#include "rmem/sim/process.hpp"

#include <memory>
#include <new>
#include <utility>

namespace {

static_assert(BBP_MAX_BARRIERS == billboard::kBarrierIds);
static_assert(BBP_MAX_JOINED == billboard::kJoinedGroups);

namespace calls = billboard::calls;
using billboard::Endpoint;
using billboard::fail;
using calls::Calls;

/// This process's.
struct Current : Calls {
    std::shared_ptr<billboard::ProcessEndpoint> process;
};
Current current;

[[maybe_unused]] const bool registered = rmem::sim::exchanges<current>();

/// In a forked child the calls find no endpoint. That of the parent is kept, and never touched.
class Child final : rmem::AtFork {
public:
    bool is_one = false;  ///< forked by a process that was in a ring, and in none since

private:
    void in_child() noexcept override {
        if (current.any == nullptr) return;
        is_one = true;
        std::construct_at(&current);
    }
};
Child child;

}  // namespace

/// One of a program's own. In a forked child it finds no endpoint, and keeps its parent's.
struct bbp_endpoint final : Calls, rmem::AtFork {
    explicit bbp_endpoint(std::unique_ptr<Endpoint> opened) : endpoint(std::move(opened)) {
        begin(*endpoint);
    }
    void in_child() noexcept override {
        static_cast<void>(endpoint.release());
        any = fastest = nullptr;
    }

    std::unique_ptr<Endpoint> endpoint;
};

namespace {

/// Where the caller has given none.
constinit Calls nobody;

Calls& of(bbp_endpoint* endpoint) {
    return endpoint != nullptr ? *endpoint : nobody;
}

/// Joins as the environment says, and `options` before that.
int open(bbp_endpoint** endpoint, const rmem_options* options) noexcept {
    if (endpoint == nullptr) {
        return fail(BBP_EINVAL, "the place for the endpoint is a null pointer; give an address");
    }
    *endpoint = nullptr;
    return billboard::guarded([&] {
        if (rmem::sim::current_process() != nullptr) {
            throw rmem::Error(rmem::Errc::unknown_link,
                              "a simulated process has one endpoint, its world's; call bbp_init");
        }
        const rmem::GivenSettings given(rmem::settings_of(options));
        *endpoint = new bbp_endpoint(Endpoint::open());
        return static_cast<int>(BBP_OK);
    });
}

}  // namespace

int billboard::calls::not_joined(const Calls& calls) {
    if (&calls == &nobody) {
        return fail(BBP_EINVAL,
                    "the endpoint is a null pointer; give one that bbp_open has stored");
    }
    if (&calls != &current || child.is_one) return fail(BBP_EINVAL, rmem::kForkedChild);
    return fail(BBP_EINVAL,
                "this process is in no ring; call bbp_init first, and other functions only after "
                "it has returned 0");
}

extern "C" {

int bbp_init(int* rank, int* nprocs) {
    if (current.any != nullptr) {
        return fail(BBP_EINVAL, "this process is in a ring already; call bbp_finalize first");
    }
    return billboard::guarded([&] {
        current.process = billboard::ProcessEndpoint::open();
        child.is_one = false;
        current.begin(current.process->guarded());
        if (rank != nullptr) *rank = static_cast<int>(current.any->rank());
        const auto await = rmem::Await::read();
        if (nprocs != nullptr)
            *nprocs = static_cast<int>(await.expected(current.any->ranks(), current.any->rank()));
        return static_cast<int>(BBP_OK);
    });
}

int bbp_finalize(void) {
    if (current.any == nullptr) return calls::not_joined(current);
    current.any = current.fastest = nullptr;
    current.process.reset();
    return BBP_OK;
}

int bbp_open(bbp_endpoint** endpoint) {
    return open(endpoint, nullptr);
}
int bbp_open_with(bbp_endpoint** endpoint, const rmem_options* options) {
    return open(endpoint, options);
}
int bbp_close(bbp_endpoint* endpoint) {
    delete endpoint;
    return BBP_OK;
}
int bbp_rank_on(bbp_endpoint* endpoint) {
    return calls::on(of(endpoint), [](auto& e) { return static_cast<int>(e.rank()); });
}
int bbp_ranks_on(bbp_endpoint* endpoint) {
    return calls::on(of(endpoint), [](auto& e) { return static_cast<int>(e.ranks()); });
}

// ---- Of this process, and of an endpoint that it has opened

int bbp_send(int dest, const void* buf, size_t len) {
    return calls::send(current, dest, buf, len);
}

int bbp_send_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len) {
    return calls::send(of(endpoint), dest, buf, len);
}

int bbp_trysend(int dest, const void* buf, size_t len) {
    return calls::trysend(current, dest, buf, len);
}

int bbp_trysend_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len) {
    return calls::trysend(of(endpoint), dest, buf, len);
}

int bbp_send_for(int dest, const void* buf, size_t len, int64_t timeout_ns) {
    return calls::send_for(current, dest, buf, len, timeout_ns);
}

int bbp_send_for_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len,
                    int64_t timeout_ns) {
    return calls::send_for(of(endpoint), dest, buf, len, timeout_ns);
}

int bbp_recv(int src, void* buf, size_t cap, size_t* len) {
    return calls::recv(current, src, buf, cap, len);
}

int bbp_recv_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len) {
    return calls::recv(of(endpoint), src, buf, cap, len);
}

int bbp_tryrecv(int src, void* buf, size_t cap, size_t* len) {
    return calls::tryrecv(current, src, buf, cap, len);
}

int bbp_tryrecv_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len) {
    return calls::tryrecv(of(endpoint), src, buf, cap, len);
}

int bbp_recv_for(int src, void* buf, size_t cap, size_t* len, int64_t timeout_ns) {
    return calls::recv_for(current, src, buf, cap, len, timeout_ns);
}

int bbp_recv_for_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len,
                    int64_t timeout_ns) {
    return calls::recv_for(of(endpoint), src, buf, cap, len, timeout_ns);
}

int bbp_msgavail(int src) {
    return calls::msgavail(current, src);
}

int bbp_msgavail_on(bbp_endpoint* endpoint, int src) {
    return calls::msgavail(of(endpoint), src);
}

int bbp_probe(int src, size_t* len) {
    return calls::probe(current, src, len);
}

int bbp_probe_on(bbp_endpoint* endpoint, int src, size_t* len) {
    return calls::probe(of(endpoint), src, len);
}

int bbp_mcast(const int* dests, int ndests, const void* buf, size_t len) {
    return calls::mcast(current, dests, ndests, buf, len);
}

int bbp_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                 size_t len) {
    return calls::mcast(of(endpoint), dests, ndests, buf, len);
}

int bbp_trymcast(const int* dests, int ndests, const void* buf, size_t len) {
    return calls::trymcast(current, dests, ndests, buf, len);
}

int bbp_trymcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                    size_t len) {
    return calls::trymcast(of(endpoint), dests, ndests, buf, len);
}

int bbp_mcast_for(const int* dests, int ndests, const void* buf, size_t len, int64_t timeout_ns) {
    return calls::mcast_for(current, dests, ndests, buf, len, timeout_ns);
}

int bbp_mcast_for_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                     size_t len, int64_t timeout_ns) {
    return calls::mcast_for(of(endpoint), dests, ndests, buf, len, timeout_ns);
}

int bbp_compose(size_t len, void** buf) {
    return calls::compose(current, len, buf);
}

int bbp_compose_on(bbp_endpoint* endpoint, size_t len, void** buf) {
    return calls::compose(of(endpoint), len, buf);
}

int bbp_post(int dest, void* buf, size_t len) {
    return calls::post(current, dest, buf, len);
}

int bbp_post_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len) {
    return calls::post(of(endpoint), dest, buf, len);
}

int bbp_trypost(int dest, void* buf, size_t len) {
    return calls::trypost(current, dest, buf, len);
}

int bbp_trypost_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len) {
    return calls::trypost(of(endpoint), dest, buf, len);
}

int bbp_post_for(int dest, void* buf, size_t len, int64_t timeout_ns) {
    return calls::post_for(current, dest, buf, len, timeout_ns);
}

int bbp_post_for_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len, int64_t timeout_ns) {
    return calls::post_for(of(endpoint), dest, buf, len, timeout_ns);
}

int bbp_post_mcast(const int* dests, int ndests, void* buf, size_t len) {
    return calls::post_mcast(current, dests, ndests, buf, len);
}

int bbp_post_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf, size_t len) {
    return calls::post_mcast(of(endpoint), dests, ndests, buf, len);
}

int bbp_trypost_mcast(const int* dests, int ndests, void* buf, size_t len) {
    return calls::trypost_mcast(current, dests, ndests, buf, len);
}

int bbp_trypost_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf,
                         size_t len) {
    return calls::trypost_mcast(of(endpoint), dests, ndests, buf, len);
}

int bbp_post_mcast_for(const int* dests, int ndests, void* buf, size_t len, int64_t timeout_ns) {
    return calls::post_mcast_for(current, dests, ndests, buf, len, timeout_ns);
}

int bbp_post_mcast_for_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf,
                          size_t len, int64_t timeout_ns) {
    return calls::post_mcast_for(of(endpoint), dests, ndests, buf, len, timeout_ns);
}

int bbp_discard(void* buf) {
    return calls::discard(current, buf);
}

int bbp_discard_on(bbp_endpoint* endpoint, void* buf) {
    return calls::discard(of(endpoint), buf);
}

int bbp_view(int src, const void** data, size_t* len) {
    return calls::view(current, src, data, len);
}

int bbp_view_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len) {
    return calls::view(of(endpoint), src, data, len);
}

int bbp_tryview(int src, const void** data, size_t* len) {
    return calls::tryview(current, src, data, len);
}

int bbp_tryview_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len) {
    return calls::tryview(of(endpoint), src, data, len);
}

int bbp_view_for(int src, const void** data, size_t* len, int64_t timeout_ns) {
    return calls::view_for(current, src, data, len, timeout_ns);
}

int bbp_view_for_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len,
                    int64_t timeout_ns) {
    return calls::view_for(of(endpoint), src, data, len, timeout_ns);
}

int bbp_release(const void* data) {
    return calls::release(current, data);
}

int bbp_release_on(bbp_endpoint* endpoint, const void* data) {
    return calls::release(of(endpoint), data);
}

int bbp_barrier(void) {
    return calls::barrier(current);
}

int bbp_barrier_on(bbp_endpoint* endpoint) {
    return calls::barrier(of(endpoint));
}

int bbp_barrier_for(int64_t timeout_ns) {
    return calls::barrier_for(current, timeout_ns);
}

int bbp_barrier_for_on(bbp_endpoint* endpoint, int64_t timeout_ns) {
    return calls::barrier_for(of(endpoint), timeout_ns);
}

int bbp_barrier_group(const int* members, int n, unsigned id) {
    return calls::barrier_group(current, members, n, id);
}

int bbp_barrier_group_on(bbp_endpoint* endpoint, const int* members, int n, unsigned id) {
    return calls::barrier_group(of(endpoint), members, n, id);
}

int bbp_barrier_group_for(const int* members, int n, unsigned id, int64_t timeout_ns) {
    return calls::barrier_group_for(current, members, n, id, timeout_ns);
}

int bbp_barrier_group_for_on(bbp_endpoint* endpoint, const int* members, int n, unsigned id,
                             int64_t timeout_ns) {
    return calls::barrier_group_for(of(endpoint), members, n, id, timeout_ns);
}

int bbp_group_join(const char* name) {
    return calls::group_join(current, name);
}

int bbp_group_join_on(bbp_endpoint* endpoint, const char* name) {
    return calls::group_join(of(endpoint), name);
}

int bbp_group_leave(const char* name) {
    return calls::group_leave(current, name);
}

int bbp_group_leave_on(bbp_endpoint* endpoint, const char* name) {
    return calls::group_leave(of(endpoint), name);
}

int bbp_mcast_group(const char* name, const void* buf, size_t len) {
    return calls::mcast_group(current, name, buf, len);
}

int bbp_mcast_group_on(bbp_endpoint* endpoint, const char* name, const void* buf, size_t len) {
    return calls::mcast_group(of(endpoint), name, buf, len);
}

int bbp_fd(void) {
    return calls::fd(current);
}

int bbp_fd_on(bbp_endpoint* endpoint) {
    return calls::fd(of(endpoint));
}

int bbp_version(void) {
    return BBP_VERSION;
}

const char* bbp_strerror(int code) {
    return rmem::meaning_of(code);
}

const char* bbp_last_error(void) {
    return billboard::last_error();
}

}  // extern "C"

void billboard::bbp_goes_by(Endpoint& plain, Endpoint& guarded) noexcept {
    if (current.any != &plain) return;
    current.any = &guarded;
    current.fastest = nullptr;
}

billboard::Endpoint* billboard::Endpoint::of_bbp_init() noexcept {
    return current.any;
}
