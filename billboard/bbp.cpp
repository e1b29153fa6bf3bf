// SPDX-License-Identifier: Apache-2.0
#include "billboard/bbp.h"

#include "billboard/core/endpoint_core.hpp"
#include "billboard/errors.hpp"
#include "billboard/process/process_endpoint.hpp"
#include "rmem/base/at_fork.hpp"
#include "rmem/base/process_state.hpp"
#include "rmem/given_options.hpp"
#include "rmem/link/direct/memory.hpp"
#include "rmem/rmem.h"
#include "rmem/sim/process.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <span>
#include <utility>

/// `any` always, `fastest` too when it is of the type whose calls are worth compiling in here and
/// no other thread uses it. One predicted branch in each call tells them apart.
struct bbp_endpoint {
    billboard::Endpoint* any = nullptr;
    billboard::Fastest* fastest = nullptr;

    void begin(billboard::Endpoint& endpoint) {
        any = &endpoint;
        fastest = billboard::fastest(any);
    }
};

namespace {

static_assert(BBP_MAX_BARRIERS == billboard::kBarrierIds);
static_assert(BBP_MAX_JOINED == billboard::kJoinedGroups);

using billboard::Deadline;
using billboard::Endpoint;
using billboard::fail;
using billboard::Fastest;
using billboard::guarded;

/// This process's.
struct Current : bbp_endpoint {
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

/// One that a program has opened. In a forked child it finds no endpoint, and keeps its parent's.
struct Opened final : bbp_endpoint, rmem::AtFork {
    explicit Opened(std::unique_ptr<Endpoint> opened) : endpoint(std::move(opened)) {
        begin(*endpoint);
    }
    void in_child() noexcept override {
        static_cast<void>(endpoint.release());
        any = fastest = nullptr;
    }

