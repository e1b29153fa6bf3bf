// SPDX-License-Identifier: Apache-2.0
#include "billboard/bbp.h"

#include "billboard/boards/inline_board.hpp"
#include "billboard/core/endpoint_core.hpp"
#include "billboard/errors.hpp"
#include "billboard/process/bbp_shared.hpp"
#include "billboard/process/process_endpoint.hpp"
#include "rmem/base/at_fork.hpp"
#include "rmem/base/given_options.hpp"
#include "rmem/base/process_state.hpp"
#include "rmem/link/direct/memory.hpp"
#include "rmem/rmem.h"
#include "rmem/sim/process.hpp"

#include <fmt/format.h>

#include <memory>
#include <new>
#include <utility>

namespace {

static_assert(BBP_MAX_BARRIERS == billboard::kBarrierIds);
static_assert(BBP_MAX_JOINED == billboard::kJoinedGroups);

using billboard::Deadline;
using billboard::Endpoint;
using billboard::fail;
using billboard::Fastest;

/// An endpoint: `any` always, `fastest` too when it is of the type whose calls are worth compiling
/// in here and no other thread uses it. One predicted branch in each call tells them apart.
struct Calls {
    Endpoint* any = nullptr;
    Fastest* fastest = nullptr;

    void begin(Endpoint& endpoint) {
        any = &endpoint;
        fastest = billboard::fastest(any);
    }
};

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

[[gnu::cold]] int not_joined(const Calls& calls) {
    if (&calls == &nobody) {
        return fail(BBP_EINVAL,
                    "the endpoint is a null pointer; give one that bbp_open has stored");
    }
    if (&calls != &current || child.is_one) return fail(BBP_EINVAL, rmem::kForkedChild);
    return fail(BBP_EINVAL,
                "this process is in no ring; call bbp_init first, and other functions only after "
                "it has returned 0");
}

[[gnu::cold]] int no_list(int length) {
    return fail(
        BBP_EINVAL,
        fmt::format("the list of ranks is a null pointer, or its length ({}) is negative", length));
}

/// Calls `body` with the endpoint.
template <class Body>
inline int on(const Calls& calls, Body&& body) noexcept {
    return billboard::guarded([&]() -> int {
        if (calls.fastest != nullptr) [[likely]]
            return body(*calls.fastest);
        if (calls.any == nullptr) [[unlikely]]
            return not_joined(calls);
        return body(*calls.any);
    });
}

// What the expected ways of sending and receiving leave. Not part of them, so that these save no
// registers; the endpoint comes last, so that the other arguments stay where they are.
[[gnu::noinline]] int send_later(int dest, const void* buf, size_t len, const Calls& calls) {
    return on(calls, [&](auto& e) { return e.send(dest, buf, len); });
}
[[gnu::noinline]] int send_in_lines(int dest, const void* buf, size_t len, const Calls& calls) {
    if (calls.fastest->send_in_lines(dest, buf, len)) return BBP_OK;
    return send_later(dest, buf, len, calls);
}
[[gnu::noinline]] int send_in_line(int dest, const void* buf, size_t len, const Calls& calls) {
    if (calls.fastest->send_in_line(dest, buf, len)) return BBP_OK;
    return send_in_lines(dest, buf, len, calls);
}
[[gnu::noinline]] int recv_later(int src, void* buf, size_t cap, size_t* len, const Calls& calls) {
    return on(calls, [&](auto& e) { return e.recv(src, buf, cap, len); });
}
[[gnu::noinline]] int recv_lines(int src, void* buf, size_t cap, size_t* len, const Calls& calls) {
    return billboard::guarded([&] {
        const int from = calls.fastest->recv_lines(src, buf, cap, len);
        return from >= 0 ? from : calls.fastest->recv(src, buf, cap, len);
    });
}
[[gnu::noinline]] int recv_after_look(int src, void* buf, size_t cap, size_t* len,
                                      const Calls& calls) {
    return billboard::guarded([&] { return calls.fastest->recv_after_look(src, buf, cap, len); });
}

/// A call whose time-out had passed already tried once, and did not get there in time.
int received_in_time(int result, int src) {
    return result == BBP_EAGAIN ? billboard::receive_timed_out(src) : result;
}
int sent_in_time(int result, std::span<const int> dests) {
    return result == BBP_EAGAIN ? billboard::send_timed_out(dests) : result;
}
int passed_in_time(int result) {
    return result == BBP_EAGAIN ? billboard::barrier_timed_out({}) : result;
}

bool is_list(const int* ranks, int n) {
    return n >= 0 && (ranks != nullptr || n == 0);
}
std::span<const int> list(const int* ranks, int n) {
    return {ranks, static_cast<size_t>(n)};
}

// ---- The calls

[[gnu::always_inline]] inline int send(const Calls& calls, int dest, const void* buf, size_t len) {
    if (calls.fastest == nullptr) return send_later(dest, buf, len, calls);
    if (calls.fastest->send_in_slot(dest, buf, len)) [[likely]]
        return BBP_OK;
    return send_in_line(dest, buf, len, calls);
}

int trysend(const Calls& calls, int dest, const void* buf, size_t len) {
    return on(calls, [&](auto& e) { return e.send(dest, buf, len, Deadline::now()); });
}

int send_for(const Calls& calls, int dest, const void* buf, size_t len, int64_t timeout_ns) {
    return sent_in_time(
        on(calls, [&](auto& e) { return e.send(dest, buf, len, e.deadline_in(timeout_ns)); }),
        {&dest, 1});
}

[[gnu::always_inline]] inline int recv(const Calls& calls, int src, void* buf, size_t cap,
                                       size_t* len) {
    if (calls.fastest != nullptr) [[likely]] {
        const int from = calls.fastest->recv_at_once(src, buf, cap, len);
        if (from >= 0) [[likely]]
            return from;
        if (from == Fastest::kInLines) return recv_lines(src, buf, cap, len, calls);
        if (from == BBP_EAGAIN) return recv_after_look(src, buf, cap, len, calls);
    }
    return recv_later(src, buf, cap, len, calls);
}

int tryrecv(const Calls& calls, int src, void* buf, size_t cap, size_t* len) {
    return on(calls, [&](auto& e) { return e.recv(src, buf, cap, len, Deadline::now()); });
}

int recv_for(const Calls& calls, int src, void* buf, size_t cap, size_t* len, int64_t timeout_ns) {
    return received_in_time(
        on(calls, [&](auto& e) { return e.recv(src, buf, cap, len, e.deadline_in(timeout_ns)); }),
        src);
}

int msgavail(const Calls& calls, int src) {
    return on(calls, [&](auto& e) { return e.available(src); });
}

int probe(const Calls& calls, int src, size_t* len) {
    return on(calls, [&](auto& e) { return e.probe(src, len); });
}

int mcast(const Calls& calls, const int* dests, int ndests, const void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(calls, [&](auto& e) { return e.mcast(list(dests, ndests), buf, len); });
}

int trymcast(const Calls& calls, const int* dests, int ndests, const void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(calls,
              [&](auto& e) { return e.mcast(list(dests, ndests), buf, len, Deadline::now()); });
}

int mcast_for(const Calls& calls, const int* dests, int ndests, const void* buf, size_t len,
              int64_t timeout_ns) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    const auto send = [&](auto& e) {
        return e.mcast(list(dests, ndests), buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on(calls, send), list(dests, ndests));
}

int compose(const Calls& calls, size_t len, void** buf) {
    return on(calls, [&](auto& e) { return e.compose(len, buf); });
}

int post(const Calls& calls, int dest, void* buf, size_t len) {
    return on(calls, [&](auto& e) { return e.post({&dest, 1}, buf, len); });
}

int trypost(const Calls& calls, int dest, void* buf, size_t len) {
    return on(calls, [&](auto& e) { return e.post({&dest, 1}, buf, len, Deadline::now()); });
}

int post_for(const Calls& calls, int dest, void* buf, size_t len, int64_t timeout_ns) {
    const auto post = [&](auto& e) {
        return e.post({&dest, 1}, buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on(calls, post), {&dest, 1});
}

int post_mcast(const Calls& calls, const int* dests, int ndests, void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(calls, [&](auto& e) { return e.post(list(dests, ndests), buf, len); });
}

int trypost_mcast(const Calls& calls, const int* dests, int ndests, void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(calls,
              [&](auto& e) { return e.post(list(dests, ndests), buf, len, Deadline::now()); });
}

int post_mcast_for(const Calls& calls, const int* dests, int ndests, void* buf, size_t len,
                   int64_t timeout_ns) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    const auto post = [&](auto& e) {
        return e.post(list(dests, ndests), buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on(calls, post), list(dests, ndests));
}

int discard(const Calls& calls, void* buf) {
    return on(calls, [&](auto& e) { return e.discard(buf); });
}

int view(const Calls& calls, int src, const void** data, size_t* len) {
    return on(calls, [&](auto& e) { return e.view(src, data, len); });
}

int tryview(const Calls& calls, int src, const void** data, size_t* len) {
    return on(calls, [&](auto& e) { return e.view(src, data, len, Deadline::now()); });
}

int view_for(const Calls& calls, int src, const void** data, size_t* len, int64_t timeout_ns) {
    return received_in_time(
        on(calls, [&](auto& e) { return e.view(src, data, len, e.deadline_in(timeout_ns)); }), src);
}

int release(const Calls& calls, const void* data) {
    return on(calls, [&](auto& e) { return e.release(data); });
}

int barrier(const Calls& calls) {
    return on(calls, [](auto& e) { return e.barrier(); });
}

int barrier_for(const Calls& calls, int64_t timeout_ns) {
    return passed_in_time(on(calls, [&](auto& e) { return e.barrier(e.deadline_in(timeout_ns)); }));
}

int barrier_group(const Calls& calls, const int* members, int n, unsigned id) {
    if (!is_list(members, n)) return no_list(n);
    return on(calls, [&](auto& e) { return e.barrier_group(list(members, n), id); });
}

int barrier_group_for(const Calls& calls, const int* members, int n, unsigned id,
                      int64_t timeout_ns) {
    if (!is_list(members, n)) return no_list(n);
    const auto wait = [&](auto& e) {
        return e.barrier_group(list(members, n), id, e.deadline_in(timeout_ns));
    };
    return passed_in_time(on(calls, wait));
}

int group_join(const Calls& calls, const char* name) {
    if (name == nullptr) return fail(BBP_EINVAL, "the group's name is a null pointer; give a text");
    return on(calls, [&](auto& e) { return e.group_join(name); });
}

int group_leave(const Calls& calls, const char* name) {
    if (name == nullptr) return fail(BBP_EINVAL, "the group's name is a null pointer; give a text");
    return on(calls, [&](auto& e) { return e.group_leave(name); });
}

int mcast_group(const Calls& calls, const char* name, const void* buf, size_t len) {
    if (name == nullptr) return fail(BBP_EINVAL, "the group's name is a null pointer; give a text");
    return on(calls, [&](auto& e) { return e.mcast_group(name, buf, len); });
}

int fd(const Calls& calls) {
    return on(calls, [](auto& e) { return e.fd(); });
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
        if (nprocs != nullptr) *nprocs = static_cast<int>(current.any->ranks());
        return static_cast<int>(BBP_OK);
    });
}

int bbp_finalize(void) {
    if (current.any == nullptr) return not_joined(current);
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
    return on(of(endpoint), [](auto& e) { return static_cast<int>(e.rank()); });
}
int bbp_ranks_on(bbp_endpoint* endpoint) {
    return on(of(endpoint), [](auto& e) { return static_cast<int>(e.ranks()); });
}

// ---- Of this process, and of an endpoint that it has opened

int bbp_send(int dest, const void* buf, size_t len) {
    return send(current, dest, buf, len);
}

int bbp_send_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len) {
    return send(of(endpoint), dest, buf, len);
}

int bbp_trysend(int dest, const void* buf, size_t len) {
    return trysend(current, dest, buf, len);
}

int bbp_trysend_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len) {
    return trysend(of(endpoint), dest, buf, len);
}

int bbp_send_for(int dest, const void* buf, size_t len, int64_t timeout_ns) {
    return send_for(current, dest, buf, len, timeout_ns);
}

int bbp_send_for_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len,
                    int64_t timeout_ns) {
    return send_for(of(endpoint), dest, buf, len, timeout_ns);
}

int bbp_recv(int src, void* buf, size_t cap, size_t* len) {
    return recv(current, src, buf, cap, len);
}

int bbp_recv_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len) {
    return recv(of(endpoint), src, buf, cap, len);
}