    std::unique_ptr<Endpoint> endpoint;
};

/// Joins as the environment says, and `options` before that.
int open(bbp_endpoint** endpoint, const rmem_options* options) noexcept {
    if (endpoint == nullptr) {
        return fail(BBP_EINVAL, "the place for the endpoint is a null pointer; give an address");
    }
    *endpoint = nullptr;
    return guarded([&] {
        if (rmem::sim::current_process() != nullptr) {
            throw rmem::Error(rmem::Errc::unknown_link,
                              "a simulated process has one endpoint, its world's; call bbp_init");
        }
        const rmem::GivenSettings given(rmem::settings_of(options));
        *endpoint = new Opened(Endpoint::open());
        return static_cast<int>(BBP_OK);
    });
}

bbp_endpoint& of(bbp_endpoint* endpoint) {
    return endpoint != nullptr ? *endpoint : current;
}

/// Says why there is none, and gives the code.
[[gnu::cold]] int not_joined(const bbp_endpoint& endpoint) {
    if (&endpoint != &current || child.is_one) return fail(BBP_EINVAL, rmem::kForkedChild);
    return fail(BBP_EINVAL,
                "this process is in no ring; call bbp_init first, and other functions only after "
                "it has returned 0");
}

[[gnu::cold]] int no_list(int length) {
    return fail(
        BBP_EINVAL,
        fmt::format("the list of ranks is a null pointer, or its length ({}) is negative", length));
}

[[gnu::cold]] int no_name() {
    return fail(BBP_EINVAL, "the group's name is a null pointer; give a text");
}

/// Calls `body` with the endpoint.
template <class Body>
int on(bbp_endpoint* endpoint, Body&& body) noexcept {
    return guarded([&]() -> int {
        const bbp_endpoint& by = of(endpoint);
        if (by.fastest != nullptr) [[likely]]
            return body(*by.fastest);
        if (by.any == nullptr) [[unlikely]]
            return not_joined(by);
        return body(*by.any);
    });
}

// What the expected ways of sending and receiving leave. Not part of them, so that these save no
// registers; all arguments stay where they are.
[[gnu::noinline]] int send_later(bbp_endpoint& by, int dest, const void* buf, size_t len) {
    return on(&by, [&](auto& e) { return e.send(dest, buf, len); });
}
[[gnu::noinline]] int send_in_lines(bbp_endpoint& by, int dest, const void* buf, size_t len) {
    if (by.fastest->send_in_lines(dest, buf, len)) return BBP_OK;
    return send_later(by, dest, buf, len);
}
[[gnu::noinline]] int send_in_line(bbp_endpoint& by, int dest, const void* buf, size_t len) {
    if (by.fastest->send_in_line(dest, buf, len)) return BBP_OK;
    return send_in_lines(by, dest, buf, len);
}
[[gnu::noinline]] int recv_later(bbp_endpoint& by, int src, void* buf, size_t cap, size_t* len) {
    return on(&by, [&](auto& e) { return e.recv(src, buf, cap, len); });
}
[[gnu::noinline]] int recv_lines(bbp_endpoint& by, int src, void* buf, size_t cap, size_t* len) {
    return guarded([&] {
        const int from = by.fastest->recv_lines(src, buf, cap, len);
        return from >= 0 ? from : by.fastest->recv(src, buf, cap, len);
    });
}
[[gnu::noinline]] int recv_after_look(bbp_endpoint& by, int src, void* buf, size_t cap,
                                      size_t* len) {
    return guarded([&] { return by.fastest->recv_after_look(src, buf, cap, len); });
}

// The expected ways, compiled apart for the process's own endpoint: where that lies is known.
[[gnu::always_inline]] inline int send_by(bbp_endpoint& by, int dest, const void* buf, size_t len) {
    if (by.fastest == nullptr) return send_later(by, dest, buf, len);
    if (by.fastest->send_in_slot(dest, buf, len)) [[likely]]
        return BBP_OK;
    return send_in_line(by, dest, buf, len);
}
[[gnu::always_inline]] inline int recv_by(bbp_endpoint& by, int src, void* buf, size_t cap,
                                          size_t* len) {
    if (by.fastest != nullptr) [[likely]] {
        const int from = by.fastest->recv_at_once(src, buf, cap, len);
        if (from >= 0) [[likely]]
            return from;
        if (from == Fastest::kInLines) return recv_lines(by, src, buf, cap, len);
        if (from == BBP_EAGAIN) return recv_after_look(by, src, buf, cap, len);
    }
    return recv_later(by, src, buf, cap, len);
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

}  // namespace

extern "C" {

int bbp_init(int* rank, int* nprocs) {
    if (current.any != nullptr) {
        return fail(BBP_EINVAL, "this process is in a ring already; call bbp_finalize first");
    }
    return guarded([&] {
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
    delete static_cast<Opened*>(endpoint);
    return BBP_OK;
}
int bbp_rank_on(bbp_endpoint* endpoint) {
    return on(endpoint, [](auto& e) { return static_cast<int>(e.rank()); });
}
int bbp_ranks_on(bbp_endpoint* endpoint) {
    return on(endpoint, [](auto& e) { return static_cast<int>(e.ranks()); });
}

int bbp_send_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len) {
    if (endpoint == nullptr) [[likely]]
        return send_by(current, dest, buf, len);
    return send_by(*endpoint, dest, buf, len);
}

int bbp_trysend_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len) {
    return on(endpoint, [&](auto& e) { return e.send(dest, buf, len, Deadline::now()); });
}

int bbp_send_for_on(bbp_endpoint* endpoint, int dest, const void* buf, size_t len,
                    int64_t timeout_ns) {
    return sent_in_time(
        on(endpoint, [&](auto& e) { return e.send(dest, buf, len, e.deadline_in(timeout_ns)); }),
        {&dest, 1});
}

int bbp_recv_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len) {
    if (endpoint == nullptr) [[likely]]
        return recv_by(current, src, buf, cap, len);
    return recv_by(*endpoint, src, buf, cap, len);
}

int bbp_tryrecv_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len) {
    return on(endpoint, [&](auto& e) { return e.recv(src, buf, cap, len, Deadline::now()); });
}

int bbp_recv_for_on(bbp_endpoint* endpoint, int src, void* buf, size_t cap, size_t* len,
                    int64_t timeout_ns) {
    return received_in_time(
        on(endpoint,
           [&](auto& e) { return e.recv(src, buf, cap, len, e.deadline_in(timeout_ns)); }),
        src);
}

int bbp_msgavail_on(bbp_endpoint* endpoint, int src) {
    return on(endpoint, [&](auto& e) { return e.available(src); });
}

int bbp_probe_on(bbp_endpoint* endpoint, int src, size_t* len) {
    return on(endpoint, [&](auto& e) { return e.probe(src, len); });
}

int bbp_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                 size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(endpoint, [&](auto& e) { return e.mcast(list(dests, ndests), buf, len); });
}

int bbp_trymcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                    size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(endpoint,
              [&](auto& e) { return e.mcast(list(dests, ndests), buf, len, Deadline::now()); });
}