int bbp_tryrecv(int src, void* buf, size_t cap, size_t* len) {
    return tryrecv(current, src, buf, cap, len);
}

int bbp_tryrecv_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len) {
    return tryrecv(of(endpoint), src, buf, cap, len);
}

int bbp_recv_for(int src, void* buf, size_t cap, size_t* len, int64_t timeout_ns) {
    return recv_for(current, src, buf, cap, len, timeout_ns);
}

int bbp_recv_for_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len,
                    int64_t timeout_ns) {
    return recv_for(of(endpoint), src, buf, cap, len, timeout_ns);
}

int bbp_msgavail(int src) {
    return msgavail(current, src);
}

int bbp_msgavail_on(bbp_endpoint* endpoint, int src) {
    return msgavail(of(endpoint), src);
}

int bbp_probe(int src, size_t* len) {
    return probe(current, src, len);
}

int bbp_probe_on(bbp_endpoint* endpoint, int src, size_t* len) {
    return probe(of(endpoint), src, len);
}

int bbp_mcast(const int* dests, int ndests, const void* buf, size_t len) {
    return mcast(current, dests, ndests, buf, len);
}

int bbp_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                 size_t len) {
    return mcast(of(endpoint), dests, ndests, buf, len);
}

int bbp_trymcast(const int* dests, int ndests, const void* buf, size_t len) {
    return trymcast(current, dests, ndests, buf, len);
}

int bbp_trymcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                    size_t len) {
    return trymcast(of(endpoint), dests, ndests, buf, len);
}

int bbp_mcast_for(const int* dests, int ndests, const void* buf, size_t len, int64_t timeout_ns) {
    return mcast_for(current, dests, ndests, buf, len, timeout_ns);
}

int bbp_mcast_for_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                     size_t len, int64_t timeout_ns) {
    return mcast_for(of(endpoint), dests, ndests, buf, len, timeout_ns);
}

int bbp_compose(size_t len, void** buf) {
    return compose(current, len, buf);
}

int bbp_compose_on(bbp_endpoint* endpoint, size_t len, void** buf) {
    return compose(of(endpoint), len, buf);
}

int bbp_post(int dest, void* buf, size_t len) {
    return post(current, dest, buf, len);
}

int bbp_post_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len) {
    return post(of(endpoint), dest, buf, len);
}

int bbp_trypost(int dest, void* buf, size_t len) {
    return trypost(current, dest, buf, len);
}

int bbp_trypost_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len) {
    return trypost(of(endpoint), dest, buf, len);
}

int bbp_post_for(int dest, void* buf, size_t len, int64_t timeout_ns) {
    return post_for(current, dest, buf, len, timeout_ns);
}

int bbp_post_for_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len, int64_t timeout_ns) {
    return post_for(of(endpoint), dest, buf, len, timeout_ns);
}