int bbp_mcast_for_on(bbp_endpoint* endpoint, const int* dests, int ndests, const void* buf,
                     size_t len, int64_t timeout_ns) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    const auto send = [&](auto& e) {
        return e.mcast(list(dests, ndests), buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on(endpoint, send), list(dests, ndests));
}

int bbp_compose_on(bbp_endpoint* endpoint, size_t len, void** buf) {
    return on(endpoint, [&](auto& e) { return e.compose(len, buf); });
}

int bbp_post_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len) {
    return on(endpoint, [&](auto& e) { return e.post({&dest, 1}, buf, len); });
}

int bbp_trypost_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len) {
    return on(endpoint, [&](auto& e) { return e.post({&dest, 1}, buf, len, Deadline::now()); });
}

int bbp_post_for_on(bbp_endpoint* endpoint, int dest, void* buf, size_t len, int64_t timeout_ns) {
    const auto post = [&](auto& e) {
        return e.post({&dest, 1}, buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on(endpoint, post), {&dest, 1});
}

int bbp_post_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf, size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(endpoint, [&](auto& e) { return e.post(list(dests, ndests), buf, len); });
}

int bbp_trypost_mcast_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf,
                         size_t len) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    return on(endpoint,
              [&](auto& e) { return e.post(list(dests, ndests), buf, len, Deadline::now()); });
}

int bbp_post_mcast_for_on(bbp_endpoint* endpoint, const int* dests, int ndests, void* buf,
                          size_t len, int64_t timeout_ns) {
    if (!is_list(dests, ndests)) return no_list(ndests);
    const auto post = [&](auto& e) {
        return e.post(list(dests, ndests), buf, len, e.deadline_in(timeout_ns));
    };
    return sent_in_time(on(endpoint, post), list(dests, ndests));
}

int bbp_discard_on(bbp_endpoint* endpoint, void* buf) {
    return on(endpoint, [&](auto& e) { return e.discard(buf); });
}

int bbp_view_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len) {
    return on(endpoint, [&](auto& e) { return e.view(src, data, len); });
}

int bbp_tryview_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len) {
    return on(endpoint, [&](auto& e) { return e.view(src, data, len, Deadline::now()); });
}

int bbp_view_for_on(bbp_endpoint* endpoint, int src, const void** data, size_t* len,
                    int64_t timeout_ns) {
    return received_in_time(
        on(endpoint, [&](auto& e) { return e.view(src, data, len, e.deadline_in(timeout_ns)); }),
        src);
}

int bbp_release_on(bbp_endpoint* endpoint, const void* data) {
    return on(endpoint, [&](auto& e) { return e.release(data); });
}

int bbp_barrier_on(bbp_endpoint* endpoint) {
    return on(endpoint, [](auto& e) { return e.barrier(); });
}

int bbp_barrier_for_on(bbp_endpoint* endpoint, int64_t timeout_ns) {
    return passed_in_time(
        on(endpoint, [&](auto& e) { return e.barrier(e.deadline_in(timeout_ns)); }));
}

int bbp_barrier_group_on(bbp_endpoint* endpoint, const int* members, int n, unsigned id) {
    if (!is_list(members, n)) return no_list(n);
    return on(endpoint, [&](auto& e) { return e.barrier_group(list(members, n), id); });
}

int bbp_barrier_group_for_on(bbp_endpoint* endpoint, const int* members, int n, unsigned id,
                             int64_t timeout_ns) {
    if (!is_list(members, n)) return no_list(n);
    const auto wait = [&](auto& e) {
        return e.barrier_group(list(members, n), id, e.deadline_in(timeout_ns));
    };
    return passed_in_time(on(endpoint, wait));
}

int bbp_group_join_on(bbp_endpoint* endpoint, const char* name) {
    if (name == nullptr) return no_name();
    return on(endpoint, [&](auto& e) { return e.group_join(name); });
}

int bbp_group_leave_on(bbp_endpoint* endpoint, const char* name) {
    if (name == nullptr) return no_name();
    return on(endpoint, [&](auto& e) { return e.group_leave(name); });
}

int bbp_mcast_group_on(bbp_endpoint* endpoint, const char* name, const void* buf, size_t len) {
    if (name == nullptr) return no_name();
    return on(endpoint, [&](auto& e) { return e.mcast_group(name, buf, len); });
}

int bbp_fd_on(bbp_endpoint* endpoint) {
    return on(endpoint, [](auto& e) { return e.fd(); });
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