int bbp_post_mcast(const int* dests, int ndests, void* buf, size_t len) {
    return post_mcast(current, dests, ndests, buf, len);
}

int bbp_post_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf, size_t len) {
    return post_mcast(of(endpoint), dests, ndests, buf, len);
}

int bbp_trypost_mcast(const int* dests, int ndests, void* buf, size_t len) {
    return trypost_mcast(current, dests, ndests, buf, len);
}

int bbp_trypost_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf,
                         size_t len) {
    return trypost_mcast(of(endpoint), dests, ndests, buf, len);
}

int bbp_post_mcast_for(const int* dests, int ndests, void* buf, size_t len, int64_t timeout_ns) {
    return post_mcast_for(current, dests, ndests, buf, len, timeout_ns);
}

int bbp_post_mcast_for_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf,
                          size_t len, int64_t timeout_ns) {
    return post_mcast_for(of(endpoint), dests, ndests, buf, len, timeout_ns);
}

int bbp_discard(void* buf) {
    return discard(current, buf);
}

int bbp_discard_on(bbp_endpoint* endpoint, void* buf) {
    return discard(of(endpoint), buf);
}

int bbp_view(int src, const void** data, size_t* len) {
    return view(current, src, data, len);
}

int bbp_view_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len) {
    return view(of(endpoint), src, data, len);
}

int bbp_tryview(int src, const void** data, size_t* len) {
    return tryview(current, src, data, len);
}

int bbp_tryview_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len) {
    return tryview(of(endpoint), src, data, len);
}

int bbp_view_for(int src, const void** data, size_t* len, int64_t timeout_ns) {
    return view_for(current, src, data, len, timeout_ns);
}

int bbp_view_for_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len,
                    int64_t timeout_ns) {
    return view_for(of(endpoint), src, data, len, timeout_ns);
}

int bbp_release(const void* data) {
    return release(current, data);
}

int bbp_release_on(bbp_endpoint* endpoint, const void* data) {
    return release(of(endpoint), data);
}

int bbp_barrier(void) {
    return barrier(current);
}

int bbp_barrier_on(bbp_endpoint* endpoint) {
    return barrier(of(endpoint));
}

int bbp_barrier_for(int64_t timeout_ns) {
    return barrier_for(current, timeout_ns);
}

int bbp_barrier_for_on(bbp_endpoint* endpoint, int64_t timeout_ns) {
    return barrier_for(of(endpoint), timeout_ns);
}

int bbp_barrier_group(const int* members, int n, unsigned id) {
    return barrier_group(current, members, n, id);
}

int bbp_barrier_group_on(bbp_endpoint* endpoint, const int* members, int n, unsigned id) {
    return barrier_group(of(endpoint), members, n, id);
}

int bbp_barrier_group_for(const int* members, int n, unsigned id, int64_t timeout_ns) {
    return barrier_group_for(current, members, n, id, timeout_ns);
}

int bbp_barrier_group_for_on(bbp_endpoint* endpoint, const int* members, int n, unsigned id,
                             int64_t timeout_ns) {
    return barrier_group_for(of(endpoint), members, n, id, timeout_ns);
}

int bbp_group_join(const char* name) {
    return group_join(current, name);
}

int bbp_group_join_on(bbp_endpoint* endpoint, const char* name) {
    return group_join(of(endpoint), name);
}

int bbp_group_leave(const char* name) {
    return group_leave(current, name);
}

int bbp_group_leave_on(bbp_endpoint* endpoint, const char* name) {
    return group_leave(of(endpoint), name);
}

int bbp_mcast_group(const char* name, const void* buf, size_t len) {
    return mcast_group(current, name, buf, len);
}

int bbp_mcast_group_on(bbp_endpoint* endpoint, const char* name, const void* buf, size_t len) {
    return mcast_group(of(endpoint), name, buf, len);
}

int bbp_fd(void) {
    return fd(current);
}

int bbp_fd_on(bbp_endpoint* endpoint) {
    return fd(of(endpoint));
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
